"""What is wrong with a view as a whole is in its state for as long as it is so, and blames no bucket."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from mv_assets.errors import MvError
from mv_assets.run.errors import WarehouseUnusable
from mv_assets.state import health
from mv_assets.state.model import Doing
from mv_assets.state.troubles import Troubles
from mv_assets_tests.support.lake import HOURLY, view
from mv_assets_tests.support.warehouse_lake import DuckDbLake

DuckDbLakes = Callable[..., DuckDbLake]
OTHERWISE = HOURLY.replace("count(*)", "count(at)")


def troubles(duckdb_lake: DuckDbLake) -> list[str]:
    return health.troubles(duckdb_lake.snapshot())


def test_a_table_that_can_not_be_listed_is_said_until_it_can_be(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0)
    made.run()
    events = made.folder / "events"
    events.rename(events.with_name("away"))
    found = made.watch().round()["v"]
    assert isinstance(found, MvError)
    (said,) = troubles(made)
    assert said.startswith(f"{found} (since ")
    made.later()
    made.watch().round()
    assert troubles(made) == [said]
    events.with_name("away").rename(events)
    made.look()
    assert troubles(made) == []
    assert made.states(0) == "V"


def test_a_warehouse_that_can_not_be_written_is_said_until_something_is_committed(
    duckdb_lake: DuckDbLakes,
) -> None:
    made = duckdb_lake()
    made.days(0)
    warehouse = made.folder / "warehouse"
    warehouse.write_bytes(b"in the way")
    report = made.run()["v"]
    assert report.error is not None
    (trouble,) = made.snapshot().troubles
    assert (trouble.doing, trouble.what) == (Doing.WORK, str(report.error))
    assert (made.states(0), made.snapshot().attempts) == ("-", {})
    made.later(10 * 3_600_000)
    made.look()
    assert [each.since for each in made.snapshot().troubles] == [trouble.since]
    warehouse.unlink()
    made.run()
    assert (troubles(made), made.states(0)) == ([], "V")


def test_what_a_peer_has_done_meanwhile_is_no_trouble_any_more(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0)
    made.run()
    error = WarehouseUnusable("/warehouse", "gone")
    Troubles(made.store, made.clock).note(Doing.WORK, {"v": error})
    assert len(troubles(made)) == 1
    made.watch().round()
    assert troubles(made) == []


def test_what_is_troubled_is_no_stall(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0)
    (made.folder / "warehouse").write_bytes(b"in the way")
    made.run()
    made.look()
    made.later(3_600_001)
    made.look()
    assert health.stall(made.snapshot(), 0, 3_600_000, made.clock()) is None
    (made.folder / "warehouse").unlink()


def test_one_that_is_fenced_leaves_no_trouble_to_the_one_that_took_over(duckdb_lake: DuckDbLakes) -> None:
    made, other = duckdb_lake(), duckdb_lake(view(sql=OTHERWISE))
    made.days(0)
    made.run()
    other.run()
    assert isinstance(made.watch().round()["v"], MvError)
    assert troubles(other) == []


def test_one_views_trouble_is_not_anothers(duckdb_lake: DuckDbLakes) -> None:
    joined = HOURLY.replace("at)", "events.at)").replace("events GROUP", "events CROSS JOIN names GROUP")
    made = duckdb_lake(view(), view("j", dimensions=["names"], sql=joined), dimensions=("names",))
    made.days(0)
    shutil.rmtree(made.folder / "names")
    made.watch().round()
    assert troubles(made) == []
    assert len(health.troubles(made.snapshot("j"))) == 1
    (made.folder / "names").mkdir()

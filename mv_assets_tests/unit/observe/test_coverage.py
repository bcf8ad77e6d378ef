"""A view that starts with its data: where it begins, and what comes before that later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets.buckets import HOUR
from mv_assets.observe.coverage import first_data
from mv_assets.plan import scope
from mv_assets.state.errors import OutOfCoverage
from mv_assets.state.model import Segment
from mv_assets.tables.listing import ALWAYS, Listing
from mv_assets_tests.support.lake import through, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.warehouse_lake import DuckDbLake

DuckDbLakes = Callable[..., DuckDbLake]
EARLIEST = view(start="earliest")
QUARTERS = "SELECT date_trunc('minute', at) AS hour, count(*) AS n FROM events GROUP BY ALL"


def start(lake: DuckDbLake, name: str = "v") -> int:
    return lake.snapshot(name).header.start // DAY


def test_it_begins_with_the_first_data(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake(EARLIEST)
    made.days(3, 5)
    made.converge()
    assert (start(made), made.watermark(), made.states(2, 3, 4, 5)) == (3, 6, "-VVV")


def test_a_plan_that_writes_nothing_finds_the_same_beginning(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite(EARLIEST)
    made.days(3)
    assert made.dry().header.start == 3 * DAY
    assert made.store.views() == []


def test_earlier_data_that_comes_later_is_covered_and_the_watermark_stays(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake(EARLIEST)
    made.days(3, 4)
    made.converge()
    before = made.snapshot().header
    made.days(1)
    assert made.planned() == [("DELETE", [2]), ("OVERWRITE", [1])]
    assert made.reason(1) == "coverage was extended"
    made.converge()
    after = made.snapshot().header
    assert (start(made), made.watermark(), made.states(0, 1, 2, 3)) == (1, 5, "-VVV")
    assert after.definition == before.definition


def test_a_table_without_data_begins_now_and_then_where_its_data_does(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    made = duckdb_lake_on_sqlite(EARLIEST)
    made.look()
    assert start(made) == made.watermark() == made.clock() // DAY
    made.days(2)
    made.converge()
    assert (start(made), made.watermark(), made.states(2)) == (2, 3, "V")


def test_coverage_is_not_given_up_when_the_first_data_goes(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite(EARLIEST)
    made.days(1, 2)
    made.converge()
    made.remove("day-1.parquet")
    made.converge()
    assert (start(made), made.states(1, 2)) == (1, "VV")


def test_one_wrong_date_is_said_and_keeps_nothing_from_its_work(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite(view(sql=QUARTERS, bucket="15m", start="earliest"))
    now = made.clock() // DAY
    made.days(now - 3, now - 2)
    made.converge()
    made.write("wrong.parquet", through(0))
    observed = made.look()
    (line,) = observed.wrong.of_view()
    assert "events: file wrong.parquet: to start at 1970-01-01T00:00" in line
    assert "declare `start: 1970-01-01T00:00`" in line
    made.days(now - 1)
    made.converge()
    assert (start(made), made.watermark()) == (now - 3, now)
    # A look that finds nothing new says it too.
    assert len(made.look().wrong.of_view()) == 1
    made.remove("wrong.parquet")
    assert made.look().wrong.of_view() == []


def test_what_is_wrong_with_a_date_is_said_in_whichever_way_it_is(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite(EARLIEST)
    made.write("old.parquet", through(-400_000))
    (line,) = made.look().wrong.of_view()
    assert "old.parquet: it begins before 1001-01-01" in line


def test_a_file_whose_times_are_not_known_says_nothing_of_a_beginning() -> None:
    listing = Listing("events", "1", 0)
    assert first_data(listing) is None
    listing.add(Segment("b", 1, 5, 9))
    listing.add(Segment("a", 1, *ALWAYS))
    found = first_data(listing)
    assert found is not None
    assert found == (ALWAYS[0], "a")


def test_a_start_may_become_earliest_and_a_date_again(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite(view(start="1970-01-05"))
    made.days(2, 4)
    made.converge()
    definition = made.snapshot().header.definition
    assert start(made) == 4
    made.declare(EARLIEST)
    made.converge()
    assert (start(made), made.states(2, 3, 4)) == (2, "VVV")
    made.declare(view(start="1970-01-05"))
    made.converge()
    # Coverage is never given up.
    assert (start(made), made.snapshot().header.definition) == (2, definition)


def test_a_view_on_such_a_view_begins_where_that_does(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    above = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM v GROUP BY ALL"
    made = duckdb_lake_on_sqlite(
        EARLIEST, view("w", base="v", sql=above, time_column="day", start="earliest")
    )
    made.days(3, 4)
    made.look("w")
    assert start(made, "w") == 3
    made.days(1)
    made.look("w")
    assert start(made, "w") == 1


def test_before_the_first_look_a_bucket_may_be_named_and_later_not_before_coverage(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    made = duckdb_lake_on_sqlite(EARLIEST)
    made.days(2, 3)
    found = made.catalog.view("v")
    scope.prepare(made.manager, made.store, found, [2 * DAY], made.clock(), force=False, extend=False)
    made.converge()
    assert (start(made), made.states(2, 3)) == (2, "VV")
    with pytest.raises(OutOfCoverage, match="--extend"):
        scope.prepare(made.manager, made.store, found, [0], made.clock(), force=False, extend=False)


def test_a_peer_that_declares_the_view_meanwhile_takes_nothing_away(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake(EARLIEST)
    made.days(3)
    made.converge()
    made.later(HOUR)
    made.manager.declare(made.catalog.view("v").declaration)
    assert start(made) == 3

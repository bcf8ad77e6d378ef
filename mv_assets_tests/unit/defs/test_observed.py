"""What Dagster is told of base tables as a whole: their files, and what of them can't be read."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.buckets import DAY
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.warehouse_lake import DuckDbLake
from mv_assets_tests.unit.defs.in_process import in_process_dagster

DuckDbLakes = Callable[..., DuckDbLake]
EVENTS = dg.AssetKey("events")
SETTLED = {"settle": "0s"}
JOINED = (
    "SELECT date_trunc('hour', at) AS hour, borough, count(*) AS n FROM events "
    "JOIN zones ON events.x = zones.zone GROUP BY ALL"
)


def _observations(tick: dg.SensorResult) -> list[tuple[str | None, str]]:
    """The partitions that a tick tells of, and which files are broken."""
    seen = [each for each in tick.asset_events if isinstance(each, dg.AssetObservation)]
    return [(each.partition, str(each.metadata["broken files"].value)) for each in seen]


def test_a_base_table_says_which_files_are_broken_once_they_are_and_when_they_are_gone(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    lake = duckdb_lake_on_sqlite(view(), table=SETTLED)
    lake.days(0, 1, 2, 3)
    lake.clock.now = 4 * DAY
    with in_process_dagster(lake) as made:
        made.tick()
        lake.run()
        made.tick()
        bad = lake.folder / "events" / "bad.parquet"
        bad.write_bytes(b"PAR1garbagePAR1")
        ((partition, says),) = _observations(made.tick())
        assert partition == "1970-01-04"
        assert says.startswith("- `file bad.parquet: ")
        assert _observations(made.tick()) == []
        bad.unlink()
        assert _observations(made.tick()) == [("1970-01-04", "none")]


def test_a_new_instance_is_told_what_the_tables_hold_though_nothing_is_due(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    lake = duckdb_lake_on_sqlite(view(), table=SETTLED)
    lake.days(0, 1, 2, 3)
    lake.clock.now = 4 * DAY
    with in_process_dagster(lake) as made:
        made.tick()
        lake.run()
        made.tick()
    with in_process_dagster(lake) as anew:
        assert _observations(anew.tick()) == [("1970-01-04", "none")]
        (known,) = anew.instance.fetch_observations(EVENTS, limit=5).records
        assert known.asset_observation is not None
        assert known.asset_observation.metadata["files of the table"].value == 4
        assert _observations(anew.tick()) == []


def test_a_dimension_is_told_of_too(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    joined = view(sql=JOINED, dimensions=("zones",))
    lake = duckdb_lake_on_sqlite(joined, dimensions=("zones",), table=SETTLED)
    lake.days(0, 1)
    pq.write_table(pa.table({"zone": [0, 1], "borough": ["a", "b"]}), lake.folder / "zones" / "zones.parquet")
    lake.clock.now = 2 * DAY
    with in_process_dagster(lake) as made:
        made.tick()
        lake.run()
        made.tick()
    with in_process_dagster(lake) as anew:
        assert _observations(anew.tick()) == [(None, "none"), ("1970-01-02", "none")]
        assert _observations(anew.tick()) == []


@pytest.mark.parametrize(("days", "told"), [((), "1970-01-04"), ((0, 1), "1970-01-02")])
def test_it_is_told_at_the_last_partition_that_the_data_reaches(
    duckdb_lake_on_sqlite: DuckDbLakes, days: tuple[int, ...], told: str
) -> None:
    lake = duckdb_lake_on_sqlite(view(), table=SETTLED)
    lake.days(*days)
    lake.clock.now = 4 * DAY + 1
    with in_process_dagster(lake) as made:
        lake.run()
        assert _observations(made.tick()) == [(told, "none")]

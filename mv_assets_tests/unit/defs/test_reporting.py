"""What Dagster knows of buckets is asked for all of them at once."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg

from mv_assets.buckets import DAY
from mv_assets.config import DeclaredProject, ParquetTable
from mv_assets.config.file import Draft
from mv_assets.defs.tick.reporting import _known
from mv_assets.views.catalog import prepare
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.warehouse_lake import DuckDbLake
from mv_assets_tests.unit.defs.in_process import in_process_dagster

OTHER = "SELECT date_trunc('hour', at) AS hour, count(*) AS m FROM events GROUP BY ALL"


def test_the_last_that_dagster_was_told_of_each_bucket_is_known() -> None:
    table = ParquetTable(name="events", path="events", time_column="at")
    found = prepare(Draft("test", DeclaredProject(tables=(table,), views=(view(),))), schemas=False).view("v")
    key = dg.AssetKey("v")
    with dg.instance_for_test() as instance:
        for content, number in enumerate((0, 1, 2, 1, 3, 1)):
            told = dg.AssetMaterialization(
                "v", partition=found.buckets.key(number * DAY), metadata={"told": content}
            )
            instance.report_runless_asset_event(told)
        instance.report_runless_asset_event(dg.AssetMaterialization("w", partition="1970-01-02"))
        known = _known(instance, key, found, [number * DAY for number in (0, 1, 2, 4)])
        assert {bucket // DAY: each.metadata["told"].value for bucket, each in known.items()} == {
            0: 0,
            1: 5,
            2: 2,
        }
        assert _known(instance, key, found, []) == _known(instance, key, found, [9 * DAY]) == {}


def test_what_is_found_in_the_map_says_why_it_was_computed(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake],
) -> None:
    lake = duckdb_lake_on_sqlite(view(), table={"settle": "0s"})
    lake.days(0, 1, 2)
    lake.clock.now = 3 * DAY
    lake.run()
    lake.write("2 segments added.parquet", [day(1)])
    lake.run()
    lake.manager.force(lake.catalog.view("v").declaration, [2 * DAY], "somebody asked")
    lake.run()
    with in_process_dagster(lake) as made:
        made.tick()
        told = {key: each.metadata for key, each in made.materialized("v").items()}
        assert "reason" not in told["1970-01-01"]
        assert told["1970-01-02"]["reason"].value == "1 file added (2 segments added.parquet)"
        assert told["1970-01-03"]["reason"].value == "somebody asked"


def test_what_was_computed_since_has_its_own_reason_or_none(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake],
) -> None:
    """Not that of an earlier change: the log goes further back."""
    lake = duckdb_lake_on_sqlite(view(), table={"settle": "0s"})
    lake.days(0, 1)
    lake.clock.now = 2 * DAY
    lake.run()
    lake.write("late.parquet", [day(1)])
    lake.run()
    lake.declare(view(sql=OTHER))
    lake.run()
    with in_process_dagster(lake) as made:
        made.tick()
        assert "reason" not in made.materialized("v")["1970-01-02"].metadata

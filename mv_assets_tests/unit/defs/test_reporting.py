"""What Dagster knows of buckets is asked for all of them at once."""

from __future__ import annotations

import dagster as dg

from mv_assets.buckets import DAY
from mv_assets.config import DeclaredProject, ParquetTable
from mv_assets.config.file import Draft
from mv_assets.defs.tick.reporting import _known
from mv_assets.views.catalog import prepare
from mv_assets_tests.support.lake import view


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

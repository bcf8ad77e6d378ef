"""A project beside others: keys and names with a prefix, from the look to what Dagster is told."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg

from mv_assets.defs.names import Naming
from mv_assets_tests.support.lake import day
from mv_assets_tests.unit.defs.in_process import InProcessDagster

Make = Callable[..., InProcessDagster]
LAKE = Naming(prefix="lake", key_prefix=("raw", "lake"))


def test_a_late_file_is_seen_computed_and_told_under_the_prefixed_key(dagster: Make) -> None:
    made = dagster(naming=LAKE)
    assert made.settle() == ["raw/lake/v 1970-01-01..1970-01-04"]
    made.lake.write("late.parquet", [day(1)])
    assert made.settle() == ["raw/lake/v 1970-01-02"]
    assert len(made.materialized("v")) == 4
    told = made.check("v", "no_stale_buckets")
    assert told is not None
    assert told.passed
    observed = made.instance.fetch_observations(LAKE.key("events"), limit=10).records
    assert observed


def test_jobs_tell_of_it_by_the_prefixed_key(dagster: Make) -> None:
    made = dagster(naming=LAKE)
    assert made.job("refresh_view", view="v").success
    assert len(made.materialized("v")) == 4
    assert made.job("drop_view", view="v", confirm="v").success
    assert made.materialized("v") == {}


def test_an_asset_downstream_reads_a_view_with_a_prefix(dagster: Make) -> None:
    rows = list[int]()

    @dg.asset(ins={"v": dg.AssetIn(LAKE.key("v"))})
    def report(v) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        rows.append(v.count())

    made = dagster(naming=LAKE, extra=dg.Definitions(assets=[report]))
    made.settle()
    assert made.execute([dg.AssetKey("report")], None, {}).success
    assert rows[0] > 0

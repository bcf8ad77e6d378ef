"""Views of several tables, with windows and functions, in Dagster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg

from mv_assets.config import MaterializedView
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.shop import Shop
from mv_assets_tests.unit.defs.in_process import InProcessDagster

Make = Callable[..., InProcessDagster]
ROLLING = "SELECT :bucket_start AS day, count(*) AS n, count(DISTINCT x) AS xs FROM events"
PAID = "SELECT :bucket_start AS day, count(*) AS n FROM events LEFT JOIN payments USING (x)"
CODE = """\
from pyspark.sql import functions as F


def counted(events, bucket):
    return events.groupBy("x").agg(F.count("*").alias("n")).withColumn("day", F.lit(bucket.start))
"""


def rolling(name: str = "v", **given: Any) -> MaterializedView:
    """Seven days that end with the bucket."""
    base = {"table": "events", "from": "6d"}
    return view(name, **{"base": base, "scope": "bucket", "sql": ROLLING, "time_column": "day", **given})


def upstream(made: InProcessDagster, table: str, *keys: str, of: str = "v") -> list[str]:
    """The partitions of a table that Dagster takes some of a view's to depend on."""
    graph = made.repository.asset_graph
    below, above = graph.get(dg.AssetKey(table)), graph.get(dg.AssetKey(of))
    mapping = graph.get_partition_mapping(above.key, below.key)
    assert above.partitions_def is not None
    assert below.partitions_def is not None
    found = mapping.get_upstream_mapped_partitions_result_for_partitions(
        above.partitions_def.subset_with_partition_keys(keys),
        above.partitions_def,
        below.partitions_def,
        dynamic_partitions_store=made.instance,
    )
    return sorted(found.partitions_subset.get_partition_keys())


def test_a_partition_depends_on_all_that_its_window_reaches(dagster: Make) -> None:
    days = view("days", sql="SELECT date_trunc('day', at) AS hour, count(*) AS n FROM events GROUP BY 1")
    sums = "SELECT :bucket_start AS day, sum(n) AS n FROM days"
    made = dagster(rolling(), days, rolling("week", base={"table": "days", "from": "6d"}, sql=sums))
    week = [f"1970-01-{number:02}" for number in range(4, 11)]
    assert upstream(made, "days", "1970-01-10", of="week") == week
    assert upstream(made, "events", "1970-01-10") == week


def test_a_late_file_is_asked_for_as_the_buckets_whose_windows_it_lies_in(dagster: Make) -> None:
    made = dagster(rolling(), days=tuple(range(12)), table={"settle": "0s"})
    assert made.settle() == ["v 1970-01-01..1970-01-12"]
    made.lake.write("late.parquet", [day(3)])
    made.lake.clock.now += 3_600_000
    assert made.settle() == ["v 1970-01-04..1970-01-10"]
    made.lake.check()
    assert set(made.materialized("v")) == {f"1970-01-{number:02}" for number in range(1, 13)}


def test_a_function_is_materialized_like_any_view(dagster: Make, shop: Callable[..., Shop]) -> None:
    oracle = "SELECT x, count(*) AS n, $bucket_start AS day FROM events GROUP BY x"
    counted = rolling(sql=None, python="shop.views:counted")
    made = dagster(counted, code=shop(CODE).folder, oracle={"v": oracle})
    assert made.settle() == ["v 1970-01-01..1970-01-04"]
    made.lake.check()
    spec = made.repository.asset_graph.get(dg.AssetKey("v"))
    assert spec.metadata["python"].value == "`shop.views:counted`"
    assert made.materialize("v", "1970-01-02").success


def test_a_view_of_two_tables_is_asked_for_by_its_bases_sensor_whichever_changed(dagster: Make) -> None:
    further = [{"table": "payments", "to": "1d"}]
    paid = view(sql=PAID, scope="bucket", time_column="day", with_=further)
    hourly = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM payments GROUP BY 1"
    others = view("others", base="payments", sql=hourly)
    made = dagster(paid, others, further=["payments"], table={"settle": "0s"}, days=tuple(range(6)))
    made.lake.days(*range(6), table="payments")
    assert made.settle() == ["v 1970-01-01..1970-01-05"]
    assert made.settle("payments") == ["others 1970-01-01..1970-01-06"]
    made.lake.write("late.parquet", [day(3)], table="payments")
    made.lake.clock.now += 3_600_000
    assert made.settle("payments") == ["others 1970-01-04"]
    assert made.settle() == ["v 1970-01-03..1970-01-04"]
    made.lake.check()

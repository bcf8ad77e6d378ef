"""Invariant 10: a bucket's rows are the same whatever it is computed with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from mv_assets.run.body import rows_of_bucket
from mv_assets.run.compute import Computation, Schemas
from mv_assets.spark.names import TemporaryNames
from mv_assets.state.model import BUCKET
from mv_assets_tests.support.lake import day, observation_of, view
from mv_assets_tests.support.shop import Shop
from mv_assets_tests.support.spark_lake import SparkLake, plainly

NUMBER = 64
CTE = """
    WITH counted AS (SELECT x, count(*) AS n FROM events GROUP BY x)
    SELECT :bucket_start AS day, x, n FROM counted
"""
WINDOW = """
    SELECT at AS day, x, row_number() OVER (ORDER BY at, x) AS n, sum(x) OVER () AS total FROM events
"""
VIEWS = """\
from pyspark.sql import functions as F


def counted(events, bucket):
    return events.groupBy("x").agg(F.count("*").alias("n")).withColumn("day", F.lit(bucket.start))


def by_a_temporary_view(events, bucket):
    events.createOrReplaceTempView("of_this_bucket")
    made = events.sparkSession.sql("SELECT x, count(*) AS n FROM of_this_bucket GROUP BY x")
    return made.withColumn("day", F.lit(bucket.start))
"""
BODIES: dict[str, dict[str, Any]] = {
    "a CTE": {"sql": CTE},
    "a window function": {"sql": WINDOW},
    "a function": {"sql": None, "python": "shop.views:counted"},
}
Make = Callable[[str], SparkLake]
Rows = dict[int, Counter[Any]]


@pytest.fixture
def lake(spark_lake: Callable[..., SparkLake], shop: Callable[..., Shop]) -> Make:
    """Two months in files of five days, of which a bucket reads seven days."""

    def make(body: str) -> SparkLake:
        given = BODIES.get(body) or {"sql": None, "python": f"shop.views:{body}"}
        base = {"table": "events", "from": "6d"}
        declared = view(base=base, scope="bucket", time_column="day", **given)
        made = spark_lake(declared, code=shop(VIEWS).folder)
        for first in range(0, NUMBER, 5):
            times = [day(number, hour) for number in range(first, min(first + 5, NUMBER)) for hour in (1, 13)]
            made.write(f"{first}.parquet", times, first)
        return made

    return make


def computed(lake: SparkLake, size: int) -> Rows:
    """The rows of each bucket, so many of them computed in a job."""
    inputs = observation_of(lake.look(whole=True))
    seen = {number * 86_400_000: inputs.buckets[number * 86_400_000] for number in range(NUMBER)}
    found: Rows = {}
    for first in range(0, NUMBER, size):
        part = list(seen)[first : first + size]
        some = {bucket: seen[bucket] for bucket in part}
        with (
            lake.engine.session() as spark,
            lake.open().sources.computation(spark, inputs.view_inputs, some) as computation,
        ):
            [alike] = computation.groups(part).alike
            for row in computation.rows(alike.schemas, part).toArrow().to_pylist():
                bucket = row.pop(BUCKET)
                values = tuple(plainly(value) for _, value in sorted(row.items()))
                found.setdefault(bucket, Counter())[values] += 1
    return found


@pytest.mark.parametrize("body", BODIES)
def test_buckets_have_the_same_rows_computed_together_in_halves_and_one_by_one(lake: Make, body: str) -> None:
    made = lake(body)
    together = computed(made, NUMBER)
    assert len(together) == NUMBER
    assert computed(made, NUMBER // 2) == together
    assert computed(made, 1) == together


@pytest.mark.parametrize("body", BODIES)
def test_buckets_that_read_what_their_neighbours_read_are_found(
    lake: Make, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def see_all(self: Computation, schemas: Schemas, bucket: int) -> DataFrame:
        frames = {
            table.window.table: table.reader.frame(sorted(set().union(*table.files.values())), schema)
            for table, schema in zip(self._tables, schemas, strict=True)
        }
        return rows_of_bucket(self._spark, self._view, bucket, frames, self._names)

    monkeypatch.setattr(Computation, "_rows_of", see_all)
    made = lake(body)
    assert computed(made, NUMBER) != computed(made, NUMBER // 2)


@pytest.mark.parametrize("body", ["a CTE", "by_a_temporary_view"])
def test_buckets_that_share_a_name_are_found_where_names_are_looked_up_late(
    lake: Make, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def the_same(self: TemporaryNames, frame: DataFrame) -> str:
        self.call(frame, "_mv_the_same")
        return "_mv_the_same"

    monkeypatch.setattr(TemporaryNames, "of", the_same)
    monkeypatch.setattr(TemporaryNames, "of_others", lambda _self: [])
    made = lake(body)
    late = made.engine.declared.remote is not None
    assert (computed(made, NUMBER) != computed(made, NUMBER // 2)) == late

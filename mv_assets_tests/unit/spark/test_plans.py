"""How Spark goes about a computation: what it reads, skips, shuffles and sorts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from mv_assets.spark.connect import is_client
from mv_assets.spark.job_size import PER_JOB, size
from mv_assets.spark.session import Engine
from mv_assets_tests.support.lake import observation_of, view
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, rows_at

Make = Callable[..., UncheckedLake]
SUMS = "SELECT date_trunc('day', at) AS hour, zone, sum(x) AS x FROM events GROUP BY ALL"


@contextmanager
def set_to(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key) or ""
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before)


@contextmanager
def plan_of(lake: UncheckedLake, spark: SparkSession) -> Iterator[str]:
    """How all days are computed."""
    observation = observation_of(lake.look())
    sources = lake.open().sources
    with sources.computation(spark, observation.view_inputs, observation.buckets) as computation:
        [alike] = computation.groups(list(observation.buckets)).alike
        spark.conf.set("spark.sql.maxMetadataStringLength", "10000")
        with redirect_stdout(StringIO()) as said:
            computation.rows(alike.schemas, alike.buckets).explain(mode="formatted")
        yield said.getvalue()


def test_only_the_used_columns_and_the_asked_time_are_read(unchecked_lake: Make, engine: Engine) -> None:
    lake = unchecked_lake(view(sql=SUMS))
    # The first has rows from before the view's start.
    for number in range(3):
        lake.put(f"{number}.parquet", rows_at([number - 1, number], zone="a", x=1, y="unused", z=2.5))
    with engine.session() as spark, plan_of(lake, spark) as plan:
        [columns] = re.findall(r"ReadSchema: struct<(.*)>", plan)
        assert sorted(part.partition(":")[0] for part in columns.split(",")) == ["at", "x", "zone"]
        [pushed] = re.findall(r"PushedFilters: \[(.*)\]", plan)
        assert "GreaterThanOrEqual(at," in pushed
        assert "LessThan(at," in pushed
        assert len(re.findall(r"\) Scan parquet", plan)) == 1


def test_files_that_lie_in_the_asked_time_are_not_asked_for_it(unchecked_lake: Make, engine: Engine) -> None:
    """What would stand in the plan, Spark would compile: another class for each day."""
    lake = unchecked_lake(view(sql=SUMS))
    for number in range(3):
        lake.put(f"{number}.parquet", rows_at([number, None], zone="a", x=number + 1))
    with engine.session() as spark, plan_of(lake, spark) as plan:
        assert re.findall(r"PushedFilters: \[(.*)\]", plan) == ["IsNotNull(at)"]
    assert lake.outcomes() == {0: "committed", 1: "committed", 2: "committed"}
    assert lake.rows("x") == [1, 2, 3]


def test_few_rows_are_not_dealt_out_to_many(unchecked_lake: Make, engine: Engine) -> None:
    lake = unchecked_lake(view(sql=SUMS))
    lake.put("a.parquet", rows_at([0, 1, 2], zone="a", x=1))
    with (
        engine.session() as spark,
        set_to(spark, "spark.sql.shuffle.partitions", "100"),
        plan_of(lake, spark) as plan,
    ):
        assert re.findall(r"hashpartitioning\(.*, (\d+)\)", plan) == ["8"]


@pytest.mark.parametrize(
    ("read", "parts", "split"),
    [
        (0, "8", 32 << 20),
        (129 << 20, "9", 32 << 20),
        (2560 << 20, "100", 40 << 20),
        (1 << 50, "100", 48 << 20),
    ],
)
def test_the_more_there_is_to_read_the_more_parts_up_to_what_is_set(
    engine: Engine, read: int, parts: str, split: int
) -> None:
    with engine.session() as spark, set_to(spark, "spark.sql.shuffle.partitions", "100"):
        spark.conf.set("spark.sql.files.maxPartitionBytes", "48mb")
        size(spark, read)
        assert spark.conf.get("spark.sql.adaptive.coalescePartitions.initialPartitionNum") == parts
        found = spark.conf.get("spark.sql.files.maxPartitionBytes")
        assert found == ("48mb" if split == 48 << 20 else str(split))


def test_a_large_job_after_a_small_one_is_split_as_the_session_is_set(engine: Engine) -> None:
    with engine.session() as spark:
        own = spark.conf.get("spark.sql.files.maxPartitionBytes")
        size(spark, 0)
        assert spark.conf.get("spark.sql.files.maxPartitionBytes") == str(32 << 20)
        size(spark, 1 << 50)
        assert spark.conf.get("spark.sql.files.maxPartitionBytes") == own


def test_who_uses_a_session_next_finds_nothing_of_the_last_job(engine: Engine) -> None:
    with engine.session() as spark:
        before = {key: spark.conf.get(key, None) for key in PER_JOB}
        size(spark, 0)
    with engine.session() as again:
        assert again is spark
        assert {key: again.conf.get(key, None) for key in PER_JOB} == before


def test_files_on_this_machine_are_looked_up_without_a_job(unchecked_lake: Make, engine: Engine) -> None:
    lake = unchecked_lake(view(sql=SUMS))
    for number in range(40):
        lake.put(f"{number}.parquet", rows_at([0], zone="a", x=pa.array([number])))
    with engine.session() as spark:
        if is_client(spark):
            pytest.skip("a client does not see a server's jobs")
        jobs = spark.sparkContext.statusTracker()
        before = set(jobs.getJobIdsForGroup(None))
        with plan_of(lake, spark):
            assert set(jobs.getJobIdsForGroup(None)) == before
    assert lake.outcomes() == {0: "committed"}
    assert lake.rows("x") == [sum(range(40))]

"""What a computation reads is there while it runs, and nobody's afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets.spark.errors import JobFailed
from mv_assets_tests.support.lake import observation_of, view
from mv_assets_tests.support.spark_lake import SparkLake

DAILY = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM v GROUP BY ALL"


@pytest.mark.parametrize("failed", [True, False], ids=["where it failed", "where it went well"])
def test_a_computation_leaves_neither_names_nor_leases(
    spark_lake: Callable[..., SparkLake], *, failed: bool
) -> None:
    lake = spark_lake(view(), view("daily", base="v", sql=DAILY, time_column="day"))
    lake.days(0, 1)
    lake.run("v")
    observation, project = observation_of(lake.look("daily")), lake.open()

    def compute() -> None:
        with project.sources.computation(spark, observation.view_inputs, observation.buckets) as computation:
            [alike] = computation.groups(list(observation.buckets)).alike
            assert computation.rows(alike.schemas, alike.buckets).count() == 2
            assert spark.catalog.tableExists("v")
            assert project.leases.held("v")
            if failed:
                raise JobFailed("in the middle of it")

    with project.engine.session() as spark:
        if failed:
            with pytest.raises(JobFailed):
                compute()
        else:
            compute()
        assert not spark.catalog.tableExists("v")
    assert not project.leases.held("v")

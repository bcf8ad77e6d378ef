"""Cases of the tables' family that are about files which can't be read: real files, real Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.spark_lake import SparkLake

SparkLakes = Callable[..., SparkLake]
SUMS = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, sum(x) AS x FROM events GROUP BY ALL"


@pytest.fixture
def filled(spark_lake: SparkLakes) -> SparkLake:
    """Days 0 to 2, all VALID."""
    made = spark_lake(view(sql=SUMS))
    made.days(0, 1, 2)
    made.run()
    assert (made.states(0, 1, 2), made.watermark()) == ("VVV", 3)
    return made


def rows_of(made: SparkLake, number: int) -> list[dict[str, object]]:
    """What a day holds, VALID or not."""
    found = made.stored(only_valid=False).sort_by("hour").to_pylist()
    return [row for row in found if row["hour"].date() == day(number).date()]


def test_130_a_new_file_with_a_whole_footer_and_damaged_pages_fails_its_buckets_and_is_named(
    filled: SparkLake,
) -> None:
    before = rows_of(filled, 1)
    filled.write("late.parquet", [day(1)], value=7)
    filled.spoil("late.parquet", "at")
    filled.days(3)
    report = filled.run()["v"]
    outcomes = {bucket // DAY: result.outcome.value for bucket, result in report.results.items()}
    assert outcomes == {1: "failed", 3: "committed"}
    assert (filled.states(0, 1, 2, 3), filled.watermark()) == ("VSVV", 4)
    assert "late.parquet" in report.wrong.failed[DAY]
    assert ["late.parquet" in line for line in report.wrong.of_view()] == [True]
    # What it held stays, as what it is: STALE.
    assert rows_of(filled, 1) == before != []
    filled.write("late.parquet", [day(1)], value=7)
    assert not filled.run()["v"].wrong
    assert (filled.states(0, 1, 2, 3), len(rows_of(filled, 1))) == ("VVVV", len(before) + 1)
    filled.check()


def test_130_a_new_file_without_a_footer_holds_w_and_is_named(filled: SparkLake) -> None:
    filled.write("late.parquet", [day(1)])
    filled.damage("late.parquet")
    filled.days(3)
    report = filled.run()["v"]
    assert (filled.states(0, 1, 2, 3), filled.watermark()) == ("VVVV", 3)
    (line,) = report.wrong.of_view()
    assert "late.parquet" in line
    assert "the watermark stays" in line
    filled.remove("late.parquet")
    assert not filled.run()["v"].wrong
    assert filled.watermark() == 4

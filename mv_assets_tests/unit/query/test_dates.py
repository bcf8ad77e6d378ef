"""Dates that are counted from others are the days that Spark says they are, and dates."""

from __future__ import annotations

import pytest
import sqlglot

from mv_assets.spark.session import Engine
from mv_assets.spark_sql.dates import worked_out

DAYS = (
    "DATE '1998-12-01' - INTERVAL 90 DAY",
    "DATE '1998-12-01' - INTERVAL '90' DAYS",
    "DATE '1998-12-01' - INTERVAL '90 days'",
    "DATE '1998-12-01' + INTERVAL -3 DAY",
    "CAST('2024-01-31' AS DATE) + INTERVAL 1 MONTH",
    "DATE '2024-03-31' - INTERVAL '1' MONTH",
    "DATE '2024-02-29' + INTERVAL 1 YEAR",
    "DATE '1970-01-01' - INTERVAL 14 MONTHS",
    "date_add(DATE '2024-02-28', 2)",
    "date_add('2024-02-28', 2)",
    "date_sub(DATE '2024-03-01', 1)",
    "date_sub(DATE '2024-03-01', -1)",
    "add_months(DATE '2024-02-29', 12)",
    "add_months(DATE '2023-02-28', 12)",
    "to_date('2024-02-29')",
)


def test_a_day_that_is_counted_is_the_one_that_spark_counts(engine: Engine) -> None:
    with Engine(engine.declared, lambda _: engine.shared()).session() as spark:
        columns = ", ".join(f"concat(typeof({each}), ' ', {each})" for each in DAYS)
        [row] = spark.sql(f"SELECT {columns}").collect()
    for text, said in zip(DAYS, row, strict=True):
        found = worked_out(sqlglot.parse_one(text, read="spark"))
        assert found is not None, text
        assert f"date {found.this.name}" == said, text


@pytest.mark.parametrize(
    "text",
    [
        "DATE '1998-12-01' - INTERVAL 2 DAYS 12 HOURS",
        "DATE '1998-12-01' - INTERVAL 1 MONTH 2 DAYS",
        "DATE '1998-12-01' - INTERVAL 1 HOUR",
        "DATE '1998-12-01' - INTERVAL 1 WEEK",
        "DATE '1998-12-01' - INTERVAL '1-2' YEAR TO MONTH",
        "DATE '9999-12-31' + INTERVAL 1 DAY",
        "DATE '1998-12' + INTERVAL 1 DAY",
        "DATE '1998-02-30' + INTERVAL 1 DAY",
        "at + INTERVAL 1 DAY",
        "to_date('01.02.2024', 'dd.MM.yyyy')",
        "TIMESTAMP '1998-12-01' - INTERVAL 1 DAY",
    ],
)
def test_anything_else_is_left_as_it_is(text: str) -> None:
    assert worked_out(sqlglot.parse_one(text, read="spark")) is None

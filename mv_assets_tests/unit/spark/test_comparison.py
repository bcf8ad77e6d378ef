"""Rows of two data frames compared bucket by bucket, whatever their types and order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mv_assets.spark.comparison import Compared, compared
from mv_assets.spark.session import Engine
from mv_assets.state.model import BUCKET

pytestmark = pytest.mark.slow
Rows = Sequence[str]
NAN, INF = "double('NaN')", "double('Infinity')"


@pytest.fixture
def spark(engine: Engine) -> Iterator[SparkSession]:
    with engine.session() as session:
        yield session


def differing(spark: SparkSession, kinds: str, stored: Rows, computed: Rows, **given: Any) -> int:
    """How many rows differ, of rows written as SQL values of columns a, b, ... of the given types."""
    one, other = (
        " UNION ALL ".join(
            [f"SELECT 0L AS {BUCKET}, {_cast(kinds, row)}" for row in rows]
            or [f"SELECT 0L AS {BUCKET}, {_cast(kinds, 'NULL; NULL; NULL; NULL')} WHERE false"]
        )
        for rows in (stored, computed)
    )
    found = compared(spark.sql(one), spark.sql(other), **given)
    if not stored and not computed:
        assert found == {}
        return 0
    assert (found[0].stored, found[0].computed) == (len(stored), len(computed))
    return found[0].differing


def _cast(kinds: str, row: str) -> str:
    pairs = zip("abcd", kinds.split("; "), row.split("; "), strict=False)
    return ", ".join(f"CAST({value} AS {kind}) AS `{name} x``.`" for name, kind, value in pairs)


@pytest.mark.parametrize(
    ("kinds", "row"),
    [
        ("int; string", "1; 'a'"),
        ("int; string", "NULL; NULL"),
        ("decimal(38,18); date; timestamp; timestamp_ntz", "1.5; '1969-12-31'; '1900-01-01 00:00:01'; NULL"),
        ("double; float", f"{NAN}; {INF}"),
        ("double; double", f"-{INF}; NULL"),
        (
            "array<int>; struct<p:int,q:array<string>>",
            "array(1, NULL); named_struct('p', 1, 'q', array('x'))",
        ),
        ("map<string,map<string,int>>", "map('k', map('l', 1))"),
        ("binary; boolean", "X'00ff'; true"),
        ("variant", "parse_json('{\"k\": [1, null]}')"),
        ("interval day to second; interval month", "INTERVAL '1' DAY; INTERVAL '1' MONTH"),
    ],
)
def test_a_row_of_any_type_equals_itself_and_not_another(spark: SparkSession, kinds: str, row: str) -> None:
    null = "; ".join("NULL" for _ in kinds.split("; "))
    assert differing(spark, kinds, [row, row], [row, row]) == 0
    assert differing(spark, kinds, [row], [row, row]) == 1
    assert differing(spark, kinds, [row, row, row], [row]) == 2
    if row != null:
        assert differing(spark, kinds, [row], [null]) == 1


@pytest.mark.parametrize(
    ("kinds", "one", "other"),
    [
        ("string; string", "NULL; 'a'", "'a'; NULL"),
        ("string; string", "''; 'a'", "NULL; 'a'"),
        ("string; string", "'a'; 'b'", "'ab'; ''"),
        ("array<string>", "array(NULL, 'a')", "array('a', NULL)"),
        ("array<string>", "array()", "NULL"),
        ("array<string>", "array(NULL)", "array()"),
        ("array<array<int>>", "array(array(1), array(2))", "array(array(1, 2))"),
        ("array<int>; array<int>", "array(1, 2); array(3)", "array(1); array(2, 3)"),
        ("array<int>", "array(1, 2)", "array(2, 1)"),
        ("struct<p:int,q:int>", "named_struct('p', 1, 'q', NULL)", "named_struct('p', NULL, 'q', 1)"),
        ("struct<p:int>", "named_struct('p', NULL)", "NULL"),
        ("map<string,int>", "map('k', 1)", "map('k', NULL)"),
        ("map<string,int>", "map('k', 1, 'l', 2)", "map('k', 2, 'l', 1)"),
        ("array<double>", "array(1.0)", "array(1.001)"),
        ("int; int", "0; 1", "1; 0"),
        ("decimal(10,2)", "1.01", "1.02"),
        ("timestamp", "'2024-01-01 00:00:00.000001'", "'2024-01-01 00:00:00'"),
        ("double", "1.0", "1.00001"),
        ("double", "1.0", "NULL"),
        ("double", "1.0", NAN),
        ("double", "1.0", INF),
        ("double", INF, f"-{INF}"),
        ("double", NAN, INF),
        ("double; double", "1.0; 2.0", "2.0; 1.0"),
        ("double; double", "1.0; NULL", "NULL; 1.0"),
        ("string; double", "'a'; 1.0", "'a'; 2.0"),
        ("variant", "parse_json('[1, 2]')", "parse_json('[2, 1]')"),
    ],
)
def test_rows_that_are_almost_alike_differ(spark: SparkSession, kinds: str, one: str, other: str) -> None:
    assert differing(spark, kinds, [one], [other]) == 1


@pytest.mark.parametrize(
    ("kinds", "one", "other"),
    [
        ("double", "1.0", "1.0000000001"),
        ("double", "0.1D + 0.2D + 0.3D", "0.1D + (0.2D + 0.3D)"),
        ("double", "0.0", "-0.0"),
        ("double", "1e-12", "-1e-12"),
        ("float", "1.5", "1.5"),
        ("array<double>", "array(0.1D + 0.2D + 0.3D)", "array(0.1D + (0.2D + 0.3D))"),
        (
            "struct<p:double>",
            "named_struct('p', 0.1D + 0.2D + 0.3D)",
            "named_struct('p', 0.1D + (0.2D + 0.3D))",
        ),
        ("map<string,int>", "map('k', 1, 'l', 2)", "map('l', 2, 'k', 1)"),
    ],
)
def test_last_digits_and_the_order_of_a_map_do_not_count(
    spark: SparkSession, kinds: str, one: str, other: str
) -> None:
    assert differing(spark, kinds, [one, one], [other, one]) == 0


def test_rows_are_matched_in_any_order_and_each_counts_once(spark: SparkSession) -> None:
    rows = [f"{n}; {n}.5; 'x'" for n in range(20)]
    assert differing(spark, "int; double; string", rows, rows[::-1]) == 0
    changed = ["100; 0.5; 'x'", "1; 1.75; 'x'", *rows[2:]]
    assert differing(spark, "int; double; string", changed, rows) == 2


def test_floats_of_rows_that_are_else_alike_are_disagreed_on(spark: SparkSession) -> None:
    assert differing(spark, "double", ["1.0", "3.0"], ["3.0", "1.0"]) == 0
    assert differing(spark, "double", ["1.0", "3.0"], ["2.0", "2.0"]) == 2
    assert differing(spark, "double", ["1.0", "3.0", "5.0"], ["1.0", "3.0", "6.0"]) == 1


def test_columns_that_are_left_out_do_not_count(spark: SparkSession) -> None:
    assert differing(spark, "int; int", ["1; 1"], ["1; 2"], left_out={"b x`."}) == 0
    assert differing(spark, "int; int", ["1; 1"], ["2; 1"], left_out={"b x`."}) == 1


def test_rows_that_one_side_alone_has_differ(spark: SparkSession) -> None:
    assert differing(spark, "int; double", [], ["1; 1.0", "2; 2.0"]) == 2
    assert differing(spark, "int; double", ["1; 1.0"], []) == 1
    assert differing(spark, "int; double", [], []) == 0


def test_each_bucket_is_compared_by_itself(spark: SparkSession) -> None:
    one = spark.sql(f"SELECT id DIV 10 AS {BUCKET}, id AS n FROM range(30)")
    other = spark.sql(f"SELECT id DIV 10 AS {BUCKET}, if(id = 15, 16, id) AS n FROM range(30)")
    same, odd = Compared(10, 10, 0), Compared(10, 10, 1)
    assert compared(one, other) == {0: same, 1: odd, 2: same}

"""What is proved holds: DuckDB finds no row that meets the conditions and not the conclusion."""

from __future__ import annotations

from itertools import product
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from mv_assets.query.match.implication.constants import sampled
from mv_assets.query.match.implication.known import Kinds, Known

KINDS = {
    "t.a": "int",
    "t.b": "int",
    "t.d": "decimal(5,1)",
    "t.x": "double",
    "t.s": "string",
    "t.f": "boolean",
    "t.day": "date",
}
# Where other files may have other types.
SAMPLED = {name: sampled(kind) for name, kind in KINDS.items()}


def condition(sql: str) -> exp.Expr:
    made = sqlglot.parse_one(sql, read="spark")
    for column in made.find_all(exp.Column):
        column.set("table", exp.to_identifier("t", quoted=True))
    return made


def proves(known: str, goal: str, kinds: Kinds = KINDS) -> bool:
    return Known([condition(each) for each in known.split(";") if each], kinds).proves(condition(goal))


@pytest.mark.parametrize(
    ("known", "goal"),
    [
        ("a > 5", "a > 2"),
        ("a > 5", "a >= 6"),
        ("a > 2.5", "a >= 3"),
        ("a = 5", "a > 2"),
        ("5 = a", "2 < a"),
        ("a BETWEEN 3 AND 4", "a >= 3 AND a < 5"),
        ("a >= 3; a <= 4", "a BETWEEN 2 AND 5"),
        ("a IN (3, 4)", "a IN (1, 3, 4)"),
        ("a = 3 OR a = 4", "a IN (3, 4)"),
        ("a = b; b = 3", "a = 3"),
        ("a = 3; b = 3", "a = b"),
        ("a > 2; a < 4; b = 3", "b = a"),
        ("a BETWEEN 1 AND 3", "a IN (3, 2, 1)"),
        ("a IN (1, 2, 3)", "a BETWEEN 1 AND 3"),
        ("a > 0; a < 4; a <> 2", "a IN (1, 3)"),
        ("day >= '2024-01-01'; day < '2024-01-03'", "day IN (DATE '2024-01-01', DATE '2024-01-02')"),
        ("a = b; b > 3", "a > 2 AND b IS NOT NULL"),
        ("a > 5", "a IS NOT NULL"),
        ("a > 5", "a = a"),
        ("a = a", "a IS NOT NULL"),
        ("NOT (a <= 5)", "a > 5"),
        ("NOT (a < 3 OR b > 4)", "a >= 3"),
        ("a = 1 AND b = 2 OR a = 2 AND b = 3", "a < 3"),
        ("a = 1 AND b = 2 OR a = 2 AND b = 3", "b = 2 OR b = 3"),
        ("a > 5 AND a < 3", "b = 1"),
        ("a > 1 + 2", "a > 3"),
        ("a > -2", "a > -3"),
        ("d > 1.25", "d > 1.2"),
        ("x > 2.5", "x >= 2.5"),
        ("s = 'b'", "s > 'a'"),
        ("s IN ('b', 'c')", "s <> 'a'"),
        ("f", "f = true"),
        ("NOT f", "f = false"),
        ("f <> false", "f"),
        ("f IS TRUE", "f"),
        ("f", "f IS TRUE AND f IS NOT FALSE"),
        ("f IS NOT FALSE; f IS NOT NULL", "f"),
        ("f IS NOT TRUE", "f = false OR f IS NULL"),
        ("(a > 3) IS TRUE", "a > 2"),
        ("(a > 3) IS NOT TRUE", "a <= 3 OR a IS NULL"),
        ("a < 3", "(a > 3) IS FALSE"),
        ("NOT ((a IS NULL) IS TRUE)", "a IS NOT NULL"),
        ("day = '2024-01-02'", "day > DATE '2024-01-01'"),
        ("day > '2024-01-01'", "day >= '2024-01-02'"),
        ("lower(s) = 'b'", "lower(s) = 'b' OR a = 1"),
        ("a <> 3 AND a <> 4", "a NOT IN (3, 4)"),
        ("a < 3 OR a > 5", "a <> 4"),
        ("s LIKE 'b%'", "s IS NOT NULL"),
        ("s NOT LIKE 'b%'", "s IS NOT NULL"),
        ("length(s) > 1", "s IS NOT NULL"),
        ("lower(s) IN ('a', 'b')", "s IS NOT NULL"),
        ("a + b > 3", "a IS NOT NULL AND b IS NOT NULL"),
        ("a <> b", "a IS NOT NULL"),
        ("NOT (a < b)", "b IS NOT NULL"),
        ("a < b OR a = 1", "a IS NOT NULL"),
        ("a BETWEEN b AND 3", "a IS NOT NULL"),
        ("s > 10", "s IS NOT NULL"),
    ],
)
def test_what_follows_is_proved(known: str, goal: str) -> None:
    assert proves(known, goal)


@pytest.mark.parametrize(
    ("known", "goal"),
    [
        ("a > 2", "a > 5"),
        ("a >= 5", "a > 5"),
        ("a IN (1, 3)", "a = 3"),
        ("a = 3 OR b = 3", "a = 3"),
        ("", "a IS NOT NULL"),
        ("a IS NULL", "a <> 3"),
        ("", "a = a"),
        ("b > 1", "a = a"),
        ("a <> 3", "a = 4"),
        ("NOT (a = 3 AND b = 4)", "a <> 3"),
        ("a NOT IN (3, NULL)", "a = 3"),
        # They are no neighbours as decimals, and one value as doubles.
        ("x = 0.30000000000000000001", "x <> 0.3"),
        # A number beside a text is compared as a number.
        ("s > 10", "s > 9"),
        ("a = 1e0", "a > 0"),
        ("lower(s) = 'b'", "lower(s) <> 'c'"),
        ("f IS NOT FALSE", "f"),
        ("f IS NOT TRUE", "NOT f"),
        ("(a > 3) IS NOT TRUE", "a <= 3"),
        ("a IS NULL", "(a > 3) IS FALSE"),
        ("(lower(s) = 'b') IS NOT TRUE", "lower(s) <> 'b'"),
        ("(lower(s) = 'b') IS NOT TRUE", "NOT (lower(s) = 'b')"),
        ("coalesce(a, b) > 1", "a IS NOT NULL"),
        ("greatest(a, b) > 1", "a IS NOT NULL"),
        ("a <=> b", "a IS NOT NULL"),
        ("(a < b) IS NOT TRUE", "a IS NOT NULL"),
        ("a < b OR a = 1", "b IS NOT NULL"),
        ("NOT (a BETWEEN b AND 3)", "b IS NOT NULL"),
        ("a NOT IN (b, 3)", "b IS NOT NULL"),
        ("CASE WHEN a > 1 THEN b ELSE 1 END = 1", "b IS NOT NULL"),
        ("a + b < 12345678901234567890", "a IS NOT NULL"),
    ],
)
def test_what_need_not_hold_is_not_proved(known: str, goal: str) -> None:
    assert not proves(known, goal)


@pytest.mark.parametrize(
    ("known", "goal"),
    [
        ("a > 5", "a > 2"),
        ("a >= 2", "a > 1"),
        ("a = 2", "a > 1.5"),
        ("a IN (1, 3)", "a IN (1, 2, 3)"),
        ("a = b; b = 3", "a = 3"),
        ("a BETWEEN 3 AND 4", "a < 5"),
        ("day <= '2024-01-31'", "day < '2024-02-01'"),
        ("day = '2024-01-02'", "day > DATE '2024-01-01'"),
    ],
)
def test_what_follows_of_any_numbers_and_times_is_proved_of_some_files(known: str, goal: str) -> None:
    assert proves(known, goal, SAMPLED)


@pytest.mark.parametrize(
    ("known", "goal"),
    [
        ("a > 5", "a >= 6"),
        ("a < 3", "a <= 2"),
        ("a > 0; a < 4", "a IN (1, 2, 3)"),
        # As doubles they are one number, as decimals they are two.
        ("a >= 0.1", "a > 0.09999999999999999999"),
        ("a > 0.09999999999999999999", "a >= 0.1"),
        ("day < '2024-02-01'", "day <= '2024-01-31'"),
        ("day > '2024-01-01'", "day >= '2024-01-02'"),
        # As a day it is the whole of it, as a time an hour.
        ("day = '2024-01-01 10:00:00'", "day > '2024-01-01'"),
        # Without ANSI mode a time beside a text is a text.
        ("day = DATE '2024-01-01'", "day IN ('2024-01-01')"),
    ],
)
def test_what_holds_of_whole_numbers_and_days_is_not_proved_of_some_files(known: str, goal: str) -> None:
    assert not proves(known, goal, SAMPLED)


def test_lists_of_very_many_constants_are_gone_through_once() -> None:
    """Value by value against all others, it would take minutes."""
    many = ", ".join(str(3 * number) for number in range(20_000))
    assert proves(f"a IN ({many})", f"a >= 0 AND a IN (-1, {many})")
    assert not proves(f"a IN (-1, {many})", f"a IN ({many})")


VALUES = {
    "a": ["1", "2", "3", "4"],
    "b": ["1", "2", "3"],
    "d": ["1.5", "2.0", "2.5"],
    "s": ["'a'", "'b'", "'c'"],
    "f": ["true", "false"],
}
_COMPARED = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def _atoms() -> st.SearchStrategy[str]:
    def of(column: str) -> st.SearchStrategy[str]:
        constant = st.sampled_from([*VALUES[column], *(["0.5", "2.5"] if column == "a" else [])])
        lists = st.lists(constant, min_size=1, max_size=3).map(", ".join)
        return st.one_of(
            st.builds(f"{column} {{}} {{}}".format, _COMPARED, constant),
            st.builds(f"{{}} {{}} {column}".format, constant, _COMPARED),
            st.builds(f"{column} BETWEEN {{}} AND {{}}".format, constant, constant),
            st.builds(f"{column} IN ({{}})".format, lists),
            st.builds(f"{column} NOT IN ({{}})".format, lists),
            st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL"]),
        )

    return st.one_of(
        *map(of, VALUES),
        st.sampled_from(
            [
                "a = b",
                "a = a",
                "a <> b",
                "a < b",
                "f",
                "a + b = 4",
                "s LIKE 'b%'",
                "length(s) > 1",
                "a BETWEEN b AND 3",
                "a IN (b, 3)",
                "coalesce(a, b) > 1",
                "a * 2 > d",
            ]
        ),
    )


CONDITIONS = st.recursive(
    _atoms(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
        st.builds("({}) IS {}".format, inner, st.sampled_from(["TRUE", "NOT TRUE", "FALSE", "NOT FALSE"])),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    """Every combination of the values, and of nulls."""
    return filled("INT", VALUES)


@pytest.fixture(scope="module")
def wider_rows() -> duckdb.DuckDBPyConnection:
    """The same where some files have numbers with digits after the point."""
    return filled("DOUBLE", VALUES | {"a": [*VALUES["a"], "0.5", "2.5"]})


def filled(kind: str, values_of: dict[str, list[str]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (a {kind}, b INT, d DECIMAL(5, 1), s VARCHAR, f BOOLEAN)")
    every = product(*([*values, "NULL"] for values in values_of.values()))
    values = ", ".join(f"({', '.join(row)})" for row in every)
    connection.execute(f"INSERT INTO t VALUES {values}")
    return connection


@given(known=st.lists(CONDITIONS, max_size=3), goal=CONDITIONS)
@settings(max_examples=1_000)
def test_no_row_is_an_exception(rows: duckdb.DuckDBPyConnection, known: list[str], goal: str) -> None:
    if proves(";".join(known), goal):
        assert exceptions(rows, known, goal) == []


@given(known=st.lists(CONDITIONS, max_size=3), goal=CONDITIONS)
@settings(max_examples=1_000)
def test_no_row_of_a_wider_type_is_an_exception(
    wider_rows: duckdb.DuckDBPyConnection, known: list[str], goal: str
) -> None:
    if proves(";".join(known), goal, SAMPLED):
        assert exceptions(wider_rows, known, goal) == []


def exceptions(rows: duckdb.DuckDBPyConnection, known: list[str], goal: str) -> list[Any]:
    """Rows of which all is true that is known, and what was proved is not."""
    where = " AND ".join([*(f"({each})" for each in known), f"({goal}) IS NOT TRUE"])
    return rows.execute(f"SELECT * FROM t WHERE {where} LIMIT 1").fetchall()

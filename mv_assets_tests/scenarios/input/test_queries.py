"""Queries that nobody would write: refused, or not for views, and never anything else."""

from __future__ import annotations

import random
import re
from contextlib import suppress

import pytest

from mv_assets.query.errors import QueryRefused
from mv_assets.query.match.matches import match
from mv_assets.query.match.request import range_asked, request_of
from mv_assets.query.match.statement import statement_of
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.spark_sql.parse import parse
from mv_assets.spark_sql.scope import Source
from mv_assets_tests.unit.query.test_rewriting import EVENTS, TIME, view_columns
from mv_assets_tests.unit.spark_sql.test_fuzz import mutated

ZONES = Source("zones", {"zone": "int", "name": "string"})
VIEW_COLUMNS = [
    view_columns(
        "SELECT date_trunc('hour', at) AS hour, zone, count(*) AS n, sum(x) AS x FROM events GROUP BY ALL"
    ),
    view_columns("SELECT at AS hour, zone, x, name FROM events WHERE x > 3"),
]
VALID = [
    """
    SELECT zone, count(*) AS n, sum(x) FROM events
    WHERE at >= '2024-01-01' AND at < TIMESTAMP '2024-02-01 00:00:00'
    GROUP BY zone HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 10
    """,
    """
    SELECT date_trunc('day', at) AS d, max(x) FILTER (WHERE zone = 1), hll_sketch_agg(name, 12) FROM events e
    WHERE zone IN (1, 2) OR name LIKE 'a%' GROUP BY ALL
    """,
    """
    SELECT e.zone, z.name, avg(x) FROM events e JOIN zones z USING (zone)
    WHERE e.at BETWEEN current_date() - INTERVAL 7 DAYS AND now() GROUP BY 1, 2
    """,
    "SELECT * FROM events WHERE at = date'2024-01-31' OFFSET 3",
    """
    WITH q AS (SELECT zone, row_number() OVER (PARTITION BY zone ORDER BY at) AS r FROM events)
    SELECT * FROM q WHERE r = 1 UNION ALL SELECT 1, 2
    """,
    """
    SELECT CASE WHEN x > 1 THEN 'a' ELSE "b" END k, count(DISTINCT zone), any_value(name) FROM events
    GROUP BY GROUPING SETS ((1), ())
    """,
    "SELECT zone FROM events LATERAL VIEW explode(array(1, 2)) t AS v WHERE EXISTS (SELECT 1 FROM zones)",
    "SELECT sum(x) FROM events WHERE cast(at AS date) > DATE '2024-01-01' AND unix_millis(at) < 17e8 AND ok",
    "SELECT * FROM (SELECT zone, x FROM events) PIVOT (sum(x) FOR zone IN (1, 2))",
    "SELECT transform(array(x), v -> v + 1), x::int, struct(1).a, 10L, 1.5D, X'FF', r'\\d' FROM events",
]
PIECES = [
    *"'\"`;()[]{}$?:@*%\\,.<>=!|&^~#-+/",
    *(
        "/*",
        "*/",
        "--",
        "|>",
        "||",
        "->",
        "=>",
        "<=>",
        "::",
        "\x00",
        "\n",
        "\x1b[31m",
        "\u2028",
        "😀",
        "ﬁ",
        "İ",
        "\ufeff",
    ),
    *(
        "1e400",
        "9" * 40,
        "0x",
        "date ''",
        "timestamp 'x'",
        "INTERVAL '1' DAY",
        "OVER ()",
        "date'99999-01-01'",
    ),
    *(
        "'2024-13-45'",
        "at > -9223372036854775809",
        "at < 1e308",
        "at >= date'9999-12-31' + INTERVAL 9999 YEARS",
    ),
]
WORDS = sorted({word for sql in VALID for word in re.findall(r"\w+|\S", sql)}.union(PIECES))


def check(text: str) -> None:
    """As a query is planned, but for Spark."""
    try:
        statement = statement_of(text, ["events", "zones"])
    except QueryRefused:
        return
    sources = {name: {"events": EVENTS, "zones": ZONES}[name] for name in statement.names}
    statement.reading(dict.fromkeys(statement.names, "r"))
    if statement.tables[0].name.lower() != "events":
        return
    with suppress(RecursionError):
        range_asked(statement, sources, TIME)
    with suppress(RecursionError, NotPlain):
        asked = request_of(statement, sources, TIME)
        for columns in VIEW_COLUMNS:
            with suppress(NotPlain):
                match(asked, columns)


@pytest.mark.parametrize("seed", range(4))
def test_mutations_of_good_queries_are_refused_or_left_to_the_base_table(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        check(mutated(chance.choice(VALID), chance, WORDS))


@pytest.mark.parametrize("call", ["count", "sum", "max", "avg", "bool_or", "hll_sketch_agg", "bitmap_or_agg"])
def test_an_aggregate_of_nothing_is_for_spark_to_refuse(call: str) -> None:
    check(f"SELECT zone, {call}() FROM events GROUP BY zone HAVING {call}() > 1")


@pytest.mark.parametrize(
    "text",
    [
        *("", "\x00", "\ufeff", ";" * 10_000, "'" * 9_999, "x" * 1_000_000, "SELECT " * 2_000, "/*" * 10_000),
        "SELECT '" + "é" * 1_000_000 + "' FROM events",
        "SELECT x FROM events -- " + "x" * 1_000_000,
        "SELECT x FROM events WHERE x IN (" + ",".join(map(str, range(5_000))) + ")",
        "SELECT " + "NOT " * 3_000 + "ok FROM events",
        "SELECT " + "CASE WHEN ok THEN " * 1_000 + "1" + " END" * 1_000 + " FROM events",
        "SELECT " + "x + " * 3_000 + "x FROM events",
        "SELECT x" + "::int" * 1_000 + " FROM events",
        " UNION ALL ".join(["SELECT x FROM events"] * 300),
    ],
    ids=lambda text: f"{text[:12]!a} and so on",
)
def test_long_and_deep_texts_are_read_or_refused(text: str) -> None:
    check(text)


@pytest.mark.parametrize("number", ["1eBD", "1e10.5BD"])
def test_a_number_that_is_none_is_refused(number: str) -> None:
    assert isinstance(parse(f"SELECT {number} FROM t"), Refusal)

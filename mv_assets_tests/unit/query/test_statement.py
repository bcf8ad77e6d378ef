"""What a question may be, without asking anybody."""

from __future__ import annotations

import pytest

from mv_assets.query.errors import QueryRefused
from mv_assets.query.match.statement import over, statement_of

KNOWN = ("events", "zones", "hourly")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("DELETE FROM events WHERE x = 1", "DELETE"),
        ("UPDATE events SET x = 1", "UPDATE"),
        ("MERGE INTO events USING zones ON true WHEN MATCHED THEN DELETE", "MERGE"),
        ("TRUNCATE TABLE events", "TRUNCATE"),
        ("CREATE TABLE t AS SELECT * FROM events", "CREATE"),
        ("WITH e AS (SELECT 1) INSERT INTO events SELECT * FROM e", ""),
        ("SELECT * FROM events; DROP TABLE events", ""),
        ("SELECT * FROM hourley", "did you mean hourly"),
        ("SELECT * FROM spark_catalog.default.events", "plain names"),
        ("SELECT * FROM json.`/etc/passwd`", "plain names"),
        ("SELECT * FROM events WHERE x IN (SELECT y FROM parquet.`/x`)", "plain names"),
        ("SELECT (SELECT max(x) FROM others) FROM events", "others"),
        ("SELECT java_method('java.lang.System', 'exit', 1) FROM events", "java_method"),
        ("SELECT Reflect ('java.lang.Runtime', 'x') FROM events", "reflect"),
        ("SELECT `reflect`('java.lang.Runtime', 'x') FROM events", "reflect"),
        ("SELECT TRANSFORM(x) USING 'cat' FROM events", ""),
        ("SELECT * FROM events TIMESTAMP AS OF '2020-01-01'", ""),
        ("SELECT * FROM events WHERE x = :x", "parameter"),
        ("SELECT * FROM events WHERE x = ?", "parameter"),
        ("SELECT * FROM IDENTIFIER('events')", ""),
        ("SELECT my.own(x) FROM events", ""),
        ("SELECT own(x) FROM events", "own"),
        ("SELECT * FROM range(5)", "no table"),
        ("VALUES (1)", ""),
        ("TABLE events", ""),
        ("   ", ""),
        ("SELECT * FROM events WHERE", ""),
        ("-- only a comment", ""),
    ],
)
def test_a_refusal_says_what_is_not_answered(text: str, why: str) -> None:
    with pytest.raises(QueryRefused) as raised:
        statement_of(text, KNOWN)
    said = str(raised.value)
    assert why.lower() in said.lower()
    assert len(said) > 10


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("SELECT * FROM events", "SELECT * FROM `r` AS `events`"),
        ("SELECT * FROM Events e;", "SELECT * FROM `r` e"),
        ("SELECT * FROM `events` AS `e e` -- done", "SELECT * FROM `r` AS `e e`"),
        ("SELECT events.x FROM events, zones", "SELECT events.x FROM `r` AS `events`, `z` AS `zones`"),
        ("WITH events AS (SELECT * FROM events) SELECT * FROM events", None),
        ("SELECT 'FROM events' FROM events", "SELECT 'FROM events' FROM `r` AS `events`"),
        ("SELECT /* events */ x FROM/**/events", "SELECT              x FROM    `r` AS `events`"),
        (
            "(SELECT x FROM events) UNION (SELECT x FROM zones)",
            "(SELECT x FROM `r` AS `events`) UNION (SELECT x FROM `z` AS `zones`)",
        ),
        ("SELECT 'ü😀' FROM events", "SELECT 'ü😀' FROM `r` AS `events`"),
    ],
)  # fmt: skip
def test_other_relations_take_the_tables_places_and_nothing_else_moves(
    text: str, rewritten: str | None
) -> None:
    statement = statement_of(text, KNOWN)
    found = statement.reading({"events": "r", "zones": "z"})
    if rewritten is None:
        rewritten = "WITH events AS (SELECT * FROM `r` AS `events`) SELECT * FROM events"
    assert found.split(" --", maxsplit=1)[0].rstrip("; ") == rewritten


def test_each_table_is_named_once_and_common_table_expressions_are_no_tables() -> None:
    text = "WITH a AS (SELECT * FROM events), b AS (SELECT * FROM a JOIN EVENTS) SELECT * FROM b JOIN zones"
    assert sorted(statement_of(text, KNOWN).names) == ["events", "zones"]


@pytest.mark.parametrize(
    ("counted", "takes_all"),
    [("*", False), ("1", False), ("x", False), ("* EXCEPT (x)", True), ("*, x", True), ("events.*", True)],
)
def test_a_star_means_all_columns_unless_rows_are_counted(counted: str, takes_all: bool) -> None:  # noqa: FBT001
    assert statement_of(f"SELECT count({counted}) FROM events", KNOWN).takes_all is takes_all


def test_words_may_be_names_but_values_are_none() -> None:
    text = "SELECT Current_Date, 'x', `A b` FROM events WHERE y = 5 GROUP BY ALL"
    found = statement_of(text, KNOWN).mentioned
    assert found >= {"current_date", "a b", "y", "all"}
    assert found.isdisjoint({"x", "5"})


def test_deep_questions_are_refused_and_do_not_break() -> None:
    deep = "SELECT " + "(" * 3_000 + "1" + ")" * 3_000 + " FROM events"
    with pytest.raises(QueryRefused):
        statement_of(deep, KNOWN)


def test_long_questions_are_read() -> None:
    long = "SELECT * FROM events WHERE " + " AND ".join(f"x <> {n}" for n in range(300))
    assert statement_of(long, KNOWN).names == ["events"]


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        (
            "WITH events AS (SELECT x FROM events) SELECT x FROM events, zones",
            "WITH events AS (SELECT x FROM `r` AS `events`) SELECT x FROM events, `z` AS `zones`",
        ),
        (
            "WITH zones AS (SELECT x FROM events), e AS (SELECT x FROM zones) SELECT x FROM e",
            "WITH zones AS (SELECT x FROM `r` AS `events`), e AS (SELECT x FROM zones) SELECT x FROM e",
        ),
        (
            "SELECT x FROM (WITH events AS (SELECT 1 AS x) SELECT x FROM events) a, events",
            "SELECT x FROM (WITH events AS (SELECT 1 AS x) SELECT x FROM events) a, `r` AS `events`",
        ),
        (
            "(SELECT x FROM events EXCEPT SELECT x FROM zones) UNION ALL (SELECT x FROM Events e) ORDER BY x",
            (
                "(SELECT x FROM `r` AS `events` EXCEPT SELECT x FROM `z` AS `zones`) "
                "UNION ALL (SELECT x FROM `r` e) ORDER BY x"
            ),
        ),
        (
            "SELECT :bucket_start AS d, own(x) AS y FROM events WHERE x = (SELECT max(x) FROM events)",
            (
                "SELECT :bucket_start AS d, own(x) AS y FROM `r` AS `events` "
                "WHERE x = (SELECT max(x) FROM `r` AS `events`)"
            ),
        ),
    ],
)
def test_a_view_s_sql_reads_other_relations_whatever_it_calls_them(text: str, rewritten: str) -> None:
    assert over(text, {"events": "r", "zones": "z"}) == rewritten


def test_a_view_s_sql_reads_what_it_is_given_only() -> None:
    with pytest.raises(QueryRefused, match="there is no table zones"):
        over("SELECT x FROM events JOIN zones USING (x)", {"events": "r"})

"""What a view lacks is said at once, all of it, so that a person can act on it."""

from __future__ import annotations

import pytest
from sqlglot import exp

from mv_assets.query.match.lack import Lacking, plainly
from mv_assets.query.match.matches import match
from mv_assets.query.match.request import request_of
from mv_assets.query.match.statement import statement_of
from mv_assets_tests.unit.query.test_rewriting import EVENTS, HOURLY, TIME, matched, view_columns

DAILY = HOURLY.replace("'hour'", "'day'")
SINGLE = "SELECT at AS hour, zone FROM events"
ONLY_OK = HOURLY.replace("FROM events", "FROM events WHERE ok")
NOT_IMPLIED = "its filter ok is not implied: ask with WHERE ok, or take it out of the view"


@pytest.mark.parametrize(
    ("asked", "sql", "why"),
    [
        ("SELECT max(x) FROM events", HOURLY, "add max(x) to the view"),
        (
            "SELECT avg(zone) FROM events",
            HOURLY.replace(" zone,", ""),
            "add sum(zone), count(zone) to the view",
        ),
        ("SELECT sum(x) FILTER (WHERE ok) FROM events", HOURLY, "add sum(x) FILTER (WHERE ok) to the view"),
        (
            "SELECT name, min(x), max(x) FROM events WHERE ok GROUP BY name",
            HOURLY,
            "add ok, name to its keys (GROUP BY) and add min(x), max(x) to the view",
        ),
        (
            "SELECT CASE WHEN ok THEN lower(name) END, count(*) FROM events GROUP BY 1",
            HOURLY,
            "add ok, name to its keys (GROUP BY)",
        ),
        (
            "SELECT name, count(DISTINCT ok) FROM events GROUP BY name",
            HOURLY,
            "add name, ok to its keys (GROUP BY)",
        ),
        (
            "SELECT count(*) FROM events",
            ONLY_OK,
            NOT_IMPLIED,
        ),
        (
            "SELECT name, count(*) FROM events GROUP BY name",
            ONLY_OK,
            f"{NOT_IMPLIED}; add name to its keys (GROUP BY)",
        ),
        (
            "SELECT hour(at), min(x) FROM events GROUP BY 1",
            DAILY,
            "its times are cut to the day: cut them to the hour; add min(x) to the view",
        ),
        (
            "SELECT date_trunc('month', at), count(*) FROM events GROUP BY 1",
            HOURLY.replace("'hour'", "'week'"),
            "its times are cut to the week: cut them to the day",
        ),
        ("SELECT x, name FROM events", SINGLE, "add name, x to its columns"),
    ],
)
def test_all_that_a_view_lacks_is_said_at_once(asked: str, sql: str, why: str) -> None:
    bucket = "1w" if "'week'" in sql else "1d"
    assert matched(asked, sql, bucket=bucket, start="1970-01-05") == why


def test_programs_are_told_as_well() -> None:
    asked = request_of(
        statement_of("SELECT name, min(x), hour(at) FROM events WHERE ok GROUP BY ALL", ["events"]),
        {"events": EVENTS},
        TIME,
    )
    with pytest.raises(Lacking) as found:
        match(asked, view_columns(DAILY))
    lack = found.value.lack
    assert [key.name for key in lack.keys] == ["ok", "name"]
    assert [partial.sql for partial in lack.aggregates] == ["min(`events`.`x`)"]
    assert lack.grain == "hour"


def test_names_are_written_as_people_do() -> None:
    column = exp.column(exp.to_identifier("from", quoted=True), table="events")
    assert plainly(exp.Lower(this=column), "events") == "LOWER(`from`)"
    assert plainly(exp.column("borough", table="zones", quoted=True), "events") == "zones.borough"


@pytest.mark.parametrize("value", ["cast(x AS double)", "(CAST(x AS FLOAT))"])
def test_nothing_is_added_that_would_be_of_no_use(value: str) -> None:
    """Floating point numbers lose what their squares would have to say."""
    why = matched(f"SELECT stddev({value}) FROM events", HOURLY)
    assert "the spread of floating point numbers is answered by the base table only" in str(why)
    assert "sum" in str(matched("SELECT stddev(cast(x AS decimal(9, 2))) FROM events", HOURLY))

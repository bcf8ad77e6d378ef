"""Most views that can't answer are told by a glance, those that can never."""

from __future__ import annotations

import pytest

from mv_assets.query.match.outline import Asked, Outline
from mv_assets.query.match.request import request_of
from mv_assets.query.match.statement import statement_of
from mv_assets_tests.unit.query.test_rewriting import EVENTS, HOURLY, TIME, matched, view_columns

OK = HOURLY.replace("FROM events", "FROM events WHERE ok")
ZONE_1 = HOURLY.replace("FROM events", "FROM events WHERE zone = 1")
ROWS = "SELECT at AS hour, zone, x FROM events"


def passes(text: str, sql: str) -> bool:
    asked = request_of(statement_of(text, ["events"]), {"events": EVENTS}, TIME)
    return Outline.of(view_columns(sql), asked).may_answer(Asked.of(asked))


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SELECT name, count(*) FROM events GROUP BY name", HOURLY),
        ("SELECT count(*) FROM events WHERE ok", HOURLY),
        ("SELECT count(DISTINCT name) FROM events", HOURLY),
        ("SELECT max(x) FROM events", HOURLY),
        ("SELECT sum(x) FILTER (WHERE ok) FROM events", HOURLY),
        ("SELECT count(*) FROM events", OK),
        ("SELECT count(*) FROM events WHERE NOT ok", OK),
        ("SELECT count(*) FROM events WHERE zone = 2", ZONE_1),
        ("SELECT zone, x FROM events", HOURLY),
        ("SELECT zone, name FROM events", ROWS),
        ("SELECT max(name) FROM events", ROWS),
    ],
)
def test_a_glance_tells_that_a_view_is_of_no_use(text: str, sql: str) -> None:
    assert isinstance(matched(text, sql), str)
    assert not passes(text, sql)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SELECT hour(at), sum(x) FROM events WHERE at >= '2024-01-01' GROUP BY 1", HOURLY),
        ("SELECT max(zone), count(zone), sum(zone) FROM events WHERE zone > 3", HOURLY),
        ("SELECT count(DISTINCT zone), max(at) FROM events WHERE x IS NULL OR x IS NOT NULL", ROWS),
        ("SELECT sum(x) FILTER (WHERE zone = 2) FROM events", HOURLY),
        ("SELECT count(*) FROM events WHERE ok AND zone = 2", OK),
        ("SELECT zone, count(*) FROM events WHERE zone = 1 AND at > '2024-01-01' GROUP BY zone", ZONE_1),
        ("SELECT zone % 3 FROM events WHERE x > 2 ORDER BY x", ROWS),
        ("SELECT 1 FROM events", ROWS),
    ],
)
def test_a_view_that_answers_passes(text: str, sql: str) -> None:
    assert not isinstance(matched(text, sql), str)
    assert passes(text, sql)

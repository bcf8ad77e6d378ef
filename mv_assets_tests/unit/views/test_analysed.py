"""SQL that was analysed once is not analysed again, unless what it is read by has changed."""

from __future__ import annotations

from typing import Any

import pytest

from mv_assets.buckets import Buckets
from mv_assets.spark_sql import parse
from mv_assets.spark_sql.scope import Source
from mv_assets.views.admission import ViewSql
from mv_assets.views.admission.analysis import ANALYSED, analyse

EVENTS = Source("events", {"at": "timestamp", "x": "bigint"}, "at")
ASKED: dict[str, Any] = {
    "sql": "SELECT date_trunc('hour', at) AS hour, sum(x) AS x FROM events GROUP BY ALL",
    "base": EVENTS,
    "dimensions": [],
    "time_column": "hour",
    "buckets": Buckets.of("1h"),
}
OTHERS: list[dict[str, Any]] = [
    {"sql": "SELECT date_trunc('hour', at) AS hour, max(x) AS x FROM events GROUP BY ALL"},
    {"base": Source("events", {"at": "timestamp", "x": "string"}, "at")},
    {"base": Source("events", {"at": "timestamp"}, "at")},
    {"time_column": "x"},
    {"buckets": Buckets.of("1d", "America/New_York")},
    {"scope": "bucket"},
    {"functions": ["sum"]},
    {"dimensions": [Source("z", {"y": "bigint"})]},
    {"further": [Source("z", {"at": "timestamp"}, "at")]},
]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SQL that is parsed."""
    parsed = list[str]()

    def counted(sql: str) -> Any:
        parsed.append(sql)
        return parse.read(sql)

    monkeypatch.setattr(f"{analyse.__module__}.read", counted)
    ANALYSED.clear()
    return parsed


def test_the_same_sql_on_the_same_sources_is_parsed_once(read: list[str]) -> None:
    first, again = analyse(**ASKED), analyse(**ASKED)
    assert isinstance(first[0], ViewSql)
    assert again == first
    assert len(read) == 1


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_whatever_else_it_depends_on_has_it_analysed_again(read: list[str], other: dict[str, Any]) -> None:
    analyse(**ASKED)
    after = analyse(**{**ASKED, **other})
    assert len(read) == 2
    ANALYSED.clear()
    assert analyse(**{**ASKED, **other}) == after


def test_who_adds_to_the_mistakes_adds_to_nobody_elses(read: list[str]) -> None:
    asked = {**ASKED, "time_column": "nothing"}
    _, mistakes = analyse(**asked)
    assert mistakes
    found = [*mistakes]
    mistakes.clear()
    assert analyse(**asked)[1] == found
    assert len(read) == 1

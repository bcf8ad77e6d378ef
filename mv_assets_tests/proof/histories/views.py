"""Views of a shop as people write them: two tables, windows, several scopes and zones."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from mv_assets.config import MaterializedView
from mv_assets_tests.support.lake import view

NEW_YORK = "America/New_York"
PAID = """
    WITH paid AS (SELECT x, count(*) AS n, max(id) AS latest FROM payments GROUP BY x)
    SELECT :bucket_start AS day, events.x, count(*) AS orders, sum(paid.n) AS n, max(paid.latest) AS latest
    FROM events LEFT JOIN paid ON events.x = paid.x GROUP BY events.x
"""
HASTY = """
    SELECT date_trunc('hour', e.at) AS hour, count(*) AS n, count(p.id) AS payments, sum(p.id) AS ids
    FROM events e LEFT JOIN payments p ON e.x = p.x AND p.at >= e.at GROUP BY ALL
"""
ROLLING = (
    "SELECT :bucket_start AS day, count(*) AS n, count(DISTINCT x) AS xs, sum(id) AS ids, min(at) AS first "
    "FROM events"
)
RANKED = """
    WITH named AS (SELECT e.at, e.id, e.x, n.name FROM events e LEFT JOIN names n ON e.x = n.x)
    SELECT at, id, name, row_number() OVER (PARTITION BY x ORDER BY at, id, name) AS place,
           count(*) OVER () AS of_all, lag(id) OVER (ORDER BY at, id, name) AS before
    FROM named
"""
LOCAL = "SELECT date_trunc('day', at) AS day, x, count(*) AS n, sum(id) AS ids FROM events GROUP BY ALL"
BOTH = """
    WITH together AS (
        SELECT at, id, x, 'event' AS kind FROM events UNION ALL SELECT at, id, x, 'payment' FROM payments
    )
    SELECT :bucket_start AS day, kind, count(*) AS n, sum(id) AS ids, min(at) AS first, max(at) AS last
    FROM together GROUP BY kind
"""

_BOTH: dict[str, Any] = {
    "base": {"table": "events", "from": "1d"},
    "with": [{"table": "payments", "from": "2d", "to": "1d"}],
    "sql": BOTH,
    "timezone": NEW_YORK,
}
# What a view is declared as, in turn: the first of them in the beginning.
DECLARED: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "paid": ({"with": [{"table": "payments", "from": "1d", "to": "2d"}], "sql": PAID},),
    "hasty": (
        {
            "with": [{"table": "payments", "from": "12h", "to": "1d", "wait": False}],
            "sql": HASTY,
            "time_column": "hour",
        },
    ),
    "rolling": ({"base": {"table": "events", "from": "6d"}, "sql": ROLLING}, {"sql": ROLLING}),
    "ranked": ({"sql": RANKED, "time_column": "at", "dimensions": ["names"]},),
    "local": ({"sql": LOCAL, "scope": "table", "timezone": NEW_YORK},),
    "both": (_BOTH, {**_BOTH, "with": [{"table": "payments", "from": "36h"}]}),
}


def declared(name: str, start: date, turn: int = 0) -> MaterializedView:
    """A view as it is declared at its turn."""
    turns = DECLARED[name]
    given = {"time_column": "day", "scope": "bucket", **turns[turn % len(turns)]}
    return view(name, start=start.isoformat(), **given)

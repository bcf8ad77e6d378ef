"""The views of the worlds that are asked, and what DuckDB has to compute for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from mv_assets.config import MaterializedView
from mv_assets_tests.support.lake import view


@dataclass(frozen=True)
class Known:
    """A view, its SQL for DuckDB, and the day after the world's first at which its coverage begins."""

    name: str
    sql: str
    time: str
    duck: str | None = None
    base: str = "events"
    bucket: str = "1d"
    after: int = 0
    freezes: bool = False
    keyed: bool = False

    def declared(self, first: date) -> MaterializedView:
        return view(
            self.name,
            base=self.base,
            sql=self.sql,
            time_column=self.time,
            bucket=self.bucket,
            start=str(self.start(first)),
            dimensions=[{"table": "zones", "key": "zone" if self.keyed else []}]
            if "zones" in self.sql
            else [],
            on_base_delete="freeze" if self.freezes else "follow",
        )

    def start(self, first: date) -> date:
        start = first + timedelta(days=self.after)
        if self.bucket == "1w":
            return start - timedelta(days=start.weekday())
        return start.replace(day=1) if self.bucket == "1mo" else start


_MEASURES = """count(*) AS n, count(fare) AS fares, sum(fare) AS fare, min(fare) AS cheap, max(fare) AS dear,
    sum(x) AS xs, count(x) AS xn, sum(x * x) AS xx,
    min(x) AS lo, max(x) AS hi, sum(f) AS fsum, count(f) AS fn, min(f) AS flo,
    max(f) AS fhi, bool_and(flag) AS always, bool_or(flag) AS ever, max(at) AS last, min(at) AS since"""

HOURLY = Known(
    "hourly",
    f"""SELECT date_trunc('hour', at) AS hour, zone, kind, {_MEASURES},
        sum(CASE WHEN zone > 1 THEN fare ELSE 0 END) AS far, count(*) FILTER (WHERE flag) AS flagged,
        avg(fare) AS mean FROM events GROUP BY ALL""",
    "hour",
)
DAILY = Known(
    "daily",
    """SELECT date_trunc('day', hour) AS day, zone, sum(n) AS n, sum(fare) AS fare, sum(fares) AS fares,
        min(lo) AS lo, max(hi) AS hi, sum(xs) AS xs, bool_or(ever) AS ever, sum(far) AS far,
        max(last) AS last, max(kind) AS greatest, count(*) AS hours FROM hourly GROUP BY ALL""",
    "day",
    base="hourly",
    after=1,
)
MONTHLY = Known(
    "monthly",
    """SELECT trunc(day, 'MM') AS month, sum(n) AS n, sum(fare) AS fare, sum(fares) AS fares, max(hi) AS hi
        FROM daily WHERE zone IS NOT NULL GROUP BY ALL""",
    "month",
    duck="""SELECT CAST(date_trunc('month', day) AS DATE) AS month, sum(n) AS n, sum(fare) AS fare,
        sum(fares) AS fares, max(hi) AS hi FROM daily WHERE zone IS NOT NULL GROUP BY ALL""",
    base="daily",
    bucket="1mo",
)
BUSY = Known(
    "busy",
    """SELECT date_trunc('day', hour) AS day, kind, sum(n) AS n, max(dear) AS dear, max(fhi) AS fhi
        FROM hourly WHERE n > 1 GROUP BY ALL""",
    "day",
    base="hourly",
)
FAR = Known(
    "far",
    """SELECT cast(at AS date) AS day, kind, count(*) AS n, sum(fare) AS fare, count(fare) AS fares,
        sum(f) AS fsum, count(f) AS fn, max(x) AS hi FROM events
        WHERE zone > 1 AND kind IS NOT NULL GROUP BY ALL""",
    "day",
    after=2,
)
SINGLE = Known("single", "SELECT at, zone, fare, flag AS mark, x FROM events", "at", after=1)
DEAR = Known("dear", "SELECT at, kind, f, fare AS price FROM events WHERE fare > 10", "at", bucket="6h")
WEEKLY = Known(
    "weekly",
    f"SELECT date_trunc('week', at) AS week, kind, flag, {_MEASURES} FROM events GROUP BY ALL",
    "week",
    bucket="1w",
)
DAYS = Known(
    "days",
    """SELECT trunc(at, 'WEEK') AS week, to_date(at) AS day, d, count(*) AS n, sum(x) AS xs, min(f) AS flo
        FROM events WHERE at >= '{cut}' GROUP BY ALL""",
    "day",
    duck="""SELECT CAST(date_trunc('week', at) AS DATE) AS week, CAST(at AS DATE) AS day, d, count(*) AS n,
        sum(x) AS xs, min(f) AS flo FROM events WHERE at >= '{cut}' GROUP BY ALL""",
    bucket="1w",
)
MINUTES = Known(
    "minutes",
    """SELECT date_trunc('minute', at) AS minute, flag, count(*) AS n, min(fare) AS cheap, sum(fare) AS fare,
        count(fare) AS fares, max(d) AS newest FROM events GROUP BY ALL""",
    "minute",
    bucket="6h",
    after=3,
)
LOUD = Known(
    "loud",
    """SELECT date_trunc('hour', at) AS hour, upper(kind) AS loud, zone % 3 AS third, count(*) AS n,
        sum(fare) AS fare, count(fare) AS fares, max(zone) AS zone FROM events GROUP BY ALL""",
    "hour",
)
BOROUGHS = Known(
    "boroughs",
    """SELECT date_trunc('hour', e.at) AS hour, z.borough, z.zone AS place, e.flag, count(*) AS n,
        sum(e.fare) AS fare, count(e.fare) AS fares, max(z.rank) AS rank
        FROM events e LEFT JOIN zones z ON e.zone = z.zone GROUP BY ALL""",
    "hour",
)
PLACES = Known(
    "places",
    """SELECT date_trunc('hour', e.at) AS hour, z.rank, z.zone AS place, e.zone, count(*) AS n,
        sum(e.fare) AS fare, count(e.fare) AS fares, max(e.x) AS hi
        FROM events e LEFT JOIN zones z ON e.zone = z.zone GROUP BY ALL""",
    "hour",
    keyed=True,
)
KEPT = Known(
    "kept",
    """SELECT date_trunc('day', at) AS day, flag, d, count(*) AS n, sum(f) AS fsum, count(f) AS fn,
        bool_and(flag) AS always FROM events WHERE NOT (zone > 3) GROUP BY ALL""",
    "day",
    freezes=True,
)
VIEWS = (
    HOURLY, DAILY, MONTHLY, BUSY, FAR, SINGLE, DEAR, WEEKLY, DAYS, MINUTES, LOUD, BOROUGHS, PLACES, KEPT,
)  # fmt: skip
# Each day of these is made of rows left out, so that no query on the base can use them.
BY_NAME_ONLY = ("busy",)

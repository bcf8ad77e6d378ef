"""The stretch of time that a WHERE leaves: which conditions on the time column say so, and what they say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from string import whitespace

from sqlglot import exp

from mv_assets.buckets import DAY
from mv_assets.query.match.spans import AFTER, BEFORE, Span
from mv_assets.query.match.truncation import time_inside, truncated_to
from mv_assets.spark_sql.grain import BOUNDARIES, TO_TIMESTAMP
from mv_assets.tables.times import Unit

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_MS = 1_000
_TEXT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?"
    r"(Z|[+-](?:0\d|1[0-7]):[0-5]\d)?",
    re.ASCII,
)
_PER_SECOND: dict[Unit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}


@dataclass(frozen=True, slots=True)
class TimeOf:
    """A time column as a query may compare it: its table, name, Spark type, and unit if it is an integer.

    Where some files have dates, others may have times: then it is `sampled`.
    """

    table: str
    column: str
    kind: str
    unit: Unit | None = None
    sampled: bool = False

    def is_meant(self, node: exp.Expr) -> bool:
        """Whether the column itself is meant."""
        return (
            isinstance(node, exp.Column)
            and node.table.lower() == self.table.lower()
            and node.name.lower() == self.column.lower()
        )

    def is_made(self, node: exp.Expr) -> bool:
        """Whether it is the time that the column counts."""
        made = isinstance(node, exp.Anonymous) and str(node.name).lower() == TO_TIMESTAMP.get(self.unit or "")
        return made and self.is_meant(node.expressions[0])

    def is_time(self, node: exp.Expr) -> bool:
        """Whether it is the column as a time."""
        return self.is_meant(node) if self.unit is None else self.is_made(node)


@dataclass(frozen=True, slots=True)
class Range:
    """Times from `low` to before `high`, in microseconds; whether a null time is ruled out."""

    low: int | None = None
    high: int | None = None
    rejects_null: bool = False

    def and_(self, other: Range) -> Range:
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Range(
            max(lows, default=None), min(highs, default=None), self.rejects_null or other.rejects_null
        )

    def widened(self, by: int) -> Range:
        """With so many milliseconds more on either side."""
        low, high = self.low, self.high
        return replace(
            self,
            low=None if low is None else low - by * _MS,
            high=None if high is None else high + by * _MS,
        )

    @property
    def inner(self) -> Span:
        """The whole milliseconds in it."""
        low = BEFORE if self.low is None else -(-self.low // _MS)
        high = AFTER if self.high is None else self.high // _MS
        return low, max(high, low)

    @property
    def outer(self) -> Span:
        """The milliseconds that it reaches into."""
        low = BEFORE if self.low is None else self.low // _MS
        high = AFTER if self.high is None else -(-self.high // _MS)
        return low, max(high, low)


def range_of(conditions: Iterable[exp.Expr], time: TimeOf) -> tuple[Range, list[exp.Expr]]:
    """What the conditions say of the time, and those that say something else."""
    found, others = Range(), []
    for condition in conditions:
        said = _said(condition, time)
        if said is None:
            others.append(condition)
        else:
            found = found.and_(said)
    return found, others


def _said(condition: exp.Expr, time: TimeOf) -> Range | None:
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        low = _compared(exp.GTE, condition.this, condition.args["low"], time)
        high = _compared(exp.LTE, condition.this, condition.args["high"], time)
        return None if low is None or high is None else low.and_(high)
    if type(condition) not in _FLIPPED:
        return None
    left, right = condition.this, condition.expression
    return _compared(type(condition), left, right, time) or _compared(
        _FLIPPED[type(condition)], right, left, time
    )


def _compared(operator: type[exp.Expr], left: exp.Expr, right: exp.Expr, time: TimeOf) -> Range | None:
    """What `left operator right` says, if left is the time or its truncation and right a time."""
    while isinstance(left, exp.Paren):
        left = left.this
    grain = truncated_to(left)
    inner = left if grain is None else time_inside(left)
    if not time.is_time(inner) and (grain is not None or not time.is_meant(inner)):
        return None
    unit = None if time.is_time(inner) else time.unit
    if unit == "ns" and operator not in (exp.GTE, exp.LT):
        # The next value is nearer than a microsecond.
        return None
    kind = time.kind if time.unit is None else "timestamp"
    days = kind == "date" or (grain is not None and not isinstance(left, exp.TimestampTrunc))
    at = moment(right, kind, unit, days=days)
    if at is None:
        return None
    step = _step(time, unit, grain, at)
    if step is None:
        return None
    match operator:
        case exp.GTE:
            return Range(at, None, rejects_null=True)
        case exp.GT:
            return Range(at + step, None, rejects_null=True)
        case exp.LT:
            return Range(None, at, rejects_null=True)
        case exp.LTE:
            return Range(None, at + step, rejects_null=True)
    return Range(at, at + step, rejects_null=True)


def _step(time: TimeOf, unit: Unit | None, grain: str | None, at: int) -> int | None:
    """How far it is to the next value that the compared side can have; None if `at` is none of them."""
    if grain is not None:
        boundaries = BOUNDARIES.get(grain)
        if boundaries is None or at % _MS or not boundaries.is_start(at // _MS):
            return None
        return (boundaries.next(at // _MS) - at // _MS) * _MS
    if time.kind == "date" and not time.sampled:
        # No date lies on a bound within a day, so it is as good as one a moment later.
        return 1 if at % (DAY * _MS) else DAY * _MS
    return max(1_000_000 // _PER_SECOND[unit], 1) if unit is not None else 1


def moment(node: exp.Expr, kind: str, unit: Unit | None, *, days: bool) -> int | None:
    """A constant in microseconds."""
    while isinstance(node, exp.Paren):
        node = node.this
    if unit is not None:
        return _counted(node, unit)
    if (
        isinstance(node, (exp.Cast, exp.TryCast))
        and isinstance(node.this, exp.Literal)
        and node.this.is_string
    ):
        to = node.args["to"].this
        as_day = to is exp.DType.DATE
        if not as_day and to not in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ):
            return None
        return _written(node.this.name, kind, only_days=as_day)
    if isinstance(node, exp.Literal) and node.is_string:
        return _written(node.name, kind, only_days=days)
    return None


def _counted(node: exp.Expr, unit: Unit) -> int | None:
    sign = 1
    while isinstance(node, (exp.Neg, exp.Paren, exp.Cast, exp.TryCast)):
        if isinstance(node, (exp.Cast, exp.TryCast)) and node.args["to"].this is not exp.DType.BIGINT:
            return None
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string or not node.is_int:
        return None
    scaled = sign * int(node.name) * 1_000_000
    # Nanoseconds that are no whole microseconds are left to Spark.
    return None if scaled % _PER_SECOND[unit] else scaled // _PER_SECOND[unit]


def _written(text: str, kind: str, *, only_days: bool) -> int | None:
    """A time as Spark would read the text."""
    found = _TEXT.fullmatch(text.strip(whitespace))
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    if (only_days and hour is not None) or (zone is not None and (kind != "timestamp" or hour is None)):
        return None
    try:
        when = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
        )
    except ValueError:
        return None
    micros = (when - _EPOCH) // _MICRO + int((fraction or "0").ljust(6, "0"))
    return micros - _offset(zone)


def _offset(zone: str | None) -> int:
    if zone in (None, "Z"):
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    return (1 if zone[0] == "+" else -1) * (hours * 60 + minutes) * 60_000_000

"""The time column of a base table: which types it may have, and its values as UTC milliseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from mv_assets.buckets import DAY

Unit = Literal["s", "ms", "us", "ns"]

# The first and the last millisecond that can be kept; a number of seconds may well lie beyond them.
FIRST, LAST = -(1 << 63), (1 << 63) - 1

_PER_MS = {"us": 1_000, "ns": 1_000_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Python reads more notations than Spark does.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.]+(Z|[+-][0-9:]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """`unit` is declared for integers only: without it a number could be any time.

    Dates are days in UTC, or in the `zone` of the view whose column it is.
    """

    name: str
    unit: Unit | None = None
    zone: str | None = None


def milliseconds(first: int, last: int, unit: Unit | Literal["d"]) -> tuple[int, int]:
    """A range of raw values in milliseconds, end inclusive.

    Coarse values stand for all of their day or second: a table of dates reaches to the end of its last
    day. Finer ones are floored, before 1970 too.
    """
    if unit in _PER_MS:
        start, end = first // _PER_MS[unit], last // _PER_MS[unit]
    else:
        width = {"d": DAY, "s": 1_000, "ms": 1}[unit]
        start, end = first * width, (last + 1) * width - 1
    return _kept(start), _kept(end)


def _kept(time: int) -> int:
    return min(max(time, FIRST), LAST)


def of_text(text: str, unit: Unit | None) -> tuple[int, int] | None:
    """The range that a partition value stands for; None if it is not a time."""
    if unit is not None:
        return milliseconds(int(text), int(text), unit) if _INTEGER.fullmatch(text) else None
    try:
        if _DATE.fullmatch(text):
            day = (date.fromisoformat(text) - _EPOCH.date()).days
            return milliseconds(day, day, "d")
        if not _TIME.fullmatch(text):
            return None
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
    micros = (when - _EPOCH) // timedelta(microseconds=1)
    return milliseconds(micros, micros, "us")

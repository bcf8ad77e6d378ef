"""Time windows: which bucket a time belongs to, in UTC milliseconds. Nothing here reads a clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from mv_assets.errors import BucketError
from mv_assets.local_days import LocalDays, is_utc, is_zone

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (1_000, "s"))
# 1970-01-01 was a Thursday: the Monday that starts its week is three days earlier.
_MONDAY = -3 * DAY
# Two names of one width would be two widths to a view's map.
_SAME = {"60m": "1h", "24h": "1d"}
_EPOCH = date(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = (date.min - _EPOCH).days * DAY
_LAST = (date.max - _EPOCH).days * DAY + DAY - 1
# 2024-01-31T15:00, for messages.
_EXAMPLE = 1_706_713_200_000
# The calendar repeats every 400 years.
_CYCLE_MONTHS = 400 * 12
_CYCLE_DAYS = 146_097


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of one width: `15m`, `6h`, `1d`, `1w` (from Monday) or `1mo`; in UTC, or in a time zone.

    They are plain arithmetic, so they work for any integer; only names end with the calendar's years.
    """

    width: str
    _ms: int | None

    @classmethod
    def of(cls, text: str, zone: str = "UTC") -> Buckets:
        """Buckets of a width as written in the project file, or of a whole `text`.

        Raises:
            BucketError: there are none; it says what is allowed.

        """
        return _parse(text if is_utc(zone) else f"{text} {zone}")

    def in_zone(self, zone: str) -> Buckets:
        """The same in a time zone other than UTC.

        Raises:
            BucketError: these are finer than days.

        """
        if not self._by_day:
            raise BucketError(
                f"{self.width} buckets have no time zone: finer buckets than 1d are UTC only; take the zone "
                "out, or use 1d, 1w or 1mo"
            )
        return _LocalBuckets(self.width, self._ms, self, LocalDays(zone))

    @property
    def zone(self) -> str | None:
        """The time zone, if it is not UTC."""
        return None

    @property
    def text(self) -> str:
        """Width and zone: where this is the same, so are the buckets."""
        return self.width

    def floor(self, time: int) -> int:
        """Start of the bucket that holds `time`."""
        if self._ms is None:
            return _month_start(_month(time))
        origin = _MONDAY if self._ms == WEEK else 0
        return (time - origin) // self._ms * self._ms + origin

    def ceil(self, time: int) -> int:
        """The first bucket start at or after `time`."""
        start = self.floor(time)
        return start if start == time else self.next(start)

    def next(self, start: int) -> int:
        """Start of the following bucket, which is the end (exclusive) of this one."""
        return _month_start(_month(start) + 1) if self._ms is None else start + self._ms

    def is_start(self, time: int) -> bool:
        return self.floor(time) == time

    def check(self, time: int) -> None:
        """Refuse, with BucketError, a time that is not the start of a bucket."""
        if not self.is_start(time):
            raise self._not_a_start(iso(time), time)

    def between(self, start: int, end: int) -> Iterator[int]:
        """Starts of the buckets that overlap `[start, end)`."""
        bucket = self.floor(start)
        while bucket < end:
            yield bucket
            bucket = self.next(bucket)

    def count(self, start: int, end: int) -> int:
        """How many buckets overlap `[start, end)`."""
        if start >= end:
            return 0
        if self._ms is None:
            return _month(end - 1) - _month(start) + 1
        return (self.floor(end - 1) - self.floor(start)) // self._ms + 1

    def stretches(self, starts: Iterable[int]) -> list[list[int]]:
        """Buckets with their neighbours together, all in order."""
        found: list[list[int]] = []
        for start in sorted(starts):
            if found and self.next(found[-1][-1]) == start:
                found[-1].append(start)
            else:
                found.append([start])
        return found

    def shifted(self, time: int, duration: int) -> int:
        """A time moved by a duration; in a zone, whole days are days there, whatever their lengths.

        Later stays later, the start of a day becomes the start of a day, and `shifted(start, n days) <= x`
        exactly if `start <= shifted(x, -n days)`.
        """
        return time + duration

    def window(self, start: int, before: int, after: int) -> tuple[int, int]:
        """From a duration before a bucket to (exclusive) a duration after it."""
        return self.shifted(start, -before), self.shifted(self.next(start), after)

    def span(self, starts: Sequence[int]) -> str:
        """Neighbouring buckets for people, by the first and the last."""
        first, last = self.key(starts[0]), self.key(starts[-1])
        return first if len(starts) == 1 else f"{first} to {last}"

    def key(self, start: int) -> str:
        """The bucket's name, which is its Dagster partition key: `2024-01-31` or `2024-01-31T15:30`."""
        self.check(start)
        return _date(start) if self._by_day else _utc(start).isoformat(timespec="minutes")[:16]

    def parse(self, key: str) -> int:
        """The start that a key names; the inverse of `key`."""
        try:
            start = self._moment(datetime.fromisoformat(key))
        except (ValueError, OverflowError):
            raise BucketError(
                f"{key!r} is not a bucket; write it like {self.key(self.floor(_EXAMPLE))}"
            ) from None
        if not self.is_start(start):
            raise self._not_a_start(repr(key), start)
        return start

    def _moment(self, when: datetime) -> int:
        """The time that was written, here if it does not say where."""
        return _moment(when)

    def _not_a_start(self, what: str, time: int) -> BucketError:
        inside = self.key(self.floor(time))
        return BucketError(f"{what} is not the start of a {self.text} bucket; it lies in {inside}")

    @property
    def _by_day(self) -> bool:
        return self._ms is None or self._ms >= DAY


@dataclass(frozen=True, slots=True)
class _LocalBuckets(Buckets):
    """Days, weeks or months of a time zone: they begin when its days do, and are named by its dates.

    A day that is counted as if it were UTC's tells by plain buckets which it belongs to.
    """

    _plain: Buckets
    _days: LocalDays

    @property
    def zone(self) -> str | None:
        return self._days.zone

    @property
    def text(self) -> str:
        return f"{self.width} {self._days.zone}"

    def floor(self, time: int) -> int:
        return self._days.start(self._first_day(time))

    def next(self, start: int) -> int:
        return self._days.start(self._plain.next(self._first_day(start) * DAY) // DAY)

    def count(self, start: int, end: int) -> int:
        if start >= end:
            return 0
        first, last = self._days.at(start), self._days.at(end - 1)
        if self._ms == DAY:
            return self._days.count(first, last)
        return self._plain.count(first * DAY, (last + 1) * DAY)

    def shifted(self, time: int, duration: int) -> int:
        days, rest = divmod(duration, DAY)
        return time + duration if rest else self._days.moved(time, days)

    def key(self, start: int) -> str:
        self.check(start)
        return _date(self._first_day(start) * DAY)

    def _moment(self, when: datetime) -> int:
        if when.tzinfo is not None:
            return _moment(when)
        day, clock = divmod(_moment(when), DAY)
        if clock:
            return _moment(when.replace(tzinfo=ZoneInfo(self._days.zone)))
        if self._ms == DAY and not self._days.exists(day):
            raise BucketError(f"{when.date()} has no bucket: {self._days.zone} left that day out")
        return self._days.start(day)

    def _first_day(self, time: int) -> int:
        """The first day of the bucket that holds a time."""
        return self._plain.floor(self._days.at(time) * DAY) // DAY


@lru_cache(maxsize=256)
def _parse(text: str) -> Buckets:
    width, _, zone = text.partition(" ")
    if not zone:
        return _of_width(text)
    found = _of_width(width)
    if not is_zone(zone):
        raise BucketError(f"{zone!r} is not a time zone; write one as America/New_York")
    return found if is_utc(zone) else found.in_zone(zone)


def _of_width(width: str) -> Buckets:
    allowed = "use minutes that divide the hour (15m), hours that divide the day (6h), 1d, 1w or 1mo"
    found = re.fullmatch(r"([1-9][0-9]{0,3})(m|h|d|w|mo)", width)
    if found is None:
        raise BucketError(f"{width!r} is not a bucket width; {allowed}")
    count, unit = int(found[1]), found[2]
    if width in _SAME:
        return _of_width(_SAME[width])
    if unit == "m" and HOUR % (count * MINUTE) == 0:
        return Buckets(width, count * MINUTE)
    if unit == "h" and DAY % (count * HOUR) == 0:
        return Buckets(width, count * HOUR)
    if count == 1 and unit in ("d", "w", "mo"):
        return Buckets(width, {"d": DAY, "w": WEEK, "mo": None}[unit])
    raise BucketError(f"{width!r} does not divide time evenly; {allowed}")


def iso(time: int) -> str:
    """A time for people: ISO 8601 in UTC, to the millisecond only where there is one."""
    if not _FIRST <= time <= _LAST:
        return f"{time} ms since 1970"
    when = _utc(time)
    return when.isoformat(timespec="milliseconds" if time % 1000 else "seconds").replace("+00:00", "Z")


def duration(milliseconds: int) -> str:
    """A length of time for people: `2h 5m`, in the two largest units that say something."""
    parts, left = [], abs(milliseconds)
    for size, unit in _UNITS:
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return ("-" if milliseconds < 0 else "") + (" ".join(parts[:2]) or "0s")


def _utc(time: int) -> datetime:
    if not _FIRST <= time <= _LAST:
        raise BucketError(f"{time} ms since 1970 lies outside the years 1 to 9999")
    return _EPOCH_UTC + timedelta(milliseconds=time)


def _moment(when: datetime) -> int:
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return (when - _EPOCH_UTC) // timedelta(milliseconds=1)


def _date(time: int) -> str:
    return _utc(time).strftime("%Y-%m-%d").zfill(10)


def _month(time: int) -> int:
    """How many months after January 1970 a time lies."""
    cycle, days = divmod(time // DAY, _CYCLE_DAYS)
    day = _EPOCH + timedelta(days=days)
    return cycle * _CYCLE_MONTHS + (day.year - _EPOCH.year) * 12 + day.month - 1


def _month_start(month: int) -> int:
    cycle, months = divmod(month, _CYCLE_MONTHS)
    first = date(_EPOCH.year + months // 12, months % 12 + 1, 1)
    return (cycle * _CYCLE_DAYS + (first - _EPOCH).days) * DAY

"""The days of a time zone, in UTC milliseconds: 23 or 25 hours long where the clocks change."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

_HOUR = 3_600_000
DAY = 24 * _HOUR
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock, of any zone
# Beyond these the offset stays as it was: a day further on, the calendar ends.
_FIRST = (datetime(2, 1, 1) - _EPOCH).days  # noqa: DTZ001
_LAST = (datetime(9998, 12, 31) - _EPOCH).days  # noqa: DTZ001
# All that is the same as UTC, by whatever name.
_NAMES_OF_UTC = ("UTC", "UCT", "Universal", "Zulu", "GMT", "GMT0", "GMT+0", "GMT-0", "Greenwich")
_UTC = frozenset(_NAMES_OF_UTC) | {f"Etc/{name}" for name in _NAMES_OF_UTC}
# No zones, but what a machine happens to be set to, or nothing at all.
_NO_ZONES = frozenset({"localtime", "Factory"})
# Zones have jumped over a day, or lived one twice, in these years only.
_JUMPS = range((date(1840, 1, 1) - _EPOCH.date()).days, (date(2040, 1, 1) - _EPOCH.date()).days, 28)


@dataclass(frozen=True, slots=True)
class LocalDays:
    """The days of one zone, each by its number from 1970-01-01 on.

    A day begins with the first instant of its date, which is not midnight where that was skipped. A date that
    the zone left out begins and ends when the next one begins. For any integer there is a day.
    """

    zone: str

    def start(self, day: int) -> int:
        """The first instant of a day."""
        return _start(self.zone, day)

    def at(self, time: int) -> int:
        """The day that holds a time."""
        day = time // DAY + 1
        while _start(self.zone, day) > time:
            day -= 1
        return day

    def offset(self, time: int) -> int:
        """How far the clocks are ahead of UTC."""
        return _offset(self.zone, min(max(time, _FIRST * DAY), _LAST * DAY))

    def exists(self, day: int) -> bool:
        """Whether the zone did not leave it out."""
        return _start(self.zone, day) < _start(self.zone, day + 1)

    def count(self, first: int, last: int) -> int:
        """How many days there are from one to another."""
        skipped = _skipped(self.zone)
        return last - first + 1 - (bisect_right(skipped, last) - bisect_left(skipped, first))

    def moved(self, time: int, days: int) -> int:
        """A time as long after the start of its day so many days later, or the last moment of that day.

        By the time since the start and not by the clock, which shows some times twice: later stays later.
        """
        day = self.at(time)
        there = self._after(day, days)
        return min(self.start(there) + time - self.start(day), self.start(there + 1) - 1)

    def _after(self, day: int, days: int) -> int:
        """So many days later; one that was left out does not count."""
        skipped = _skipped(self.zone)
        there = day + days
        for each in skipped if days > 0 else reversed(skipped):
            if day < each <= there:
                there += 1
            elif there <= each < day:
                there -= 1
        return there


def is_zone(name: str) -> bool:
    """Whether that is the name of a time zone."""
    return name in _zones()


def is_utc(name: str) -> bool:
    """Whether that zone is UTC, by whatever name."""
    return name in _UTC


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones() | _UTC) - _NO_ZONES


@lru_cache(maxsize=1 << 18)
def _start(zone: str, day: int) -> int:
    if not _FIRST <= day <= _LAST:
        edge = _FIRST if day < _FIRST else _LAST
        return _start(zone, edge) + (day - edge) * DAY
    midnight = _EPOCH + timedelta(days=day)
    before, after = _offsets(zone, midnight)
    if before >= after:
        # Of a midnight that came twice, the first.
        return day * DAY - before
    # It was skipped: the day begins where the clocks were put forward.
    return _put_forward(zone, day * DAY - after, day * DAY - before, after)


def _offsets(zone: str, wall: datetime) -> tuple[int, int]:
    """How far a clock is ahead of UTC; two where the clocks change, before that and after."""
    place = ZoneInfo(zone)
    first, second = (wall.replace(tzinfo=place, fold=fold).utcoffset() for fold in (0, 1))
    return _ms(first), _ms(second)


def _ms(offset: timedelta | None) -> int:
    return (offset or timedelta()) // _MS


def _put_forward(zone: str, low: int, high: int, after: int) -> int:
    """The first instant after `low`, and not after `high`, that has the later offset."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset(zone, middle) == after else (middle, high)
    return high


def _offset(zone: str, time: int) -> int:
    place = ZoneInfo(zone)
    when = (_EPOCH + time * _MS).replace(tzinfo=place)
    return _ms(place.fromutc(when).utcoffset())


@lru_cache(maxsize=64)
def _skipped(zone: str) -> Sequence[int]:
    """The days that the zone left out: where its clocks jumped by about a day."""
    found = []
    for first in _JUMPS:
        if _start(zone, first + 28) - _start(zone, first) < 28 * DAY - DAY // 2:
            found += [day for day in range(first, first + 28) if _start(zone, day) == _start(zone, day + 1)]
    return tuple(found)

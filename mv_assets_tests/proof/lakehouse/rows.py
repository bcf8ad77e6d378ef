"""Rows that come into a table of events by chance, and what is wanted of whoever keeps such a table."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Protocol

import pyarrow as pa

from mv_assets_tests.support.lake import day

AT = pa.timestamp("us", "UTC")
KEYS = ("a", "b c", "ü%", None)
# What views use; a table may have more.
SCHEMA = pa.schema({"at": AT, "id": pa.int64(), "x": pa.string(), "v": pa.int32(), "c": pa.int64()})
# So small are row groups that a bucket's time leaves some of them out.
GROUP = 2

Row = Mapping[str, Any]


class Arrivals:
    """New rows: the next days, and late ones. No two have the same id."""

    def __init__(self, chance: random.Random) -> None:
        self._random = chance
        self._ids = count(1)
        self._newest = -1

    def next_day(self) -> list[Row]:
        """A day to its last moment."""
        self._newest += 1
        last = day(self._newest + 1, 0) - timedelta(microseconds=1)
        return self.at(last, *self._times(self._newest, self._newest))

    def late(self) -> list[Row]:
        """Rows of some days that are there, not in order, and sometimes without a time."""
        first = self._random.randint(0, self._newest)
        times = self._times(first, min(first + self._random.choice((0, 1, 3)), self._newest))
        return self.at(*times, *([None] if self._random.random() < 0.2 else []))

    def at(self, *times: datetime | None) -> list[Row]:
        return [
            {
                "at": time,
                "id": next(self._ids),
                "x": self._random.choice(KEYS),
                "v": self._random.choice((None, *range(8))),
                "c": self._random.choice((None, 1, 2)),
            }
            for time in times
        ]

    def _times(self, first: int, last: int) -> list[datetime]:
        days = (self._random.randint(first, last) for _ in range(self._random.randint(2, 7)))
        return [day(number, self._random.choice((0, 6, 23.9))) for number in days]


class Changing(Protocol):
    """A table to which things happen by chance."""

    story: list[str]

    def close(self) -> None: ...

    def change(self) -> None:
        """Something happens that may change rows."""
        ...

    def compact(self) -> object:
        """Files are rewritten; rows are the same, and the table says so. False if there are none."""
        ...

    def forget(self) -> None:
        """Have the process remember nothing of it."""
        ...

    def rows(self) -> pa.Table:
        """What it holds now, not by mv_assets."""
        ...


def happen(chance: random.Random, story: list[str], steps: Mapping[Callable[[], object], int]) -> None:
    """One of the steps, each with its weight; a step gives False where it can't be done."""
    left = dict(steps)
    while left:
        [step] = chance.choices(list(left), list(left.values()))
        if step() is not False:
            story.append(step.__name__)
            return
        del left[step]


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


def some(chance: random.Random, values: Sequence[Any]) -> list[Any]:
    """Some of them, at least one."""
    return sorted(chance.sample(values, chance.randint(1, max(1, len(values) // 2))))

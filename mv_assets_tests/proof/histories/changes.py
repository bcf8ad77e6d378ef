"""What happens to the files of two tables and a dimension, by chance."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc

from mv_assets_tests.proof.histories.files import Files, Version, concatenated
from mv_assets_tests.proof.histories.oracle import SCHEMA
from mv_assets_tests.support.spark_lake import plainly

TABLES = ("events", "payments")
_BEFORE, _FIRST_DAYS = 2, 8
# Where days and windows begin and end, here and in New York, and what the clocks there show twice.
_HOURS = (0, 0, 4, 4, 5, 5, 5.5, 6.5, 12, 16, 17, 23.5)
_WITHIN = (0, 0, 0, -1, -1_000, 1, 999, 1_000, 60_000_000)


class Changes:
    """Changes files; `story` says which, and in what order. Days are counted from the start of the views."""

    def __init__(self, chance: random.Random, start: date, files: Files, story: list[str]) -> None:
        self._random = chance
        self._start = datetime(start.year, start.month, start.day, tzinfo=UTC)
        self._files = files
        self._story = story
        self._numbers = count()
        self._newest = dict.fromkeys(TABLES, -_BEFORE - 1)
        self.rename()
        for table in TABLES:
            for _ in range(_BEFORE + _FIRST_DAYS):
                self.arrive(table)

    def happen(self) -> None:
        """Something happens to a table."""
        happens: dict[Callable[[str], None], int] = {
            self.arrive: 5, self.late: 6, self.overwrite: 4, self.delete: 2, self.retire: 1, self.touch: 1,
            self.pack: 2, self.rename: 1,
        }  # fmt: skip
        [event] = self._random.choices(list(happens), list(happens.values()))
        event(self._random.choice(TABLES))

    def arrive(self, table: str) -> None:
        """The next day, to its last millisecond."""
        self._newest[table] += 1
        day, last = self._newest[table], self._time(self._newest[table] + 1) - timedelta(milliseconds=1)
        self._put(table, f"day-{day:02}.parquet", [day], last)

    def late(self, table: str) -> None:
        first = self._random.randint(-_BEFORE, self._newest[table])
        days = range(first, min(first + self._random.choice((1, 1, 1, 2, 5)), self._newest[table] + 1))
        self._put(table, f"late-{next(self._numbers)}.parquet", list(days))

    def overwrite(self, table: str) -> None:
        version = self._random.choice(self._files.of(table))
        self._put(table, version.name, [self._random.randint(-_BEFORE, self._newest[table])])

    def delete(self, table: str) -> None:
        self._remove(self._random.choice(self._files.of(table)))

    def retire(self, table: str) -> None:
        """What is older than some day goes."""
        limit = plainly(self._time(self._random.randint(-1, 4)))
        for version in self._files.of(table):
            if version.span is not None and version.span[1] < limit:
                self._remove(version)

    def touch(self, table: str) -> None:
        """A file becomes another object with the same content."""
        version = self._random.choice(self._files.of(table))
        self._files.restore(version)
        self._say(f"{version} touched")

    def pack(self, table: str) -> None:
        """Several files become one."""
        some = self._random.sample(self._files.of(table), min(3, len(self._files.of(table))))
        self._files.put(table, f"packed-{next(self._numbers)}.parquet", concatenated(some, SCHEMA))
        for version in some:
            self._files.remove(version)
        self._say(f"{', '.join(map(str, some))} packed")

    def rename(self, _table: str = "") -> None:
        """The dimension changes."""
        names = pa.table({"x": [1, 2, 3, 4], "name": [self._random.choice("ABCD") for _ in range(4)]})
        self._files.put("names", "names.parquet", names)
        self._say("names changed")

    def swap(self, version: Version) -> None:
        """A file gets other rows, of the same time."""
        others = version.rows.set_column(1, "id", pc.add(version.rows["id"], 1_000_000))
        self._files.put(version.table, version.name, others)
        self._say(f"{version} swapped")

    def swap_back(self, version: Version) -> None:
        self._files.restore(version)
        self._say(f"{version} is back")

    def _put(self, table: str, name: str, days: list[int], *times: datetime) -> None:
        given: list[datetime | None] = [*times]
        given += [self._somewhere(self._random.choice(days)) for _ in range(self._random.randint(1, 8))]
        if self._random.random() < 0.1:
            given.append(None)
        rows = {
            "at": given,
            "id": [next(self._numbers) for _ in given],
            "x": [self._random.choice((None, 1, 1, 2, 3, 5)) for _ in given],
        }
        made = self._files.put(table, name, pa.table(rows, schema=SCHEMA))
        self._say(f"{made} with days {days[0]} to {days[-1]}")

    def _remove(self, version: Version) -> None:
        # Of a table without any file nobody knows the columns.
        if sum(each.span is not None for each in self._files.of(version.table)) > 1:
            self._files.remove(version)
            self._say(f"{version} deleted")

    def _somewhere(self, day: int) -> datetime:
        hour = self._random.choice((*_HOURS, self._random.random() * 24))
        return self._time(day, hour) + timedelta(microseconds=self._random.choice(_WITHIN))

    def _time(self, day: int, hour: float = 0) -> datetime:
        return self._start + timedelta(days=day, hours=hour)

    def _say(self, what: str) -> None:
        self._story.append(what)

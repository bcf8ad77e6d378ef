"""What a bucket's rows are, by DuckDB and by Python's own calendar: mv_assets is not asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import sqlglot

from mv_assets.config import MaterializedView
from mv_assets_tests.proof.histories.files import Contents, Files, concatenated
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.spark_lake import plainly, timestamp

Rows = Counter[tuple[Any, ...]]
SCHEMA = pa.schema({"at": pa.timestamp("us", "UTC"), "id": pa.int64(), "x": pa.int64()})


@dataclass(frozen=True)
class Calendar:
    """The days of a view and what they read, by the declaration alone."""

    view: MaterializedView

    def start(self, day: date) -> int:
        """When a day begins where the view is."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(self.view.timezone))
        return int(midnight.timestamp()) * 1_000

    @property
    def first(self) -> date:
        return self.day(self.view.start or 0)

    def day(self, start: int) -> date:
        """The day that begins at a time.

        Raises:
            ValueError: none does.

        """
        there = datetime.fromtimestamp(start // 1_000, ZoneInfo(self.view.timezone)).date()
        if self.start(there) != start:
            raise ValueError(
                f"{self.view.name}: no day begins at {datetime.fromtimestamp(start / 1_000, UTC)}"
            )
        return there

    def windows(self, day: date) -> dict[str, tuple[int, int]]:
        """From when to when a day reads each table."""
        sources = (self.view.base, *self.view.with_)
        return {
            each.table: (self._moved(day, -each.from_), self._moved(day + timedelta(1), each.to))
            for each in sources
        }

    def _moved(self, day: date, by: int) -> int:
        """A duration of whole days is one of days there, whatever their lengths."""
        days, rest = divmod(by, DAY)
        return self.start(day) + by if rest else self.start(day + timedelta(days))

    def complete(self, files: Files) -> Iterator[date]:
        """The days that are due: what they wait for is there."""
        waited = [self.view.base.table, *(each.table for each in self.view.with_ if each.wait)]
        ends = {table: files.end(table) for table in waited}
        day = self.first
        while all(self.windows(day)[table][1] <= end + 1 for table, end in ends.items()):
            yield day
            day += timedelta(1)

    def reached(self, day: date, files: Files) -> Contents:
        """The files that reach into the windows of a day now."""
        return {
            table: frozenset(
                version
                for version in files.of(table)
                if version.span is not None and version.span[0] < stop and version.span[1] >= begin
            )
            for table, (begin, stop) in self.windows(day).items()
        }


class Oracle:
    """DuckDB, which computes a bucket from files that are given."""

    def __init__(self) -> None:
        self._duck = duckdb.connect(config={"threads": 1})
        self._known: dict[tuple[Any, ...], Rows] = {}

    def close(self) -> None:
        self._duck.close()

    def rows(self, view: MaterializedView, columns: tuple[str, ...], day: date, contents: Contents) -> Rows:
        """A bucket's rows; of no file at all there are none, whatever the SQL."""
        if not any(contents[table] for table in view.timed):
            return Counter()
        key = (view.name, view.sql, view.base, view.with_, day, tuple(sorted(contents.items())))
        if key not in self._known:
            self._known[key] = self._computed(view, columns, day, contents)
        return self._known[key]

    def _computed(
        self, view: MaterializedView, columns: tuple[str, ...], day: date, contents: Contents
    ) -> Rows:
        calendar, read = Calendar(view), []
        for table, versions in contents.items():
            empty = SCHEMA if table in view.timed else next(iter(versions)).rows.schema
            self._duck.register(f"all_{table}", concatenated(sorted(versions, key=_name), empty))
        for table, (begin, stop) in calendar.windows(day).items():
            read.append(f"{table} AS (FROM all_{table} WHERE {_inside('at', begin, stop)})")
        read += [f"{table} AS (FROM all_{table})" for table in view.joined]
        start, end = calendar.start(day), calendar.start(day + timedelta(1))
        sql = sqlglot.transpile(view.sql or "", "spark", "duckdb", identify=True)[0]
        sql = sql.replace("$bucket_start", timestamp(start)).replace("$bucket_end", timestamp(end))
        named = ", ".join(f'"{column}"' for column in columns)
        self._duck.execute(f"SET TimeZone = '{view.timezone}'")
        here = _inside(view.time_column, start, end)
        found = self._duck.sql(f"WITH {', '.join(read)} SELECT {named} FROM ({sql}) WHERE {here}").fetchall()
        return Counter(tuple(map(plainly, row)) for row in found)


def _inside(column: str, begin: int, stop: int) -> str:
    return f'"{column}" >= {timestamp(begin)} AND "{column}" < {timestamp(stop)}'


def _name(version: Any) -> str:
    return str(version.name)

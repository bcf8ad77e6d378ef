"""What a Delta log says of one file, as a listing tells it: its name, checksum, time range and values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from mv_assets.tables import lakehouse
from mv_assets.tables.delta.columns import DeltaColumns
from mv_assets.tables.delta.log import Add
from mv_assets.tables.delta.stats import StatsOf, moment
from mv_assets.tables.delta.vectors import told
from mv_assets.tables.lakehouse import Active
from mv_assets.tables.listing import RowDeletes
from mv_assets.tables.parquet.footer import Extent
from mv_assets.tables.times import Unit
from mv_assets.tables.types import INTEGERS

_ABSOLUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")

Texts = Mapping[str, str | None]


class Described(NamedTuple):
    """A file; `path` is what the log calls it."""

    file: Active
    path: str
    partition: Texts
    deletes: RowDeletes | None


class Time(NamedTuple):
    """The time column as the table spells it, and the unit of its values."""

    column: str
    unit: Unit | Literal["d"]


@dataclass(frozen=True, slots=True)
class Description:
    """How the files of a table are described; `time` is None for a dimension."""

    columns: DeltaColumns
    time: Time | None
    # Files of one partition share their values.
    _shared: dict[tuple[str | None, ...], tuple[Texts, int | None]] = field(default_factory=dict)

    @property
    def wanted(self) -> StatsOf:
        if self.time is None:
            return StatsOf()
        return StatsOf(self.columns.logged(self.time.column), self.columns.types[self.time.column])

    def of(self, add: Add) -> Described:
        texts, when = self._partition(add)
        vector, name = add.vector, name_of(add.path)
        crc = lakehouse.content(name, add.size, texts, [] if vector is None else [vector.id])
        deletes = None if vector is None else RowDeletes((told(vector, add.stats.rows),))
        return Described(
            Active(name, crc, add.size, add.changed, self._extent(add, when)), add.path, texts, deletes
        )

    def _extent(self, add: Add, when: int | None) -> Extent | None:
        """Where the file's rows lie. Of deleted ones too: bounds stay bounds without them."""
        rows, nulls, first, last = add.stats
        if self.time is None:
            return lakehouse.timeless(rows)
        if self.time.column not in self.columns.partitioning:
            return lakehouse.stated(rows, nulls, first, last, self.time.unit)
        # One value for all rows: where it is null, all are.
        return (
            Extent(None, rows or 0) if when is None else lakehouse.stated(rows, 0, when, when, self.time.unit)
        )

    def _partition(self, add: Add) -> tuple[Texts, int | None]:
        names, columns = self.columns.partitioning, self.columns
        # The empty text is how logs write null.
        values = tuple(add.partition.get(columns.logged(name)) or None for name in names)
        if values not in self._shared:
            texts = {
                name: None if value is None else _text(add.path, name, value, columns.kinds[name])
                for name, value in zip(names, values, strict=True)
            }
            self._shared[values] = texts, self._time_in(dict(zip(names, values, strict=True)))
        return self._shared[values]

    def _time_in(self, values: Texts) -> int | None:
        if self.time is None or (text := values.get(self.time.column)) is None:
            return None
        kind = self.columns.types[self.time.column]
        return moment(int(text) if kind in INTEGERS else text, kind)


def _text(path: str, column: str, value: str, kind: pa.DataType) -> str:
    """A partition value as Arrow writes it, however the log does."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return value
    try:
        if pa.types.is_timestamp(kind):
            when = datetime.fromisoformat(value)
            known: object = when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
            typed = pa.array([known], pa.timestamp("us", "UTC")).cast(pa.timestamp("us", kind.tz))
        else:
            typed = pa.array([value]).cast(kind)
        return str(typed.cast(pa.string())[0].as_py())
    except (ValueError, pa.ArrowException) as error:
        raise ValueError(
            f"file {path} has {value!r} in partition column {column}, which is of type {kind}"
        ) from error


def name_of(path: str) -> str:
    """A file's name by its path in the log, where it is written as part of a URI."""
    return path if is_absolute(path) else unquote(path)


def is_absolute(path: str) -> bool:
    return _ABSOLUTE.match(path) is not None

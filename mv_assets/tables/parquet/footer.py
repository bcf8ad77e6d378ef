"""Where the rows of a Parquet file lie in time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mv_assets.buckets import DAY
from mv_assets.tables.times import FIRST, LAST, TimeColumn, Unit, milliseconds

_UNITS: dict[str, Unit] = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_ROWS_AT_ONCE = 1 << 20
# Arrow reads an INT96 time of day without its sign. Old writers have negative ones before 1970, which come
# out so many microseconds later: the years 1820 to 1970 as 2404 to 2554.
_SIGNLESS = (1 << 64) // 1_000
_MISREAD = (_SIGNLESS - 150 * 365 * DAY * 1_000, _SIGNLESS + DAY * 1_000)
# Spark moves the times of files that say they are in its old calendar: before 1900 by their zone, and days
# only before the calendars met. Since which version they have to say so on their own, and how.
_SPARK = b"org.apache.spark.version"
_OLD, _OLD_INT96 = ((3, 0), b"org.apache.spark.legacyDateTime"), ((3, 1), b"org.apache.spark.legacyINT96")
_MOVED, _MOVED_DAYS = ("1900-01-01", -2_208_988_800_000), ("1582-10-15", -141_427 * DAY)
_MAGIC = b"PAR1"
# The length of the footer, and the magic.
_TAIL = 8

Range = tuple[int, int]


class Unusable(Exception):
    """The file can't be used; the message says why."""


class _Damaged(Unusable):
    """Arrow could not make sense of it."""


class Footer(NamedTuple):
    """The last bytes of a file, all that stands there about its rows, and the column that is asked for."""

    content: bytes
    time: TimeColumn


class DamagedPages(Unusable):
    """The rows can't be read, though the footer can: its statistics may still say where they lie."""

    def __init__(self, why: str, footer: Footer) -> None:
        super().__init__(why)
        self.footer = footer


class Extent(NamedTuple):
    """Where a file's rows lie in time (None: nowhere), how many have no time, and how many there are."""

    range: Range | None
    nulls: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class _Column:
    """The time column inside one file."""

    name: str
    unit: Unit | Literal["d"]
    signless: bool = False
    moved: bool = False
    # Where its integers are unsigned: as many as there are, as statistics know signed ones only.
    wraps: int = 0


def extent(source: pa.NativeFile, time: TimeColumn | None) -> Extent:
    """The time range of a file's rows.

    The column itself is read, not the footer's statistics of it. They may be missing or wrong, and Arrow ends
    the whole process over a damaged footer when it is asked for them. The file's bytes are read for its
    checksum anyway, once.

    Raises:
        Unusable: no Parquet file, damaged, or without a usable time column.
        OSError: it could not be read, which says nothing of what it holds. A store's errors may look like
            damage, so that only whoever reads from one can tell.
        MemoryError: nor does too little memory.

    """
    with _damage(), pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file:
        rows = file.metadata.num_rows
        if time is None:
            return Extent((FIRST, LAST) if rows else None, rows=rows)
        column = _find(file.metadata.schema, time)
        try:
            values, nulls = _bounds(file, column)
        except _Damaged as damaged:
            raise DamagedPages(str(damaged), Footer(_footer(source), time)) from damaged
        if not values:
            return Extent(None, nulls, rows)
        found = milliseconds(min(values), max(values), column.unit)
        _refuse_moved(found, column, file.metadata.metadata)
        return Extent(found, nulls, rows)


def stated_range(footer: Footer) -> Range | None:
    """Where a file's rows lie by its footer's statistics; None if these do not say so of all of them.

    Only for a process of its own: Arrow ends it over some damaged footers.
    """
    try:
        with _damage():
            metadata = pq.read_metadata(pa.BufferReader(_MAGIC + footer.content))
            column, at = _find(metadata.schema, footer.time), _index(metadata.schema, footer.time.name)
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            found = [_stated(group.column(at), column) for group in groups]
            values = [value for each in found for value in each or ()]
            if None in found or not values:
                return None
            span = milliseconds(min(values), max(values), column.unit)
            _refuse_moved(span, column, metadata.metadata)
            return span
    except Unusable:
        return None


def _stated(chunk: pq.ColumnChunkMetaData, column: _Column) -> list[int] | None:
    """The least and the greatest value of a column in a row group; neither if it has none but nulls.

    None where that is not said, or contradicts itself.
    """
    said = chunk.statistics
    if chunk.num_values == 0 or (said and said.has_null_count and said.null_count == chunk.num_values):
        return []
    if not said or not said.has_min_max or column.signless:
        return None
    first, last = (value % column.wraps if column.wraps else value for value in (said.min_raw, said.max_raw))
    return [first, last] if first <= last else None


@contextmanager
def _damage() -> Iterator[None]:
    """What Arrow raises over a damaged file, told from what says nothing of the file."""
    try:
        yield
    except OSError as error:
        # Arrow calls a damaged file a bare OSError; a disk or a store says more.
        if type(error) is not OSError or error.errno is not None:
            raise
        raise _Damaged(_reason(error)) from error
    except MemoryError:
        raise
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise _Damaged(_reason(error)) from error


def _footer(source: pa.NativeFile) -> bytes:
    size = source.size()
    source.seek(size - _TAIL)
    length = int.from_bytes(source.read(4), "little") + _TAIL
    source.seek(size - length)
    return bytes(source.read(length))


def _bounds(file: pq.ParquetFile, column: _Column) -> tuple[list[int], int]:
    """The least and the greatest values of the rows, batch by batch, and how many rows have none."""
    found: list[int] = []
    nulls = 0
    for values in _times(file, column):
        if column.signless and _may_be_misread(values):
            raise Unusable(
                f"its time column {column.name} has INT96 times of the years 2404 to 2554, or of 1820 to "
                "1970 with a negative time of day, which can't be told apart; rewrite it with timestamps"
            )
        nulls += values.null_count
        if values.null_count < len(values):
            bounds = pc.min_max(values)
            found += [bounds["min"].as_py(), bounds["max"].as_py()]
    return found, nulls


def _times(file: pq.ParquetFile, column: _Column) -> Iterator[pa.Array]:
    with _damage():
        # One column, and files are read side by side: Arrow's threads would only have to be waited for.
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[column.name], use_threads=False):
            yield _numbers(batch.column(0), column)


def _refuse_moved(found: Range, column: _Column, said: Mapping[bytes, bytes] | None) -> None:
    before, limit = _MOVED_DAYS if column.unit == "d" else _MOVED
    if found[0] < limit and column.moved and in_old_calendar(said or {}, int96=column.signless):
        raise Unusable(
            f"its time column {column.name} has times before {before} in Spark's old calendar, which Spark "
            "moves when it reads them; rewrite it with Spark 3 or newer"
        )


def in_old_calendar(said: Mapping[bytes, bytes], *, int96: bool = False) -> bool:
    """Whether a file's own words make Spark move its times."""
    version = re.match(rb"(\d+)\.(\d+)", said.get(_SPARK, b""))
    if version is None:
        # Nor does Spark believe the rest then.
        return False
    since, key = _OLD_INT96 if int96 else _OLD
    return key in said or (int(version[1]), int(version[2])) < since


def _numbers(values: pa.Array, column: _Column) -> pa.Array:
    """The column's raw numbers in its unit."""
    if pa.types.is_date(values.type):
        return values.cast(pa.date32()).cast(pa.int32())
    if pa.types.is_timestamp(values.type):
        # A unit without a Parquet type of its own was stored in the file's unit and comes back converted.
        return values.cast(pa.timestamp(column.unit, values.type.tz)).cast(pa.int64())
    return values


def _may_be_misread(values: pa.Array) -> bool:
    first, last = _MISREAD
    inside = pc.and_(pc.greater_equal(values, first), pc.less_equal(values, last))
    return bool(pc.any(inside).as_py())


def _find(schema: pq.ParquetSchema, time: TimeColumn) -> _Column:
    index = _index(schema, time.name)
    if index is None:
        raise Unusable(f"it has no column {time.name}, which is the table's time column")
    column = schema.column(index)
    kind = json.loads(column.logical_type.to_json())
    unit: Unit | Literal["d"] | None = None
    if kind["Type"] == "Timestamp":
        unit = _UNITS.get(kind["timeUnit"])
    elif kind["Type"] == "Date":
        unit = "d"
    elif column.physical_type == "INT96":
        unit = "us"
    elif kind["Type"] in ("None", "Int") and column.physical_type in ("INT32", "INT64"):
        if time.unit is None:
            raise Unusable(f"its time column {time.name} holds integers, but the table declares no time_unit")
        bits = 32 if column.physical_type == "INT32" else 64
        return _Column(column.name, time.unit, wraps=0 if kind.get("isSigned", True) else 1 << bits)
    if unit is None or time.unit is not None:
        wanted = "an integer" if time.unit is not None else "a date or timestamp"
        raise Unusable(f"its time column {time.name} has type {_type(column)}, not {wanted}")
    # A time without a zone is in no calendar but this.
    moved = kind.get("isAdjustedToUTC", True)
    return _Column(column.name, unit, signless=column.physical_type == "INT96", moved=moved)


def _index(schema: pq.ParquetSchema, name: str) -> int | None:
    """The top-level column of that name; Spark does not care for case."""
    paths = [schema.column(index).path for index in range(len(schema.names))]
    if name in paths:
        return paths.index(name)
    folded = [path.lower() for path in paths]
    return folded.index(name.lower()) if name.lower() in folded else None


def _type(column: pq.ColumnSchema) -> str:
    logical = json.loads(column.logical_type.to_json())["Type"]
    return str(column.physical_type if logical == "None" else logical).lower()


def _reason(error: BaseException) -> str:
    said = str(error).strip().split("\n", 1)[0]
    return f"it can't be read as Parquet ({said or type(error).__name__})"

"""Where the rows of a Parquet file lie in time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mv_assets.buckets import DAY
from mv_assets.tables.listing import ALWAYS
from mv_assets.tables.times import TimeColumn, Unit, milliseconds

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
Source: TypeAlias = str | pa.NativeFile


class Unusable(Exception):
    """The file can't be used; the message says why."""


class Extent(NamedTuple):
    """Where a file's rows lie in time (None: nowhere), how many have no time, and how many there are."""

    range: tuple[int, int] | None
    nulls: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class _Column:
    """The time column inside one file."""

    name: str
    unit: Unit | Literal["d"]
    signless: bool = False
    moved: bool = False


def extent(source: Source, time: TimeColumn | None) -> Extent:
    """The time range of a file's rows.

    Raises:
        Unusable: no Parquet file, damaged, or without a usable time column.
        OSError: it could not be read, which says nothing of what it holds. A store's errors may look like
            damage, so that only whoever reads from one can tell.
        MemoryError: nor does too little memory.

    """
    try:
        with pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file:
            return _extent(file, time)
    except OSError as error:
        # Arrow calls a damaged file a bare OSError; a disk or a store says more.
        if type(error) is not OSError or error.errno is not None:
            raise
        raise Unusable(_reason(error)) from error
    except MemoryError:
        raise
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise Unusable(_reason(error)) from error


def _extent(file: pq.ParquetFile, time: TimeColumn | None) -> Extent:
    """The column itself is read, not the footer's statistics of it.

    They may be missing or wrong, and Arrow ends the whole process over a damaged footer when it is asked for
    them. The file's bytes are read for its checksum anyway, once.
    """
    rows = file.metadata.num_rows
    if time is None:
        return Extent(ALWAYS if rows else None, rows=rows)
    column = _find(file.metadata.schema, time)
    first: list[int] = []
    last: list[int] = []
    nulls = 0
    # One column, and files are read side by side: Arrow's threads would only have to be waited for.
    for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[column.name], use_threads=False):
        values = _numbers(batch.column(0), column)
        if column.signless and _may_be_misread(values):
            raise Unusable(
                f"its time column {column.name} has INT96 times of the years 2404 to 2554, or of 1820 to "
                "1970 with a negative time of day, which can't be told apart; rewrite it with timestamps"
            )
        nulls += values.null_count
        if values.null_count < len(values):
            bounds = pc.min_max(values)
            first.append(bounds["min"].as_py())
            last.append(bounds["max"].as_py())
    if not first:
        return Extent(None, nulls, rows)
    found = milliseconds(min(first), max(last), column.unit)
    before, limit = _MOVED_DAYS if column.unit == "d" else _MOVED
    if (
        found[0] < limit
        and column.moved
        and in_old_calendar(file.metadata.metadata or {}, int96=column.signless)
    ):
        raise Unusable(
            f"its time column {column.name} has times before {before} in Spark's old calendar, which Spark "
            "moves when it reads them; rewrite it with Spark 3 or newer"
        )
    return Extent(found, nulls, rows)


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
        return _Column(column.name, time.unit)
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

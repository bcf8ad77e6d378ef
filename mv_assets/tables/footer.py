"""What a Parquet file says of its own time range, from its statistics or, without them, its rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from mv_assets.tables.listing import ALWAYS
from mv_assets.tables.times import TimeColumn, Unit, milliseconds

_UNITS: dict[str, Unit] = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
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

    index: int
    name: str
    unit: Unit | Literal["d"]
    has_statistics: bool


def extent(source: Source, time: TimeColumn | None, filesystem: fs.FileSystem | None = None) -> Extent:
    """The time range of a file's rows.

    Raises:
        Unusable: no Parquet file, damaged, or without a usable time column.

    """
    try:
        with pq.ParquetFile(source, filesystem=filesystem, coerce_int96_timestamp_unit="us") as file:
            return _extent(file, time)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise Unusable(_reason(error)) from error


def _extent(file: pq.ParquetFile, time: TimeColumn | None) -> Extent:
    metadata = file.metadata
    if time is None:
        return Extent(ALWAYS if metadata.num_rows else None, rows=metadata.num_rows)
    column = _find(metadata.schema, time)
    first: list[int] = []
    last: list[int] = []
    nulls = 0
    for group in range(metadata.num_row_groups):
        if metadata.row_group(group).num_rows == 0:
            continue
        low, high, missing = _of_statistics(metadata, group, column) or _of_rows(file, group, column)
        nulls += missing
        if low is not None and high is not None:
            first.append(low)
            last.append(high)
    span = milliseconds(min(first), max(last), column.unit) if first else None
    return Extent(span, nulls, metadata.num_rows)


Bounds = tuple[int | None, int | None, int]


def _of_statistics(metadata: pq.FileMetaData, group: int, column: _Column) -> Bounds | None:
    chunk = metadata.row_group(group).column(column.index)
    statistics = chunk.statistics if column.has_statistics else None
    if statistics is None or not statistics.has_null_count:
        return None
    if statistics.null_count == chunk.num_values:
        return None, None, statistics.null_count
    if not statistics.has_min_max or statistics.min_raw > statistics.max_raw:
        return None
    return statistics.min_raw, statistics.max_raw, statistics.null_count


def _of_rows(file: pq.ParquetFile, group: int, column: _Column) -> Bounds:
    values = file.read_row_group(group, columns=[column.name]).column(0)
    if pa.types.is_date(values.type):
        values = values.cast(pa.date32()).cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        # A unit without a Parquet type of its own was stored in the file's unit and comes back converted.
        values = values.cast(pa.timestamp(column.unit, values.type.tz)).cast(pa.int64())
    bounds = pc.min_max(values)
    return bounds["min"].as_py(), bounds["max"].as_py(), values.null_count


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
        signed = kind.get("isSigned", True)
        return _Column(index, column.name, time.unit, has_statistics=signed)
    if unit is None or time.unit is not None:
        wanted = "an integer" if time.unit is not None else "a date or timestamp"
        raise Unusable(f"its time column {time.name} has type {_type(column)}, not {wanted}")
    return _Column(index, column.name, unit, has_statistics=column.physical_type != "INT96")


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

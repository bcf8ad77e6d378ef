"""Times in Spark: rows of a stretch of time, and the bucket that a row belongs to."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, DateType, TimestampNTZType, TimestampType

from mv_assets.buckets import DAY, Buckets
from mv_assets.errors import Unreadable
from mv_assets.tables.times import FIRST, LAST, Unit

_PER_SECOND: dict[Unit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def within(time: str, kind: DataType, unit: Unit | None, start: int | None, end: int | None) -> str:
    """The condition that a time lies in `[start, end)`, either of them perhaps open.

    In literals, so that Spark can prune; as SQL, because every part of an expression that is put together
    from here costs a call to Spark's process.
    """
    bounds = [] if start is None else [f"{time} >= {_literal(kind, unit, start)}"]
    bounds += [] if end is None else [f"{time} < {_literal(kind, unit, end)}"]
    return f"({' AND '.join(bounds) or f'{time} IS NOT NULL'})"


def _literal(kind: DataType, unit: Unit | None, when: int) -> str:
    """The first value of the column's type that is not before that time."""
    match kind:
        case TimestampType():
            return f"timestamp_micros({when * 1_000})"
        case TimestampNTZType():
            return f"CAST(timestamp_micros({when * 1_000}) AS TIMESTAMP_NTZ)"
        case DateType():
            # Days are whole: one that begins before the bound is not in a window that begins there.
            return f"date_from_unix_date({-(-when // DAY)})"
    if unit is None:
        raise Unreadable(f"the time column is {kind.simpleString()}, which is not a time")
    counted = -(-when * _PER_SECOND[unit] // 1_000)
    return f"CAST('{min(max(counted, FIRST), LAST)}' AS BIGINT)"


def bucket_of(time: Column, buckets: Buckets) -> Column:
    """The start of the bucket that a view's time lies in, in milliseconds."""
    if buckets.width == "1mo":
        return sql.unix_millis(sql.date_trunc("month", time.cast("timestamp")))
    millis, first = sql.unix_millis(time.cast("timestamp")), buckets.floor(0)
    return millis - sql.pmod(millis - sql.lit(first), sql.lit(buckets.next(first) - first))

"""Times in Spark: rows of a stretch of time, and the bucket that a row belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from mv_assets.buckets import DAY, Buckets
from mv_assets.local_days import LocalDays
from mv_assets.spark.errors import Unreadable
from mv_assets.tables.times import FIRST, LAST, TimeColumn, Unit

_PER_SECOND: dict[Unit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def within(
    time: str, kind: DataType, unit: Unit | None, start: int | None, end: int | None, zone: str | None = None
) -> str:
    """The condition that a time lies in `[start, end)`, either of them perhaps open.

    In literals, so that Spark can prune; as SQL, because every part of an expression that is put together
    from here costs a call to Spark's process. Dates are days of the zone; the session's is no matter.
    """
    bounds = [] if start is None else [f"{time} >= {_literal(kind, unit, start, zone)}"]
    bounds += [] if end is None else [f"{time} < {_literal(kind, unit, end, zone)}"]
    return f"({' AND '.join(bounds) or f'{time} IS NOT NULL'})"


def _literal(kind: DataType, unit: Unit | None, when: int, zone: str | None) -> str:
    """The first value of the column's type that is not before that time."""
    match kind:
        case TimestampType():
            return f"timestamp_micros({when * 1_000})"
        case TimestampNTZType():
            return f"timestampadd(MICROSECOND, {when * 1_000}, TIMESTAMP_NTZ '1970-01-01 00:00:00')"
        case DateType():
            # Days are whole: one that begins before the bound is not in a window that begins there.
            return f"date_from_unix_date({_day_from(when, zone)})"
    if unit is None:
        raise Unreadable(f"the time column is {kind.simpleString()}, which is not a time")
    counted = -(-when * _PER_SECOND[unit] // 1_000)
    return f"CAST('{min(max(counted, FIRST), LAST)}' AS BIGINT)"


def _day_from(when: int, zone: str | None) -> int:
    if zone is None:
        return -(-when // DAY)
    days = LocalDays(zone)
    day = days.at(when)
    return day if days.start(day) == when else day + 1


def bucket_of(time: Column, buckets: Buckets) -> Column:
    """The start of the bucket that a view's time lies in, in milliseconds, in a session with its zone."""
    if buckets.zone is not None:
        return _local_bucket(sql.unix_millis(time.cast("timestamp")), buckets.width)
    if buckets.width == "1mo":
        return sql.unix_millis(sql.date_trunc("month", time.cast("timestamp")))
    millis, first = sql.unix_millis(time.cast("timestamp")), buckets.floor(0)
    return millis - sql.pmod(millis - sql.lit(first), sql.lit(buckets.next(first) - first))


def _local_bucket(millis: Column, width: str) -> Column:
    first, following = (_first_instant(day) for day in _days(millis, width))
    # Where clocks went back over midnight, a date comes again after the next one has begun.
    return sql.when(millis >= following, following).otherwise(first)


def _days(millis: Column, width: str) -> tuple[Column, Column]:
    """The first day of a bucket, and of the next."""
    day = sql.timestamp_millis(millis).cast("date")
    if width == "1d":
        return day, sql.date_add(day, 1)
    if width == "1w":
        return sql.trunc(day, "week"), sql.date_add(sql.trunc(day, "week"), 7)
    return sql.trunc(day, "month"), sql.add_months(sql.trunc(day, "month"), 1)


def _first_instant(day: Column) -> Column:
    # Not by date_trunc, which of a midnight that came twice takes now the one, now the other.
    return sql.unix_millis(day.cast("timestamp"))


def disagreed_on(spark: SparkSession, buckets: Buckets, starts: Sequence[int]) -> list[int]:
    """Buckets that begin or end at other times by Spark's rules of time zones than by Python's."""
    if buckets.zone is None or not starts:
        return []
    edges = ", ".join(f"{edge}L" for start in starts for edge in (start, buckets.next(start) - 1))
    found = sql.transform(sql.expr(f"array({edges})"), lambda edge: _local_bucket(edge, buckets.width))
    [row] = spark.sql("SELECT 1").select(found.alias("starts")).collect()
    said = zip(row.starts[::2], row.starts[1::2], strict=True)
    return [start for start, both in zip(starts, said, strict=True) if set(both) != {start}]


def refuse_other_days(table: str, time: TimeColumn, zone: str | None, schemas: Iterable[StructType]) -> None:
    """Refuse dates and clocks for a view in another zone than theirs, where they are no moments.

    Raises:
        Unreadable: a file or bucket, of which these are the columns, has such.

    """
    if zone == time.zone:
        return
    for schema in schemas:
        kind = _kind(schema, time.name)
        if isinstance(kind, DateType | TimestampNTZType):
            raise Unreadable(
                f"{table}.{time.name} is a {kind.simpleString()}, which is no moment that has a day in "
                f"{zone or 'UTC'}; use a column of timestamps, or the timezone that these are in"
            )


def refuse_without_zone(schema: StructType, time: str) -> None:
    """Refuse that the own times of a view in a zone are clocks: these show some times twice.

    Raises:
        Unreadable: it is one.

    """
    if isinstance(_kind(schema, time), TimestampNTZType):
        raise Unreadable(f"{time} is a timestamp_ntz, which has no zone; write CAST(... AS TIMESTAMP)")


def _kind(schema: StructType, column: str) -> DataType | None:
    return next((part.dataType for part in schema if part.name.lower() == column.lower()), None)

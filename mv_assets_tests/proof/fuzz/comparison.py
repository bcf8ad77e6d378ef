"""Whether two engines say the same: rows as multisets, sorted ones in order, floats to nine digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from mv_assets_tests.proof.fuzz.sql.select import Query

Row = tuple[Any, ...]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def from_spark(text: str | None, kind: DataType) -> Any:
    """A value that Spark has written as text."""
    if text is None:
        return None
    match kind:
        case StringType():
            return text
        case BooleanType():
            return text == "true"
        case DecimalType():
            return Decimal(text)
        case DoubleType() | FloatType():
            return float(text)
        case DateType():
            return plain(date.fromisoformat(text))
        case TimestampType() | TimestampNTZType():
            return int(text)
    return int(text)


def plain(value: Any) -> Any:
    """A value of DuckDB's."""
    match value:
        case datetime():
            return (value.replace(tzinfo=UTC) - _EPOCH) // _MICRO
        case date():
            return plain(datetime.combine(value, time()))
    return value


def difference(query: Query, expected: Sequence[Row], found: Sequence[Row]) -> str | None:
    """What is wrong with the found rows."""
    if query.some is not None:
        limit, offset = query.some
        count = max(0, min(limit, len(expected) - offset))
        if len(found) != count:
            return f"{len(found)} rows instead of {count}"
        left = [*expected]
        for row in found:
            same = next((at for at, other in enumerate(left) if _alike(row, other)), None)
            if same is None:
                return f"no such row: {row}"
            del left[same]
        return None
    if len(expected) != len(found):
        return f"{len(found)} rows instead of {len(expected)}: {_head(found)} instead of {_head(expected)}"
    for at, (one, other) in enumerate(zip(expected, found, strict=True)):
        by = query.ordered
        if not _alike(tuple(one[place] for place in by), tuple(other[place] for place in by)):
            return f"row {at} is out of order: {_head(found)} instead of {_head(expected)}"
    for one, other in zip(sorted(expected, key=_key), sorted(found, key=_key), strict=True):
        if not _alike(one, other):
            return f"{other} instead of {one}"
    return None


def _head(rows: Sequence[Row]) -> str:
    return repr(list(rows[:6]))


def _key(row: Row) -> str:
    return repr([_text(value) for value in row])


def _text(value: Any) -> str:
    if isinstance(value, (int, float, Decimal)):
        return f"{float(value) + 0.0:030.5f}"
    return repr(value)


def _alike(one: Row, other: Row) -> bool:
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        if one is None or other is None or isinstance(one, str) or isinstance(other, str):
            return False
        left, right = float(one), float(other)
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9) or (
            math.isnan(left) and math.isnan(right)
        )
    return (
        bool(one == other)
        and (one is None) == (other is None)
        and isinstance(one, str) == isinstance(other, str)
    )

"""What a Delta log states of a file's rows: how many there are, and the bounds of their times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from mv_assets.tables.types import INTEGERS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Stats(NamedTuple):
    """Rows in the file, deleted ones too; nulls and bounds of the time column, in its unit, days or us."""

    rows: int | None = None
    nulls: int | None = None
    first: int | None = None
    last: int | None = None


class StatsOf(NamedTuple):
    """Which column the statistics are wanted of, as the log calls it; None for a dimension."""

    column: str | None = None
    kind: str = ""

    def in_text(self, text: str | None) -> Stats:
        """Statistics as JSON. What can't be understood is not stated: the file's footer is asked then."""
        try:
            said = json.loads(text) if text else {}
        except ValueError:
            said = {}
        if not isinstance(said, dict):
            return Stats()
        first, last = (moment(_inside(said, bound, self.column), self.kind) for bound in _BOUNDS)
        return Stats(_count(said.get("numRecords")), _count(_inside(said, _NULLS, self.column)), first, last)

    def in_columns(self, adds: pa.StructArray) -> Iterator[Stats]:
        """Statistics of a checkpoint: as JSON, or as columns of their own where there is none."""
        texts = _field(adds, "stats").to_pylist()
        if None not in texts:
            return map(self.in_text, texts)
        parsed = _field(adds, "stats_parsed")
        bounds = (_numbers(_nested(parsed, bound, self.column), self.kind) for bound in _BOUNDS)
        rows, nulls = _field(parsed, "numRecords"), _nested(parsed, _NULLS, self.column)
        columns = (rows.to_pylist(), nulls.to_pylist(), *bounds)
        return (
            Stats(*stated) if text is None else self.in_text(text)
            for text, *stated in zip(texts, *columns, strict=True)
        )


_BOUNDS, _NULLS = ("minValues", "maxValues"), "nullCount"


def _inside(said: dict[str, Any], kind: str, column: str | None) -> Any:
    found = said.get(kind)
    return found.get(column) if isinstance(found, dict) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def moment(value: Any, kind: str) -> int | None:
    """A time as logs write it; None if it is none, or one beyond what Python knows."""
    if kind in INTEGERS:
        return value if type(value) is int else None
    if type(value) is not str:
        return None
    try:
        if kind == "date":
            return (date.fromisoformat(value) - _EPOCH.date()).days
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _field(values: pa.StructArray, name: str) -> pa.Array:
    """A field where its struct is not null; nulls where there is no such field."""
    if not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
        return pa.nulls(len(values))
    return pc.struct_field(values, [name])


def _nested(parsed: pa.Array, kind: str, column: str | None) -> pa.Array:
    return pa.nulls(len(parsed)) if column is None else _field(_field(parsed, kind), column)


def _numbers(values: pa.Array, kind: str) -> list[int | None]:
    if pa.types.is_date32(values.type) and kind == "date":
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(values.type) and kind.startswith("timestamp"):
        return list(values.cast(pa.timestamp("us", values.type.tz), safe=False).cast(pa.int64()).to_pylist())
    if pa.types.is_integer(values.type) and kind in INTEGERS:
        return list(values.to_pylist())
    return [None] * len(values)

"""Where the rows of an Iceberg table's files lie in time, as far as its manifests state it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from mv_assets.tables import lakehouse
from mv_assets.tables.iceberg.entries import Entry
from mv_assets.tables.parquet.footer import Extent
from mv_assets.tables.places import Place
from mv_assets.tables.times import TimeColumn, Unit

_DATE_BYTES = 4


class IcebergTime(NamedTuple):
    """The time column, and how files have it."""

    column: TimeColumn
    place: Place
    unit: Unit | Literal["d"]

    @property
    def field_id(self) -> int:
        return self.place.field_id or 0


def stated_extent(file: Entry, time: IcebergTime | None, values: Mapping[int, Any]) -> Extent | None:
    """What the manifest states of a file, whose identity partitions have these values by field id."""
    rows, first, last, nulls = file.rows, file.low, file.high, file.nulls
    if time is None:
        return lakehouse.timeless(rows)
    if first is not None and last is not None:
        # Bounds keep the type that the column had when they were written: a date may have become a timestamp.
        days = time.column.unit is None and len(first) == _DATE_BYTES
        low, high = (int.from_bytes(bound, "little", signed=True) for bound in (first, last))
        return lakehouse.stated(rows, nulls, low, high, "d" if days else time.unit)
    if time.field_id in values:
        value = values[time.field_id]
        return lakehouse.stated(rows, rows if value is None else 0, value, value, time.unit)
    return lakehouse.stated(rows, nulls, None, None, time.unit)

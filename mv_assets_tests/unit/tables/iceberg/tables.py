"""Iceberg tables of a test, and what their listings say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.listing import Listing
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.unit.tables.iceberg import log

DAY = 86_400_000
NOW = 1_800_000_000_000
TS = TimeColumn("ts")
NO_METRICS = {"write.metadata.metrics.default": "none"}

Make = Callable[..., IcebergFiles]
Create = Callable[..., Table]


def rows(*days: float | None, **more: Any) -> pa.Table:
    """Rows at those days since 1970."""
    micros = [None if day is None else int(day * DAY * 1_000) for day in days]
    return pa.table({"ts": pa.array(micros, pa.timestamp("us", "UTC")), **more})


def ranges(listing: Listing) -> list[tuple[int, int]]:
    return sorted(zip(listing.starts, listing.ends, strict=True))


def range_of(table: IcebergFiles) -> tuple[int, int]:
    (found,) = ranges(table.current().listing())
    return found


def data(root: Path) -> list[Path]:
    return sorted((root / "data").rglob("*.parquet"))


def long(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


STATED = log.bounds(1, long(0), long(0))

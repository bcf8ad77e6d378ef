"""Iceberg tables of a test, and what their listings say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table

from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.listing import EqualityDelete, Listing, RowDeletes
from mv_assets.tables.times import TimeColumn
from mv_assets.tables.types import id_of
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


def paths(made: Table) -> list[str]:
    """The paths of data files as the table spells them, in the order of their numbers."""
    tasks = [task.file.file_path for task in made.scan().plan_files()]
    return sorted(tasks, key=lambda path: pq.read_table(local(path), partitioning=None)["v"][0].as_py())


def visible(table: IcebergFiles, listing: Listing) -> list[dict[str, Any]]:
    """The rows that a listing leaves, by the names that columns have in files; a slow reader of its own."""
    found: list[dict[str, Any]] = []
    for name in sorted(listing.listed()):
        content = pq.read_table(local(listing.path(name)), partitioning=None)
        deletes = listing.details.deletes.get(name, RowDeletes())
        gone = set(table.deleted(listing, name).to_pylist()) if deletes.places else set()
        kept = [row for place, row in enumerate(content.to_pylist()) if place not in gone]
        ids = {id_of(part): part.name for part in content.schema}
        for equal in deletes.equal:
            kept = [row for row in kept if _values(row, ids, equal) not in _deleted_values(equal)]
        found += kept
    return found


def _values(row: Mapping[str, Any], ids: Mapping[int | None, str], equal: EqualityDelete) -> tuple[Any, ...]:
    return tuple(row[ids[number]] if number in ids else None for number, _ in equal.columns)


def _deleted_values(equal: EqualityDelete) -> set[tuple[Any, ...]]:
    content = pq.read_table(local(equal.path))
    ids = {id_of(part): part.name for part in content.schema}
    return {_values(row, ids, equal) for row in content.to_pylist()}


def local(path: str) -> str:
    return path.removeprefix("file://").removeprefix("file:")

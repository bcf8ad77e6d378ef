"""What the deltalake library says of a table's files: the oracle of our own reading of its log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.listing import Listing


class Said(NamedTuple):
    size: int
    changed: int
    range: tuple[int, int] | None
    nulls: int
    partition: dict[str, str | None]
    deleted: tuple[int, ...]


def by_library(root: Path, time: str = "ts") -> dict[str, Said]:
    opened = DeltaTable(root)
    actions = pa.table(opened.get_add_actions(flatten=False))
    deleted = deleted_by_library(root)
    names = [unquote(path) for path in actions["path"].to_pylist()]
    partitions = _texts(actions, opened.metadata().partition_columns)
    columns = (_numbers(actions, kind, time) for kind in ("min", "max", "null_count"))
    assert len(set(names)) == len(names)
    return {
        name: Said(size, changed, _span(first, last), nulls or 0, partition, tuple(deleted.get(name, ())))
        for name, size, changed, partition, first, last, nulls in zip(
            names,
            actions["size_bytes"].to_pylist(),
            actions["modification_time"].to_pylist(),
            partitions,
            *columns,
            strict=True,
        )
    }


def deleted_by_library(root: Path) -> dict[str, list[int]]:
    found = {}
    for batch in pa.RecordBatchReader.from_stream(DeltaTable(root).deletion_vectors()):
        for uri, kept in zip(batch["filepath"].to_pylist(), batch["selection_vector"], strict=True):
            name = unquote(uri).removeprefix(f"file://{root}/")
            found[name] = pc.indices_nonzero(pc.invert(kept.values)).to_pylist()
    return found


def by_listing(table: DeltaFiles, listing: Listing) -> dict[str, Said]:
    """The same as a listing has it; of files that are nowhere in time only what it tells."""
    spans = dict(zip(listing.names, zip(listing.starts, listing.ends, strict=True), strict=True))
    sizes = dict(zip(listing.names, zip(listing.sizes, listing.changed, strict=True), strict=True))
    assert len(spans) == len(listing.names)
    return {
        name: Said(
            *sizes.get(name, (-1, -1)),
            spans.get(name),
            listing.nulls.get(name, 0),
            dict(listing.details.partitions.get(name, {})),
            tuple(table.deleted(listing, name).to_pylist()),
        )
        for name in listing.listed()
    }


def same(table: DeltaFiles, listing: Listing, root: Path) -> None:
    found, expected = by_listing(table, listing), by_library(root)
    for name in listing.timeless:
        expected[name] = expected[name]._replace(size=-1, changed=-1)
    assert found == expected


def _numbers(actions: pa.Table, kind: str, column: str) -> list[int | None]:
    if kind not in actions.column_names or actions.schema.field(kind).type.get_field_index(column) < 0:
        return [None] * len(actions)
    values = pc.struct_field(actions[kind], [column])
    return list(values.cast(pa.int64()).to_pylist())


def _span(first: int | None, last: int | None) -> tuple[int, int] | None:
    return None if first is None or last is None else (first // 1_000, last // 1_000)


def _texts(actions: pa.Table, columns: list[str]) -> list[dict[str, Any]]:
    if not columns:
        return [{} for _ in range(len(actions))]
    values = [pc.struct_field(actions["partition"], [name]).cast(pa.string()).to_pylist() for name in columns]
    return [dict(zip(columns, each, strict=True)) for each in zip(*values, strict=True)]

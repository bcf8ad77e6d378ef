"""What an Iceberg table's manifests and manifest lists say, as values, and as bytes to be remembered."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import pyarrow as pa

# As the specification numbers them.
EXISTING, ADDED, DELETED = range(3)
DATA, POSITION_DELETES, EQUALITY_DELETES = range(3)

# Raise it when what is remembered, or what it means, changes: what has another number is read again.
LAYOUT = 1

Row = TypeVar("Row", bound=tuple[Any, ...])


class Manifest(NamedTuple):
    """A manifest, as a manifest list names it. Sequence number and snapshot are those of its commit."""

    path: str
    length: int
    spec: int
    deletes: bool
    sequence: int
    snapshot: int
    # How many files it has added, existing and deleted, where that is told.
    counts: list[int] | None


class Entry(NamedTuple):
    """A file, as a manifest names it; what it inherits from the manifest is filled in."""

    status: int
    snapshot: int
    sequence: int
    content: int
    path: str
    format: str
    # The values of its partition: see `partition_text`.
    partition: str
    rows: int
    size: int
    encrypted: bool
    # Of the time column, as far as they are told.
    low: bytes | None = None
    high: bytes | None = None
    nulls: int | None = None
    # Of files of deletes.
    equality_ids: list[int] | None = None
    target: str | None = None
    offset: int | None = None
    length: int | None = None
    path_low: bytes | None = None
    path_high: bytes | None = None


_MANIFEST = pa.schema(
    {
        "path": pa.string(),
        "length": pa.int64(),
        "spec": pa.int32(),
        "deletes": pa.bool_(),
        "sequence": pa.int64(),
        "snapshot": pa.int64(),
        "counts": pa.list_(pa.int64()),
    }
)
_ENTRY = pa.schema(
    {
        "status": pa.int8(),
        "snapshot": pa.int64(),
        "sequence": pa.int64(),
        "content": pa.int8(),
        "path": pa.string(),
        "format": pa.string(),
        "partition": pa.string(),
        "rows": pa.int64(),
        "size": pa.int64(),
        "encrypted": pa.bool_(),
        "low": pa.binary(),
        "high": pa.binary(),
        "nulls": pa.int64(),
        "equality_ids": pa.list_(pa.int64()),
        "target": pa.string(),
        "offset": pa.int64(),
        "length": pa.int64(),
        "path_low": pa.binary(),
        "path_high": pa.binary(),
    }
)


def packed(rows: Iterable[Manifest] | Iterable[Entry], kind: type[Manifest | Entry]) -> bytes:
    """Rows as bytes."""
    schema = _MANIFEST if kind is Manifest else _ENTRY
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, part.type) for column, part in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def unpacked(content: bytes, kind: type[Row]) -> list[Row]:
    """The rows of such bytes."""
    columns = pa.ipc.open_stream(content).read_all().columns
    return [kind(*row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


def partition_text(values: Iterable[Any]) -> str:
    """Values of a partition as text: equal values have equal texts, and others have others."""
    return json.dumps(list(values), default=_tagged, separators=(",", ":"))


def partition_values(text: str) -> tuple[Any, ...]:
    """The values again."""
    return tuple(json.loads(text, object_hook=_untagged))


def _tagged(value: object) -> dict[str, str]:
    match value:
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case Decimal():
            return {"decimal": str(value)}
        case UUID():
            return {"uuid": str(value)}
    raise TypeError(f"no partition has values such as {value!r}")


def _untagged(tagged: dict[str, str]) -> object:
    ((kind, text),) = tagged.items()
    if kind == "bytes":
        return base64.b64decode(text)
    return Decimal(text) if kind == "decimal" else UUID(text)

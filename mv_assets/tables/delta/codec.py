"""A list of files as bytes: Arrow's columns, because a table has millions of them."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from mv_assets.state.model import Segment
from mv_assets.tables.delta.files import NUMBERS, FileList
from mv_assets.tables.lakehouse import Active
from mv_assets.tables.listing import Rewrite, RowDeletes
from mv_assets.tables.parquet.footer import Extent

_REWRITES = pa.schema(
    {
        "version": pa.int64(),
        # Whether it is one of the files that came, or of those that went.
        "came": pa.bool_(),
        "name": pa.large_string(),
        "crc": pa.int64(),
        "start": pa.int64(),
        "end": pa.int64(),
    }
)


def encoded(files: FileList, version: str) -> bytes:
    """The files, those in time first, and behind them what was rewritten."""
    about = {"version": version, "placed": len(files.names)}
    sink = pa.BufferOutputStream()
    for table, said in ((_columns(files), about), (_rewrites(files.rewrites), {})):
        schema = table.schema.with_metadata({"about": json.dumps(said)})
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, schema, options=options) as writer:
            writer.write_table(table.replace_schema_metadata(schema.metadata))
    return bytes(sink.getvalue())


def decoded(content: bytes, version: str) -> FileList | None:
    """The files, if they are those of that version and whole."""
    source = pa.BufferReader(content)
    try:
        table, rewrites = (pa.ipc.open_stream(source).read_all().combine_chunks() for _ in range(2))
    except (pa.ArrowException, OSError):
        return None
    about = json.loads(table.schema.metadata[b"about"])
    if about["version"] != version:
        return None
    files = _files(table, about["placed"])
    files.rewrites = _rewritten(rewrites)
    return files


def _columns(files: FileList) -> pa.Table:
    others = list(files.others.values())
    names = [*files.names, *files.others]
    values = zip(*((file.crc, 0, 0, file.size, file.changed, 0) for file in others), strict=True)
    tails = list(values) or [()] * len(NUMBERS)
    numbers = {
        kind: pa.array(memoryview(getattr(files, kind) + array("q", tail)), pa.int64())
        for kind, tail in zip(NUMBERS, tails, strict=True)
    }
    texts = {id(values): json.dumps(values) for values in files.partitions.values()}
    return pa.table(
        {
            "name": pa.array(names, pa.large_string()),
            **numbers,
            "unread": pa.array(
                [name in files.others and files.others[name].extent is None for name in names]
            ),
            "nulls": pa.array(map(files.nulls.get, names), pa.int64()),
            "path": pa.array(map(files.paths.get, names), pa.large_string()),
            "elsewhere": pa.array(map(files.elsewhere.get, names), pa.large_string()),
            "partition": pa.array(
                (texts.get(id(files.partitions.get(name))) for name in names), pa.large_string()
            ).dictionary_encode(),
            "deletes": pa.array(
                (files.deletes[name].places[0] if name in files.deletes else None for name in names),
                pa.large_string(),
            ),
        }
    )


def _files(table: pa.Table, placed: int) -> FileList:
    names = table["name"].to_pylist()
    numbers = {kind: _numbers(table[kind]) for kind in NUMBERS}
    texts = {text: json.loads(text) for text in table["partition"].unique().to_pylist() if text is not None}
    files = FileList(
        names[:placed],
        nulls=_by_name(table, names, "nulls"),
        paths=_by_name(table, names, "path"),
        elsewhere=_by_name(table, names, "elsewhere"),
        partitions={name: texts[text] for name, text in _by_name(table, names, "partition").items()},
        deletes={name: RowDeletes((place,)) for name, place in _by_name(table, names, "deletes").items()},
    )
    for kind, values in numbers.items():
        setattr(files, kind, values[:placed])
    for at, unread in islice(enumerate(table["unread"].to_pylist()), placed, None):
        extent = None if unread else Extent(None, files.nulls.get(names[at], 0))
        crc, size, changed = (numbers[kind][at] for kind in ("crcs", "sizes", "changed"))
        files.others[names[at]] = Active(names[at], crc, size, changed, extent)
    return files


def _numbers(column: pa.ChunkedArray) -> array[int]:
    values = array("q")
    for chunk in column.chunks:
        data = memoryview(chunk.buffers()[1])[chunk.offset * 8 : (chunk.offset + len(chunk)) * 8]
        values.frombytes(data)
    return values


def _by_name(table: pa.Table, names: list[str], kind: str) -> dict[str, Any]:
    """The values that are there."""
    column = table[kind]
    if column.null_count == len(column):
        return {}
    return {name: value for name, value in zip(names, column.to_pylist(), strict=True) if value is not None}


def _rewrites(rewrites: Mapping[int, Rewrite]) -> pa.Table:
    rows = [
        (version, came, each.name, each.crc, each.start_ms, each.end_ms)
        for version, rewrite in rewrites.items()
        for came, segments in ((False, rewrite.removed), (True, rewrite.added))
        for each in segments
    ]
    columns = list(zip(*rows, strict=True))
    return pa.table(columns or [()] * len(_REWRITES), schema=_REWRITES)


def _rewritten(table: pa.Table) -> dict[int, Rewrite]:
    found: dict[int, dict[bool, list[Segment]]] = {}
    for version, came, *segment in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found.setdefault(version, {False: [], True: []})[came].append(Segment(*segment))
    return {
        version: Rewrite(tuple(each[False]), tuple(each[True])) for version, each in sorted(found.items())
    }

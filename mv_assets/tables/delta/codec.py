"""A list of files as bytes: Arrow's columns, because a table has millions of them."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

from mv_assets.state.model import Segment
from mv_assets.tables.delta.files import PART, DeltaPart, FileList
from mv_assets.tables.lakehouse import Active
from mv_assets.tables.listing import Rewrite, RowDeletes
from mv_assets.tables.parquet.footer import Extent
from mv_assets.tables.parts import NUMBERS

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
    about = {"version": version, "placed": sum(len(part.names) for part in files.parts)}
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
    others = [file for part in files.parts for file in part.others.values()]
    unread = [file.extent is None for file in others]
    placed = [*chain.from_iterable(part.names for part in files.parts)]
    names = [*placed, *(file.name for file in others)]
    values = zip(*((file.crc, 0, 0, file.size, file.changed, 0) for file in others), strict=True)
    tails = list(values) or [()] * len(NUMBERS)
    numbers = {
        kind: pa.chunked_array([*(_column(getattr(part, kind)) for part in files.parts), tail], pa.int64())
        for kind, tail in zip(NUMBERS, tails, strict=True)
    }
    texts: dict[int, str] = {}
    for values in files.all("partitions").values():
        if id(values) not in texts:
            texts[id(values)] = json.dumps(values)
    return pa.table(
        {
            "name": pa.array(names, pa.large_string()),
            **numbers,
            "unread": pa.array([False] * len(placed) + unread, pa.bool_()),
            "nulls": _told(files, "nulls", names, pa.int64()),
            "path": _told(files, "paths", names),
            "elsewhere": _told(files, "elsewhere", names),
            "partition": _told(
                files, "partitions", names, of=lambda values: texts[id(values)]
            ).dictionary_encode(),
            "deletes": _told(files, "deletes", names, of=lambda deletes: deletes.places[0]),
        }
    )


def _column(values: array[int]) -> pa.Array:
    """The numbers as they are, without a step for each."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _told(
    files: FileList,
    kind: str,
    names: list[str],
    type_: pa.DataType | None = None,
    of: Callable[[Any], Any] = lambda value: value,
) -> pa.Array:
    """What is said by name, null where nothing is."""
    told, type_ = dict(files.all(kind)), type_ or pa.large_string()
    if not told:
        return pa.nulls(len(names), type_)
    return pa.array((of(told[name]) if name in told else None for name in names), type_)


def _files(table: pa.Table, placed: int) -> FileList:
    kinds = [text for text in table["partition"].unique().to_pylist() if text is not None]
    texts = {text: json.loads(text) for text in kinds}
    parts = [_part(table.slice(at, min(PART, placed - at)), texts) for at in range(0, placed, PART)]
    others, left = table.slice(placed), _part(table.slice(placed, 0), texts)
    _say(left, others, others["name"].to_pylist(), texts)
    rows = [others[kind].to_pylist() for kind in ("name", "crcs", "sizes", "changed", "unread")]
    for name, crc, size, changed, unread in zip(*rows, strict=True):
        extent = None if unread else Extent(None, left.nulls.get(name, 0))
        left.others[name] = Active(name, crc, size, changed, extent)
    return FileList([*parts, left] if left.others else parts)


def _part(table: pa.Table, texts: Mapping[str, Any]) -> DeltaPart:
    part = DeltaPart(table["name"].to_pylist())
    for kind in NUMBERS:
        setattr(part, kind, _numbers(table[kind]))
    _say(part, table, part.names, texts)
    return part


def _say(part: DeltaPart, table: pa.Table, names: list[str], texts: Mapping[str, Any]) -> None:
    """What differs per file."""
    part.nulls = _by_name(table, names, "nulls")
    part.paths = _by_name(table, names, "path")
    part.elsewhere = _by_name(table, names, "elsewhere")
    part.partitions = {name: texts[text] for name, text in _by_name(table, names, "partition").items()}
    part.deletes = {name: RowDeletes((place,)) for name, place in _by_name(table, names, "deletes").items()}


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

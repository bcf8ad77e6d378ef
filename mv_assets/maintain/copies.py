"""Rows of some buckets, from Parquet file to Parquet file as they are: without Spark, a little at a time."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mv_assets.state.model import BUCKET

T = TypeVar("T")

# What is held in memory: of each file that is read, and of the one that is written.
_BATCH_BYTES = 4 << 20
# Of more files than these, less of each.
_AT_ONCE = 32
_BATCH_ROWS = 1 << 16
_GROUP_BYTES = 64 << 20
_GROUP_ROWS = 1 << 20
_FILE_BYTES = 512 << 20
# A file of a published view is copied, and the rows of all its buckets written, whenever one is replaced.
PORTION_BYTES = 16 << 20
PORTION_BUCKETS = 100
# Files that are read together are held in memory as they are, compressed.
SMALL_BYTES = 8 << 20
_TOGETHER_BYTES = 128 << 20
_TOGETHER_FILES = 128

_WITH_NAN = ("FLOAT", "DOUBLE")

# All that tells a reader what a file's columns are: their types, and what Spark noted of them.
Shape = tuple[str, tuple[tuple[bytes, bytes], ...]]


def shape_of(file: pq.ParquetFile) -> Shape:
    # The first two lines are the object's address and the root's name, which readers do not look at.
    columns = str(file.schema).split("\n", 2)[2]
    return columns, tuple(sorted((file.metadata.metadata or {}).items()))


def copyable(file: pq.ParquetFile) -> bool:
    """Whether Arrow gives a copy the very same columns; it does not keep every type, as VARIANT."""
    if BUCKET not in file.schema_arrow.names:
        return False
    trial = pa.BufferOutputStream()
    _writer(trial, file).close()
    return shape_of(pq.ParquetFile(pa.BufferReader(trial.getvalue()))) == shape_of(file)


@dataclass(frozen=True, slots=True)
class Source:
    """A file, its size, and those of its buckets that are to be copied."""

    path: str
    bytes: int
    buckets: Collection[int]


Open = Callable[[str], pa.NativeFile]
Create = Callable[[int], pa.NativeFile]


def copy(sources: Iterable[Source], open_file: Open, create: Create, *, apart: bool = False) -> None:
    """Copy rows of files of one shape to new ones, which `create` opens by their numbers.

    The rows of each new file are in the order of their buckets, as they are in each source. Those of
    buckets that are kept `apart` are in one small file, or in large ones of their own.
    """
    number, most = 0, PORTION_BYTES if apart else _FILE_BYTES
    for together in [list(sources)] if apart else portions(sources, lambda source: (1, source.bytes)):
        with ExitStack() as opened:
            files = [pq.ParquetFile(opened.enter_context(open_file(source.path))) for source in together]
            size = _BATCH_BYTES * _AT_ONCE // max(_AT_ONCE, len(files))
            kept = [_kept(file, each.buckets, size) for file, each in zip(files, together, strict=True)]
            groups = _groups(kept, apart=apart)
            group = next(groups, None)
            while group is not None:
                with create(number) as out, _writer(out, files[0]) as writer:
                    full, buckets = False, 0
                    while group is not None and not (full and group.begins):
                        writer.write_table(group.rows, row_group_size=group.rows.num_rows)
                        buckets += group.buckets
                        full = out.tell() >= most or (apart and buckets >= PORTION_BUCKETS)
                        group = next(groups, None)
                number += 1


def portions(things: Iterable[T], amount: Callable[[T], tuple[int, int]]) -> Iterator[list[T]]:
    """As many at a time as may be open and in memory together, by files and bytes; what is large, alone."""
    portion: list[T] = []
    files = size = 0
    for thing in things:
        more_files, more_bytes = amount(thing)
        if more_bytes > SMALL_BYTES:
            yield [thing]
            continue
        files, size = files + more_files, size + more_bytes
        if portion and (files > _TOGETHER_FILES or size > _TOGETHER_BYTES):
            yield portion
            portion, files, size = [], more_files, more_bytes
        portion.append(thing)
    if portion:
        yield portion


def _writer(out: pa.NativeFile, like: pq.ParquetFile) -> pq.ParquetWriter:
    metadata = like.metadata
    columns = [like.schema.column(at) for at in range(len(like.schema))]
    codec = metadata.row_group(0).column(0).compression if metadata.num_row_groups else "SNAPPY"
    writer = pq.ParquetWriter(
        out,
        like.schema_arrow.remove_metadata(),
        compression="NONE" if codec == "UNCOMPRESSED" else codec,
        # Arrow leaves NaN out of bounds. To Spark and DuckDB it is greater than all else: they would skip
        # what holds it.
        write_statistics=[each.path for each in columns if each.physical_type not in _WITH_NAN],
        # Spark stores short decimals so; and it would not know what to do with Arrow's own schema.
        store_decimal_as_integer=True,
        store_schema=False,
    )
    writer.add_key_value_metadata(metadata.metadata or {})
    return writer


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows that make a row group, whether a file may begin with it, and how many buckets do in it."""

    rows: pa.Table
    begins: bool
    buckets: int


def _groups(files: Sequence[Iterator[pa.RecordBatch]], *, apart: bool) -> Iterator[_Group]:
    held: list[pa.RecordBatch] = []
    size = rows = buckets = 0
    begins, last = True, None
    for bucket, batch in _merged(files) if apart or len(files) > 1 else ((None, each) for each in files[0]):
        large = size >= PORTION_BYTES or buckets >= PORTION_BUCKETS
        ends = apart and large and bucket != last
        if held and (ends or size >= _GROUP_BYTES or rows >= _GROUP_ROWS):
            yield _Group(pa.Table.from_batches(held), begins, buckets)
            held, size, rows, buckets = [], 0, 0, 0
            begins = not apart or bucket != last
        held.append(batch)
        size, rows, buckets = size + batch.nbytes, rows + batch.num_rows, buckets + (bucket != last)
        last = bucket
    if held:
        yield _Group(pa.Table.from_batches(held), begins, buckets)


def _merged(files: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    return heapq.merge(*map(_runs, files), key=lambda run: run[0])


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows cut where a new bucket begins."""
    for batch in batches:
        encoded, start = pc.run_end_encode(batch[BUCKET]), 0
        for end, bucket in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
            yield bucket, batch.slice(start, end - start)
            start = end


def _kept(file: pq.ParquetFile, wanted: Collection[int], size: int) -> Iterator[pa.RecordBatch]:
    values, buckets = pa.array(wanted, pa.int64()), sorted(wanted)
    groups = [at for at in range(file.num_row_groups) if _may_hold(file, at, buckets)]
    for batch in file.iter_batches(batch_size=_batch_size(file, size), row_groups=groups):
        kept = batch.filter(pc.is_in(batch[BUCKET], values))
        if kept.num_rows:
            yield kept


def _may_hold(file: pq.ParquetFile, group: int, buckets: Sequence[int]) -> bool:
    metadata = file.metadata.row_group(group)
    columns = (metadata.column(at) for at in range(metadata.num_columns))
    statistics = next(column.statistics for column in columns if column.path_in_schema == BUCKET)
    if statistics is None or not statistics.has_min_max:
        return True
    at = bisect_left(buckets, statistics.min)
    return at < len(buckets) and buckets[at] <= statistics.max


def _batch_size(file: pq.ParquetFile, most: int) -> int:
    size = sum(int(file.metadata.row_group(at).total_byte_size) for at in range(file.num_row_groups))
    rows = int(file.metadata.num_rows)
    return max(1, min(_BATCH_ROWS, most * rows // max(size, 1)))

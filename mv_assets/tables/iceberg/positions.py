"""The places of deleted rows, read from position delete files and deletion vectors."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.tables.iceberg.deletes import Place, plain
from mv_assets.tables.lakehouse import short
from mv_assets.tables.parquet.footer import Unusable
from mv_assets.tables.recent import Recent

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

_MAGIC = b"\xd1\xd3\x39\x64"
# Around the bitmap: its length, the magic, and a checksum.
_FRAME = 12
_ROWS_AT_ONCE = 1 << 16
# What is remembered of delete files, in bytes: one that is of a partition is wanted for each file of it.
_MOST = 64 << 20
# What an array takes beyond its values.
_ARRAY = 200

_Found = dict[str, np.ndarray]

_recent: Recent[_Found] = Recent(_MOST)


def positions(io: FileIO, places: Iterable[str], path: str) -> pa.Int64Array:
    """Which rows of the data file at that path are deleted, ascending, each once.

    Raises:
        Unusable: a file that tells it is missing, damaged, or does not fit; the message names it.

    """
    found = [_of(io, Place.of(place), plain(path)) for place in places]
    return pa.array(np.unique(np.concatenate([np.empty(0, np.int64), *found])), pa.int64())


def _of(io: FileIO, place: Place, path: str) -> np.ndarray:
    with _named(place.path):
        found = _by_file(io, place, path) if place.offset is None else _vector(io, place)
        if len(found) and not 0 <= found.min() <= found.max() < place.rows:
            raise Unusable(f"it deletes a row that is not among the {place.rows} of {path}")
        return found


def _vector(io: FileIO, place: Place) -> np.ndarray:
    """The rows of a deletion vector: a bitmap of 64 bits, in the format of the Roaring library."""
    from pyroaring import BitMap64  # noqa: PLC0415 - an extra

    with io.new_input(place.path).open() as file:
        file.seek(place.offset or 0)
        blob = file.read(place.size)
    length, bitmap, checksum = blob[:4], blob[4:-4], blob[-4:]
    if len(blob) != place.size or len(blob) < _FRAME or int.from_bytes(length, "big") != len(bitmap):
        raise Unusable(f"its deletion vector at byte {place.offset} is not as long as it says")
    if bitmap[:4] != _MAGIC or zlib.crc32(bitmap) != int.from_bytes(checksum, "big"):
        raise Unusable(f"its deletion vector at byte {place.offset} does not match its checksum")
    rows = np.array(BitMap64.deserialize(bitmap[4:]).to_array(), np.uint64)
    if len(rows) != place.deleted:
        raise Unusable(f"its deletion vector deletes {len(rows)} rows, and the table says {place.deleted}")
    return np.minimum(rows, np.iinfo(np.int64).max).astype(np.int64)


def _by_file(io: FileIO, place: Place, path: str) -> np.ndarray:
    """The rows of one data file, of a position delete file."""
    found = _recent.get((place.path, place.size))
    if found is None:
        found = _read(io, place, path)
    return found.get(path, np.empty(0, np.int64))


def _read(io: FileIO, place: Place, wanted: str) -> _Found:
    """Rows by the paths of their data files; only those of the wanted one, if all of them are too many."""
    parts: dict[str, list[np.ndarray]] = {}
    rows, size, whole = 0, 0, True
    for path, values in _parts(io, place):
        rows += len(values)
        if whole or path == wanted:
            parts.setdefault(path, []).append(values)
            size += values.nbytes + _ARRAY
        if whole and size > _MOST // 2:
            whole, parts = False, {path: kept for path, kept in parts.items() if path == wanted}
    if rows != place.deleted:
        raise Unusable(f"it has {rows} rows, and the table says {place.deleted}")
    found = {path: np.concatenate(each) for path, each in parts.items()}
    if whole:
        _recent.put((place.path, place.size), found, size)
    return found


def _parts(io: FileIO, place: Place) -> Iterator[tuple[str, np.ndarray]]:
    """Paths, each with some rows. No statistics: Arrow may end the process over damaged ones."""
    with io.new_input(place.path).open() as opened:
        source = opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, mode="r")
        if source.size() != place.size:
            raise Unusable(f"it has {source.size()} bytes, and the table says {place.size}")
        file = pq.ParquetFile(source, read_dictionary=["file_path"], page_checksum_verification=True)
        kinds = [
            str(
                file.schema_arrow.field(name).type.value_type
                if name == "file_path"
                else file.schema_arrow.field(name).type
            )
            for name in ("file_path", "pos")
        ]
        if kinds != ["string", "int64"]:
            raise Unusable(f"its columns file_path and pos are of types {' and '.join(kinds)}")
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=["file_path", "pos"], use_threads=False):
            batch.validate(full=True)
            yield from _grouped(batch.column("file_path"), batch.column("pos"))


def _grouped(paths: pa.DictionaryArray, rows: pa.Int64Array) -> Iterator[tuple[str, np.ndarray]]:
    if paths.null_count or rows.null_count:
        raise Unusable("it has a row without file_path or pos")
    indices, values = paths.indices.to_numpy(), rows.to_numpy()
    names = [plain(name) for name in paths.dictionary.to_pylist()]
    order = np.argsort(indices, kind="stable")
    starts = np.flatnonzero(np.diff(indices[order], prepend=-1))
    for group in np.split(order, starts[1:]):
        if len(group):
            yield names[indices[group[0]]], values[group]


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise
    except FileNotFoundError as error:
        raise Unusable(f"its delete file {path} is not there") from error
    except Unusable as error:
        raise Unusable(f"its delete file {path} can't be used: {error}") from error
    except Exception as error:
        # A store's files may raise anything, and so may Arrow over a damaged one.
        raise Unusable(f"its delete file {path} can't be read ({short(error)})") from error

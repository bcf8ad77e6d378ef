"""Reading a file once: its checksum and its time range, taken while it stayed the same object."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import farmhash
import pyarrow as pa

from mv_assets.tables.files.folders import Entry, Folder
from mv_assets.tables.fingerprint import hashed, signed
from mv_assets.tables.inventory import Known
from mv_assets.tables.listing import ALWAYS
from mv_assets.tables.parquet.footer import DamagedPages, Extent, Footer, Range, Unusable, extent
from mv_assets.tables.parquet.partitions import value_of
from mv_assets.tables.times import TimeColumn, of_text

_CHUNK = 4 << 20
_ATTEMPTS = 3


class Examined(NamedTuple):
    """A file, and what it was found to hold."""

    entry: Entry
    known: Known
    # Where its pages are damaged: what may still say where its rows lie.
    footer: Footer | None = None


def examine(
    folder: Folder, name: str, time: TimeColumn | None, known: Range | None, now: int, settle_ms: int
) -> Examined | None:
    """What a file holds now; None if it is gone.

    A file that can't be used keeps the range that was last `known`, so that its buckets fail instead of
    being computed without it.
    """
    known = _stated(name, time) or known
    for _ in range(_ATTEMPTS):
        entry = folder.entry(name)
        if entry is None:
            return None
        try:
            found, footer = _read(folder, name, time, entry, known)
        except FileNotFoundError:
            continue
        except Exception as failed:  # noqa: BLE001 - a store's files may raise anything, and it is that file's error
            # Perhaps only now, as a lost connection: it is read again at the next look.
            why = f"it can't be opened ({getattr(failed, 'strerror', None) or failed})"
            return Examined(entry, _unusable(entry, entry.identity, known, why)._replace(trusted=False))
        if folder.entry(name) == entry:
            old = entry.changed is not None and now - entry.changed > settle_ms
            return Examined(entry, found._replace(trusted=old), footer)
    entry = folder.entry(name)
    if entry is None:
        return None
    why = "it changed each time it was read"
    return Examined(entry, _unusable(entry, entry.identity, known, why)._replace(trusted=False))


def _read(
    folder: Folder, name: str, time: TimeColumn | None, entry: Entry, known: Range | None
) -> tuple[Known, Footer | None]:
    with folder.open(name) as file:
        if entry.checksum is None:
            crc, content = _checksum(file, entry.size)
        else:
            crc, content = hashed(f"{entry.size} {entry.checksum}"), None
        reads = _Reads(file)
        source = pa.PythonFile(reads, mode="r") if content is None else pa.BufferReader(content)
        try:
            found = _extent(source, name, time)
        except Unusable as unusable:
            if reads.failed is not None:
                raise reads.failed from unusable
            footer = unusable.footer if isinstance(unusable, DamagedPages) else None
            return _unusable(entry, crc, known, str(unusable)), footer
        start, end = found.range or (None, None)
        return Known(entry.identity, crc, start, end, found.nulls), None


def _unusable(entry: Entry, crc: int, known: Range | None, why: str) -> Known:
    start, end = known or (None, None)
    return Known(entry.identity, crc, start, end, error=why)


class _Reads:
    """Reads of an open file, and the error of one that failed.

    Arrow calls a lost connection what it calls a damaged file; but only bytes that were read tell of damage.
    """

    closed = False

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self.failed: Exception | None = None

    def read(self, length: int) -> bytes:
        with self._noting():
            return _read_fully(self._file, length)

    def seek(self, offset: int, whence: int = 0) -> int:
        with self._noting():
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        with self._noting():
            return int(self._file.tell())

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.failed = error
            raise

    def close(self) -> None:
        """Who opened the file closes it."""


def _checksum(file: pa.NativeFile, size: int) -> tuple[int, bytes | None]:
    """A hash of the hashes of the file's parts, and the whole content if it is small."""
    parts, length = [], min(_CHUNK, size + 1)
    only = chunk = _read_fully(file, length)
    while chunk:
        parts.append(farmhash.fingerprint64(chunk))
        chunk = _read_fully(file, _CHUNK) if len(chunk) == length else b""
        length = _CHUNK
    crc = signed(farmhash.fingerprint64(struct.pack(f"<{len(parts)}Q", *parts)))
    return crc, only if len(parts) == 1 else None


def _read_fully(file: pa.NativeFile, length: int) -> bytes:
    """A store may give less than was asked for before its object ends."""
    parts = [file.read(length)]
    while parts[-1] and (left := length - sum(map(len, parts))) > 0:
        parts.append(file.read(left))
    return b"".join(parts) if len(parts) > 1 else parts[0]


def _extent(source: pa.NativeFile, name: str, time: TimeColumn | None) -> Extent:
    given, value = (False, None) if time is None else value_of(name, time.name)
    if time is None or not given:
        return extent(source, time)
    # The column is not in the file: its folder says it, for all rows at once.
    whole = extent(source, None)
    if value is None:
        return Extent(None, nulls=whole.rows, rows=whole.rows)
    stated = of_text(value, time.unit)
    if stated is None:
        raise Unusable(f"its folder says {time.name}={value}, which is not a time")
    return Extent(stated if whole.rows else None, rows=whole.rows)


def _stated(name: str, time: TimeColumn | None) -> Range | None:
    """The range that is known whatever is wrong with the file: a dimension's, or what its folder says."""
    if time is None:
        return ALWAYS
    value = value_of(name, time.name)[1]
    return None if value is None else of_text(value, time.unit)

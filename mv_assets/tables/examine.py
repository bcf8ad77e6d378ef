"""Reading a file once: its checksum and its time range, taken while it stayed the same object."""

from __future__ import annotations

import struct

import farmhash
import pyarrow as pa

from mv_assets.tables.fingerprint import hashed, signed
from mv_assets.tables.folders import Entry, Folder
from mv_assets.tables.footer import Extent, Unusable, extent
from mv_assets.tables.inventory import Known
from mv_assets.tables.partitions import values_of
from mv_assets.tables.times import TimeColumn, of_text

_CHUNK = 4 << 20
_ATTEMPTS = 3

Range = tuple[int, int]


def examine(
    folder: Folder, name: str, time: TimeColumn | None, known: Range | None, now: int, settle_ms: int
) -> tuple[Entry, Known] | None:
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
            found = _read(folder, name, time, entry, known)
        except FileNotFoundError:
            continue
        except OSError as failed:
            # Perhaps only now, as a lost connection: it is read again at the next look.
            why = f"it can't be opened ({failed.strerror or failed})"
            return entry, _unusable(entry, entry.identity, known, why)._replace(trusted=False)
        if folder.entry(name) == entry:
            return entry, found._replace(trusted=now - entry.changed > settle_ms)
    entry = folder.entry(name)
    if entry is None:
        return None
    why = "it changed each time it was read"
    return entry, _unusable(entry, entry.identity, known, why)._replace(trusted=False)


def _read(folder: Folder, name: str, time: TimeColumn | None, entry: Entry, known: Range | None) -> Known:
    with folder.open(name) as file:
        if entry.checksum is None:
            crc, source = _checksum(file, entry.size)
        else:
            crc, source = hashed(f"{entry.size} {entry.checksum}"), file
        try:
            found = _extent(source, name, time)
        except Unusable as unusable:
            return _unusable(entry, crc, known, str(unusable))
        start, end = found.range or (None, None)
        return Known(entry.identity, crc, start, end, found.nulls)


def _unusable(entry: Entry, crc: int, known: Range | None, why: str) -> Known:
    start, end = known or (None, None)
    return Known(entry.identity, crc, start, end, error=why)


def _checksum(file: pa.NativeFile, size: int) -> tuple[int, pa.NativeFile]:
    """A hash of the hashes of the file's parts, and its footer's source: small files are in memory now."""
    parts = []
    first = chunk = file.read(min(_CHUNK, size + 1))
    while chunk:
        parts.append(farmhash.fingerprint64(chunk))
        chunk = file.read(_CHUNK) if len(chunk) == _CHUNK else b""
    crc = signed(farmhash.fingerprint64(struct.pack(f"<{len(parts)}Q", *parts)))
    return crc, pa.BufferReader(first) if len(first) < _CHUNK else file


def _extent(source: pa.NativeFile, name: str, time: TimeColumn | None) -> Extent:
    values = values_of(name)
    if time is None or time.name not in values:
        return extent(source, time)
    # The column is not in the file: its folder says it, for all rows at once.
    whole, value = extent(source, None), values[time.name]
    if value is None:
        return Extent(None, nulls=whole.rows, rows=whole.rows)
    stated = of_text(value, time.unit)
    if stated is None:
        raise Unusable(f"its folder says {time.name}={value}, which is not a time")
    return Extent(stated if whole.rows else None, rows=whole.rows)


def _stated(name: str, time: TimeColumn | None) -> Range | None:
    """The range that the folder's name states, whatever is wrong with the file."""
    value = None if time is None else values_of(name).get(time.name)
    return None if time is None or value is None else of_text(value, time.unit)

"""Deletion vectors: which rows of a file are deleted, as a bitmap inside the log or in a file of its own."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

from mv_assets.tables.parquet.footer import Unusable

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = str.maketrans(_Z85, _B85)
# Five characters are four bytes; sixteen bytes of a UUID are twenty.
_CHARACTERS, _BYTES, _UUID = 5, 4, 20
_VERSION = 1
_MAGIC = (1681511377).to_bytes(4, "little")

Open = Callable[[str], pa.NativeFile]


class Vector(NamedTuple):
    """Where a vector is: in the text itself (storage i), in a file of the table (u), or anywhere (p)."""

    storage: str
    place: str
    offset: int | None
    size: int
    cardinality: int

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Vector:
        """As the log describes it.

        Raises:
            ValueError: it is no such description.

        """
        offset = said.get("offset")
        found = cls(
            said["storageType"], said["pathOrInlineDv"], offset, said["sizeInBytes"], said["cardinality"]
        )
        kinds = (str, str, int if offset is not None else type(None), int, int)
        if [type(each) for each in found] != list(kinds) or found.storage not in ("i", "u", "p"):
            raise ValueError(f"it has a deletion vector that is described as {dict(said)}")
        return found

    @property
    def id(self) -> str:
        """What tells it from any other; two with the same delete the same rows."""
        return f"{self.storage}{self.place}" + ("" if self.offset is None else f"@{self.offset}")


def told(vector: Vector, rows: int | None) -> str:
    """A vector as a listing tells it: with the number of rows in its file, where that is known."""
    return json.dumps([*vector, rows], separators=(",", ":"))


def id_of(place: str) -> str:
    """The id of a vector that a listing tells of."""
    *described, _ = json.loads(place)
    return Vector(*described).id


def deleted(place: str, open_file: Open) -> pa.Int64Array:
    """The rows that a vector deletes, ascending.

    Raises:
        Unusable: it is missing, damaged, or does not fit its file.

    """
    *described, rows = json.loads(place)
    vector = Vector(*described)
    name = "its inline deletion vector" if vector.storage == "i" else f"deletion vector {_path(vector)}"
    try:
        return _positions(_stored(vector, open_file), vector, rows)
    except ImportError as error:
        why = "the pyroaring library is not installed: pip install 'mv_assets[delta]'"
        raise Unusable(f"{name} can't be read; {why}") from error
    except FileNotFoundError as error:
        raise Unusable(f"{name} is not there; restore it, or the table to an earlier version") from error
    except (OSError, ValueError, IndexError, OverflowError) as error:
        why = str(error).strip().split("\n", 1)[0]
        raise Unusable(f"{name} can't be used ({why}); restore it, or rewrite the file's rows") from error


def _path(vector: Vector) -> str:
    """The vector's file: relative to the table, or a URI."""
    if vector.storage == "p":
        return vector.place
    prefix, coded = vector.place[:-_UUID], vector.place[-_UUID:]
    try:
        name = f"deletion_vector_{UUID(bytes=_decoded(coded))}.bin"
    except ValueError:
        return vector.place
    return f"{prefix}/{name}" if prefix else name


def _decoded(text: str) -> bytes:
    if len(text) % _CHARACTERS or not set(text) <= set(_Z85):
        raise ValueError("it is not written in base 85")
    return base64.b85decode(text.translate(_FROM_Z85))


def _stored(vector: Vector, open_file: Open) -> bytes:
    """The bitmap's bytes; those in a file have a size before them and a checksum behind."""
    if vector.storage == "i":
        padded = _decoded(vector.place)
        if not 0 <= len(padded) - vector.size < _BYTES:
            raise ValueError(f"it has {len(padded)} bytes instead of {vector.size}")
        return padded[: vector.size]
    offset = 1 if vector.offset is None else vector.offset
    with open_file(_path(vector)) as file:
        whole, end = file.size(), offset + vector.size + 2 * _BYTES
        if not 1 <= offset < end <= whole:
            raise ValueError(f"it has {whole} bytes and should lie in {offset} to {end}")
        if file.read(1) != bytes([_VERSION]):
            raise ValueError("its file is of an unknown version")
        file.seek(offset)
        content = bytes(file.read(end - offset))
    size, data, checksum = content[:_BYTES], content[_BYTES:-_BYTES], content[-_BYTES:]
    if int.from_bytes(size, "big") != vector.size:
        raise ValueError(f"it says to have {int.from_bytes(size, 'big')} bytes instead of {vector.size}")
    if zlib.crc32(data) != int.from_bytes(checksum, "big"):
        raise ValueError("its checksum is another one")
    return data


def _positions(data: bytes, vector: Vector, rows: int | None) -> pa.Int64Array:
    from pyroaring import BitMap64  # noqa: PLC0415 - an extra

    if data[:_BYTES] != _MAGIC:
        raise ValueError("it is of an unknown format")
    bitmap = BitMap64.deserialize(data[_BYTES:])
    if len(bitmap) != vector.cardinality:
        raise ValueError(f"it deletes {len(bitmap)} rows instead of {vector.cardinality}")
    if bitmap and rows is not None and bitmap.max() >= rows:
        raise ValueError(f"it deletes row {bitmap.max()} of a file of {rows}")
    return pa.array(bitmap.to_array(), pa.int64())

"""The fingerprint of a bucket's segments: a byte contract, the same as Apache Pinot's."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import farmhash

from mv_assets.state.model import Fingerprint, Segment

_SIGN = 1 << 63
_WRAP = 1 << 64


def fingerprint(segments: Iterable[Segment]) -> Fingerprint:
    """Count and FarmHash Fingerprint64 of the segments' names and checksums, whatever order they come in."""
    return fingerprint_of((segment.name, segment.crc) for segment in segments)


def fingerprint_of(named: Iterable[tuple[str, int]]) -> Fingerprint:
    """`fingerprint` of bare names and checksums."""
    parts = list(named)
    # Pinot compares names as Java does. Plain ASCII has the same order for everybody, and is what most have.
    parts.sort(key=None if all(name.isascii() for name, _ in parts) else _as_java_compares)
    content = b"".join(
        [
            b"%b\x00%b\n" % (name.encode("utf-8", "surrogateescape"), struct.pack("<q", crc))
            for name, crc in parts
        ]
    )
    return Fingerprint(len(parts), signed(farmhash.fingerprint64(content)))


def _as_java_compares(part: tuple[str, int]) -> tuple[bytes, int]:
    """By UTF-16 units: characters above U+FFFF come before U+E000, unlike in UTF-8 and in Python."""
    name, crc = part
    return name.encode("utf-16-be", "surrogatepass"), crc


def hashed(text: str) -> int:
    """A signed 64-bit hash of a text, as the state database can hold it."""
    return signed(farmhash.fingerprint64(text.encode("utf-8", "surrogateescape")))


def signed(value: int) -> int:
    """Java has no unsigned numbers, and neither has SQL."""
    return value - _WRAP if value >= _SIGN else value

"""The fingerprint of a bucket's segments: a byte contract, the same as Apache Pinot's."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import farmhash

from mv_assets.state.model import Fingerprint, Segment


def overlapping(segments: Iterable[Segment], start: int, end: int) -> list[Segment]:
    """Segments that reach into `[start, end)`. A segment's own end is inclusive."""
    return [segment for segment in segments if segment.start_ms < end and segment.end_ms >= start]


def fingerprint(segments: Iterable[Segment]) -> Fingerprint:
    """Count and FarmHash Fingerprint64 of the segments' names and checksums, whatever order they come in."""
    parts = sorted((segment.name.encode("utf-8", "surrogateescape"), segment.crc) for segment in segments)
    content = b"".join(name + b"\x00" + struct.pack("<q", crc) + b"\n" for name, crc in parts)
    unsigned = farmhash.fingerprint64(content)
    return Fingerprint(len(parts), unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned)

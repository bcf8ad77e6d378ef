"""The partition map as a picture: a cell a bucket, coloured by its state. Pure."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

from mv_assets.state.health import condition
from mv_assets.state.model import Snapshot

_COLOURS = {
    "paper": (255, 255, 255),
    "watermark": (31, 41, 55),
    "VALID": (47, 158, 110),
    "empty": (168, 216, 194),
    "STALE": (232, 163, 61),
    "failed": (198, 55, 47),
    "frozen": (76, 127, 208),
    "VACANT": (217, 220, 225),
}
_INDEX = {name: at for at, name in enumerate(_COLOURS)}
# A line is a day, some days, a quarter or a year, whatever the buckets are.
_ACROSS = {"15m": 96, "30m": 48, "1h": 24, "2h": 36, "3h": 56, "4h": 42, "6h": 28, "8h": 42, "12h": 28}
_ACROSS |= {"1d": 28, "1w": 13, "1mo": 12, "1m": 60, "5m": 48, "10m": 72, "20m": 72}
_MOST_LINES = 14
_CELL, _GAP = 9, 2
_PITCH = _CELL + _GAP


def picture(snapshot: Snapshot) -> str:
    """The newest buckets as Markdown with an image in it, short enough for Dagster to show it at once."""
    cells = _cells(snapshot)
    if not cells:
        return "no bucket yet"
    key = snapshot.header.buckets.key
    image = base64.b64encode(draw(snapshot, cells)).decode()
    legend = "green VALID, pale empty, amber STALE, red failed, blue frozen, grey VACANT; bar: watermark"
    span = f"{key(cells[0])} to {key(cells[-1])}, {_across(snapshot)} a line"
    return f"![partition map](data:image/png;base64,{image})\n\n{span}: {legend}"


def draw(snapshot: Snapshot, cells: Sequence[int]) -> bytes:
    """Some buckets as a PNG, lines of cells with the oldest first."""
    across, header = _across(snapshot), snapshot.header
    lines = [cells[at : at + across] for at in range(0, len(cells), across)]
    width = across * _PITCH + _GAP
    pixels: list[bytes] = [bytes(width)] * _GAP
    for line in lines:
        row = bytearray(width)
        for at, bucket in enumerate(line):
            left = _GAP + at * _PITCH
            row[left : left + _CELL] = bytes([_INDEX[_colour(snapshot, bucket)]]) * _CELL
            if header.buckets.next(bucket) == header.watermark:
                row[left + _CELL : left + _PITCH] = bytes([_INDEX["watermark"]]) * _GAP
        pixels += [bytes(row)] * _CELL + [bytes(width)] * _GAP
    return _png(width, pixels)


def _across(snapshot: Snapshot) -> int:
    return _ACROSS.get(snapshot.header.buckets.width, 48)


def _cells(snapshot: Snapshot) -> list[int]:
    """The newest buckets: going back from the end, as a view of ten years has far more than fit."""
    header = snapshot.header
    newest = max([*snapshot.rows, *snapshot.attempts], default=None)
    end = header.watermark if newest is None else max(header.watermark, header.buckets.next(newest))
    across = _across(snapshot)
    width = header.buckets.next(end) - end
    first = max(header.start, end - (_MOST_LINES + 1) * across * width)
    cells = list(header.buckets.between(first, end))
    lines = -(-len(cells) // across)
    return cells[max(lines - _MOST_LINES, 0) * across :]


def _colour(snapshot: Snapshot, bucket: int) -> str:
    row, what = snapshot.rows.get(bucket), condition(snapshot, bucket)
    return "empty" if what == "VALID" and row is not None and row.rows == 0 else what


def _png(width: int, rows: Sequence[bytes]) -> bytes:
    """An image of palette indices, a byte each."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    palette = bytes(part for colour in _COLOURS.values() for part in colour)
    # Filter 2 says "as the line above", which most lines are.
    lines = [
        b"\x02" + bytes(width) if at and row == rows[at - 1] else b"\x00" + row for at, row in enumerate(rows)
    ]
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0))
        + chunk(b"PLTE", palette)
        + chunk(b"IDAT", zlib.compress(b"".join(lines), 9))
        + chunk(b"IEND", b"")
    )

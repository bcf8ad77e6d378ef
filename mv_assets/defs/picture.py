"""The partition map as a picture: a strip a stretch of time, a cell a bucket, coloured by its state. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from xml.sax.saxutils import escape

from mv_assets.state.health import condition
from mv_assets.state.model import Snapshot

_COLOURS = {
    "VALID": "#2f9e6e",
    "empty": "#a8d8c2",
    "frozen": "#4c7fd0",
    "STALE": "#e8a33d",
    "failed": "#c6372f",
    "VACANT": "#d9dce1",
}
_ACROSS = 72
_MOST_ROWS = 12
_CELL, _GAP, _LEFT, _TOP = 10, 2, 104, 6
_PITCH = _CELL + _GAP


def picture(snapshot: Snapshot, now: int) -> str:
    """The newest buckets as Markdown that shows an image."""
    svg = draw(snapshot, now)
    return f"![partition map](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def draw(snapshot: Snapshot, now: int) -> str:
    """The newest buckets as SVG: rows of cells, the oldest first, W as a line."""
    cells = list(_cells(snapshot, now))[-_ACROSS * _MOST_ROWS :]
    rows = [cells[at : at + _ACROSS] for at in range(0, len(cells), _ACROSS)]
    width, height = _LEFT + _ACROSS * _PITCH + 6, _TOP + max(len(rows), 1) * (_PITCH + 4) + 26
    drawn = [part for at, row in enumerate(rows) for part in _row(snapshot, row, _TOP + at * (_PITCH + 4))]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="10" fill="#5b6472">{"".join(drawn)}{_legend(height - 10)}</svg>'
    )


def _colour(snapshot: Snapshot, bucket: int) -> str:
    row, what = snapshot.rows.get(bucket), condition(snapshot, bucket)
    return "empty" if what == "VALID" and row is not None and row.rows == 0 else what


def _cells(snapshot: Snapshot, now: int) -> Iterator[int]:
    header = snapshot.header
    newest = max(snapshot.rows, default=header.start)
    end = max(header.watermark, header.buckets.next(newest))
    shown = min(end, max(now, header.watermark))
    # Going back from the end: a view of ten years has far more buckets than the picture.
    first = max(header.start, shown - _ACROSS * _MOST_ROWS * (header.buckets.next(newest) - newest))
    return header.buckets.between(header.buckets.ceil(first), end)


def _row(snapshot: Snapshot, cells: list[int], y: int) -> Iterator[str]:
    key, watermark = snapshot.header.buckets.key, snapshot.header.watermark
    yield f'<text x="0" y="{y + 9}">{escape(key(cells[0]))}</text>'
    for at, bucket in enumerate(cells):
        x, what = _LEFT + at * _PITCH, _colour(snapshot, bucket)
        title = escape(f"{key(bucket)} {what}")
        yield (
            f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" rx="2" fill="{_COLOURS[what]}">'
            f"<title>{title}</title></rect>"
        )
        if snapshot.header.buckets.next(bucket) == watermark:
            line = x + _CELL + _GAP / 2
            yield f'<path d="M{line} {y - 2}v{_CELL + 4}" stroke="#1f2937" stroke-width="2"/>'


def _legend(y: int) -> str:
    words = {**{word: word for word in _COLOURS}, "empty": "VALID, empty"}
    parts, x = [], _LEFT
    for word, colour in _COLOURS.items():
        parts.append(f'<rect x="{x}" y="{y - 8}" width="9" height="9" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{x + 13}" y="{y}">{words[word]}</text>')
        x += 24 + 7 * len(words[word])
    parts.append(f'<path d="M{x} {y - 9}v12" stroke="#1f2937" stroke-width="2"/>')
    parts.append(f'<text x="{x + 6}" y="{y}">complete through here</text>')
    return "".join(parts)

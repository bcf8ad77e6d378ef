"""How views look in a terminal: strips of buckets, spans of time, sizes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.filesize import decimal
from rich.text import Text

from mv_assets.buckets import DAY, HOUR, MINUTE, Buckets
from mv_assets.state import rules
from mv_assets.state.model import Snapshot, State

# From harmless to grave: a cell that stands for many buckets shows the gravest of them. With each its
# glyph, the same for a terminal that knows no Unicode, and its style.
_CELLS = {
    "VALID": ("█", "#", "green"),
    "VACANT": ("·", ".", "bright_black"),
    "frozen": ("▓", "F", "blue"),
    "STALE": ("▒", "S", "yellow"),
    "failed": ("✗", "X", "bold red"),
}
_GRAVITY = {name: rank for rank, name in enumerate(_CELLS)}
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (1_000, "s"))


def console() -> Console:
    """Where results go. Lines are not broken: names of files would be."""
    return Console(highlight=False, soft_wrap=True)


def condition(snapshot: Snapshot, bucket: int) -> str:
    """A bucket in one word."""
    row, record = snapshot.rows.get(bucket), snapshot.attempts.get(bucket)
    state = rules.effective_state(row, snapshot.header)
    if state is not State.VALID and record is not None and record.last_error is not None:
        return "failed"
    if row is not None and row.frozen:
        return "frozen"
    return state.value


def strip(snapshot: Snapshot, width: int) -> Text:
    """All buckets of a view in one line, from its start to its last row or the end of its source."""
    header = snapshot.header
    last = max(snapshot.rows, default=header.start)
    end = max(header.watermark, last + 1, (header.source_end or header.start) + 1)
    buckets = list(header.buckets.between(header.start, end))
    per_cell = -(-len(buckets) // max(width, 1))
    line = Text()
    for at in range(0, len(buckets), per_cell):
        found = [condition(snapshot, bucket) for bucket in buckets[at : at + per_cell]]
        line.append(*_cell(max(found, key=_GRAVITY.__getitem__)))
    if per_cell > 1:
        line.append(f"  {per_cell} buckets a cell", "bright_black")
    return line


def legend() -> Text:
    line = Text()
    for name in _CELLS:
        line.append(*_cell(name)).append(f" {name}   ", "bright_black")
    return line


def failed() -> str:
    """The glyph of what went wrong."""
    return _cell("failed")[0]


def _cell(name: str) -> tuple[str, str]:
    glyph, plain, style = _CELLS[name]
    return glyph if console().encoding.lower().startswith("utf") else plain, style


def duration(milliseconds: int) -> str:
    """`2h 5m`, in the two largest units that say something."""
    parts, left = [], abs(milliseconds)
    for size, unit in _UNITS:
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return ("-" if milliseconds < 0 else "") + (" ".join(parts[:2]) or "0s")


def size(count: int) -> str:
    return decimal(count)


def span(buckets: Buckets, starts: Sequence[int]) -> str:
    """Contiguous buckets by the first and the last."""
    first, last = buckets.key(starts[0]), buckets.key(starts[-1])
    return first if len(starts) == 1 else f"{first} to {last}"


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

"""How views look: strips of buckets, spans of time, sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.text import Text

from mv_assets.buckets import Buckets
from mv_assets.state.health import condition
from mv_assets.state.model import Snapshot
from mv_assets.text import printable

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
_MOST_LINES = 20


T = TypeVar("T")


class Waiting(Protocol):
    """A bucket that is not to be computed now."""

    @property
    def bucket(self) -> int: ...

    @property
    def reason(self) -> str: ...


def console() -> Console:
    """Where results go. Lines are not broken: names of files would be."""
    return Console(highlight=False, soft_wrap=True)


def plain(text: str) -> str:
    """A text of others inside of a line: it is neither markup, nor a line of its own, nor an escape code."""
    return escape(printable(text))


def strip(snapshot: Snapshot, out: Console) -> Text:
    """All buckets of a view in one line, from its start to its last row or the end of its source."""
    width = out.width - 24
    header = snapshot.header
    last = max(snapshot.rows, default=header.start)
    end = max(header.watermark, last + 1, (header.source_end or header.start) + 1)
    buckets = list(header.buckets.between(header.start, end))
    per_cell = -(-len(buckets) // max(width, 1))
    line = Text("  ")
    for at in range(0, len(buckets), per_cell):
        found = [condition(snapshot, bucket) for bucket in buckets[at : at + per_cell]]
        line.append(*_cell(max(found, key=_GRAVITY.__getitem__), out))
    if per_cell > 1:
        line.append(f"  {per_cell} buckets per cell", "bright_black")
    return line


def legend(out: Console) -> Text:
    line = Text()
    for name in _CELLS:
        line.append(*_cell(name, out)).append(f" {name}   ", "bright_black")
    return line


def failed(out: Console) -> str:
    """The glyph of what went wrong."""
    return _cell("failed", out)[0]


def _cell(name: str, out: Console) -> tuple[str, str]:
    glyph, plain, style = _CELLS[name]
    return glyph if out.encoding.lower().startswith("utf") else plain, style


def size(count: int) -> str:
    return decimal(count)


def neighbours(
    buckets: Buckets, items: Iterable[T], start: Callable[[T], int], kind: Callable[[T], object]
) -> Iterator[list[T]]:
    """Items of neighbouring buckets that are of one kind, together."""
    run: list[T] = []
    for item in items:
        if run and (kind(item) != kind(run[-1]) or start(item) != buckets.next(start(run[-1]))):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def waiting(buckets: Buckets, waits: Iterable[Waiting]) -> Iterator[str]:
    """One line for neighbours that wait for the same."""
    ordered = sorted(waits, key=lambda each: each.bucket)
    for run in neighbours(buckets, ordered, lambda each: each.bucket, lambda each: each.reason):
        where, amount = buckets.span([each.bucket for each in run]), count(len(run), "bucket")
        yield f"[yellow]{'wait':<9}[/] {where}  [bright_black]{amount}[/]  {plain(run[0].reason)}"


def few(found: Sequence[str]) -> Iterator[str]:
    """As many lines as a person would read."""
    for line in found[:_MOST_LINES]:
        yield f"  {line}"
    if len(found) > _MOST_LINES:
        yield f"  and {len(found) - _MOST_LINES} more"


def count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

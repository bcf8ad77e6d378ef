"""Where an answer came from, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from mv_assets.query.match.spans import AFTER, BEFORE, Spans
from mv_assets.state.model import PartitionRow
from mv_assets.views.view import View


@dataclass(frozen=True, slots=True)
class FromView:
    """What one view gave: so many of its buckets, with so many rows and bytes stored."""

    view: str
    buckets: int
    rows: int
    bytes: int

    @classmethod
    def of(cls, view: View, rows: Mapping[int, PartitionRow]) -> Self:
        stored = rows.values()
        return cls(view.name, len(rows), sum(row.rows for row in stored), sum(row.bytes for row in stored))


@dataclass(frozen=True, slots=True)
class Served:
    """What an answer was made from; `reason` says why no view, or not only views, served it."""

    views: tuple[FromView, ...] = ()
    buckets_from_base: int = 0
    files_from_base: int = 0
    bytes_from_base: int = 0
    reason: str | None = None
    # Of every view that could be thought of, why it was of no use; None: it was used.
    considered: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def view(self) -> str | None:
        """The view that gave the most."""
        return max(self.views, key=lambda each: each.buckets).view if self.views else None

    @property
    def buckets_from_view(self) -> int:
        return sum(each.buckets for each in self.views)


def together(parts: Sequence[Served]) -> Served:
    """What the parts of one answer were made from."""
    views: dict[str, FromView] = {}
    for each in (each for part in parts for each in part.views):
        other = views.get(each.view, FromView(each.view, 0, 0, 0))
        views[each.view] = FromView(
            each.view, each.buckets + other.buckets, each.rows + other.rows, each.bytes + other.bytes
        )
    considered = {name: why for part in parts for name, why in part.considered.items()}
    reasons = dict.fromkeys(part.reason for part in parts if part.files_from_base and part.reason)
    return Served(
        tuple(views.values()),
        sum(part.buckets_from_base for part in parts),
        sum(part.files_from_base for part in parts),
        sum(part.bytes_from_base for part in parts),
        "; ".join(filter(None, reasons)) or None,
        considered | dict.fromkeys(views),
    )


def counted(view: View, spans: Spans, extent: tuple[int, int] | None) -> int:
    """How many buckets reach into some time, as far as anything is known to be there."""
    if extent is None:
        return 0
    found = 0
    for start, end in spans:
        first, last = max(start, extent[0]), min(end, extent[1])
        if first < last and first > BEFORE and last < AFTER:
            found += view.buckets.count(first, last)
    return found

"""What is there now of one view, and how far that reaches: all that a plan is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from mv_assets.observe.additions import Addition
from mv_assets.observe.inputs import BucketInputs, Ending, ViewInputs
from mv_assets.state import rules
from mv_assets.state.health import Wrong
from mv_assets.state.model import Header, MapSummary, Snapshot
from mv_assets.views.view import View


@dataclass(frozen=True, slots=True)
class Limits:
    """What a view's owner asked for, in milliseconds and buckets."""

    max_buckets_per_run: int = 64
    buffer: int = 0
    settle: int = 0
    settle_at_most: int = 0
    closes: int | None = None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A view of which nothing changed since its last look, and nothing can be due."""

    view: View
    header: Header
    limits: Limits
    now: int
    # Files that can't be used.
    broken: tuple[str, ...] = ()
    # Of several tables, the one that W waits for.
    ends_first: str | None = None

    @property
    def at_rest(self) -> bool:
        return True

    @property
    def source_end(self) -> int | None:
        return self.header.source_end

    @property
    def held_by(self) -> tuple[str, int | None]:
        """The table that W waits for, and where its data ends."""
        table, end = self.ends_first or self.view.declared.base.table, self.header.source_end
        after = next(window.after for window in self.view.windows if window.table == table)
        return table, None if end is None else self.header.buckets.shifted(end + 1, after) - 1

    @property
    def wrong(self) -> Wrong:
        """What a person should see to: at rest nothing failed, and nobody waits."""
        return Wrong(broken=self.broken)


@dataclass(frozen=True, slots=True)
class Observation:
    """A view after its look: the map as the look left it, the current inputs of each bucket, and the time."""

    view: View
    limits: Limits
    now: int
    snapshot: Snapshot
    view_inputs: ViewInputs
    buckets: Mapping[int, BucketInputs]
    ending: Ending
    # When the dimensions' files last changed, as far as that is not long ago.
    dimensions_changed: tuple[int, ...]
    # Generations that are being staged.
    alive: frozenset[str]
    # By bucket, files that can be merged into its rows.
    additions: Mapping[int, Addition] = field(default_factory=dict)
    # Files that can't be used.
    broken: tuple[str, ...] = ()
    # Buckets that a person asked for by name: due or not, if there is anything to compute them from.
    named: frozenset[int] = frozenset()

    @property
    def header(self) -> Header:
        return self.snapshot.header

    @property
    def source_end(self) -> int | None:
        return self.ending.source_end

    @property
    def held_by(self) -> tuple[str, int | None]:
        """The table that W waits for, and where its data ends."""
        return self.ending.table or self.view.declared.base.table, self.ending.data_end

    @property
    def at_rest(self) -> bool:
        """Whether no bucket waits to be computed."""
        look = self.snapshot.look
        return look is not None and look.oldest_waiting is None

    @property
    def wrong(self) -> Wrong:
        """What a person should see to."""
        return replace(self.view.wrong(self.snapshot, self.now), broken=self.broken)


# A view after its look, whatever that found.
Observed = Observation | Unchanged


def horizon(snapshot: Snapshot, limits: Limits, cap: int | None, now: int, named: Iterable[int] = ()) -> int:
    """Where the buckets end that a look and a plan are about: rows, W, what may be appended or was named."""
    header, latest = snapshot.header, cutoff(limits, cap, now)
    last = max(chain(snapshot.rows, named), default=None)
    rows_end = header.watermark if last is None else header.buckets.next(last)
    return max(header.watermark, rows_end, header.start if latest is None else latest)


def cutoff(limits: Limits, cap: int | None, now: int) -> int | None:
    """The latest end an APPEND may have: past its buffer, and within what the source is known to hold."""
    return None if cap is None else min(now - limits.buffer, cap)


def nothing_due(summary: MapSummary, limits: Limits, now: int) -> bool:
    """Whether the map, unchanged since its last look, and the clock say that a plan would be empty."""
    header = summary.header
    if (
        summary.look is None
        or summary.look.first_vacant is None
        or rules.closes_now(header, limits.closes, now)
    ):
        return False
    closed = rules.closed(header.buckets, header.source_end, limits.closes, now)
    latest = cutoff(limits, rules.complete(header.source_end, closed), now)
    return latest is None or header.buckets.next(summary.look.first_vacant) > latest

"""What a look found out, so that the next one compares only what may have changed since.

A cache of this process, which can be thrown away at any time: without it, a look compares every bucket. A
bucket is left out only if its row is the one that was compared, by what the state database holds, and if no
segment that reaches into its windows came, went or changed, by how the tables' listings differ. A whole look
now and then relies on nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mv_assets.observe.inputs import BucketInputs, Trace, ViewInputs
from mv_assets.state import rules
from mv_assets.state.model import Snapshot, State
from mv_assets.tables.recent import Recent


@dataclass(frozen=True, slots=True)
class Remembered:
    """A look that was written: what it listed, and the map as it was read before that.

    Each row of that map is settled, but for those of the `open` buckets.
    """

    trace: Trace
    snapshot: Snapshot
    open: frozenset[int]
    # When all buckets were compared last.
    whole_at: int


# By database and view; so many rows of maps at most, some 500 bytes each.
REMEMBERED: Recent[Remembered] = Recent(1_000_000)


def to_compare(last: Remembered, snapshot: Snapshot, view_inputs: ViewInputs, end: int) -> set[int] | None:
    """The buckets up to `end` that may not be settled any more; None: any of them."""
    header, before = snapshot.header, last.snapshot.header
    if (header.definition, header.width, header.start) != (before.definition, before.width, before.start):
        return None
    changed = view_inputs.changed_since(last.trace, header.start, end)
    moved = _moved(last.snapshot, snapshot)
    if changed is None or moved is None:
        return None
    vacant = (b for b in header.buckets.between(header.watermark, end) if b not in snapshot.rows)
    found = {*last.open, *changed, *moved, *vacant}
    return {bucket for bucket in found if header.start <= bucket < end}


def still_open(snapshot: Snapshot, seen: Iterable[BucketInputs]) -> frozenset[int]:
    """Those of the buckets that a look compared, with the map as it read that, which are not settled."""
    return frozenset(each.bucket for each in seen if not settled(snapshot, each))


def _moved(before: Snapshot, now: Snapshot) -> list[int] | None:
    """Rows that came or were written since; None if some are gone. Others are the same objects."""
    if now.rows is before.rows:
        return []
    moved = [bucket for bucket, row in now.rows.items() if before.rows.get(bucket) is not row]
    new = sum(bucket not in before.rows for bucket in moved)
    return moved if len(now.rows) - new == len(before.rows) else None


def settled(snapshot: Snapshot, seen: BucketInputs) -> bool:
    """Whether a look has nothing to say of a bucket, nor has the next one if its row and segments stay."""
    row = snapshot.rows.get(seen.bucket)
    return (
        row is not None
        and not row.frozen
        and rules.effective_state(row, snapshot.header) is State.VALID
        and seen.current.inputs is not None
        and row.inputs == seen.current.inputs
    )

"""What changed -> STALE: one look compares every bucket's recorded inputs with the current ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mv_assets.observe.difference import difference, reason
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.state import rules
from mv_assets.state.model import Look, Mark, Segment, Snapshot, State

# As many broken files as a person would read of.
_MOST_BROKEN = 50
Recorded = Mapping[int, Sequence[Segment]]


def differing(
    snapshot: Snapshot, seen: Iterable[BucketInputs], as_of: int, *, freezes: bool = False
) -> list[BucketInputs]:
    """Buckets whose rows don't record what is there now. Level-triggered: all of them, each time.

    Rows written after the map's version `as_of`, which was read before the tables, may know of more than
    this look; the next one compares them. A bucket that is frozen, or STALE in a view that freezes, is always
    among the buckets found: only its recorded segments tell whether it thaws or freezes.
    """
    header, rows = snapshot.header, snapshot.rows
    found = []
    for each in seen:
        row = rows.get(each.bucket)
        if row is not None and row.token > as_of:
            continue
        stale = freezes and rules.effective_state(row, header) is State.STALE
        frozen = row is not None and row.frozen
        if frozen or stale or rules.differs(row, header, each.bucket, each.current):
            found.append(each)
    return found


def needs_recorded(snapshot: Snapshot, found: Sequence[BucketInputs]) -> list[int]:
    """Buckets whose recorded segments say more: their base differs, or they are frozen."""
    wanted = []
    for each in found:
        row, inputs = snapshot.rows.get(each.bucket), each.current.inputs
        if row is None or row.inputs is None or inputs is None:
            continue
        if row.frozen or row.inputs.windows != inputs.windows:
            wanted.append(each.bucket)
    return wanted


def look(
    snapshot: Snapshot,
    as_of: int,
    view_inputs: ViewInputs,
    found: Sequence[BucketInputs],
    recorded: Recorded,
    now: int,
) -> Look:
    """The look as the manager writes it: the marks with their reasons, and how far the source reaches."""
    header = snapshot.header
    marks = dict(_marks(snapshot, view_inputs, found, recorded))
    ending, recheck = view_inputs.ending(now), view_inputs.recheck_at(now)
    if ending.source_end is not None and view_inputs.unplaced:
        # A file that may hold rows of any bucket holds W, but nobody's work: as the end that is known then
        # says less than there is to do, each look is a whole one.
        held = min(ending.source_end, header.watermark - 1)
        ending, recheck = replace(ending, source_end=held, closed=None), now
    broken = tuple(line for _, line in view_inputs.unusable()[:_MOST_BROKEN])
    first_vacant = None if marks else _first_vacant_at_rest(snapshot)
    # By what the look writes: a bucket that a peer has closed stays so.
    complete = rules.cap(rules.see_source(header, ending.source_end, ending.closed))
    oldest_waiting = _oldest_waiting(snapshot, marks, complete, view_inputs)
    return Look(
        table_version=view_inputs.version,
        map_version=as_of,
        at=now,
        source_end=ending.source_end,
        marks=marks,
        recheck_at=recheck,
        broken=broken,
        first_vacant=first_vacant,
        oldest_waiting=oldest_waiting,
        closed=ending.closed,
        ends_first=ending.table if len(view_inputs.listings) > 1 else None,
    )


def imagined(snapshot: Snapshot, look: Look) -> Snapshot:
    """The map as the manager would leave it after this look; for plans that write nothing."""
    header = snapshot.header
    rows = dict(snapshot.rows)
    for bucket, mark in look.marks.items():
        row = rules.mark(rows.get(bucket), header, bucket, mark)
        if row is not None:
            rows[bucket] = row
    header = rules.see_source(header, look.source_end, look.closed)
    above = (rows[bucket] for bucket in sorted(rows) if bucket >= header.watermark)
    record = rules.recorded(snapshot.look, look, look.map_version)
    return replace(snapshot, header=rules.climb(header, above), rows=rows, look=record)


def _first_vacant_at_rest(snapshot: Snapshot) -> int | None:
    """The first bucket without a row, of a map in which none is STALE."""
    header, rows = snapshot.header, snapshot.rows
    if any(rules.effective_state(row, header) is not State.VALID for row in rows.values()):
        return None
    return _vacant(snapshot)


def _oldest_waiting(
    snapshot: Snapshot, marks: Iterable[int], complete: int | None, view_inputs: ViewInputs
) -> int | None:
    """The oldest bucket that could be computed and is not, though no attempt on it failed.

    One that is known to wait is kept until it is served, whatever else comes and goes before it.
    """
    header, failed = snapshot.header, snapshot.attempts
    waiting = {b for b, row in snapshot.rows.items() if rules.effective_state(row, header) is State.STALE}
    waiting -= {bucket for bucket in waiting if snapshot.rows[bucket].frozen}
    vacant = _vacant(snapshot)
    if complete is not None and header.buckets.next(vacant) <= complete:
        waiting.add(vacant)
    waiting = {
        bucket
        for bucket in waiting.union(marks)
        if (bucket not in failed or failed[bucket].last_error is None)
        and view_inputs.waits_for(bucket) is None
    }
    known = None if snapshot.look is None else snapshot.look.oldest_waiting
    if known is not None and known.bucket in waiting:
        return known.bucket
    return min(waiting, default=None)


def _vacant(snapshot: Snapshot) -> int:
    """The first bucket at or above W that has no row."""
    vacant = snapshot.header.watermark
    while vacant in snapshot.rows:
        vacant = snapshot.header.buckets.next(vacant)
    return vacant


def _marks(
    snapshot: Snapshot, view_inputs: ViewInputs, found: Sequence[BucketInputs], recorded: Recorded
) -> Iterator[tuple[int, Mark]]:
    for each in found:
        row, before = snapshot.rows.get(each.bucket), recorded.get(each.bucket, ())
        seen = view_inputs.with_recorded(each, before) if view_inputs.view.freezes else each
        inputs = seen.current.inputs
        if inputs is not None and rules.differs(row, snapshot.header, seen.bucket, seen.current):
            why = reason(row, inputs, difference(before, view_inputs.segments(seen)))
            yield seen.bucket, Mark(why, seen.current)

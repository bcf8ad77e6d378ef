"""What changed -> STALE: one look compares every bucket's recorded inputs with the current ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mv_assets.observe.difference import difference, reason
from mv_assets.observe.inputs import BucketInputs, Recorded, ViewInputs
from mv_assets.observe.rewrites import Followed
from mv_assets.state import rules
from mv_assets.state.model import Follow, Look, Mark, PartitionRow, Snapshot, State

_SAME_ROWS = "rewritten files, same rows by the table's word"
# As many broken files as a person would read of.
_MOST_BROKEN = 50


def differing(
    snapshot: Snapshot,
    seen: Iterable[BucketInputs],
    as_of: int,
    *,
    freezes: bool = False,
    rewritten: bool = False,
) -> list[BucketInputs]:
    """Buckets whose rows don't record what is there now. Level-triggered: all of them, each time.

    Rows written after the map's version `as_of`, which was read before the tables, may know of more than
    this look; the next one compares them. A bucket that is frozen, or STALE in a view that freezes, is always
    among the buckets found: only its recorded segments tell whether it thaws or freezes. So is one that is
    STALE where tables have `rewritten` files: what it was computed from may be in other files now.
    """
    header, rows = snapshot.header, snapshot.rows
    found = []
    for each in seen:
        row = rows.get(each.bucket)
        if row is not None and row.token > as_of:
            continue
        stale = freezes and rules.effective_state(row, header) is State.STALE
        frozen = row is not None and row.frozen
        follows = rewritten and rules.may_follow(row, header) and _other_inputs(row, each)
        if frozen or stale or follows or rules.differs(row, header, each.bucket, each.current):
            found.append(each)
    return found


def _other_inputs(row: PartitionRow | None, seen: BucketInputs) -> bool:
    return row is not None and seen.current.inputs is not None and row.inputs != seen.current.inputs


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
    *,
    whole_at: int | None = None,
    among: Collection[int] | None = None,
    beyond: str | None = None,
) -> Look:
    """The look as the manager writes it: what follows, what is marked and why, how far the source reaches.

    Where `among` is given, all other buckets with a row are known to be VALID; all were compared last at
    `whole_at`. `beyond` is why some of the data is not covered that should be.
    """
    header = snapshot.header
    follows = dict(_follows(snapshot, view_inputs, found, recorded))
    snapshot = _followed(snapshot, follows)
    recorded = {**recorded, **{b: each.segments for b, each in follows.items() if each.segments is not None}}
    marks = dict(_marks(snapshot, view_inputs, found, recorded))
    ending, recheck = view_inputs.ending(now), view_inputs.recheck_at(now)
    if ending.source_end is not None and view_inputs.unplaced:
        # A file that may hold rows of any bucket holds W, but nobody's work: as the end that is known then
        # says less than there is to do, each look is a whole one.
        held = min(ending.source_end, header.watermark - 1)
        ending, recheck = replace(ending, source_end=held, closed=None), now
    compared = snapshot.rows if among is None else among
    stale = {b for b in compared if rules.effective_state(snapshot.rows.get(b), header) is State.STALE}
    first_vacant = None if marks or stale else _vacant(snapshot)
    # By what the look writes: a bucket that a peer has closed stays so.
    complete = rules.cap(rules.see_source(header, ending.source_end, ending.closed))
    oldest_waiting = _oldest_waiting(snapshot, stale, marks, complete, view_inputs)
    return Look(
        table_version=view_inputs.version,
        map_version=as_of,
        at=now,
        source_end=ending.source_end,
        marks=marks,
        follows=follows,
        recheck_at=recheck,
        broken=view_inputs.lines(beyond)[:_MOST_BROKEN],
        first_vacant=first_vacant,
        oldest_waiting=oldest_waiting,
        closed=ending.closed,
        ends_first=ending.table if len(view_inputs.listings) > 1 else None,
        whole_at=whole_at,
    )


def imagined(snapshot: Snapshot, look: Look) -> Snapshot:
    """The map as the manager would leave it after this look; for plans that write nothing."""
    header = snapshot.header
    rows = dict(_followed(snapshot, look.follows).rows)
    for bucket, mark in look.marks.items():
        row = rules.mark(rows.get(bucket), header, bucket, mark)
        if row is not None:
            rows[bucket] = row
    header = rules.see_source(header, look.source_end, look.closed)
    above = (rows[bucket] for bucket in sorted(rows) if bucket >= header.watermark)
    record = rules.recorded(snapshot.look, look, look.map_version)
    return replace(snapshot, header=rules.climb(header, above), rows=rows, look=record)


def _followed(snapshot: Snapshot, follows: Mapping[int, Follow]) -> Snapshot:
    """The map once records have gone over to the files that replaced those recorded."""
    if not follows:
        return snapshot
    found = {b: rules.follow(snapshot.rows.get(b), snapshot.header, each) for b, each in follows.items()}
    return replace(
        snapshot, rows={**snapshot.rows, **{b: row for b, row in found.items() if row is not None}}
    )


def _oldest_waiting(
    snapshot: Snapshot, stale: set[int], marks: Iterable[int], complete: int | None, view_inputs: ViewInputs
) -> int | None:
    """The oldest bucket that could be computed and is not, though no attempt on it failed.

    One that is known to wait is kept until it is served, whatever else comes and goes before it.
    """
    header, failed = snapshot.header, snapshot.attempts
    waiting = {bucket for bucket in stale if not snapshot.rows[bucket].frozen}
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


def _follows(
    snapshot: Snapshot, view_inputs: ViewInputs, found: Sequence[BucketInputs], recorded: Recorded
) -> Iterator[tuple[int, Follow]]:
    """Records that can go over to other files, or to a dimension's other files, by the tables' own word."""
    if not view_inputs.rewritten:
        return
    seen = {each.bucket: each for each in found if each.current.inputs is not None}
    followed = view_inputs.follow(seen, recorded)
    for bucket, each in seen.items():
        row, before, after = snapshot.rows.get(bucket), recorded.get(bucket), followed.get(bucket, Followed())
        if row is None or row.inputs is None or not rules.may_follow(row, snapshot.header):
            continue
        inputs = view_inputs.carried(row.inputs, before, after)
        if inputs != row.inputs:
            segments = after.segments if inputs.windows != row.inputs.windows else None
            why = f"{_SAME_ROWS}: {reason(row, inputs, difference(before or (), after.segments))}"
            yield bucket, Follow(row.inputs, inputs, segments, why, matches=inputs == each.current.inputs)


def _marks(
    snapshot: Snapshot, view_inputs: ViewInputs, found: Sequence[BucketInputs], recorded: Recorded
) -> Iterator[tuple[int, Mark]]:
    buckets = {each.bucket: each for each in found}
    if view_inputs.view.freezes:
        buckets = view_inputs.with_recorded(buckets, recorded)
    for seen in buckets.values():
        row, before = snapshot.rows.get(seen.bucket), recorded.get(seen.bucket, ())
        inputs = seen.current.inputs
        if inputs is not None and rules.differs(row, snapshot.header, seen.bucket, seen.current):
            why = reason(row, inputs, difference(before, view_inputs.segments(seen)))
            yield seen.bucket, Mark(why, seen.current)

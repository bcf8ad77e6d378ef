"""Transitions that bring no data: marks, freezes, follows, failures, reverts and repoints of one row."""

from __future__ import annotations

from dataclasses import replace

from mv_assets.state.model import (
    _SEAL,
    Attempt,
    Copied,
    CurrentInputs,
    Follow,
    Header,
    Mark,
    PartitionRow,
    State,
)
from mv_assets.state.rules.definitions import check_covered, effective_state, has_current_data


def differs(row: PartitionRow | None, header: Header, bucket: int, current: CurrentInputs) -> bool:
    """Whether a look that saw `current` has anything to write for this bucket."""
    return mark(row, header, bucket, Mark("", current)) is not None


def mark(row: PartitionRow | None, header: Header, bucket: int, event: Mark) -> PartitionRow | None:
    """MARK, FREEZE or THAW: the row after a look found a difference; None if there is nothing to write."""
    current = event.current
    if current is not None and current.inputs is None:
        return None
    if row is None:
        header.buckets.check(bucket)
        if header.start <= bucket < header.watermark:
            return _without_data(bucket, header, event.reason)
        return None
    frozen = row.frozen if current is None else row.has_data and bool(current.missing)
    state = row.state
    if effective_state(row, header) is State.VALID and not _matches(row, current):
        state = State.STALE
    if (state, frozen) == (row.state, row.frozen):
        return None
    reason = event.reason if state is not row.state else row.reason
    return replace(row, state=state, frozen=frozen, reason=reason, token=header.version + 1, seal=_SEAL)


def may_follow(row: PartitionRow | None, header: Header) -> bool:
    """Whether a row has data that nobody distrusts, and that counts: a person asks for a new read."""
    return row is not None and not row.forced and has_current_data(row, header)


def follow(row: PartitionRow | None, header: Header, event: Follow) -> PartitionRow | None:
    """FOLLOW: the record goes over to the files that replaced those recorded; the data is what it was.

    STALE becomes VALID if that is what is there now, as in a REVERT.
    """
    if row is None or not may_follow(row, header) or row.inputs != event.recorded:
        return None
    known = replace(row, inputs=event.inputs, token=header.version + 1, seal=_SEAL)
    return (
        replace(known, state=State.VALID, reason=None, frozen=False, seal=_SEAL) if event.matches else known
    )


def brought_in(before: Header, after: Header) -> dict[int, PartitionRow]:
    """Buckets that an earlier start brings in below W: STALE without data, not silently missing."""
    event = Mark("coverage was extended")
    uncovered = after.buckets.between(after.start, before.start)
    return {b: row for b in uncovered if (row := mark(None, after, b, event)) is not None}


def _matches(row: PartitionRow, current: CurrentInputs | None) -> bool:
    """Whether a VALID row stays so: equal inputs, or frozen because names only disappeared."""
    if current is None or row.inputs is None or current.inputs is None:
        return False
    now = current.inputs
    only_files = replace(row.inputs, base=now.base, further=now.further) == now
    return row.inputs == now or (only_files and bool(current.missing) and current.rest_equal)


def force(row: PartitionRow | None, header: Header, bucket: int, reason: str) -> PartitionRow:
    """A person's mark: whatever was there, the bucket is to be computed from a read later than now."""
    check_covered(header, bucket)
    version = header.version + 1
    before = _without_data(bucket, header, reason) if row is None else row
    return replace(
        before, state=State.STALE, reason=reason, forced=True, forced_at=version, token=version, seal=_SEAL
    )


def overtaken(row: PartitionRow | None, header: Header, attempt: Attempt) -> bool:
    """Whether a person marked the bucket, or reset the view, after the attempt was planned."""
    forced_at = 0 if row is None else row.forced_at
    return max(forced_at, header.reset_at) > attempt.version


def fail(
    row: PartitionRow | None, header: Header, bucket: int, attempt: Attempt, error: str
) -> PartitionRow | None:
    """FAIL: the bucket says why it has no current data; None if a peer or a person made that moot."""
    if overtaken(row, header, attempt):
        return None
    if row is None:
        return _without_data(bucket, header, error)
    if effective_state(row, header) is State.VALID:
        return None
    reason = row.reason if row.has_data and row.reason else error
    return replace(row, state=State.STALE, reason=reason, token=header.version + 1, seal=_SEAL)


def revert(row: PartitionRow | None, header: Header, current: CurrentInputs) -> PartitionRow | None:
    """REVERT: a false alarm, all inputs are as recorded. Recorded inputs and time are kept."""
    if row is None or row.state is not State.STALE or row.forced or current.missing:
        return None
    if row.inputs is None or row.inputs.definition != header.definition or row.inputs != current.inputs:
        return None
    return replace(row, state=State.VALID, reason=None, frozen=False, token=header.version + 1, seal=_SEAL)


def repoint(row: PartitionRow | None, header: Header, copied: Copied, copy: str) -> PartitionRow | None:
    """REPOINT: the same rows in another generation, only where the row still names the copied one."""
    if row is None or row.generation != copied.generation:
        return None
    return replace(row, generation=copy, bytes=copied.bytes, token=header.version + 1, seal=_SEAL)


def _without_data(bucket: int, header: Header, reason: str) -> PartitionRow:
    check_covered(header, bucket)
    return PartitionRow(bucket, State.STALE, header.version + 1, reason=reason, seal=_SEAL)

"""What a bucket needs next, and whether its earlier attempts let it have that now."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from mv_assets.state.model import (
    AttemptRecord,
    CurrentInputs,
    Header,
    Inputs,
    PartitionRow,
    State,
)
from mv_assets.state.rules.definitions import effective_state
from mv_assets.state.rules.marks import revert

# So far two processes may differ in what they take for now.
ALIKE_MS = 10_000


class Due(StrEnum):
    """What a plan would do about a bucket, by the name of the operation where it is one."""

    NOTHING = "nothing"
    WAIT = "wait"
    REVERT = "REVERT"
    DELETE = "DELETE"
    OVERWRITE = "OVERWRITE"
    APPEND = "APPEND"


class RetryState(StrEnum):
    """What earlier attempts mean for the next one."""

    FREE = "free"
    ALONE = "alone"
    BACKING_OFF = "backing off"
    IN_FLIGHT = "in flight"


def due(row: PartitionRow | None, header: Header, bucket: int, current: CurrentInputs, cutoff: int) -> Due:
    """The operation that would make the bucket VALID. `cutoff` is the latest end an APPEND may have."""
    if bucket < header.start:
        return Due.NOTHING
    state = effective_state(row, header)
    if state is State.VALID:
        return Due.NOTHING
    if state is State.VACANT and (header.source_end is None or header.buckets.next(bucket) > cutoff):
        return Due.NOTHING
    if current.inputs is None or current.missing:
        return Due.WAIT
    if state is State.VACANT:
        return Due.APPEND
    if revert(row, header, current) is not None:
        return Due.REVERT
    return Due.DELETE if current.inputs.empty else Due.OVERWRITE


def retry_state(record: AttemptRecord | None, inputs: Inputs, *, alive: bool, now: int) -> RetryState:
    """Whether the bucket may be attempted now.

    `alive` says that the recorded generation is STAGED and its heartbeat is fresh. A bucket whose attempt
    never ended may have killed its process: it runs alone, whatever its inputs are now, so that it
    can't take others along again. A pause that would last longer than any was set by a clock that has been
    set back since.
    """
    if record is None:
        return RetryState.FREE
    if alive:
        return RetryState.IN_FLIGHT
    same = record.inputs == inputs
    if (
        same
        and record.retry_after is not None
        and now < record.retry_after <= now + retry_delay(record.count) + ALIKE_MS
    ):
        return RetryState.BACKING_OFF
    return RetryState.ALONE if same or record.generation is not None else RetryState.FREE


def attempt_begun(record: AttemptRecord | None, generation: str, inputs: Inputs, now: int) -> AttemptRecord:
    """The record of a bucket whose next attempt begins; should it kill its process, it backs off too."""
    if record is None or record.inputs != inputs:
        record = AttemptRecord(0)
    count = record.count + 1
    return AttemptRecord(count, generation, record.last_error, now + retry_delay(count), inputs)


def attempt_since(record: AttemptRecord) -> int | None:
    """When the attempt began that has not ended."""
    if record.generation is None or record.retry_after is None:
        return None
    return record.retry_after - retry_delay(record.count)


def attempt_failed(record: AttemptRecord, error: str, now: int) -> AttemptRecord:
    """The record after the attempt ended with an error."""
    return replace(record, generation=None, last_error=error, retry_after=now + retry_delay(record.count))


def attempt_abandoned(record: AttemptRecord) -> AttemptRecord | None:
    """The record after the attempt was cancelled: as if it had not begun; None if it was the first.

    It may begin again at once: it had begun, so its backoff was over.
    """
    if record.count == 1:
        return None
    return replace(record, count=record.count - 1, generation=None, retry_after=None)


def retry_delay(attempts: int, first_ms: int = 10_000, longest_ms: int = 3_600_000) -> int:
    """Backoff after the given number of failed attempts: doubling, bounded."""
    return min(first_ms << min(max(attempts - 1, 0), 40), longest_ms)

"""The commit table: what becomes of one bucket of a staged generation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mv_assets.state.model import (
    _SEAL,
    Attempt,
    CurrentInputs,
    Header,
    Inputs,
    Operation,
    Outcome,
    PartitionRow,
    Planned,
    Staged,
    State,
)
from mv_assets.state.rules import marks
from mv_assets.state.rules.definitions import check_covered


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome for a bucket, why, and the row to write, if any."""

    outcome: Outcome
    why: str | None = None
    row: PartitionRow | None = None


def decide(  # noqa: C901 - a table of eight outcomes reads best as one list
    row: PartitionRow | None,
    header: Header,
    attempt: Attempt,
    planned: Planned,
    staged: Staged,
    current: CurrentInputs,
    changed: str | None,
    *,
    collected: bool,
    now: int,
) -> Decision:
    """Decide one bucket, given its row in this transaction.

    `current` is from a look taken after the row last changed; `changed` is a file that was read and is no
    longer the listed one; `collected` says that gc doomed or forgot the attempt's generation.
    """
    mine = planned.inputs
    if _holds(row, mine):
        return Decision(Outcome.REPLAY, "the bucket already has these inputs")
    if marks.overtaken(row, header, attempt):
        return Decision(Outcome.PLANNED_AGAIN, "marked or dropped by a person after this work was planned")
    if current.inputs is None:
        return Decision(Outcome.WAITING, f"waits for {current.waiting_for}")
    if current.missing:
        return Decision(Outcome.FROZEN, f"frozen: {current.missing[0]} is gone from the base table")
    if changed is not None:
        return Decision(Outcome.SOURCE_CHANGED, f"{changed} changed while it was read")
    if current.inputs != mine:
        # STALE with the current inputs is a false alarm about to be reverted: as good as VALID.
        if _holds(row, current.inputs):
            return Decision(Outcome.SUPERSEDED, "a peer committed the current inputs")
        # Emptiness is no progress: committing it as STALE would only throw older data away.
        if mine.empty:
            return Decision(Outcome.SOURCE_CHANGED, "files arrived for a bucket that was to be emptied")
    if collected:
        return Decision(Outcome.PLANNED_AGAIN, "its generation was collected before the commit")
    written = _with_data(row, header, attempt, planned, staged, up_to_date=current.inputs == mine, now=now)
    if written.state is State.VALID:
        return Decision(Outcome.COMMITTED, None, written)
    return Decision(Outcome.COMMITTED_STALE, written.reason, written)


def _holds(row: PartitionRow | None, inputs: Inputs) -> bool:
    """Whether the row's data is of these inputs. A forced row's is not: a person asked for a new read."""
    return row is not None and row.inputs == inputs and not row.forced


def _with_data(
    row: PartitionRow | None,
    header: Header,
    attempt: Attempt,
    planned: Planned,
    staged: Staged,
    *,
    up_to_date: bool,
    now: int,
) -> PartitionRow:
    """The row with the attempt's data; APPEND, OVERWRITE and DELETE differ only in the name."""
    empty = planned.inputs.empty
    operation = Operation.APPEND if row is None else Operation.DELETE if empty else Operation.OVERWRITE
    version = header.version + 1
    if row is None:
        check_covered(header, planned.bucket)
    fresh = PartitionRow(planned.bucket, State.VALID, version, seal=_SEAL) if row is None else row
    return replace(
        fresh,
        state=State.VALID if up_to_date else State.STALE,
        token=version,
        inputs=planned.inputs,
        generation=None if empty else attempt.generation,
        content=version,
        rows=staged.rows,
        bytes=staged.bytes,
        duration_ms=staged.duration_ms,
        operation=operation,
        refreshed_at=now,
        reason=None if up_to_date else "the base table changed while the bucket was refreshed",
        forced=False,
        frozen=False,
        seal=_SEAL,
    )

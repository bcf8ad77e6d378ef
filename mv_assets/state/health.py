"""What a view's map says of its health: pure, for whoever shows it."""

from __future__ import annotations

from collections import Counter

from mv_assets.buckets import duration, iso
from mv_assets.state import rules
from mv_assets.state.model import Header, PartitionRow, Pulse, Snapshot, State


def condition(snapshot: Snapshot, bucket: int) -> str:
    """A bucket in one word."""
    row, record = snapshot.rows.get(bucket), snapshot.attempts.get(bucket)
    state = rules.effective_state(row, snapshot.header)
    if state is not State.VALID and record is not None and record.last_error is not None:
        return "failed"
    if row is not None and row.frozen:
        return "frozen"
    return state.value


def counts(snapshot: Snapshot) -> Counter[State]:
    return Counter(rules.effective_state(row, snapshot.header) for row in snapshot.rows.values())


def stale(snapshot: Snapshot) -> dict[int, str]:
    """Buckets that are STALE, and why."""
    return {
        bucket: stale_reason(row)
        for bucket, row in sorted(snapshot.rows.items())
        if rules.effective_state(row, snapshot.header) is State.STALE
    }


def stale_reason(row: PartitionRow) -> str:
    """Why a row is STALE; one that nobody marked is so by its definition."""
    return row.reason or "the view's definition changed"


def failures(snapshot: Snapshot) -> dict[int, str]:
    """Buckets that could not be computed, and why."""
    return {
        bucket: snapshot.attempts[bucket].last_error or ""
        for bucket in sorted(snapshot.attempts)
        if condition(snapshot, bucket) == "failed"
    }


def broken(known: Snapshot | Pulse) -> tuple[str, ...]:
    """Files that the last look could not use."""
    return () if known.look is None else known.look.broken


def stall(snapshot: Snapshot, buffer: int, longest: int, now: int) -> str | None:
    """What to say of a bucket that waits longer than it should though nothing failed: nobody serves it."""
    header, unserved = snapshot.header, None if snapshot.look is None else snapshot.look.unserved
    if (
        unserved is None
        or snapshot.troubles
        or condition(snapshot, unserved.bucket) in ("failed", "frozen", State.VALID.value)
    ):
        return None
    row, record = snapshot.rows.get(unserved.bucket), snapshot.attempts.get(unserved.bucket)
    # A bucket whose files never rest is computed again and again.
    computed = 0 if row is None or row.refreshed_at is None else row.refreshed_at
    waits = now - max(unserved.since, header.buckets.next(unserved.bucket) + buffer, computed)
    if waits <= longest:
        return None
    key, view = header.buckets.key(unserved.bucket), header.view
    if record is not None and record.generation is not None:
        return (
            f"stalled: {key} has been due for {duration(waits)}, and what began to compute it has not ended; "
            f"see that its run still works, or cancel it"
        )
    return (
        f"stalled: {key} has been due for {duration(waits)} and is not computed, though nothing failed; see "
        f"that Dagster's daemon runs and its queue moves, or run `mv-assets refresh {view}`; "
        f"`mv-assets explain {view} {key}` says what it waits for"
    )


def troubles(snapshot: Snapshot) -> list[str]:
    """What keeps the view from being looked at or computed, whatever its buckets are."""
    return [f"{trouble.what} (since {iso(trouble.since)})" for trouble in snapshot.troubles]


def lag(header: Header, now: int) -> int:
    """How far the view is behind now: behind its own watermark, or behind a source that has stalled."""
    known = rules.cap(header)
    return now - (header.watermark if known is None else min(header.watermark, known))

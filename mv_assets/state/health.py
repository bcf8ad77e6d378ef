"""What a view's map says of its health: pure, for whoever shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from mv_assets.buckets import Buckets, duration, iso
from mv_assets.errors import MvError
from mv_assets.state import rules
from mv_assets.state.errors import Fenced
from mv_assets.state.model import (
    Declaration,
    Doing,
    Header,
    MapSummary,
    PartitionRow,
    Snapshot,
    State,
    Trouble,
)

OTHER_DEFINITION = "the view's definition changed"


@dataclass(frozen=True, slots=True)
class Wrong:
    """What a person should see to, of one view: whoever looks says it, and a command then ends with 1.

    This is the one place that decides it, for commands, checks, jobs, runs and the sensor's log.
    """

    # Why the view can't be looked at or worked on; that it is fenced is one such.
    error: MvError | None = None
    # Buckets that could not be computed, and why.
    failed: Mapping[int, str] = field(default_factory=dict)
    # Files that can't be used, and why.
    broken: tuple[str, ...] = ()
    # What has kept others from looking at the view or working on it.
    troubles: tuple[Trouble, ...] = ()
    # A bucket that nobody computes.
    stalled: str | None = None

    def __bool__(self) -> bool:
        return bool(self.failed or self.of_view())

    @property
    def fenced(self) -> str | None:
        return str(self.error) if isinstance(self.error, Fenced) else None

    def met(self, error: MvError | None) -> Wrong:
        """With an error that was met just now; it may have been noted as a trouble as well."""
        known = tuple(each for each in self.troubles if error is None or each.what != str(error))
        return replace(self, error=error, troubles=known)

    def without(self, doing: Doing) -> Wrong:
        """Without what kept others from doing something, for who does it."""
        return replace(self, troubles=tuple(each for each in self.troubles if each.doing is not doing))

    def of_view(self) -> list[str]:
        """What is wrong with the view as a whole."""
        errors = [] if self.error is None else [str(self.error)]
        stalls = [] if self.stalled is None else [self.stalled]
        return [*errors, *self.broken, *map(trouble_line, self.troubles), *stalls]

    def of_buckets(self, buckets: Buckets, but: Container[int] = ()) -> list[str]:
        """What is wrong with its buckets, neighbours that failed alike together; some may have been told."""
        alike: dict[str, list[int]] = {}
        for bucket, why in self.failed.items():
            if bucket not in but:
                alike.setdefault(why, []).append(bucket)
        runs = [(run, why) for why, found in alike.items() for run in buckets.stretches(found)]
        return [f"{buckets.span(run)}: {why}" for run, why in sorted(runs, key=lambda each: each[0][0])]

    def sentences(self, view: str, buckets: Buckets) -> list[str]:
        """All of it, for where other views are told of as well."""
        return [
            *(f"{view} {each}" for each in self.of_buckets(buckets)),
            *(f"{view}: {each}" for each in self.of_view()),
        ]


def wrong(snapshot: Snapshot, buffer: int, stall_after: int, now: int) -> Wrong:
    """What is wrong with a view by its map."""
    stalled = stall(snapshot, buffer, stall_after, now)
    return Wrong(None, failures(snapshot), broken(snapshot), snapshot.troubles, stalled)


def fenced(header: Header, history: Mapping[str, str], declared: Declaration) -> Fenced | None:
    """That a definition which this project declares may not be put in force."""
    try:
        rules.declare(header, history, declared)
    except Fenced as refused:
        return refused
    return None


def looked(snapshot: Snapshot) -> Snapshot:
    """A map after a look that went well: what kept earlier ones from it is over.

    So is what kept somebody from work that a peer has done meanwhile.
    """
    at_rest = snapshot.look is not None and snapshot.look.oldest_waiting is None
    over = {Doing.LOOK, Doing.WORK} if at_rest else {Doing.LOOK}
    return replace(snapshot, troubles=tuple(each for each in snapshot.troubles if each.doing not in over))


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
    header = snapshot.header
    found = [row for row in snapshot.rows.values() if rules.effective_state(row, header) is State.STALE]
    return {row.bucket: stale_reason(row) for row in sorted(found, key=lambda row: row.bucket)}


def stale_reason(row: PartitionRow) -> str:
    """Why a row is STALE; one that nobody marked is so by its definition."""
    return row.reason or OTHER_DEFINITION


def failures(snapshot: Snapshot) -> dict[int, str]:
    """Buckets that could not be computed, and why."""
    return {
        bucket: snapshot.attempts[bucket].last_error or ""
        for bucket in sorted(snapshot.attempts)
        if condition(snapshot, bucket) == "failed"
    }


def broken(known: Snapshot | MapSummary) -> tuple[str, ...]:
    """Files that the last look could not use."""
    return () if known.look is None else known.look.broken


def stall(snapshot: Snapshot, buffer: int, longest: int, now: int) -> str | None:
    """What to say of a bucket that waits longer than it should though nothing failed: nobody serves it."""
    header, oldest_waiting = snapshot.header, None if snapshot.look is None else snapshot.look.oldest_waiting
    if (
        oldest_waiting is None
        # What keeps it from being computed is said; that others don't see it yet is something else.
        or any(trouble.doing is not Doing.PUBLISH for trouble in snapshot.troubles)
        or condition(snapshot, oldest_waiting.bucket) in ("failed", "frozen", State.VALID.value)
    ):
        return None
    row, record = snapshot.rows.get(oldest_waiting.bucket), snapshot.attempts.get(oldest_waiting.bucket)
    # A bucket whose files never rest is computed again and again.
    computed = 0 if row is None or row.refreshed_at is None else row.refreshed_at
    waits = now - max(oldest_waiting.since, header.buckets.next(oldest_waiting.bucket) + buffer, computed)
    if waits <= longest:
        return None
    key, view = header.buckets.key(oldest_waiting.bucket), header.view
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


def computing(snapshot: Snapshot, alive: Container[str]) -> dict[int, int]:
    """Buckets that somebody is computing, whose generations are `alive`, and since when."""
    begun = {
        bucket: rules.attempt_since(record)
        for bucket, record in sorted(snapshot.attempts.items())
        if record.generation in alive
    }
    return {bucket: since for bucket, since in begun.items() if since is not None}


def troubles(snapshot: Snapshot) -> list[str]:
    """What keeps the view from being looked at or computed, whatever its buckets are."""
    return [trouble_line(trouble) for trouble in snapshot.troubles]


def trouble_line(trouble: Trouble) -> str:
    return f"{trouble.what} (since {iso(trouble.since)})"


def lag(header: Header, now: int) -> int:
    """How far the view is behind now: behind its own watermark, or behind a source that has stalled."""
    known = rules.cap(header)
    return now - (header.watermark if known is None else min(header.watermark, known))

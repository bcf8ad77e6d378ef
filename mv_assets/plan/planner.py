"""State -> work: which buckets to compute next, in which order and together with which others. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mv_assets.buckets import Buckets, duration, iso
from mv_assets.observe import additions as merging
from mv_assets.observe.additions import Addition
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.observe.observation import Observation, Observed, Unchanged, cutoff
from mv_assets.state import rules
from mv_assets.state.model import AttemptRecord, Header, PartitionRow, Planned, Snapshot
from mv_assets.state.rules import Due, RetryState
from mv_assets.tables.parts import some


@dataclass(frozen=True, slots=True)
class Work:
    """Contiguous buckets that need the same operation; `bytes` is what there is to read for them.

    Those of `additions` are merged with what is stored of them, the others computed from all their files.
    """

    operation: Due
    buckets: tuple[Planned, ...]
    bytes: int
    reason: str
    additions: Mapping[int, Addition] = field(default_factory=dict)
    # The bytes that need not be read, as what is stored stands for them.
    spared: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A bucket that is not VALID and not to be computed now, what it waits for, and until when if known."""

    bucket: int
    reason: str
    until: int | None = None
    # Its last attempt failed.
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Failing:
    """A bucket that can't be computed whatever one tries: it is to be failed with this error."""

    planned: Planned
    error: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about one view, decided on the map's `version`."""

    version: int
    work: tuple[Work, ...] = ()
    failing: tuple[Failing, ...] = ()
    waiting: tuple[Waiting, ...] = ()

    @property
    def reverts(self) -> Plan:
        """Of all this, the false alarms to undo, for which nothing is computed."""
        return Plan(self.version, tuple(work for work in self.work if work.operation is Due.REVERT))

    @property
    def computed(self) -> Plan:
        """Of all this, the work that new rows come from."""
        return Plan(self.version, tuple(work for work in self.work if work.operation is not Due.REVERT))

    def without(self, other: Plan) -> Plan:
        """Of all this, what another plan has no work for."""
        worked = {planned.bucket for work in other.work for planned in work.buckets}
        return self.narrowed(lambda bucket: bucket not in worked)

    def narrowed(self, keep: Callable[[int], bool]) -> Plan:
        """Of all this, what is about the buckets to keep. The bytes of work that is cut stay as they were."""
        works = [
            replace(each, buckets=tuple(p for p in each.buckets if keep(p.bucket))) for each in self.work
        ]
        return Plan(
            self.version,
            tuple(work for work in works if work.buckets),
            tuple(each for each in self.failing if keep(each.planned.bucket)),
            tuple(each for each in self.waiting if keep(each.bucket)),
        )


def not_due(found: Observed, bucket: int) -> str:
    """Why a bucket that has no row is not to be computed now."""
    header, limits, now, source_end = found.header, found.limits, found.now, found.source_end
    end = header.buckets.next(bucket)
    if bucket < header.start:
        start = header.buckets.key(header.start)
        return f"it lies before the view's coverage, which starts at {start}; `mark --extend` adds it"
    if end > now - limits.buffer:
        return f"it ends at {iso(end)}, and is computed {duration(limits.buffer)} later"
    table, data_end = found.held_by
    known = f"{table} is known to have {'nothing' if data_end is None else f'data up to {iso(data_end)}'}"
    window = next((each for each in found.view.windows if each.table == table), None)
    if window is not None and window.after:
        known += f", of which the bucket reads up to {iso(header.buckets.shifted(end, window.after))}"
    if source_end is not None and bucket <= source_end < end:
        closes_at = rules.closes_at(header.buckets, source_end, limits.closes)
        if closes_at is not None and now < closes_at:
            return f"it ends at {iso(end)}, {known}, and it is due at {iso(closes_at)}"
        if limits.closes is None:
            known += "; the view's `closes` would have it due by the clock"
    return f"it ends at {iso(end)}, and {known}"


def plan(found: Observed) -> Plan:
    """Reverts, then repairs with the newest first, then appends with the oldest first."""
    if isinstance(found, Unchanged):
        return Plan(found.header.version)
    observation = found
    waiting: list[Waiting] = []
    failing: list[Failing] = []
    ready: dict[Due, list[_Ready]] = {due: [] for due in Due}
    for seen in observation.buckets.values():
        decided = _decide(observation, seen)
        if isinstance(decided, Waiting):
            waiting.append(decided)
        elif isinstance(decided, Failing):
            failing.append(decided)
        elif decided is not None:
            ready[decided.due].append(decided)
    reverts = _works(observation, ready[Due.REVERT], len(ready[Due.REVERT]) or 1)
    most_buckets = observation.limits.max_buckets_per_run
    repairs = [
        work for due in (Due.DELETE, Due.OVERWRITE) for work in _works(observation, ready[due], most_buckets)
    ]
    repairs.sort(key=lambda work: work.buckets[-1].bucket, reverse=True)
    appends = _works(observation, ready[Due.APPEND], most_buckets)
    works = (*reverts, *repairs, *appends)
    return Plan(observation.snapshot.header.version, works, tuple(failing), tuple(waiting))


@dataclass(frozen=True, slots=True)
class _Ready:
    """A bucket to be computed; `alone` if an earlier attempt on it never ended or failed."""

    due: Due
    planned: Planned
    reached: tuple[tuple[int, ...], ...]
    reason: str
    alone: bool


def _decide(observation: Observation, seen: BucketInputs) -> _Ready | Waiting | Failing | None:
    header, bucket = observation.snapshot.header, seen.bucket
    row = observation.snapshot.rows.get(bucket)
    latest = cutoff(observation.limits, observation.ending.cap, observation.now)
    due = rules.due(row, header, bucket, seen.current, header.start if latest is None else latest)
    if due is Due.NOTHING and row is None and bucket in observation.named:
        hindrance = _hindrance(observation, seen)
        if hindrance is not None:
            return Waiting(bucket, hindrance)
        due = Due.APPEND
    if due is Due.NOTHING and (row is None or seen.current.inputs is not None):
        return None
    if due in (Due.NOTHING, Due.WAIT) or seen.current.inputs is None:
        return Waiting(bucket, _waits_for(seen))
    planned = Planned(bucket, None if row is None else row.token, seen.current.inputs)
    if due is Due.REVERT:
        return _Ready(due, planned, (), "inputs turned out equal", alone=False)
    record = observation.snapshot.attempts.get(bucket)
    alive = record is not None and record.generation in observation.alive
    retry_state = rules.retry_state(record, planned.inputs, alive=alive, now=observation.now)
    if record is not None and retry_state in (RetryState.IN_FLIGHT, RetryState.BACKING_OFF):
        failed = retry_state is RetryState.BACKING_OFF and record.last_error is not None
        return Waiting(bucket, _held_back(record, retry_state), failed=failed)
    settled = _settled_at(observation, row, seen)
    if settled > observation.now:
        return Waiting(bucket, "its files are still arriving", settled)
    if seen.errors:
        return Failing(planned, "; ".join(seen.errors))
    if seen.has_files and observation.view_inputs.unknown is not None:
        return Waiting(
            bucket, f"waits for {observation.view_inputs.unknown}: nothing else tells what columns it has"
        )
    reached = () if due is Due.DELETE else seen.reached
    return _Ready(due, planned, reached, _reason(row, header), alone=retry_state is RetryState.ALONE)


def _hindrance(observation: Observation, seen: BucketInputs) -> str | None:
    """Why a bucket that is not due can't be computed even for a person who asks for it."""
    if seen.bucket > observation.now:
        return "it lies in the future"
    if seen.current.inputs is None:
        return _waits_for(seen)
    if seen.has_files:
        return None
    tables, why = " and ".join(observation.view.declared.timed), not_due(observation, seen.bucket)
    return f"{tables} {'has' if len(seen.reached) == 1 else 'have'} no rows of it yet: {why}"


def _settled_at(observation: Observation, row: PartitionRow | None, seen: BucketInputs) -> int:
    """When the bucket's files will have been quiet for long enough; not later than if they never rest."""
    now, limits, buckets = observation.now, observation.limits, observation.snapshot.header.buckets
    changed = [*observation.view_inputs.changed(seen, now), *observation.dimensions_changed]
    # A clock that runs ahead of ours must not hold a bucket until we reach it.
    recent = [time for time in changed if abs(now - time) < limits.settle]
    if not recent:
        return now
    refreshed = None if row is None else row.refreshed_at
    # Nor may one that has been set back since the bucket was refreshed.
    since = buckets.next(seen.bucket) if refreshed is None or refreshed > now else refreshed
    first = min((time for time in changed if time > since), default=now)
    # A file that is replaced shows its last change only; looks remember how long its bucket has been waiting.
    first = min(first, _waiting_since(observation.snapshot, row, seen.bucket, now))
    return min(max(recent) + limits.settle, first + limits.settle_at_most)


def _waiting_since(snapshot: Snapshot, row: PartitionRow | None, bucket: int, now: int) -> int:
    """Since when the bucket is known to wait, if it has waited as long as the one that looks remember.

    So have all whose rows have not changed after that one's: when that is computed, all that wait then.
    """
    oldest = None if snapshot.look is None else snapshot.look.oldest_waiting
    if oldest is None:
        return now
    theirs = snapshot.rows.get(oldest.bucket)
    if bucket != oldest.bucket and (row is None or theirs is None or row.token > theirs.token):
        return now
    refreshed = [each.refreshed_at or 0 for each in (row, theirs) if each is not None]
    return max([oldest.since, *(time for time in refreshed if time <= now)])


def _works(observation: Observation, ready: Sequence[_Ready], most: int) -> Iterator[Work]:
    known = observation.additions
    for run in _runs(ready, observation.snapshot.header.buckets, most):
        reached = {each.planned.bucket: each.reached for each in run if each.reached}
        additions = {bucket: known[bucket] for bucket in reached if bucket in known}
        inputs = observation.view_inputs
        size, whole = to_read(inputs, reached, additions), to_read(inputs, reached)
        if whole - size < merging.WORTH:
            size, additions = whole, {}
        reasons = dict.fromkeys(each.reason for each in run)
        shown = next(iter(reasons))
        more = f"; other reasons: {len(reasons) - 1}" if len(reasons) > 1 else ""
        planned = tuple(each.planned for each in run)
        yield Work(run[0].due, planned, size, shown + more, additions, whole - size)


def to_read(
    inputs: ViewInputs,
    reached: Mapping[int, Sequence[Sequence[int]]],
    additions: Mapping[int, Addition] | None = None,
) -> int:
    """The bytes to read for buckets, of files each counted once however many need it."""
    merged = {bucket: each for bucket, each in (additions or {}).items() if bucket in reached}
    read = {**reached, **{bucket: [each.added] for bucket, each in merged.items()}}
    return sum(sizes(inputs, read).values()) + sum(each.stored for each in merged.values())


def sizes(inputs: ViewInputs, reached: Mapping[int, Sequence[Sequence[int]]]) -> dict[str, int]:
    """The bytes of the files that buckets need of each table."""
    return {
        listing.table: sum(some(listing.sizes, {at for each in reached.values() for at in each[place]}))
        for place, listing in enumerate(inputs.listings)
    }


def _runs(ready: Iterable[_Ready], buckets: Buckets, most: int) -> Iterator[list[_Ready]]:
    """Neighbours together, at most so many; those that run alone by themselves."""
    run: list[_Ready] = []
    for each in ready:
        joins = (
            run
            and len(run) < most
            and not each.alone
            and not run[-1].alone
            and buckets.next(run[-1].planned.bucket) == each.planned.bucket
        )
        if run and not joins:
            yield run
            run = []
        run.append(each)
    if run:
        yield run


def _reason(row: PartitionRow | None, header: Header) -> str:
    if row is None:
        return "new"
    if row.inputs is not None and row.inputs.definition != header.definition and not row.forced:
        return "the view's definition changed"
    return row.reason or "stale"


def _waits_for(seen: BucketInputs) -> str:
    if seen.current.missing:
        missing = seen.current.missing
        names = ", ".join(missing[:3])
        return f"frozen: {len(missing)} of its files are gone ({names}); restore them, or drop the view"
    return f"waits for {seen.current.waiting_for}"


def _held_back(record: AttemptRecord, retry_state: RetryState) -> str:
    if retry_state is RetryState.IN_FLIGHT:
        return f"in flight: {record.generation}"
    until = "" if record.retry_after is None else f" until {iso(record.retry_after)}"
    error = "" if record.last_error is None else f": {record.last_error}"
    return f"backing off{until} after {record.count} attempt{'s' * (record.count > 1)}{error}"

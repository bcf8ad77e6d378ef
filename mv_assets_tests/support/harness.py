"""One deployment that looks, plans, stages and commits on a base table in memory, step by step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mv_assets.state import rules
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import (
    Attempt,
    CurrentInputs,
    DataFile,
    Declaration,
    Event,
    Fingerprint,
    Generation,
    Header,
    Outcome,
    PartitionRow,
    Planned,
    SecondLook,
    Segment,
    Snapshot,
    Staged,
    State,
)
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store
from mv_assets.state.store.retry import Profile, Retry
from mv_assets_tests.support.memory_table import (
    DAY,
    BaseTable,
    Files,
    overlapping,
    second_look,
    see,
    segments,
    whole_look,
)

_ids = itertools.count(1)


@dataclass
class Clock:
    """Time passes only when a test says so."""

    now: int = 1_000 * DAY

    def __call__(self) -> int:
        return self.now


@dataclass(frozen=True, slots=True)
class Work:
    """An attempt under way: the files as they were listed, and what was read so far."""

    attempt: Attempt
    listed: Files
    staged: Mapping[int, Staged]


def view(name: str = "v", definition: str = "d1", width: str = "1d", start: int = 0) -> Declaration:
    return Declaration(name, definition, width, start)


@dataclass
class Deployment:
    """A refresher with hand-driven steps. `sleeps` counts the retries' pauses; none of them waits."""

    store: Store
    table: BaseTable
    clock: Clock
    declaration: Declaration = field(default_factory=view)
    dimensions: dict[str, Fingerprint] = field(default_factory=dict)
    freezes: bool = False
    waiting: dict[int, str] = field(default_factory=dict)
    who: str = "test"

    def __post_init__(self) -> None:
        self.sleeps: list[float] = []
        self.retry = Retry(sleep=self.sleeps.append)
        self.manager = PartitionManager(self.store, clock=self.clock, who=self.who, retry=self.retry)
        self.registry = Registry(self.store, lifetime_ms=60_000, retry=self.retry)
        self.leases = Leases(self.store, ttl_ms=60_000, retry=self.retry)

    def with_profile(self, critical: Profile) -> None:
        self.retry = Retry(critical=critical, revert=critical, sleep=self.sleeps.append)
        self.manager = PartitionManager(self.store, clock=self.clock, who=self.who, retry=self.retry)

    def declare(self) -> Header:
        return self.manager.declare(self.declaration)

    @property
    def version(self) -> str:
        """Of all that is looked at."""
        return self.table.version

    @property
    def name(self) -> str:
        return self.declaration.view

    def map(self) -> Snapshot:
        return self.store.snapshot(self.name)

    def header(self) -> Header:
        return self.map().header

    def row(self, day: int) -> PartitionRow | None:
        return self.map().rows.get(day * DAY)

    def state(self, day: int) -> State:
        snapshot = self.map()
        return rules.effective_state(snapshot.rows.get(day * DAY), snapshot.header)

    @property
    def watermark(self) -> int:
        """W in whole days."""
        return self.header().watermark // DAY

    def current(self, bucket: int) -> CurrentInputs:
        return see(
            self.table.files,
            self.declaration,
            bucket,
            dimensions=self.dimensions,
            recorded=self._recorded(bucket),
            waiting_for=self.waiting.get(bucket),
        )

    def look(self, days: Iterable[int] | None = None) -> list[int]:
        """One look at the whole table, or one that only compares some days; returns the marked days."""
        snapshot = self.map()
        buckets = self.covered(snapshot) if days is None else [day * DAY for day in days]
        current_inputs = {bucket: self.current(bucket) for bucket in buckets}
        now = self.clock()
        look = whole_look(
            self.table.files, self.table.version, snapshot.header, snapshot.rows, current_inputs, now
        )
        return [bucket // DAY for bucket in self.manager.look(self.declaration, look)]

    def covered(self, snapshot: Snapshot) -> list[int]:
        """Buckets from the start to the last row or the end of the source."""
        ends = [*snapshot.rows, *(min(file.end, self.clock()) for file in self.table.files.values())]
        last = max(ends, default=snapshot.header.start - 1)
        return list(snapshot.header.buckets.between(snapshot.header.start, last + 1))

    def due(self, snapshot: Snapshot | None = None) -> dict[int, rules.Due]:
        """What each bucket needs, without those that need nothing."""
        snapshot = snapshot or self.map()
        header = snapshot.header
        cutoff = 0 if header.source_end is None else min(self.clock(), header.source_end + 1)
        wanted = {
            bucket: rules.due(snapshot.rows.get(bucket), header, bucket, self.current(bucket), cutoff)
            for bucket in self.covered(snapshot)
        }
        return {bucket: due for bucket, due in wanted.items() if due is not rules.Due.NOTHING}

    def plan(self, *days: int) -> Work:
        """Plan some days from what is there now; nothing is registered yet."""
        snapshot = self.map()
        work = []
        for day in days:
            bucket, row = day * DAY, snapshot.rows.get(day * DAY)
            inputs = self.current(bucket).inputs
            assert inputs is not None
            work.append(Planned(bucket, None if row is None else row.token, inputs))
        attempt = Attempt(f"g{next(_ids)}", snapshot.header.version, tuple(work))
        return Work(attempt, dict(self.table.files), {})

    def register(self, work: Work) -> Work:
        self.manager.register(self.declaration, work.attempt)
        return work

    def stage(self, work: Work) -> Work:
        """Compute all buckets of the work from the files as they were listed."""
        made = {}
        for bucket in work.attempt.buckets:
            found = self.read(work.listed, bucket)
            made[bucket] = Staged(len(found), 100 * len(found), 5, found)
        return replace(work, staged=made)

    def read(self, files: Files, bucket: int) -> tuple[Segment, ...]:
        """What a bucket is computed from."""
        return tuple(overlapping(segments(files), bucket, self.declaration.buckets.next(bucket)))

    def begin(self, *days: int) -> Work:
        """Plan, register and stage."""
        return self.stage(self.register(self.plan(*days)))

    def look_again(self, work: Work) -> SecondLook:
        current_inputs = {bucket: self.current(bucket) for bucket in work.attempt.buckets}
        return second_look(self.table.files, work.attempt, self.declaration, work.listed, current_inputs)

    def commit(self, work: Work) -> dict[int, Outcome]:
        """Outcomes by day."""
        files = [DataFile(f"{work.attempt.generation}/part-0.parquet", 100, len(work.staged))]
        decided = self.manager.commit(
            self.declaration, work.attempt, work.staged, lambda: self.look_again(work), files
        )
        return {bucket // DAY: decision.outcome for bucket, decision in decided.items()}

    def refresh(self, *days: int) -> dict[int, Outcome]:
        return self.commit(self.begin(*days))

    def fail(self, work: Work, *days: int, error: str = "file a is damaged") -> list[int]:
        return self.manager.fail(self.declaration, work.attempt, {day * DAY: error for day in days})

    def converge(self) -> None:
        """Look, revert, refresh until nothing is due any more but waiting."""
        for _ in range(1_000):
            self.look()
            due = self.due()
            reverts = {b: self.current(b) for b, d in due.items() if d is rules.Due.REVERT}
            self.manager.revert(self.declaration, reverts)
            work = [b // DAY for b, d in due.items() if d not in (rules.Due.REVERT, rules.Due.WAIT)]
            if not work and not reverts:
                return
            if work:
                self.refresh(*work)
        raise AssertionError(f"{self.name} never comes to rest")

    def fill(self, *days: int) -> None:
        """A file of its own for each day, looked at and committed."""
        for day in days:
            self.table.day(f"f{day}", 1, day)
        self.look()
        self.refresh(*days)

    def commit_while(self, work: Work, *happenings: Callable[[], object]) -> dict[int, Outcome]:
        """Commit; each happening takes place between one look and the write that follows it."""
        left = list(happenings)

        def look_again() -> SecondLook:
            seen = self.look_again(work)
            if left:
                left.pop(0)()
            return seen

        files = [DataFile(f"{work.attempt.generation}/part-0.parquet", 100, len(work.staged))]
        decided = self.manager.commit(self.declaration, work.attempt, work.staged, look_again, files)
        return {bucket // DAY: decision.outcome for bucket, decision in decided.items()}

    def retry_state(self, *days: int) -> list[rules.RetryState]:
        """What earlier attempts mean for the days now."""
        attempts, alive, now = self.map().attempts, self.registry.alive(self.name), self.clock()
        found = []
        for day in days:
            record, inputs = attempts.get(day * DAY), self.current(day * DAY).inputs
            assert inputs is not None
            lives = record is not None and record.generation in alive
            found.append(rules.retry_state(record, inputs, alive=lives, now=now))
        return found

    def planned(self) -> dict[int, rules.Due]:
        """`due` by day."""
        return {bucket // DAY: due for bucket, due in self.due().items()}

    def events(self) -> list[Event]:
        with self.store.read(self.name) as reader:
            return reader.events(most=1_000)

    def generation(self, name: str | None) -> Generation | None:
        """A generation as it is registered, or None once it is forgotten."""
        assert name is not None
        with self.store.read(self.name) as reader:
            return reader.generation(name)

    def outlive(self) -> None:
        """Let every heartbeat and lease run out."""
        self.clock.now += 60_000

    def collect(self) -> list[str]:
        """One whole gc: what it deleted."""
        doomed = [generation.id for generation in self.registry.doom(self.name)]
        for name in doomed:
            self.registry.forget(self.name, name)
        return doomed

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """The map and its log are the same after the block as before it."""
        before = self._written()
        yield
        assert self._written() == before

    @contextmanager
    def one_write(self) -> Iterator[None]:
        """The block makes exactly one version step."""
        before = self.header().version
        yield
        assert self.header().version == before + 1

    def _written(self) -> tuple[Header, Mapping[int, PartitionRow], list[Event]]:
        snapshot = self.map()
        return snapshot.header, snapshot.rows, self.events()

    def _recorded(self, bucket: int) -> tuple[Segment, ...] | None:
        if not self.freezes:
            return None
        with self.store.read(self.name) as reader:
            return reader.recorded([bucket]).get(bucket, ())

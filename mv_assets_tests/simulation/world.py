"""One state of the checker's world: base table, partition map, generations on disk, and who is doing what."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from mv_assets.buckets import Buckets
from mv_assets.state import rules
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Attempt, CurrentInputs, Declaration, Fingerprint, Look, Mark, Snapshot
from mv_assets.state.registry import Registry
from mv_assets.state.retry import Profile, Retry
from mv_assets_tests.modelled import DAY, File, marks_of, see, source_end
from mv_assets_tests.simulation.memory import Memory, MemoryStore

VIEW = "v"
LIFETIME = 1_000
NOW = 100 * DAY
_DAYS = Buckets.of("1d")

# What an attempt read of one bucket: names and contents.
Data = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Base:
    """The base table and all else that a look sees; `writes` is its version."""

    files: tuple[tuple[str, File], ...] = ()
    removed: tuple[tuple[str, File], ...] = ()
    writes: int = 0
    dimension: int = 0
    waiting: frozenset[int] = frozenset()

    def put(self, name: str, file: File) -> Base:
        files = dict(self.files) | {name: file}
        return replace(self, files=tuple(sorted(files.items())), writes=self.writes + 1)

    def without(self, name: str) -> Base:
        files = dict(self.files)
        removed = dict(self.removed) | {name: files.pop(name)}
        return replace(
            self,
            files=tuple(sorted(files.items())),
            removed=tuple(sorted(removed.items())),
            writes=self.writes + 1,
        )

    def restored(self, name: str) -> Base:
        """The very same object is back, identity included: a rename away and back on an object store."""
        removed = dict(self.removed)
        file = removed.pop(name)
        return replace(self.put(name, file), removed=tuple(sorted(removed.items())))

    def source_end(self) -> int | None:
        return source_end(dict(self.files), NOW)


@dataclass(frozen=True, slots=True)
class Writer:
    """A refresher between two of its I/O points."""

    definition: str
    runs: int
    at: str = "idle"
    listed: Base = Base()
    again: Base = Base()
    attempt: Attempt | None = None
    unread: tuple[str, ...] = ()
    data: Data = ()
    noted: tuple[tuple[int, int | None], ...] = ()
    # How often each bucket had been forced when the first file was read.
    forced: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Looker:
    looks: int
    # One of a deployment that closes nothing.
    closes: bool = True
    at: str = "idle"
    listed: Base = Base()
    version: int = 0
    marks: tuple[tuple[int, Mark], ...] = ()


@dataclass(frozen=True, slots=True)
class Collector:
    rounds: int
    at: str = "idle"
    doomed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    reads: int
    at: str = "idle"
    lease: str = ""
    pinned: tuple[str, ...] = ()


Actor = Writer | Looker | Collector | Reader


@dataclass(frozen=True, slots=True, order=True)
class Content:
    """What a data commit really holds, and the version of the base table that its last look saw."""

    data: Data
    definition: str
    forced: int
    looked: int


@dataclass(slots=True)
class World:
    base: Base
    memory: Memory
    actors: tuple[Actor, ...]
    # How often each thing may still happen.
    budget: dict[str, int]
    # Complete generations on disk; one that lost a file while it was staged is in `broken`.
    disk: dict[str, Mapping[int, Data]] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    contents: dict[tuple[int, int], Content] = field(default_factory=dict)
    forced: tuple[int, ...] = (0, 0, 0)
    clock: int = 0
    buckets: int = 2
    freezes: bool = False
    # How long after its end a bucket is closed.
    closes: int | None = None

    def evolve(self, **changes: Any) -> World:
        # dataclasses.replace does the same, several times slower; this is the checker's inner loop.
        other = World.__new__(World)
        for name in World.__slots__:
            setattr(other, name, changes[name] if name in changes else getattr(self, name))
        return other

    def spend(self, what: str) -> dict[str, int]:
        return self.budget | {what: self.budget[what] - 1}

    def with_actor(self, index: int, actor: Actor, **changes: Any) -> World:
        return self.evolve(actors=(*self.actors[:index], actor, *self.actors[index + 1 :]), **changes)

    def view(self, definition: str) -> Declaration:
        return Declaration(VIEW, definition, "1d", 0)

    def all_buckets(self) -> list[int]:
        return [day * DAY for day in range(self.buckets)]

    def current(
        self, base: Base, definition: str, bucket: int, memory: Memory | None = None
    ) -> CurrentInputs:
        memory = memory or self.memory
        recorded = memory.segments.get(bucket) if self.freezes and bucket in memory.rows else None
        return _sight(base, definition, bucket, recorded)

    def current_inputs(
        self, base: Base, definition: str, memory: Memory | None = None
    ) -> dict[int, CurrentInputs]:
        return {bucket: self.current(base, definition, bucket, memory) for bucket in self.all_buckets()}

    def look(self, base: Base, definition: str, snapshot: Snapshot, memory: Memory | None = None) -> Look:
        marks = marks_of(snapshot.rows, snapshot.header, self.current_inputs(base, definition, memory))
        return self.looked(base, snapshot.header.version, marks)

    def looked(self, base: Base, version: int, marks: Mapping[int, Mark], *, closes: bool = True) -> Look:
        """A look that is written now."""
        end = base.source_end()
        closed = rules.closed(_DAYS, end, self.closes, self.clock) if closes else None
        return Look(str(base.writes), version, self.clock, end, marks, closed=closed)

    def idle(self, base: Base, *, closes: bool = True) -> bool:
        """Whether a look may end early, by the table's version, the map's and the clock."""
        snapshot = self.memory.snapshot()
        due = rules.closes_now(snapshot.header, self.closes if closes else None, self.clock)
        version = snapshot.header.version
        return rules.idle(snapshot.look, str(base.writes), version, self.clock) and not due

    def key(self) -> Hashable:
        """The state without what can't matter: versions count only by their order."""
        held = {(row.bucket, row.content) for row in self.memory.rows.values()}
        return (
            self.base,
            tuple(_actor_key(actor, self.memory) for actor in self.actors),
            tuple(self.budget.items()),
            tuple(sorted((name, tuple(data.items())) for name, data in self.disk.items())),
            self.broken,
            self.forced,
            self.clock,
            self.memory.key(),
            tuple(sorted((at[0], content) for at, content in self.contents.items() if at in held)),
        )

    def mendable(self) -> int:
        """What mending depends on: the base and the map, not who is in the middle of what."""
        return hash((self.base, self.clock, self.memory.key()))


def _actor_key(actor: Actor, memory: Memory) -> Hashable:
    """Versions that an actor holds are only ever compared with those in the map."""
    if isinstance(actor, Looker):
        return (actor.looks, actor.closes, actor.at, actor.listed, memory.place(actor.version), actor.marks)
    if not isinstance(actor, Writer):
        return actor
    attempt = actor.attempt
    return (
        actor.definition,
        actor.runs,
        actor.at,
        actor.listed,
        actor.again,
        attempt and (attempt.generation, memory.place(attempt.version), _inputs(attempt)),
        actor.unread,
        actor.data,
        tuple((bucket, memory.place(token or 0)) for bucket, token in actor.noted),
        actor.forced,
    )


def _inputs(attempt: Attempt) -> Hashable:
    return tuple((planned.bucket, planned.inputs) for planned in attempt.work)


@lru_cache(maxsize=100_000)
def _sight(base: Base, definition: str, bucket: int, recorded: tuple[Any, ...] | None) -> CurrentInputs:
    declaration = Declaration(VIEW, definition, "1d", 0)
    return see(
        dict(base.files),
        declaration,
        bucket,
        dimensions={"dimension": Fingerprint(1, base.dimension)},
        recorded=recorded,
        waiting_for="upstream" if bucket in base.waiting else None,
    )


class Once(Retry):
    """No retries: the checker takes every try as a step of its own."""

    def run(self, profile: Profile, view: str | None, operation: str, attempt: Any) -> Any:  # noqa: ARG002
        return attempt()


_ONCE = Once()


class Engine:
    """The production code on one state of the world; `memory` is what it left."""

    def __init__(self, world: World) -> None:
        clock = world.clock
        self._store = MemoryStore(world.memory, lambda: clock)
        self.manager = PartitionManager(self._store, clock=lambda: clock, retry=_ONCE)
        self.registry = Registry(self._store, lifetime_ms=LIFETIME, retry=_ONCE)
        self.leases = Leases(self._store, ttl_ms=LIFETIME, retry=_ONCE)

    @property
    def memory(self) -> Memory:
        return self._store.memory

"""One state of the checker's world: tables, partition map, generations on disk, and who is doing what."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mv_assets.observe import consistency, remembered
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.observe.observation import Limits, cutoff
from mv_assets.observe.remembered import Remembered
from mv_assets.observe.second_look import SecondLooks
from mv_assets.state import rules
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import (
    Attempt,
    CurrentInputs,
    Declaration,
    Look,
    SecondLook,
    Segment,
    Staged,
)
from mv_assets.state.publications import Publications
from mv_assets.state.registry import Registry
from mv_assets.state.store.retry import Profile, Retry
from mv_assets.tables.listing import ALWAYS, Listing, Pending, Rewrite
from mv_assets.views.view import Window
from mv_assets_tests.proof.simulation.memory import Memory, MemoryStore
from mv_assets_tests.support.memory_table import BASE, DAY, File, Rows, compacted, of_table
from mv_assets_tests.support.memory_view import ListedTable, listed, memory_view

VIEW = "v"
DIMENSION = "dimension"
LIFETIME = 1_000
NOW = 100 * DAY

T = TypeVar("T")

# What an attempt read of one bucket: names and contents.
Data = tuple[tuple[str, int], ...]


def named(table: str | None, name: str) -> str:
    """How the checker calls a file: one of a further table with that table's name."""
    return name if table in (None, BASE) else f"{table}/{name}"


@dataclass(frozen=True, slots=True)
class Base:
    """The tables and all else that a look sees; `writes` counts the changes of all of them."""

    files: tuple[tuple[str, File], ...] = ()
    removed: tuple[tuple[str, File], ...] = ()
    writes: int = 0
    dimension: int = 0
    waiting: frozenset[int] = frozenset()
    # What the tables tell of: the table, and files that it replaced by others with the same rows.
    rewrites: tuple[tuple[str, Rewrite], ...] = ()
    # What files hold that were made of others.
    contents: tuple[tuple[tuple[str, int], Rows], ...] = ()

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

    def compacted(self, *names: str) -> Base:
        """Files of one table are put into one, which says so; the old ones may be restored."""
        files = dict(self.files)
        held = {name: files[name] for name in names}
        made = compacted(held, f"c{len(self.contents)}", self.writes + 1, dict(self.contents))
        after = self
        for name in names:
            after = after.without(name)
        return replace(
            after.put(made.name, made.file),
            rewrites=(*self.rewrites, (made.name.rpartition("/")[0] or BASE, made.told)),
            contents=(*self.contents, ((made.name, made.file.crc), made.rows)),
            writes=self.writes + 1,
        )

    def of(self, table: str) -> dict[str, File]:
        """The files of one table, by the names that they have there."""
        return of_table(dict(self.files), table)

    def joined(self) -> dict[str, File]:
        """The dimension's files: it changes by one that comes or goes."""
        return {f"d{number}": File(1, *ALWAYS, number) for number in range(self.dimension + 1)}


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
    look: Look | None = None
    # What its last look found out, and what the one under way did.
    last: Remembered | None = None
    found: Remembered | None = None


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


# A snapshot of the published table: the map's version, and by bucket which commit in which generation.
Named = tuple[tuple[int, int, str], ...]
Shown = tuple[int, Named]


@dataclass(frozen=True, slots=True)
class Publisher:
    times: int
    at: str = "idle"
    lease: str = ""
    wanted: Shown | None = None
    # What the table showed last when it was asked.
    seen: Shown | None = None


Actor = Writer | Looker | Collector | Reader | Publisher


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
    clock: int = NOW
    buckets: int = 2
    windows: tuple[Window, ...] = (Window(BASE),)
    freezes: bool = False
    # How long after its end a bucket is closed.
    closes: int | None = None
    # The file that may come late.
    late: tuple[str, int, int] = ("late", 0, DAY - 1)
    # The snapshots of the published table that can be read, the newest last.
    target: tuple[Shown, ...] = ()
    # What the map named at the versions that publishers read, told without them.
    named: Mapping[int, Named] = field(default_factory=dict)
    # What production code said of the same before, in any state of this search.
    memo: dict[Hashable, Any] = field(default_factory=dict)

    def evolve(self, **changes: Any) -> World:
        # dataclasses.replace does the same, several times slower; this is the checker's inner loop.
        other = World.__new__(World)
        for name in World.__slots__:
            setattr(other, name, changes[name] if name in changes else getattr(self, name))
        return other

    @property
    def only_compacted(self) -> bool:
        """Whether nothing can happen to the tables but that their files are rewritten."""
        return "compact" in self.budget and self.budget.keys() <= {"compact", "crash", "lost", "expire"}

    def spend(self, what: str) -> dict[str, int]:
        return self.budget | {what: self.budget[what] - 1}

    def with_actor(self, index: int, actor: Actor, **changes: Any) -> World:
        return self.evolve(actors=(*self.actors[:index], actor, *self.actors[index + 1 :]), **changes)

    def view(self, definition: str) -> Declaration:
        return Declaration(VIEW, definition, "1d", 0)

    def all_buckets(self) -> list[int]:
        return [day * DAY for day in range(self.buckets)]

    def inputs(self, base: Base, definition: str, *, closes: bool = True) -> ViewInputs:
        """What is listed, as production code sees it."""

        def make() -> ViewInputs:
            view = memory_view(
                self.view(definition),
                self.windows,
                closes=self.closes if closes else None,
                freezes=self.freezes,
            )
            listings = [self._listing(base, window.table) for window in self.windows]
            return ViewInputs(view, listings, {DIMENSION: self._listing(base, DIMENSION)})

        return self.once((ViewInputs, base, definition, closes), make)

    def seen(self, base: Base, definition: str, *, closes: bool = True) -> Mapping[int, BucketInputs]:
        def make() -> Mapping[int, BucketInputs]:
            inputs = self.inputs(base, definition, closes=closes)
            return {each.bucket: each for each in inputs.over(0, self.buckets * DAY)}

        return self.once((BucketInputs, base, definition, closes), make)

    def current_inputs(self, base: Base, definition: str) -> dict[int, CurrentInputs]:
        inputs, seen = self.inputs(base, definition), self.seen(base, definition)
        if self.freezes:
            recorded = {bucket: self.memory.segments.get(bucket, ()) for bucket in self.memory.rows}
            seen = inputs.with_recorded(seen, recorded)
        return {bucket: each.current for bucket, each in seen.items()}

    def segments(self, base: Base, definition: str, bucket: int) -> tuple[Segment, ...]:
        """What a bucket is computed from."""

        def make() -> tuple[Segment, ...]:
            return tuple(self.inputs(base, definition).segments(self.seen(base, definition)[bucket]))

        return self.once((Segment, base, definition, bucket), make)

    def staged(self, base: Base, definition: str, buckets: Iterable[int]) -> dict[int, Staged]:
        return {bucket: Staged(1, 1, 1, self.segments(base, definition, bucket)) for bucket in buckets}

    def due(self, base: Base, definition: str) -> dict[int, rules.Due]:
        snapshot, view_inputs = self.memory.snapshot(), self.inputs(base, definition)
        limits, cap = Limits(buffer=view_inputs.view.buffer), view_inputs.ending(self.clock).cap
        latest = cutoff(limits, cap, self.clock)
        return {
            bucket: rules.due(snapshot.rows.get(bucket), snapshot.header, bucket, current, latest or 0)
            for bucket, current in self.current_inputs(base, definition).items()
        }

    def look(
        self, base: Base, definition: str, *, closes: bool = True, last: Remembered | None = None
    ) -> tuple[Look, Remembered]:
        """What production code finds, and what it remembers; by what the `last` look found out, if given."""
        snapshot, inputs = self.memory.snapshot(), self.inputs(base, definition, closes=closes)
        as_of, seen = snapshot.header.version, self.seen(base, definition, closes=closes)
        compared = None if last is None else remembered.to_compare(last, snapshot, inputs, self.buckets * DAY)
        if compared is not None:
            seen = {bucket: seen[bucket] for bucket in sorted(compared)}
        found = consistency.differing(
            snapshot, seen.values(), as_of, freezes=self.freezes, rewritten=inputs.rewritten
        )
        wanted = consistency.needs_recorded(snapshot, found)
        recorded = {bucket: self.memory.segments.get(bucket, ()) for bucket in wanted}
        among = None if compared is None else seen.keys()
        look = consistency.look(snapshot, as_of, inputs, found, recorded, self.clock, among=among)
        still_open = remembered.still_open(snapshot, seen.values())
        return look, Remembered(inputs.trace, snapshot, still_open, self.clock)

    def second_look(self, listed: Base, again: Base, definition: str, attempt: Attempt) -> SecondLook:
        """What production code sees `again` of work on what was listed before."""
        tables = [*(window.table for window in self.windows), DIMENSION]
        now = {name: ListedTable(self._listing(again, name)) for name in tables}
        clock, seen = self.clock, self.seen(listed, definition)
        store = MemoryStore(self.memory, lambda: clock)
        looks = SecondLooks(self.inputs(listed, definition), now, store, lambda: clock)
        return looks.look({bucket: seen[bucket] for bucket in attempt.buckets})

    def idle(self, base: Base, definition: str, *, closes: bool = True) -> bool:
        """Whether a look may end early, by the tables' versions, the map's and the clock."""
        snapshot, inputs = self.memory.snapshot(), self.inputs(base, definition, closes=closes)
        due = rules.closes_now(snapshot.header, inputs.view.closes, self.clock)
        return rules.idle(snapshot.look, inputs.version, snapshot.header.version, self.clock) and not due

    def _listing(self, base: Base, table: str) -> Listing:
        """A table that did not change is listed as the same object, as `relisted` has it."""
        files = base.joined() if table == DIMENSION else base.of(table)
        waiting = sorted(base.waiting) if table == BASE else []
        pending = tuple(Pending(bucket, bucket + DAY, "upstream") for bucket in waiting)
        told = tuple(rewrite for of, rewrite in base.rewrites if of == table)
        state = (table, tuple(files.items()), pending, told)
        return self.once(state, lambda: listed(table, files, str(hash(state)), NOW, pending, told))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self.memo:
            self.memo[key] = make()
        found: T = self.memo[key]
        return found

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
            tuple(_shown_key(shown, self.memory) for shown in self.target),
            tuple(sorted((at[0], content) for at, content in self.contents.items() if at in held)),
        )

    def mendable(self) -> int:
        """What mending depends on: the base and the map, not who is in the middle of what."""
        return hash((self.base, self.clock, self.memory.key()))


def _actor_key(actor: Actor, memory: Memory) -> Hashable:
    """Versions that an actor holds are only ever compared with those in the map."""
    if isinstance(actor, Looker):
        return (
            actor.looks,
            actor.closes,
            actor.at,
            actor.listed,
            actor.look and _look_key(actor.look, memory),
            _remembered_key(actor.last, memory),
            _remembered_key(actor.found, memory),
        )
    if isinstance(actor, Publisher):
        held = (_shown_key(actor.wanted, memory), _shown_key(actor.seen, memory))
        return (actor.times, actor.at, actor.lease, *held)
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


def _remembered_key(last: Remembered | None, memory: Memory) -> Hashable:
    """What decides which buckets the next look compares."""
    if last is None:
        return None
    moved = (bucket for bucket, row in memory.rows.items() if last.snapshot.rows.get(bucket) is not row)
    gone = last.snapshot.rows.keys() - memory.rows.keys()
    header = last.snapshot.header
    return id(last.trace), last.open, tuple(moved), frozenset(gone), header.definition, header.start


def _shown_key(shown: Shown | None, memory: Memory) -> Hashable:
    if shown is None:
        return None
    version, rows = shown
    return memory.place(version), tuple((bucket, name) for bucket, _, name in rows)


def _inputs(attempt: Attempt) -> Hashable:
    return tuple((planned.bucket, planned.inputs) for planned in attempt.work)


def _look_key(look: Look, memory: Memory) -> Hashable:
    return (
        look.source_end,
        look.closed,
        memory.place(look.map_version),
        tuple(look.marks.items()),
        tuple(look.follows.items()),
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
        self.publications = Publications(self._store, retry=_ONCE)

    @property
    def memory(self) -> Memory:
        return self._store.memory

"""The partition map in memory, for the checker: the SQL store's calls, cheap to copy and to compare.

`test_histories.py` drives it in lockstep with SQLite and PostgreSQL: call by call they answer alike.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from mv_assets.buckets import Buckets
from mv_assets.state.errors import CommitConflict
from mv_assets.state.model import (
    AttemptRecord,
    DataFile,
    Event,
    Generation,
    GenerationState,
    Header,
    Lease,
    LookRecord,
    PartitionRow,
    Publication,
    Segment,
    Snapshot,
    Trouble,
)
from mv_assets.state.store import Store
from mv_assets.state.store.map_reader import MapReader
from mv_assets.state.store.map_writer import MapWriter
from mv_assets.state.store.retry import Retry


@dataclass(slots=True)
class Memory:
    """All that the SQL tables hold of one view, but for the event log."""

    header: Header | None = None
    history: dict[str, str] = field(default_factory=dict)
    rows: dict[int, PartitionRow] = field(default_factory=dict)
    segments: dict[int, tuple[Segment, ...]] = field(default_factory=dict)
    attempts: dict[int, AttemptRecord] = field(default_factory=dict)
    look: LookRecord | None = None
    generations: dict[str, Generation] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    publications: dict[str, Publication] = field(default_factory=dict)
    _versions: list[int] | None = None
    _key: int | None = None

    def copy(self) -> Memory:
        return Memory(
            self.header,
            self.history.copy(),
            self.rows.copy(),
            self.segments.copy(),
            self.attempts.copy(),
            self.look,
            self.generations.copy(),
            self.leases.copy(),
            self.publications.copy(),
        )

    def versions(self) -> list[int]:
        """All versions that are mentioned anywhere. A memory never changes once a state holds it."""
        if self._versions is None:
            found = {0}
            if self.header is not None:
                found |= {self.header.version, self.header.reset_at}
            for row in self.rows.values():
                found |= {row.token, row.content or 0, row.forced_at}
            found |= {generation.dead_since or 0 for generation in self.generations.values()}
            found |= {lease.version for lease in self.leases.values()}
            for published in self.publications.values():
                found |= {published.oldest, published.version or 0}
            if self.look is not None:
                found.add(self.look.map_version)
            self._versions = sorted(found)
        return self._versions

    def place(self, version: int) -> int:
        """Where a version stands among those of the map: at one of them, or between two."""
        versions = self.versions()
        at = bisect_left(versions, version)
        return 2 * at + (at < len(versions) and versions[at] == version)

    def key(self) -> int:
        """Equal for memories that differ only in how many writes it took to get there."""
        if self._key is None:
            self._key = hash(self._ranked({v: at for at, v in enumerate(self.versions())}))
        return self._key

    def _ranked(self, rank: Mapping[int, int]) -> Hashable:
        """Everything, with each version replaced by its rank: only their order matters."""
        header, look = self.header, self.look
        return (
            header
            and (
                rank[header.version],
                header.watermark,
                header.start,
                header.definition,
                header.source_end,
                header.closed,
                rank[header.reset_at],
            ),
            tuple(sorted(self.history)),
            tuple(
                (
                    bucket,
                    row.state,
                    rank[row.token],
                    row.inputs,
                    row.generation,
                    rank[row.content or 0],
                    row.forced,
                    rank[row.forced_at],
                    row.frozen,
                    self.segments.get(bucket),
                )
                for bucket, row in sorted(self.rows.items())
            ),
            tuple(
                sorted((b, r.count, r.generation or "", r.last_error or "") for b, r in self.attempts.items())
            ),
            look and (look.table_version, rank[look.map_version]),
            tuple(
                (name, generation.state, generation.heartbeat_at, rank[generation.dead_since or 0])
                for name, generation in sorted(self.generations.items())
            ),
            tuple(
                sorted((lease.id, rank[lease.version], lease.expires_at) for lease in self.leases.values())
            ),
            tuple(
                (target, rank[published.oldest], rank[published.version or 0])
                for target, published in sorted(self.publications.items())
            ),
        )

    def snapshot(self) -> Snapshot:
        assert self.header is not None
        return Snapshot(self.header, self.rows, self.attempts, self.look)


class MemoryStore(Store):
    """A store of one view. A transaction that raises leaves `memory` as it was."""

    def __init__(self, memory: Memory, now: Callable[[], int]) -> None:
        self.memory = memory
        self._now = now
        self.retry = Retry()

    @contextmanager
    def read(self, view: str) -> Iterator[MapReader]:
        yield MemoryMap(self.memory, view, self._time)

    @contextmanager
    def write(self, view: str, *, lock: bool = True) -> Iterator[MapWriter]:  # noqa: ARG002 - one at a time anyway
        memory = self.memory.copy()
        yield MemoryMap(memory, view, self._time)
        self.memory = memory

    @contextmanager
    def write_all(self, views: Iterable[str], *, lock: bool = True) -> Iterator[list[MapWriter]]:
        [view] = views
        with self.write(view, lock=lock) as writer:
            yield [writer]

    def _time(self) -> int:
        assert self._now is not None
        return self._now()


class MemoryMap(MapWriter):
    def __init__(self, memory: Memory, view: str, now: Callable[[], int]) -> None:
        self.memory = memory
        self.view = view
        self.now = now

    def header(self) -> Header | None:
        return self.memory.header

    def history(self) -> dict[str, str]:
        return self.memory.history

    def rows(self, buckets: Iterable[int]) -> dict[int, PartitionRow]:
        return {b: self.memory.rows[b] for b in buckets if b in self.memory.rows}

    def rows_between(self, start: int | None = None, end: int | None = None) -> Iterator[PartitionRow]:
        for bucket in sorted(self.memory.rows):
            if (start is None or bucket >= start) and (end is None or bucket < end):
                yield self.memory.rows[bucket]

    def run_from(self, bucket: int, length: int = 16) -> Iterator[PartitionRow]:  # noqa: ARG002 - no pages here
        return self.rows_between(bucket)

    def recorded(self, buckets: Iterable[int]) -> dict[int, tuple[Segment, ...]]:
        return {b: self.memory.segments.get(b, ()) for b in buckets if b in self.memory.rows}

    def attempts(self, buckets: Iterable[int] | None = None) -> dict[int, AttemptRecord]:
        records = self.memory.attempts
        return dict(records) if buckets is None else {b: records[b] for b in buckets if b in records}

    def look(self) -> LookRecord | None:
        return self.memory.look

    def troubles(self) -> tuple[Trouble, ...]:
        """They are beside the map, and nothing is decided on them."""
        return ()

    def generation(self, name: str) -> Generation | None:
        return self.memory.generations.get(name)

    def generations(self, *states: GenerationState) -> list[Generation]:
        found = sorted(self.memory.generations.items())
        return [generation for _, generation in found if not states or generation.state in states]

    def claim(
        self,
        buckets: Buckets,  # noqa: ARG002 - nothing is gained by a run here
        wanted: Sequence[int],
        generation: str,
    ) -> tuple[Header, dict[int, PartitionRow], GenerationState | None]:
        found = self.generation(generation)
        return self.known_header(), self.rows(wanted), None if found is None else found.state

    def _named(self, generation: str) -> bool:
        return any(row.generation == generation for row in self.memory.rows.values())

    def leases(self) -> list[Lease]:
        return list(self.memory.leases.values())

    def publications(self) -> list[Publication]:
        return [found for _, found in sorted(self.memory.publications.items())]

    def put_publication(self, publication: Publication) -> None:
        self.memory.publications[publication.target] = publication

    def end_publication(self, target: str) -> None:
        self.memory.publications.pop(target, None)

    def put_header(self, before: Header | None, after: Header) -> None:
        if self.memory.header != before:
            raise CommitConflict("the header moved")
        self.memory.header = after

    def put_definition(self, definition: str, width: str, since: int) -> None:  # noqa: ARG002 - for the log
        if definition in self.memory.history:
            raise CommitConflict("the definition is there already")
        self.memory.history[definition] = width

    def put_rows(
        self,
        before: Mapping[int, PartitionRow | None],
        after: Iterable[PartitionRow],
        segments: Mapping[int, tuple[Segment, ...]] | None = None,
    ) -> None:
        for row in after:
            found, expected = self.memory.rows.get(row.bucket), before.get(row.bucket)
            if (found and found.token) != (expected and expected.token):
                raise CommitConflict("a row moved")
            self.memory.rows[row.bucket] = row
            if segments is not None:
                self.memory.segments[row.bucket] = segments[row.bucket]

    def delete_rows(self) -> None:
        self.memory.rows.clear()
        self.memory.segments.clear()
        self.memory.attempts.clear()

    def put_events(self, events: Iterable[Event]) -> None:
        list(events)

    def count(self, counted: Mapping[str, int]) -> None:
        """Counters are beside the map, and nothing is decided on them."""

    def put_attempts(self, before: Mapping[int, AttemptRecord], after: Mapping[int, AttemptRecord]) -> None:  # noqa: ARG002
        self.memory.attempts.update(after)

    def end_attempts(self, buckets: Iterable[int], only_of: str | None = None) -> None:
        for bucket in list(buckets):
            record = self.memory.attempts.get(bucket)
            if record is not None and only_of in (None, record.generation):
                del self.memory.attempts[bucket]

    def put_look(self, look: LookRecord | None) -> None:
        self.memory.look = look

    def add_generation(self, generation: Generation) -> None:
        if generation.id in self.memory.generations:
            raise CommitConflict("the generation is there already")
        self.memory.generations[generation.id] = generation

    def put_generation(self, generation: Generation) -> None:
        if generation.id not in self.memory.generations:
            raise CommitConflict("the generation is gone")
        self.memory.generations[generation.id] = generation

    def forget_generation(self, name: str) -> None:
        self.memory.generations.pop(name, None)

    def mark_live(self, name: str, files: Iterable[DataFile], left: Sequence[str], version: int) -> None:
        found = self.memory.generations.get(name)
        if found is None or found.state is GenerationState.DOOMED:
            raise CommitConflict("the generation was doomed")
        alive = replace(found, state=GenerationState.LIVE, dead_since=None, files=tuple(files))
        self.memory.generations[name] = alive
        self.mark_dead(left, version)

    def mark_dead(self, left: Sequence[str], version: int) -> None:
        for name in left:
            found = self.memory.generations.get(name)
            if found is not None and found.state is GenerationState.LIVE and not self._named(name):
                self.memory.generations[name] = replace(found, state=GenerationState.DEAD, dead_since=version)

    def leave_behind(self, name: str) -> None:
        found = self.memory.generations.get(name)
        if found is not None and found.state is GenerationState.STAGED:
            self.memory.generations[name] = replace(found, state=GenerationState.DEAD, dead_since=0)

    def doom(self, silent_since: int, oldest_reader: int) -> None:
        for name, found in list(self.memory.generations.items()):
            over = found.state in (GenerationState.STAGED, GenerationState.DEAD) and not self._named(name)
            if over and found.heartbeat_at <= silent_since and (found.dead_since or 0) <= oldest_reader:
                self.memory.generations[name] = replace(found, state=GenerationState.DOOMED)

    def put_lease(self, lease: Lease) -> None:
        held = self.memory.leases.get(lease.id)
        self.memory.leases[lease.id] = lease if held is None else replace(held, expires_at=lease.expires_at)

    def renew_lease(self, lease: Lease, now: int) -> bool:
        held = self.memory.leases.get(lease.id)
        if held is None or held.expires_at <= now:
            return False
        self.memory.leases[lease.id] = replace(held, expires_at=lease.expires_at)
        return True

    def end_leases(self, now: int) -> None:
        self.memory.leases = {
            name: held for name, held in self.memory.leases.items() if held.expires_at > now
        }

    def release_lease(self, name: str) -> None:
        self.memory.leases.pop(name, None)

"""The map's one write: rows, log, dead generations, watermark and version, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mv_assets.errors import Collected, Fenced
from mv_assets.state import rules
from mv_assets.state.map_writer import MapWriter
from mv_assets.state.model import (
    DataFile,
    Declaration,
    Event,
    Generation,
    GenerationState,
    Header,
    Operation,
    PartitionRow,
    Segment,
    State,
)


@dataclass(frozen=True, slots=True)
class Log:
    """Makes the lines of the event log for one writer."""

    clock: Callable[[], int]
    who: str

    def of_view(self, operation: Operation, version: int, why: str | None) -> Event:
        return Event(operation, None, None, None, version, self.clock(), self.who, why)

    def of_row(
        self, before: PartitionRow | None, after: PartitionRow, operation: Operation | None, why: str | None
    ) -> Event:
        prior = State.VACANT if before is None else before.state
        named = operation or _operation(before, after)
        reason = why or after.reason
        return Event(named, after.bucket, prior, after.state, after.token, self.clock(), self.who, reason)


@dataclass(frozen=True, slots=True)
class NamedGeneration:
    """A generation that rows name from a write on, and the files it consists of."""

    name: str
    files: tuple[DataFile, ...]


def own(header: Header, view: Declaration) -> Header:
    """The view's header, if the caller's definition is the one in force.

    Raises:
        Fenced: another definition is.

    """
    if header.definition != view.definition:
        raise Fenced(view.view, view.definition, header.definition)
    return header


def write_rows(
    tx: MapWriter,
    log: Log,
    before: Header,
    after: Header,
    rows: Mapping[int, PartitionRow],
    changed: Iterable[PartitionRow],
    operation: Operation | None = None,
    why: Mapping[int, str] | None = None,
    segments: Mapping[int, tuple[Segment, ...]] | None = None,
    named: NamedGeneration | None = None,
    read: Iterable[int] = (),
) -> Header:
    """Write `changed` over `rows` and the header one version on; returns that header.

    `named` is the generation that changed rows name from now on. `read` are the buckets that `rows` was
    read for.

    Nothing here depends on the size of the map: W is derived only if the write can have moved it, and
    then by reading upwards from where it stands.
    """
    changed, why = list(changed), why or {}
    tx.put_rows(rows, changed, segments)
    names = {row.bucket: row.generation for row in changed}
    left = {row.generation for b, row in rows.items() if b in names and row.generation != names[b]}
    left_names = sorted(name for name in left if name is not None)
    if named is None:
        tx.mark_dead(left_names, before.version + 1)
    else:
        tx.mark_live(named.name, named.files, left_names, before.version + 1)
    tx.put_events(log.of_row(rows.get(row.bucket), row, operation, why.get(row.bucket)) for row in changed)
    if after != before or before.watermark in names:
        known = {bucket: rows.get(bucket) for bucket in read} | {row.bucket: row for row in changed}
        after = rules.climb(after, _from(tx, after, known))
    after = rules.next_version(after)
    tx.put_header(before, after)
    return after


def _from(tx: MapWriter, header: Header, known: Mapping[int, PartitionRow | None]) -> Iterator[PartitionRow]:
    """Rows from W upwards: those at hand first, so that most appends need not read again."""
    bucket = header.watermark
    while bucket in known:
        row = known[bucket]
        if row is None:
            return
        yield row
        bucket = header.buckets.next(bucket)
    yield from tx.run_from(bucket)


def claim(
    tx: MapWriter, view: Declaration, buckets: Sequence[int], generation: str
) -> tuple[Header, dict[int, PartitionRow], GenerationState | None]:
    """The header, if it is the caller's, rows and a generation's state; a plan's runs in one round trip."""
    following = [view.buckets.next(bucket) for bucket in buckets[:-1]]
    if following == list(buckets[1:]):
        header, rows, state = tx.claim(buckets[0], buckets[-1], generation)
    else:
        header, rows = tx.known_header(), tx.rows(buckets)
        named = tx.generation(generation)
        state = None if named is None else named.state
    return own(header, view), rows, state


def uncollected(tx: MapWriter, name: str) -> Generation:
    """A generation that gc has left alone.

    Raises:
        Collected: it has not.

    """
    found = tx.generation(name)
    if found is None or found.state is GenerationState.DOOMED:
        raise Collected(tx.view, name)
    return found


def beat(tx: MapWriter, name: str) -> None:
    """The attempt that makes the generation is still running; Collected if that is in vain."""
    tx.put_generation(replace(uncollected(tx, name), heartbeat_at=tx.now()))


def _operation(before: PartitionRow | None, after: PartitionRow) -> Operation:
    """The name that follows from what changed: a data commit, a mark, a freeze or its end."""
    if after.content == after.token and after.operation is not None:
        return after.operation
    if after.forced_at == after.token:
        return Operation.FORCE
    if before is None or before.state is not after.state:
        return Operation.MARK
    return Operation.FREEZE if after.frozen else Operation.THAW


def changes(decided: Mapping[int, PartitionRow | None]) -> dict[int, PartitionRow]:
    """The rows that a rule changed, of all that it decided on."""
    return {bucket: row for bucket, row in decided.items() if row is not None}

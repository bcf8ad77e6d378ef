"""One write of a view's map: the value that says all it changes, and the one function that writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from mv_assets.state import rules
from mv_assets.state.model import (
    Attempt,
    AttemptRecord,
    DataFile,
    Event,
    Generation,
    Header,
    LookRecord,
    Operation,
    PartitionRow,
    Segment,
    State,
)
from mv_assets.state.store.map_writer import MapWriter

# Counters of a view besides those of the log's operations: complete looks, and what was computed in all.
LOOKS, ROWS, BYTES, MILLISECONDS = "looks", "rows", "bytes", "ms"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log about the view as a whole."""

    operation: Operation
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """All that one write changes of a view's map, as it was decided on what its transaction found.

    A change of rows or header is one version step, and is logged. Attempts, generations and the look stand
    beside these: a change of them alone takes no version, and an empty change writes nothing.
    """

    # None if nobody declared the view before.
    before: Header | None
    # As the rules leave it: how far W climbs, and the version, follow from the write.
    after: Header
    _: KW_ONLY

    # Rows as they were read, None where there was none; and those to be written.
    found: Mapping[int, PartitionRow | None] = field(default_factory=dict)
    rows: Mapping[int, PartitionRow] = field(default_factory=dict)
    # What the data of rows was computed from, where that is written too.
    segments: Mapping[int, tuple[Segment, ...]] = field(default_factory=dict)
    # All rows and attempts go, and with them every generation.
    drops_rows: bool = False
    # The definition of `after` is one that the view never had.
    adds_definition: bool = False

    # What the log calls the change of a row, if not by what changed of it, and why, if not by its reason.
    operation: Operation | None = None
    why: Mapping[int, str] = field(default_factory=dict)
    line: Line | None = None

    # The generation that `rows` name from now on, with its files; if none of them does, it is left behind.
    generation: str | None = None
    files: tuple[DataFile, ...] = ()
    # One that begins, and one that is found to have begun: it is alive.
    registered: Generation | None = None
    alive: str | None = None

    # Records of attempts as they were read, and from now on: None where a bucket is to have none.
    attempts_found: Mapping[int, AttemptRecord] = field(default_factory=dict)
    attempts: Mapping[int, AttemptRecord | None] = field(default_factory=dict)
    # Ends with this write: of its other buckets go the records that are still its own.
    ended: Attempt | None = None

    # The look to remember, or that there is none any more.
    look: LookRecord | None = None
    forgets_look: bool = False

    @property
    def steps(self) -> bool:
        """Whether the map has another version after this write."""
        return self.after != self.before or bool(self.rows)

    @property
    def version(self) -> int:
        """The version that the map has after this write."""
        return self.after.version if self.before is None else self.before.version + self.steps

    @property
    def names_generation(self) -> bool:
        return any(row.generation == self.generation for row in self.rows.values())


def write(tx: MapWriter, change: Change, now: int, who: str) -> Change:
    """Write the change in the caller's transaction; returns it with the header as that was written.

    Nothing here depends on the size of the map: W is derived only if the write can have moved it, and
    then by reading upwards from where it stands.
    """
    if change.before is None:
        # Nobody can have locked a header that is not there: two first writers meet at this row.
        tx.put_header(None, change.after)
    _write_beside(tx, change)
    if not change.steps:
        tx.count(_counted(change, ()))
        return change
    if change.adds_definition:
        tx.put_definition(change.after.definition, change.after.width, change.version)
    if change.drops_rows:
        tx.delete_rows()
        tx.mark_all_dead(change.version)
    rows = change.rows.items()
    tx.put_rows(change.found, [row for bucket, row in rows if bucket not in change.segments])
    tx.put_rows(change.found, [row for bucket, row in rows if bucket in change.segments], change.segments)
    _turn_over(tx, change)
    lines = list(_lines(change, now, who))
    tx.put_events(lines)
    tx.count(_counted(change, lines))
    if change.before is None:
        return change
    return replace(change, after=_put_header(tx, change.before, change))


def _write_beside(tx: MapWriter, change: Change) -> None:
    """What takes no version."""
    if change.registered is not None:
        tx.add_generation(change.registered)
    if change.alive is not None:
        tx.beat(change.alive)
    if change.generation is not None and not change.names_generation:
        tx.leave_behind(change.generation)
    kept = {bucket: record for bucket, record in change.attempts.items() if record is not None}
    tx.put_attempts(change.attempts_found, kept)
    tx.end_attempts([bucket for bucket in change.attempts if bucket not in kept])
    if change.ended is not None:
        others = [bucket for bucket in change.ended.buckets if bucket not in change.attempts]
        tx.end_attempts(others, only_of=change.ended.generation)
    if change.look is not None or change.forgets_look:
        tx.put_look(change.look)


def _turn_over(tx: MapWriter, change: Change) -> None:
    """The generation that rows name from now on lives; those that their last row has left are dead."""
    found = {bucket: row.generation for bucket, row in change.found.items() if row is not None}
    left = {found.get(bucket) for bucket, row in change.rows.items() if row.generation != found.get(bucket)}
    left_names = sorted(name for name in left if name is not None)
    if change.generation is not None and change.names_generation:
        tx.mark_live(change.generation, change.files, left_names, change.version)
    else:
        tx.mark_dead(left_names, change.version)


def _lines(change: Change, now: int, who: str) -> Iterator[Event]:
    if change.line is not None:
        yield Event(change.line.operation, None, None, None, change.version, now, who, change.line.why)
    for bucket, row in change.rows.items():
        before = change.found.get(bucket)
        operation = change.operation or _operation(before, row)
        prior = State.VACANT if before is None else before.state
        why = change.why.get(bucket) or row.reason
        yield Event(operation, bucket, prior, row.state, change.version, now, who, why)


def _counted(change: Change, lines: Iterable[Event]) -> Counter[str]:
    """What the view's counters are told of a write: its looks, its lines, what was computed."""
    counted = Counter[str](line.operation.value for line in lines)
    counted[LOOKS] = int(change.look is not None)
    for row in change.rows.values():
        if row.content == row.token and row.operation is not None:
            counted[ROWS] += row.rows
            counted[BYTES] += row.bytes
            counted[MILLISECONDS] += row.duration_ms
    return counted


def _operation(before: PartitionRow | None, after: PartitionRow) -> Operation:
    """The name that follows from what changed: a data commit, a mark, a freeze or its end, or only files."""
    if after.content == after.token and after.operation is not None:
        return after.operation
    if after.forced_at == after.token:
        return Operation.FORCE
    if before is None or (before.state, after.state) == (State.VALID, State.STALE):
        return Operation.MARK
    if (before.state, before.frozen) == (after.state, not after.frozen):
        return Operation.FREEZE if after.frozen else Operation.THAW
    return Operation.FOLLOW


def _put_header(tx: MapWriter, before: Header, change: Change) -> Header:
    """One version on, with W where the rows now let it be."""
    after = change.after
    if after != before or before.watermark in change.rows:
        after = rules.climb(after, _upwards(tx, change))
    after = rules.next_version(after)
    tx.put_header(before, after)
    return after


def _upwards(tx: MapWriter, change: Change) -> Iterator[PartitionRow]:
    """Rows from W upwards: those at hand first, so that most appends need not read again."""
    at_hand, bucket = {**change.found, **change.rows}, change.after.watermark
    while bucket in at_hand:
        row = at_hand[bucket]
        if row is None:
            return
        yield row
        bucket = change.after.buckets.next(bucket)
    if not change.drops_rows:
        yield from tx.run_from(bucket)

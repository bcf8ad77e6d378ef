"""What can be asked of one view's map inside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.types import NullType

from mv_assets.state.errors import Collected, UnknownView
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
    State,
    StoredRow,
    StoredRows,
    Trouble,
)
from mv_assets.state.store import codec, schema

# SQLite allows 32,766 variables in a statement; a chunk well below that costs nothing.
CHUNK = 5_000
# Of very many rows, so many at a time: Python looks through all that it holds whenever more have come.
_PART = 256


def at_view(table: Table) -> ColumnElement[bool]:
    return table.c.view == bindparam("at_view")


# Those of commits and idle looks are built once: building a statement costs more than running it.
_partition, _generation = schema.partition, schema.generation
HEADER = select(schema.view).where(at_view(schema.view))
ROW_COLUMNS = [column for column in _partition.c if column.name not in ("view", "segments")]
_ALL_ROWS = select(*ROW_COLUMNS).order_by(_partition.c.bucket)
_ROWS = select(*ROW_COLUMNS).where(
    at_view(_partition), _partition.c.bucket.in_(bindparam("buckets", expanding=True))
)
_RUN = (
    select(*ROW_COLUMNS)
    .where(at_view(_partition), _partition.c.bucket >= bindparam("from_bucket"))
    .order_by(_partition.c.bucket)
    .limit(bindparam("length"))
)
_STORED = (
    select(*(_partition.c[name] for name in StoredRow._fields if name != "current"))
    # As the database gives it: to make a bool of each takes as long as to read them.
    .add_columns(type_coerce(_partition.c.inputs.like(bindparam("of_definition")), NullType).label("current"))
    .where(at_view(_partition))
    .order_by(_partition.c.bucket)
)
# Of times and tokens only a rest: their sums are to fit.
_REST = 1_000_003
_SUMS = select(
    func.count(),
    func.coalesce(func.sum(_partition.c.token), 0),
    func.coalesce(func.sum(_partition.c.refreshed_at % _REST), 0),
    # Which token is whose: other buckets of another past may have had the same ones.
    func.coalesce(func.sum((_partition.c.token % _REST) * (func.abs(_partition.c.bucket) % _REST)), 0),
    # And what it made of that bucket.
    func.coalesce(func.sum(case((_partition.c.state == State.VALID.value, _partition.c.token), else_=0)), 0),
)
_LOOK = select(schema.look).where(at_view(schema.look))
_GENERATION = select(_generation).where(at_view(_generation), _generation.c.id == bindparam("name"))
COLLECTABLE = and_(
    at_view(_generation),
    _generation.c.state.in_([GenerationState.STAGED.value, GenerationState.DEAD.value]),
    _generation.c.heartbeat_at <= bindparam("silent_since"),
    # A reader that started before the last row left may still read it.
    func.coalesce(_generation.c.dead_since, 0) <= bindparam("oldest_reader"),
    ~exists().where(_partition.c.generation == _generation.c.id),
)
_doomed = and_(at_view(_generation), _generation.c.state == GenerationState.DOOMED.value)
_GARBAGE = select(_generation).where(or_(COLLECTABLE, _doomed)).order_by(_generation.c.id)


class Sums(NamedTuple):
    """What some rows add up to: how many, their tokens, times, whose tokens, and those of VALID ones."""

    rows: int = 0
    tokens: int = 0
    times: int = 0
    whose: int = 0
    valid: int = 0

    @classmethod
    def of(cls, told: Iterable[tuple[int, int, int | None, str]]) -> Sums:
        """The sums of rows, by their buckets, tokens, times and states."""
        rows = tokens = times = whose = valid = 0
        for bucket, token, time, state in told:
            rows += 1
            tokens += token
            times += (time or 0) % _REST
            whose += (token % _REST) * (abs(bucket) % _REST)
            valid += token if state == State.VALID else 0
        return cls(rows, tokens, times, whose, valid)

    def with_others(self, gone: Sums, come: Sums) -> Sums:
        return Sums(*(one - less + more for one, less, more in zip(self, gone, come, strict=True)))


class ReadRows(dict[int, PartitionRow]):
    """Rows of a map as they were read, which nobody changes, and what they add up to."""

    def __init__(
        self, rows: Mapping[int, PartitionRow] | Iterable[tuple[int, PartitionRow]], sums: Sums
    ) -> None:
        super().__init__(rows)
        self.sums = sums

    @classmethod
    def of(cls, rows: Iterable[PartitionRow]) -> ReadRows:
        """All these rows, in order."""
        found = {row.bucket: row for row in rows}
        return cls(found, Sums.of(map(_told, found.values())))


class MapReader:
    """What can be asked of one view inside a transaction."""

    def __init__(self, connection: Connection, view: str, now: Callable[[], int]) -> None:
        self._connection = connection
        self.view = view
        self.now = now

    def header(self) -> Header | None:
        return self._header(HEADER)

    def known_header(self) -> Header:
        """The header of a view that must exist.

        Raises:
            UnknownView: nobody declared it.

        """
        header = self.header()
        if header is None:
            raise UnknownView(self.view)
        return header

    def history(self) -> dict[str, str]:
        """All definitions the view ever had, with the bucket width of each."""
        table = schema.definition
        found = self._connection.execute(
            select(table.c.definition, table.c.width).where(table.c.view == self.view)
        )
        return {record.definition: record.width for record in found}

    def rows(self, buckets: Iterable[int]) -> dict[int, PartitionRow]:
        return {
            record["bucket"]: codec.row(record)
            for chunk in chunks(buckets)
            for record in self._all(_ROWS, at_view=self.view, buckets=chunk)
        }

    def rows_between(self, start: int | None = None, end: int | None = None) -> Iterator[PartitionRow]:
        """Rows in order of their buckets."""
        return self._between(_ALL_ROWS, start, end)

    def stored_rows(self, header: Header, known: tuple[Header, StoredRows] | None = None) -> StoredRows:
        """What is stored of each bucket; of what was known only what is new is read."""
        if known is not None:
            before, rows = known
            if before.definition == header.definition and before.version <= header.version:
                newer = self._stored(_STORED.where(_partition.c.token > before.version), header)
                found = rows.with_newer(newer)
                told = zip(found.bucket, found.token, found.refreshed_at, found.state, strict=True)
                if Sums.of(told) == self._sums():
                    return found
        return self._stored(_STORED, header)

    def _stored(self, wanted: Select[Any], header: Header) -> StoredRows:
        at = {"at_view": self.view, "of_definition": codec.of_definition(header.definition)}
        found = StoredRows([], [], [], [], [], [], [], [], [])
        for part in self._connection.execute(wanted, at).partitions(_PART):
            for column, values in zip(found, zip(*part, strict=True), strict=True):
                column.extend(values)  # type: ignore[attr-defined]
        return found

    def rows_since(
        self, known: Snapshot, start: int | None = None, end: int | None = None
    ) -> Mapping[int, PartitionRow] | None:
        """`rows_between` without reading again what is known of them; None if that is no longer true.

        Each write gives the rows that it changes a token above all others, so what is there is among
        what is known and what came later. It is all of it unless rows were dropped since, or the database
        is a restored or another one: then numbers, tokens, times and states don't add up.
        """
        token = schema.partition.c.token
        newer = self._between(_ALL_ROWS.where(token > known.header.version), start, end)
        rows = _on(known.rows, {row.bucket: row for row in newer})
        return rows if rows.sums == self._sums(start, end) else None

    def rows_after(self, known: Snapshot, written: Collection[int]) -> Mapping[int, PartitionRow]:
        """The same, where nothing was written since but those buckets."""
        return _on(known.rows, self.rows(written))

    def _sums(self, start: int | None = None, end: int | None = None) -> Sums:
        """What the rows that are there add up to."""
        return Sums(*self._connection.execute(self._part(_SUMS, start, end)).one())

    def run_from(self, bucket: int, length: int = 16) -> Iterator[PartitionRow]:
        """Rows from a bucket upwards, read a few at a time: most callers stop soon."""
        while True:
            found = self._all(_RUN, at_view=self.view, from_bucket=bucket, length=length)
            yield from (codec.row(record) for record in found)
            if len(found) < length:
                return
            bucket, length = found[-1]["bucket"] + 1, min(length * 4, CHUNK)

    def recorded(self, buckets: Iterable[int]) -> dict[int, tuple[Segment, ...]]:
        """The segments that buckets' data was computed from."""
        table = schema.partition
        wanted = select(table.c.bucket, table.c.segments).where(table.c.view == self.view)
        return {
            record["bucket"]: codec.segments(record["segments"])
            for chunk in chunks(buckets)
            for record in self._all(wanted.where(table.c.bucket.in_(chunk)))
        }

    def attempts(self, buckets: Iterable[int] | None = None) -> dict[int, AttemptRecord]:
        table = schema.attempt
        wanted = select(table).where(table.c.view == self.view)
        pages = (
            [wanted] if buckets is None else [wanted.where(table.c.bucket.in_(c)) for c in chunks(buckets)]
        )
        return {record["bucket"]: codec.attempt(record) for page in pages for record in self._all(page)}

    def look(self) -> LookRecord | None:
        found = self._all(_LOOK, at_view=self.view)
        return codec.look(found[0]) if found else None

    def troubles(self) -> tuple[Trouble, ...]:
        table = schema.trouble
        wanted = select(table).where(table.c.view == self.view).order_by(table.c.doing)
        return tuple(codec.trouble(record) for record in self._all(wanted))

    def events(self, bucket: int | None = None, most: int = 50, *, only_changes: bool = False) -> list[Event]:
        """The newest lines of the log, of one bucket or of all; all, or those that changed a state."""
        table = schema.event
        wanted = select(table).where(table.c.view == self.view).order_by(table.c.id.desc()).limit(most)
        if bucket is not None:
            wanted = wanted.where(table.c.bucket == bucket)
        if only_changes:
            wanted = wanted.where(table.c.before.is_distinct_from(table.c.after))
        return [codec.event(record) for record in self._all(wanted)]

    def counters(self) -> dict[str, int]:
        """What has happened to the view since it was first counted."""
        table = schema.counter
        wanted = select(table).where(table.c.view == self.view)
        return {record["name"]: record["value"] for record in self._all(wanted)}

    def generation(self, name: str) -> Generation | None:
        found = self._all(_GENERATION, at_view=self.view, name=name)
        return codec.generation(found[0]) if found else None

    def uncollected(self, name: str) -> Generation:
        """A generation that gc has left alone.

        Raises:
            Collected: it has not.

        """
        found = self.generation(name)
        if found is None or found.state is GenerationState.DOOMED:
            raise Collected(self.view, name)
        return found

    def generations(self, *states: GenerationState) -> list[Generation]:
        table = schema.generation
        wanted = select(table).where(table.c.view == self.view).order_by(table.c.id)
        if states:
            wanted = wanted.where(table.c.state.in_([state.value for state in states]))
        return [codec.generation(record) for record in self._all(wanted)]

    def garbage(self, silent_since: int, oldest_reader: int) -> list[Generation]:
        """What gc has doomed, and what it would doom."""
        at = {"silent_since": silent_since, "oldest_reader": oldest_reader}
        return [codec.generation(found) for found in self._all(_GARBAGE, at_view=self.view, **at)]

    def files(self, generations: Iterable[str]) -> dict[str, tuple[DataFile, ...]]:
        """The files of generations, by their names."""
        table = schema.generation
        wanted = select(table.c.id, table.c.files).where(table.c.view == self.view)
        return {
            record["id"]: codec.files(self.view, record["files"])
            for chunk in chunks(generations)
            for record in self._all(wanted.where(table.c.id.in_(chunk)))
        }

    def leases(self) -> list[Lease]:
        table = schema.lease
        return [Lease(**record) for record in self._all(select(table).where(table.c.view == self.view))]

    def publications(self) -> list[Publication]:
        table = schema.publication
        wanted = select(table).where(table.c.view == self.view).order_by(table.c.target)
        return [codec.publication(record) for record in self._all(wanted)]

    def oldest_reader(self, now: int) -> int:
        """The version from which on the map is still read: by leases, by readers of what was published."""
        leases = [lease.version for lease in self.leases() if lease.expires_at > now]
        published = [publication.oldest for publication in self.publications()]
        return min([*leases, *published], default=self.known_header().version)

    def _between(self, wanted: Select[Any], start: int | None, end: int | None) -> Iterator[PartitionRow]:
        found = self._connection.execute(self._part(wanted, start, end)).mappings()
        # A few at a time: beside the rows that are made of them, all records would take as much again.
        return (codec.row(record) for part in found.partitions(_PART) for record in part)  # type: ignore[arg-type]

    def _part(self, wanted: Select[Any], start: int | None, end: int | None) -> Select[Any]:
        """Of the view's rows those in `[start, end)`."""
        bucket = schema.partition.c.bucket
        wanted = wanted.where(schema.partition.c.view == self.view)
        wanted = wanted if start is None else wanted.where(bucket >= start)
        return wanted if end is None else wanted.where(bucket < end)

    def _header(self, wanted: Select[Any]) -> Header | None:
        found = self._all(wanted, at_view=self.view)
        return codec.header(found[0]) if found else None

    def _all(self, wanted: Select[Any], **parameters: Any) -> Sequence[codec.Record]:
        return self._connection.execute(wanted, parameters).mappings().all()  # type: ignore[return-value]


def _on(known: Mapping[int, PartitionRow], newer: Mapping[int, PartitionRow]) -> ReadRows:
    """Rows in order; the known ones themselves if none is newer."""
    before = known if isinstance(known, ReadRows) else ReadRows.of(known.values())
    if not newer:
        return before
    gone = (before[bucket] for bucket in newer if bucket in before)
    sums = before.sums.with_others(Sums.of(map(_told, gone)), Sums.of(map(_told, newer.values())))
    rows = {**before, **newer}
    return ReadRows(rows if len(rows) == len(before) else sorted(rows.items()), sums)


def _told(row: PartitionRow) -> tuple[int, int, int | None, str]:
    return row.bucket, row.token, row.refreshed_at, row.state


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """The values in lists short enough for one statement."""
    listed = list(values)
    return (listed[at : at + CHUNK] for at in range(0, len(listed), CHUNK))

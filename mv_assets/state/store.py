"""The partition map in SQL: snapshots of a view for readers, one transaction at a time for its writer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, delete, exists, insert, select, update

from mv_assets.errors import CommitConflict, UnknownView
from mv_assets.state import codec, schema
from mv_assets.state.database import Database
from mv_assets.state.model import (
    AttemptRecord,
    Event,
    Generation,
    GenerationState,
    Header,
    Lease,
    LookRecord,
    PartitionRow,
    Segment,
    Snapshot,
)

# SQLite allows 32,766 variables in a statement; a chunk well below that costs nothing.
_CHUNK = 5_000
_ROW = [column for column in schema.partition.c if column.name not in ("view", "segments")]


class Store:
    """Where partition maps live. `now` replaces the database's clock in tests."""

    def __init__(
        self, url: str, *, now: Callable[[], int] | None = None, busy_timeout_ms: int = 10_000
    ) -> None:
        self.database = Database(url, busy_timeout_ms=busy_timeout_ms)
        self._now = now
        self.database.open()

    def close(self) -> None:
        self.database.close()

    @contextmanager
    def read(self, view: str) -> Iterator[MapReader]:
        """One consistent snapshot of a view."""
        with self.database.read() as connection:
            yield MapReader(connection, view, self._clock(connection))

    @contextmanager
    def write(self, view: str, *, lock: bool = True) -> Iterator[MapWriter]:
        """One transaction on a view; writers of the same view wait for each other at its header."""
        with self.database.write() as connection:
            yield MapWriter(connection, view, self._clock(connection), lock=lock)

    def views(self) -> list[str]:
        with self.database.read() as connection:
            return list(connection.execute(select(schema.view.c.view).order_by(schema.view.c.view)).scalars())

    def snapshot(self, view: str, start: int | None = None, end: int | None = None) -> Snapshot:
        """The map of a view at one version, or the part of it in `[start, end)`.

        Raises:
            UnknownView: nobody declared it.

        """
        with self.read(view) as reader:
            header = reader.known_header()
            rows = {row.bucket: row for row in reader.rows_between(start, end)}
            return Snapshot(header, rows, reader.attempts(), reader.look())

    def _clock(self, connection: Connection) -> Callable[[], int]:
        return self._now or (lambda: self.database.now(connection))


class MapReader:
    """What can be asked of one view inside a transaction."""

    def __init__(self, connection: Connection, view: str, now: Callable[[], int]) -> None:
        self._connection = connection
        self.view = view
        self.now = now

    def header(self) -> Header | None:
        return self._header(select(schema.view).where(schema.view.c.view == self.view))

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
        return dict(found.tuples().all())

    def rows(self, buckets: Iterable[int]) -> dict[int, PartitionRow]:
        wanted = select(*_ROW).where(schema.partition.c.view == self.view)
        return {
            record["bucket"]: codec.row(record)
            for chunk in _chunks(buckets)
            for record in self._all(wanted.where(schema.partition.c.bucket.in_(chunk)))
        }

    def rows_between(self, start: int | None = None, end: int | None = None) -> Iterator[PartitionRow]:
        """Rows in order of their buckets."""
        bucket = schema.partition.c.bucket
        wanted = select(*_ROW).where(schema.partition.c.view == self.view).order_by(bucket)
        if start is not None:
            wanted = wanted.where(bucket >= start)
        if end is not None:
            wanted = wanted.where(bucket < end)
        return (codec.row(record) for record in self._all(wanted))

    def run_from(self, bucket: int, length: int = 16) -> Iterator[PartitionRow]:
        """Rows from a bucket upwards, read a few at a time: most callers stop soon."""
        wanted = select(*_ROW).where(schema.partition.c.view == self.view).order_by(schema.partition.c.bucket)
        while True:
            page = [
                codec.row(r)
                for r in self._all(wanted.where(schema.partition.c.bucket >= bucket).limit(length))
            ]
            yield from page
            if len(page) < length:
                return
            bucket, length = page[-1].bucket + 1, min(length * 4, _CHUNK)

    def segments(self, bucket: int) -> tuple[Segment, ...]:
        """The segments that the bucket's data was computed from."""
        table = schema.partition
        wanted = select(table.c.segments).where(table.c.view == self.view, table.c.bucket == bucket)
        return codec.segments(self._connection.execute(wanted).scalar())

    def attempts(self, buckets: Iterable[int] | None = None) -> dict[int, AttemptRecord]:
        table = schema.attempt
        wanted = select(table).where(table.c.view == self.view)
        pages = (
            [wanted] if buckets is None else [wanted.where(table.c.bucket.in_(c)) for c in _chunks(buckets)]
        )
        return {record["bucket"]: codec.attempt(record) for page in pages for record in self._all(page)}

    def look(self) -> LookRecord | None:
        found = self._all(select(schema.look).where(schema.look.c.view == self.view))
        return codec.look(found[0]) if found else None

    def events(self, bucket: int | None = None, most: int = 50) -> list[Event]:
        """The newest lines of the log, of one bucket or of all."""
        table = schema.event
        wanted = select(table).where(table.c.view == self.view).order_by(table.c.id.desc()).limit(most)
        if bucket is not None:
            wanted = wanted.where(table.c.bucket == bucket)
        return [codec.event(record) for record in self._all(wanted)]

    def generation(self, name: str) -> Generation | None:
        found = self._all(select(schema.generation).where(schema.generation.c.id == name))
        return codec.generation(found[0]) if found else None

    def generations(self, *states: GenerationState) -> list[Generation]:
        table = schema.generation
        wanted = select(table).where(table.c.view == self.view).order_by(table.c.id)
        if states:
            wanted = wanted.where(table.c.state.in_([state.value for state in states]))
        return [codec.generation(record) for record in self._all(wanted)]

    def named(self, generation: str) -> bool:
        """Whether a row of the map names the generation."""
        named = exists().where(
            schema.partition.c.generation == generation, schema.partition.c.view == self.view
        )
        return bool(self._connection.execute(select(named)).scalar())

    def leases(self) -> list[Lease]:
        table = schema.lease
        return [Lease(**record) for record in self._all(select(table).where(table.c.view == self.view))]

    def _header(self, wanted: Select[Any]) -> Header | None:
        found = self._all(wanted)
        return codec.header(found[0]) if found else None

    def _all(self, wanted: Select[Any]) -> Sequence[codec.Record]:
        return self._connection.execute(wanted).mappings().all()  # type: ignore[return-value]


class MapWriter(MapReader):
    """The writing half. Only PartitionManager, the registry and the leases hold one."""

    def __init__(self, connection: Connection, view: str, now: Callable[[], int], *, lock: bool) -> None:
        super().__init__(connection, view, now)
        self._lock = lock

    def header(self) -> Header | None:
        wanted = select(schema.view).where(schema.view.c.view == self.view)
        return self._header(wanted.with_for_update() if self._lock else wanted)

    def put_header(self, before: Header | None, after: Header) -> None:
        """Write the header if it is still the one that was read."""
        columns = codec.header_columns(after)
        if before is None:
            self._connection.execute(insert(schema.view).values(columns))
            return
        table = schema.view
        changed = (
            update(table).where(table.c.view == self.view, table.c.version == before.version).values(columns)
        )
        self._verify(self._connection.execute(changed).rowcount, 1)

    def put_definition(self, definition: str, width: str, since: int) -> None:
        self._insert(schema.definition, [{"definition": definition, "width": width, "since": since}])

    def put_rows(
        self,
        before: Mapping[int, PartitionRow],
        after: Iterable[PartitionRow],
        segments: Mapping[int, tuple[Segment, ...]] | None = None,
    ) -> None:
        """Insert rows of VACANT buckets, update the others where they still carry the token that was read."""
        table = schema.partition
        fresh, changed = [], []
        for row in after:
            columns = codec.row_columns(row)
            if segments is not None:
                columns["segments"] = codec.segments_text(segments[row.bucket])
            if row.bucket in before:
                columns["at_bucket"] = columns.pop("bucket")
                changed.append(columns | {"at_token": before[row.bucket].token})
            else:
                fresh.append(columns)
        self._insert(table, fresh)
        if changed:
            here = (table.c.view == self.view, table.c.bucket == bindparam("at_bucket"))
            statement = update(table).where(*here, table.c.token == bindparam("at_token"))
            self._verify(self._connection.execute(statement, changed).rowcount, len(changed))

    def delete_rows(self) -> None:
        """Forget all rows and attempts of the view."""
        for table in (schema.partition, schema.attempt):
            self._connection.execute(delete(table).where(table.c.view == self.view))

    def put_events(self, events: Iterable[Event]) -> None:
        self._insert(schema.event, [codec.event_columns(event) for event in events])

    def put_attempts(self, before: Mapping[int, AttemptRecord], after: Mapping[int, AttemptRecord]) -> None:
        table = schema.attempt
        fresh = [{"bucket": b, **codec.attempt_columns(r)} for b, r in after.items() if b not in before]
        changed = [{"at_bucket": b, **codec.attempt_columns(r)} for b, r in after.items() if b in before]
        self._insert(table, fresh)
        if changed:
            here = update(table).where(table.c.view == self.view, table.c.bucket == bindparam("at_bucket"))
            self._connection.execute(here, changed)

    def end_attempts(self, buckets: Iterable[int], only_of: str | None = None) -> None:
        """Forget the attempts on buckets, or those among them that belong to one generation."""
        table = schema.attempt
        for chunk in _chunks(buckets):
            ended = delete(table).where(table.c.view == self.view, table.c.bucket.in_(chunk))
            self._connection.execute(ended if only_of is None else ended.where(table.c.generation == only_of))

    def put_look(self, look: LookRecord | None) -> None:
        """Remember the last completed look; None forgets it."""
        self._connection.execute(delete(schema.look).where(schema.look.c.view == self.view))
        if look is not None:
            columns = {"table_version": look.table_version, "map_version": look.map_version}
            self._insert(schema.look, [columns | {"at": look.at, "recheck_at": look.recheck_at}])

    def add_generation(self, generation: Generation) -> None:
        self._connection.execute(insert(schema.generation).values(codec.generation_columns(generation)))

    def put_generation(self, generation: Generation) -> None:
        table = schema.generation
        changed = (
            update(table).where(table.c.id == generation.id).values(codec.generation_columns(generation))
        )
        self._verify(self._connection.execute(changed).rowcount, 1)

    def forget_generation(self, name: str) -> None:
        self._connection.execute(delete(schema.generation).where(schema.generation.c.id == name))

    def bury(self, generations: Iterable[str], version: int) -> None:
        """Those of the generations that no row names any more are dead since `version`."""
        table = schema.generation
        named = exists().where(schema.partition.c.generation == table.c.id)
        for chunk in _chunks(generations):
            left = table.c.id.in_(chunk) & (table.c.state == GenerationState.LIVE.value) & ~named
            dead = {"state": GenerationState.DEAD.value, "dead_since": version}
            self._connection.execute(update(table).where(left).values(dead))

    def bury_all(self, version: int) -> None:
        """As `bury`, for every live generation of the view."""
        self.bury([generation.id for generation in self.generations(GenerationState.LIVE)], version)

    def put_lease(self, lease: Lease) -> None:
        """Insert the lease, or renew it."""
        table = schema.lease
        renewed = update(table).where(table.c.id == lease.id).values(expires_at=lease.expires_at)
        if self._connection.execute(renewed).rowcount == 0:
            columns = {
                "id": lease.id,
                "version": lease.version,
                "expires_at": lease.expires_at,
                "who": lease.who,
            }
            self._insert(table, [columns])

    def delete_leases(self, names: Iterable[str]) -> None:
        for chunk in _chunks(names):
            self._connection.execute(delete(schema.lease).where(schema.lease.c.id.in_(chunk)))

    def _insert(self, table: Table, records: list[dict[str, Any]]) -> None:
        if records:
            self._connection.execute(insert(table), [{"view": self.view, **record} for record in records])

    def _verify(self, written: int, expected: int) -> None:
        if written != expected:
            raise CommitConflict(
                f"{expected - written} row(s) of view {self.view!r} were changed by another writer"
            )


def _chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    listed = list(values)
    return (listed[at : at + _CHUNK] for at in range(0, len(listed), _CHUNK))

"""The partition map in SQL: snapshots of a view for readers, one transaction at a time for its writer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import LABEL_STYLE_TABLENAME_PLUS_COL, Connection, bindparam, select

from mv_assets.config import StateDatabase
from mv_assets.state.errors import UnknownView
from mv_assets.state.model import DataFile, Event, Header, MapSummary, Segment, Snapshot, StoredRows
from mv_assets.state.store import codec, schema
from mv_assets.state.store.database import Database
from mv_assets.state.store.map_reader import MapReader, ReadRows, chunks
from mv_assets.state.store.map_writer import MapWriter
from mv_assets.state.store.retry import CRITICAL, Retry

T = TypeVar("T")

_SUMMARIES = (
    select(schema.view, schema.look)
    .outerjoin_from(schema.view, schema.look, schema.view.c.view == schema.look.c.view)
    .where(schema.view.c.view.in_(bindparam("views", expanding=True)))
    .set_label_style(LABEL_STYLE_TABLENAME_PLUS_COL)
)


def open_state(state: StateDatabase, *, create: bool = True) -> Store:
    """The state database that a project declares.

    Raises:
        NoState: `create` is off and nobody has used the database yet.

    """
    return Store(state.url, retry=Retry(replace(CRITICAL, attempts=state.attempts)), create=create)


class Store:
    """Where partition maps live. `now` replaces the database's clock in tests.

    Whoever works on it tries as often as its `retry` says, unless told otherwise.

    Raises:
        NoState: `create` is off and nobody has used the database yet.

    """

    def __init__(
        self,
        url: str,
        *,
        now: Callable[[], int] | None = None,
        busy_timeout_ms: int = 10_000,
        retry: Retry | None = None,
        create: bool = True,
    ) -> None:
        self.database = Database(url, busy_timeout_ms=busy_timeout_ms)
        self._now = now
        self._here = threading.local()
        self.retry = retry or Retry()
        self.database.open(create=create)

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
        with self.write_all([view], lock=lock) as [writer]:
            yield writer

    @contextmanager
    def write_all(self, views: Iterable[str], *, lock: bool = True) -> Iterator[list[MapWriter]]:
        """One transaction on several views, in the order of their names: so no two wait for each other."""
        with self.database.write() as connection:
            self._here.writes = True
            try:
                now = self._clock(connection)
                yield [MapWriter(connection, view, now, lock=lock) for view in sorted(views)]
            finally:
                self._here.writes = False

    @property
    def in_write(self) -> bool:
        """Whether this thread is inside a write: it must not wait for another connection then."""
        return getattr(self._here, "writes", False)

    def now(self) -> int:
        """The database's clock."""

        def once() -> int:
            with self.database.read() as connection:
                return self._clock(connection)()

        return self.retry.run(self.retry.critical, None, "ask for the time", once)

    def views(self) -> list[str]:
        """The names of all views, in order."""

        def once() -> list[str]:
            with self.database.read() as connection:
                name = schema.view.c.view
                return list(connection.execute(select(name).order_by(name)).scalars())

        return self.retry.run(self.retry.critical, None, "list views", once)

    def snapshot(
        self,
        view: str,
        start: int | None = None,
        end: int | None = None,
        known: Snapshot | None = None,
        written: Collection[int] | None = None,
    ) -> Snapshot:
        """The map of a view at one version, or the part of it in `[start, end)`.

        Rows that are `known` from before, of the same part, are not read again unless they changed. Where it
        is known which buckets one write has `written` since, or that none has, only those are, unless others
        wrote too.

        Raises:
            UnknownView: nobody declared it.

        """

        def question(reader: MapReader) -> Snapshot:
            header, rows = reader.known_header(), None
            steps = None if known is None else header.version - known.header.version
            if known is not None and written is not None and steps == bool(written):
                rows = reader.rows_after(known, written)
            elif known is not None and known.header.version <= header.version:
                rows = reader.rows_since(known, start, end)
            if rows is None:
                rows = ReadRows.of(reader.rows_between(start, end))
            return Snapshot(header, rows, reader.attempts(), reader.look(), reader.troubles())

        return self._ask(view, question)

    def stored(self, view: str, known: tuple[Header, StoredRows] | None = None) -> tuple[Header, StoredRows]:
        """What is stored of a view, at one version; of what was `known` before only what is new is read.

        Raises:
            UnknownView: nobody declared it.

        """

        def question(reader: MapReader) -> tuple[Header, StoredRows]:
            header = reader.known_header()
            return header, reader.stored_rows(header, known)

        return self._ask(view, question)

    def summaries(self, views: Iterable[str]) -> dict[str, MapSummary]:
        """What tells whether anything is to be done about views, without reading their maps.

        All are of one moment; a view that nobody declared has none.
        """
        wanted = list(views)

        def once() -> dict[str, MapSummary]:
            with self.database.read() as connection:
                found = [
                    codec.summary(record._asdict())
                    for chunk in chunks(wanted)
                    for record in connection.execute(_SUMMARIES, {"views": chunk})
                ]
            return {summary.header.view: summary for summary in found}

        return self.retry.run(self.retry.critical, ", ".join(wanted[:3]), "read", once)

    def summary(self, view: str) -> MapSummary:
        """That of one view.

        Raises:
            UnknownView: nobody declared it.

        """
        found = self.summaries([view])
        if not found:
            raise UnknownView(view)
        return found[view]

    def history(self, view: str) -> dict[str, str]:
        """All definitions a view ever had, with the bucket width of each."""
        return self._ask(view, lambda reader: reader.history())

    def recorded(self, view: str, buckets: Iterable[int]) -> dict[int, tuple[Segment, ...]]:
        """The segments that buckets were computed from."""
        wanted = list(buckets)
        return self._ask(view, lambda reader: reader.recorded(wanted)) if wanted else {}

    def files(self, view: str, generations: Iterable[str]) -> dict[str, tuple[DataFile, ...]]:
        """The files of generations, by their names."""
        wanted = set(generations)
        return self._ask(view, lambda reader: reader.files(wanted)) if wanted else {}

    def events(
        self, view: str, bucket: int | None = None, most: int = 50, *, only_changes: bool = False
    ) -> list[Event]:
        """The newest lines of the log, of one bucket or of all; all, or those that changed a state."""
        return self._ask(view, lambda reader: reader.events(bucket, most, only_changes=only_changes))

    def counters(self, view: str) -> dict[str, int]:
        """What has happened to a view since it was first counted, by name."""
        return self._ask(view, lambda reader: reader.counters())

    def _ask(self, view: str, question: Callable[[MapReader], T]) -> T:
        def once() -> T:
            with self.read(view) as reader:
                return question(reader)

        return self.retry.run(self.retry.critical, view, "read", once)

    def _clock(self, connection: Connection) -> Callable[[], int]:
        return self._now or (lambda: self.database.now(connection))

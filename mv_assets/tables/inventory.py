"""What was found out about files before, so that a look reads only what changed.

Of data files that is where their rows lie; of metadata files, which never change, all that they say.

A cache, not the truth: losing it costs time, and no mark depends on when it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, delete, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from mv_assets.state.store.database import Database
from mv_assets.state.store.map_reader import chunks
from mv_assets.state.store.retry import Retry
from mv_assets.state.store.schema import inventory, manifest, remembered

# What databases take in one value without ado, in bytes.
_PART = 8 << 20


class Known(NamedTuple):
    """What one file was found to hold.

    `range` is None for a file without rows in time, or, where there is an `error`, for a file whose
    range was never known. A checksum that was taken while the file was young is not `trusted`.
    """

    identity: int
    crc: int
    start_ms: int | None
    end_ms: int | None
    nulls: int = 0
    trusted: bool = True
    error: str | None = None

    @property
    def range(self) -> tuple[int, int] | None:
        return None if self.start_ms is None or self.end_ms is None else (self.start_ms, self.end_ms)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of one table. Without a database, or with `keep` off, nothing is remembered."""

    database: Database | None
    table: str
    keep: bool = True
    retry: Retry = field(default_factory=Retry)

    def known(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, Known]]:
        """What is known of files of the table, or of all, a few at a time."""
        if self.database is None:
            return
        columns = [inventory.c[name] for name in ("name", *Known._fields)]
        wanted = select(*columns).where(inventory.c.table_name == self.table)
        parts = (
            [wanted]
            if names is None
            else [wanted.where(inventory.c.name.in_(some)) for some in chunks([*names])]
        )
        with self.database.read() as connection:
            for part in parts:
                for name, *fields in connection.execution_options(stream_results=True).execute(part):
                    yield name, Known(*fields)

    def save(self, found: Mapping[str, Known]) -> None:
        """Remember files, instead of what was known of them."""
        # In order, so that two deployments that save the same files wait for each other and don't deadlock.
        self._write(
            sorted(found),
            lambda tx, names: tx.execute(
                _UPSERT[tx.dialect.name],
                [{"table_name": self.table, "name": name, **found[name]._asdict()} for name in names],
            ),
        )

    def forget(self, names: Iterable[str]) -> None:
        """Forget files that are gone."""
        self._write(
            sorted(names),
            lambda tx, gone: tx.execute(
                delete(inventory).where(inventory.c.table_name == self.table, inventory.c.name.in_(gone))
            ),
        )

    def recall(self, kind: str) -> bytes | None:
        """What was remembered of the table as a whole."""
        if self.database is None:
            return None
        mine = remembered.c.table_name == self.table, remembered.c.kind == kind
        parts = select(remembered.c.content).where(*mine).order_by(remembered.c.part)
        with self.database.read() as connection:
            found = [content for (content,) in connection.execute(parts)]
        return b"".join(found) if found else None

    def remember(self, contents: Mapping[str, bytes]) -> None:
        """Remember that of the table as a whole, by kind, instead of all that was remembered so."""
        rows = [
            {"table_name": self.table, "kind": kind, "part": at // _PART, "content": content[at : at + _PART]}
            for kind, content in contents.items()
            for at in range(0, len(content), _PART)
        ]

        def replace(tx: Connection, _: list[str]) -> None:
            tx.execute(delete(remembered).where(remembered.c.table_name == self.table))
            tx.execute(insert(remembered), rows)

        self._write(["all"], replace)

    def metadata(self, paths: Iterable[str], layout: str) -> dict[str, bytes]:
        """What was taken from metadata files, of those of which it is known."""
        found: dict[str, bytes] = {}
        if self.database is None:
            return found
        mine = (manifest.c.table_name == self.table) & (manifest.c.layout == layout)
        with self.database.read() as connection:
            for chunk in chunks(paths):
                wanted = select(manifest.c.path, manifest.c.content).where(mine, manifest.c.path.in_(chunk))
                found |= {row.path: row.content for row in connection.execute(wanted)}
        return found

    def save_metadata(
        self, taken: Mapping[str, bytes], layout: str, but: Container[str] | None = None
    ) -> None:
        """Remember what was taken from metadata files; with `but`, forget all others that are not in it."""
        rows = {
            path: {"table_name": self.table, "path": path, "layout": layout, "content": content}
            for path, content in taken.items()
        }
        mine = manifest.c.table_name == self.table

        def save(tx: Connection, paths: list[str]) -> None:
            tx.execute(_UPSERT_METADATA[tx.dialect.name], [rows[path] for path in paths])

        def forget(tx: Connection) -> None:
            known = tx.execute(select(manifest.c.path).where(mine)).scalars().all()
            for gone in chunks(sorted(path for path in known if but is not None and path not in but)):
                tx.execute(delete(manifest).where(mine, manifest.c.path.in_(gone)))

        self._write(sorted(rows), save, None if but is None else forget)

    def _write(
        self,
        names: list[str],
        step: Callable[[Connection, list[str]], object],
        last: Callable[[Connection], object] | None = None,
    ) -> None:
        if self.database is None or not self.keep or not (names or last):
            return
        database = self.database

        def once() -> None:
            with database.write() as connection:
                for chunk in chunks(names):
                    step(connection, chunk)
                if last is not None:
                    last(connection)

        name = self.table.partition(":")[0]
        self.retry.run(self.retry.critical, None, f"remember files of table {name!r}", once)


def _upsert(insert: Callable[[Table], Any], table: Table) -> Any:
    statement, index = insert(table), table.primary_key.columns.keys()
    new = {
        column.name: statement.excluded[column.name] for column in table.columns if column.name not in index
    }
    return statement.on_conflict_do_update(index_elements=index, set_=new)


def _upserts(table: Table) -> dict[str, Any]:
    return {"sqlite": _upsert(sqlite.insert, table), "postgresql": _upsert(postgresql.insert, table)}


_UPSERT, _UPSERT_METADATA = _upserts(inventory), _upserts(manifest)

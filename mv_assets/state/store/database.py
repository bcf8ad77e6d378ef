"""One SQL database, SQLite or PostgreSQL: connections, transactions, its clock, and its errors as ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    cast,
    create_engine,
    event,
    func,
    inspect,
    select,
)
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError, IntegrityError, NoSuchModuleError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from mv_assets.errors import StateError
from mv_assets.state.errors import CommitConflict, NoState, StateNotWritable, StateUnavailable
from mv_assets.state.store import schema
from mv_assets.state_url import DRIVERS, shown, state_url

_UNIX_EPOCH_IN_JULIAN_DAYS = 2440587.5
_FIRST_USERS = 32


class Database:
    """Short transactions on the state database. Whatever goes wrong in one is raised as a StateError."""

    def __init__(self, url: str, *, busy_timeout_ms: int = 10_000) -> None:
        parsed = state_url(url)
        family = parsed.get_backend_name()
        self.where = shown(parsed)
        try:
            self._engine = _engine(parsed.set(drivername=DRIVERS[family]), busy_timeout_ms)
        except (ImportError, NoSuchModuleError) as error:
            raise StateError(
                f"{self.where} needs a driver ({error}): pip install 'mv_assets[postgres]'"
            ) from None
        self._is_postgres = family == "postgresql"
        self._snapshots = (
            self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            if self._is_postgres
            else self._engine
        )
        self._writes = self._engine.execution_options(mv_begin="IMMEDIATE")

    def open(self, *, create: bool = True) -> None:
        """Create or migrate the tables.

        Raises:
            NoState: there are none, and `create` is off.

        """
        try:
            if not create and self._in_use():
                return
            if not self._is_postgres:
                self._make_folder()
                self._use_write_ahead_log()
            with self.write() as connection:
                schema.bring_up_to_date(connection, self.where)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction whose reads all see one snapshot."""
        with self._translated(), self._snapshots.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that commits at the end of the block, or leaves nothing behind."""
        with self._translated(), self._writes.begin() as connection:
            yield connection

    def now(self, connection: Connection) -> int:
        """The database's clock: the one clock that all holders of leases and heartbeats share."""
        if self._is_postgres:
            milliseconds = func.floor(func.extract("epoch", func.clock_timestamp()) * 1000)
        else:
            milliseconds = func.round((func.julianday("now") - _UNIX_EPOCH_IN_JULIAN_DAYS) * 86_400_000)
        return int(connection.execute(select(cast(milliseconds, BigInteger))).scalar_one())

    def _in_use(self) -> bool:
        """Whether the tables are there as this version knows them; then readers need no write lock.

        Raises:
            NoState: there are none.

        """
        # To connect would make the file.
        file = None if self._is_postgres else Path(str(self._engine.url.database).removeprefix("file:"))
        if file is not None and not file.exists():
            raise NoState(self.where)
        with self.read() as connection:
            if not inspect(connection).has_table(schema.schema.name):
                raise NoState(self.where)
            return connection.execute(select(schema.schema.c.version)).scalar() == schema.VERSION

    def _make_folder(self) -> None:
        name = str(self._engine.url.database)
        if name.startswith("file:"):
            return
        folder = Path(name).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._not_writable(str(error)) from error

    def _use_write_ahead_log(self) -> None:
        """Readers then never block the writer. The mode is kept in the file."""
        with self._translated():
            connection = self._engine.raw_connection()
            try:
                _switch_to_write_ahead_log(connection.cursor())
            finally:
                connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            raise CommitConflict(f"{self.where}: another writer was first ({_said(error)})") from error
        except DBAPIError as error:
            raise self._ours(error) from error
        except sqlite3.Error as error:
            raise self._of_sqlite(error, str(error)) from error
        except (OverflowError, UnicodeError) as error:
            raise StateError(f"{self.where}: a value that no column can hold ({error})") from error
        except PoolTimeout as error:
            raise StateUnavailable(f"{self.where}: no free connection ({error})") from error

    def _ours(self, error: DBAPIError) -> StateError:
        if isinstance(error.orig, sqlite3.Error):
            return self._of_sqlite(error.orig, _said(error))
        return self._of_postgres(error)

    def _of_sqlite(self, error: sqlite3.Error, said: str) -> StateError:
        code = getattr(error, "sqlite_errorname", "")
        if code.startswith(
            ("SQLITE_READONLY", "SQLITE_FULL", "SQLITE_PERM", "SQLITE_AUTH", "SQLITE_CANTOPEN")
        ):
            return self._not_writable(said)
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_PROTOCOL")):
            return StateUnavailable(f"{self.where}: {said}")
        return StateError(f"{self.where}: {said}")

    def _of_postgres(self, error: DBAPIError) -> StateError:
        said, code = _said(error), getattr(error.orig, "sqlstate", None) or ""
        if code in ("25006", "53100", "42501"):
            return self._not_writable(said)
        # Serialization, deadlock, lock timeout, too many connections, shutdown, lost or refused connection.
        lost = error.connection_invalidated or (not code and isinstance(error, OperationalError))
        if lost or code[:2] in ("08", "40", "55", "57") or code == "53300":
            return StateUnavailable(f"{self.where}: {said}")
        return StateError(f"{self.where}: {said}")

    def _not_writable(self, said: str) -> StateNotWritable:
        return StateNotWritable(
            f"{self.where} can't be written ({said}) and nothing was changed; "
            "make room, or give this user write access"
        )


def _switch_to_write_ahead_log(cursor: DBAPICursor) -> None:
    """Two first users of a file would fail each other: SQLite waits for no lock when it changes the mode.

    So the loser waits for the winner's lock in a transaction, which does wait, and looks again.
    """
    for left in reversed(range(_FIRST_USERS)):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not left or error.sqlite_errorname != "SQLITE_BUSY":
                raise
        else:
            return
        cursor.execute("BEGIN IMMEDIATE")
        cursor.execute("COMMIT")


def _said(error: DBAPIError) -> str:
    return str(error.orig).strip().split("\n", 1)[0]


def _engine(url: Any, busy_timeout_ms: int) -> Engine:
    if url.get_backend_name() == "postgresql":
        # A peer that hangs inside a transaction must not hold the header for ever.
        options = f"-c lock_timeout={busy_timeout_ms} -c idle_in_transaction_session_timeout=60000"
        return create_engine(url, connect_args={"options": options, "connect_timeout": 10}, pool_size=8)
    engine = create_engine(url, pool_size=8)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        # The driver's own transaction handling would begin too late for a consistent read.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(busy_timeout_ms)}")
        # A commit that was acknowledged may be followed by gc deleting files: it must survive a power cut.
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("mv_begin") == "IMMEDIATE"
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine

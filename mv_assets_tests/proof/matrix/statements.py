"""The state database with faults: each connection, each statement, each COMMIT is a call."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from mv_assets_tests.proof.matrix.faults import Process

_ASKING = ("SELECT", "BEGIN", "PRAGMA", "SHOW", "SET", "ROLLBACK")


def _input_output_error() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR"
    return error


_DIALECTS: dict[type[Any], Callable[[], Exception]] = {
    PGDialect_psycopg: lambda: psycopg.OperationalError("server closed the connection unexpectedly"),
    SQLiteDialect_pysqlite: _input_output_error,
}


@contextmanager
def faulty(process: Process) -> Iterator[None]:
    """All databases' calls go through the process."""
    with pytest.MonkeyPatch.context() as patch:
        for dialect, refused in _DIALECTS.items():
            for name in ("do_execute", "do_executemany", "do_execute_no_params"):
                patch.setattr(dialect, name, _executing(process, getattr(dialect, name), refused))
            patch.setattr(dialect, "do_commit", _committing(process, dialect.do_commit, refused))
            patch.setattr(dialect, "connect", _connecting(process, dialect.connect, refused))
        yield


def _executing(process: Process, real: Any, refused: Callable[[], Exception]) -> Any:
    def execute(self: Any, cursor: Any, statement: str, *rest: Any, **named: Any) -> None:
        word = statement.split(None, 1)[0]
        process.call(
            word,
            lambda: real(self, cursor, statement, *rest, **named),
            lambda: _lost(cursor.connection, refused()),
            changes=word not in _ASKING,
            apart=word == "BEGIN" or not _writing(*rest, **named),
        )

    return execute


def _committing(process: Process, real: Any, refused: Callable[[], Exception]) -> Any:
    def commit(self: Any, connection: Any) -> None:
        process.call(
            "COMMIT",
            lambda: real(self, connection),
            lambda: _lost(connection.dbapi_connection, refused()),
            changes=True,
            apart=False,
        )

    return commit


def _connecting(process: Process, real: Any, refused: Callable[[], Exception]) -> Any:
    def connect(self: Any, *arguments: Any, **options: Any) -> Any:
        return process.call("connect", lambda: real(self, *arguments, **options), refused, changes=False)

    return connect


def _lost(connection: Any, error: Exception) -> Exception:
    """PostgreSQL's connection is gone with its error, as in life; a file is still there."""
    if isinstance(connection, psycopg.Connection):
        connection.close()
    return error


def _writing(*given: Any, context: Any = None) -> bool:
    """Whether others would have to wait for this transaction."""
    context = context or given[-1]
    return bool(context and context.root_connection.get_execution_options().get("mv_begin"))

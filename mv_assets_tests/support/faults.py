"""Faults of the state database, injected where the driver would raise them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from mv_assets.state.errors import StateUnavailable
from mv_assets.state.store import Store

ALWAYS = 1_000_000


@contextmanager
def failing(store: Store, words: str, times: int = 1) -> Iterator[list[str]]:
    """The next statements that begin with one of the `words` break the connection; yields those that did."""
    failed: list[str] = []

    def fail(connection: Connection, statement: str) -> None:
        if statement.startswith(tuple(words.split())) and len(failed) < times:
            failed.append(statement)
            raise OperationalError(statement, None, _driver_error(connection.dialect.name))

    with _before_statements(store, fail):
        yield failed


@contextmanager
def interrupted(store: Store, beginning: str, happening: Callable[[], object]) -> Iterator[None]:
    """Before the next statement that begins so, and inside its transaction's time, something else happens."""
    left = [happening]

    def interrupt(_connection: Connection, statement: str) -> None:
        if statement.startswith(beginning) and left:
            left.pop()()

    with _before_statements(store, interrupt):
        yield


@contextmanager
def _before_statements(store: Store, do: Callable[[Connection, str], None]) -> Iterator[None]:
    def before(connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        do(connection, statement)

    engine = store.database._engine
    event.listen(engine, "before_cursor_execute", before)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", before)


def _driver_error(dialect: str) -> Exception:
    if dialect == "postgresql":
        return psycopg.OperationalError("server closed the connection unexpectedly")
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR"
    return error


@contextmanager
def lost_acknowledgements(store: Store, times: int = 1) -> Iterator[None]:
    """The next writes land, but their caller hears of a broken connection."""
    real, left = store.database.write, times

    @contextmanager
    def write() -> Iterator[Connection]:
        nonlocal left
        with real() as connection:
            yield connection
        if left:
            left -= 1
            raise StateUnavailable("the connection broke before the commit was acknowledged")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.database, "write", write)
        yield

"""Faults put between the engine and its database, and what the database holds before and after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import create_engine, event, select

from mv_assets.state.store import Store, schema

Dump = dict[str, list[tuple[Any, ...]]]


class Crash(Exception):
    """The process ends here: nothing above the database may catch it."""


def dump(url: str) -> Dump:
    """Every row of every table, by a connection that no fault touches."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            return {
                table.name: [
                    tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))
                ]
                for table in schema.schema.metadata.sorted_tables
            }
    finally:
        engine.dispose()


@contextmanager
def at_statement(
    store: Store, number: int, act: Callable[[Any], None], when: str = "after"
) -> Iterator[None]:
    """Call `act` with the connection before or after the statement of that number, counted from 1."""
    seen = 0

    def count(connection: Any, *_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            act(connection)

    with _listening(store, f"{when}_cursor_execute", count):
        yield


@contextmanager
def recorded(store: Store) -> Iterator[list[str]]:
    """The statements that the block issues."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    with _listening(store, "before_cursor_execute", note):
        yield statements


@contextmanager
def after_commit(store: Store, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` once, right after the next COMMIT landed and before anybody hears of it."""
    dialect: Any = store.database._engine.dialect
    commit, left = dialect.do_commit, [act]

    def commit_then(connection: Any) -> None:
        commit(connection)
        if left:
            left.pop()()

    dialect.do_commit = commit_then
    try:
        yield
    finally:
        del dialect.do_commit
        assert not left, "nothing was committed"


@contextmanager
def on_connect(store: Store, statement: str) -> Iterator[None]:
    """Every connection made in the block starts with the statement."""

    def execute(connection: Any, _record: Any) -> None:
        connection.cursor().execute(statement)

    store.close()
    with _listening(store, "connect", execute):
        yield
    store.close()


@contextmanager
def _listening(store: Store, name: str, listener: Callable[..., None]) -> Iterator[None]:
    engine = store.database._engine
    event.listen(engine, name, listener)
    try:
        yield
    finally:
        event.remove(engine, name, listener)

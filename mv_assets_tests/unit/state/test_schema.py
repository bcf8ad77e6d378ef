"""The tables: made on first use, migrated in place, refused if a newer mv_assets wrote them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Connection, create_engine, inspect, text

from mv_assets.state.errors import SchemaTooNew
from mv_assets.state.store import Store, schema
from mv_assets.state.store.database import Database
from mv_assets_tests.support.harness import Deployment
from mv_assets_tests.unit.state.faults import Crash, dump

NEXT = schema.VERSION + 1


def add_note(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE mv_partition ADD COLUMN note VARCHAR DEFAULT 'none' NOT NULL"))


def ask(url: str, question: str) -> list[tuple[object, ...]]:
    engine = create_engine(url)
    with engine.begin() as connection:
        answer = [tuple(row) for row in connection.execute(text(question))]
    engine.dispose()
    return answer


def columns(url: str, table: str) -> list[str]:
    engine = create_engine(url)
    names = [column["name"] for column in inspect(engine).get_columns(table)]
    engine.dispose()
    return names


def migrate(database: Database, version: int, migrations: Mapping[int, schema.Migration]) -> None:
    with database.write() as connection:
        schema.bring_up_to_date(connection, database.where, version, migrations)


@pytest.fixture
def used(deployment: Deployment) -> Deployment:
    """A database with rows in it."""
    deployment.table.day("a", 1, 0, 2)
    deployment.look()
    deployment.refresh(0, 1, 2)
    return deployment


def test_the_tables_are_created_on_first_use(state_url: str) -> None:
    Store(state_url).close()
    assert dump(state_url) == {name: [] for name in schema.schema.metadata.tables} | {
        "mv_schema": [(schema.VERSION,)]
    }
    for table in schema.schema.metadata.sorted_tables:
        assert columns(state_url, table.name) == table.columns.keys()


def test_opening_again_changes_nothing(used: Deployment, state_url: str) -> None:
    before = dump(state_url)
    Store(state_url).close()
    assert dump(state_url) == before
    assert used.watermark == 3


def test_a_newer_schema_is_refused(used: Deployment, state_url: str) -> None:
    with used.store.database.write() as connection:
        connection.execute(text("UPDATE mv_schema SET version = 99"))
    before = dump(state_url)
    with pytest.raises(SchemaTooNew) as refusal:
        Store(state_url)
    said = str(refusal.value)
    assert f"schema version 99, this mv_assets knows up to {schema.VERSION}; upgrade mv_assets" in said
    assert used.store.database.where in said
    assert dump(state_url) == before


def test_an_older_schema_is_migrated_in_place(used: Deployment, state_url: str) -> None:
    before = dump(state_url)
    migrate(used.store.database, NEXT, {NEXT: add_note})
    assert dump(state_url) == before | {"mv_schema": [(NEXT,)]}
    assert ask(state_url, "SELECT DISTINCT note FROM mv_partition") == [("none",)]
    migrate(used.store.database, NEXT, {})
    with pytest.raises(SchemaTooNew):
        Store(state_url)


def test_a_map_of_version_3_is_kept_and_knows_of_no_bucket_that_is_closed(
    used: Deployment, state_url: str
) -> None:
    header, rows = used.header(), used.map().rows
    with used.store.database.write() as connection:
        connection.execute(text("ALTER TABLE mv_view DROP COLUMN closed"))
        connection.execute(text("UPDATE mv_schema SET version = 3"))
    used.store.close()
    Store(state_url).close()
    assert ask(state_url, "SELECT version FROM mv_schema") == [(schema.VERSION,)]
    assert (used.header(), used.map().rows) == (header, rows)
    assert used.header().closed is None
    used.fill(3)
    assert used.watermark == 4


def test_a_map_of_version_5_is_kept_and_knows_of_no_table_that_ends_first(
    used: Deployment, state_url: str
) -> None:
    before, stored = used.map(), dump(state_url)
    with used.store.database.write() as connection:
        connection.execute(text("ALTER TABLE mv_look DROP COLUMN ends_first"))
        connection.execute(text("UPDATE mv_schema SET version = 5"))
    used.store.close()
    Store(state_url).close()
    assert (dump(state_url), used.map()) == (stored, before)
    assert before.look is not None
    assert before.look.ends_first is None
    with used.store.write(used.name) as tx:
        tx.put_look(replace(before.look, ends_first="payments"))
    assert used.map().look == replace(before.look, ends_first="payments")
    used.fill(3)
    assert used.watermark == 4


def test_a_map_of_version_10_is_kept_and_knows_of_no_whole_look(used: Deployment, state_url: str) -> None:
    before, stored = used.map(), dump(state_url)
    with used.store.database.write() as connection:
        connection.execute(text("ALTER TABLE mv_look DROP COLUMN whole_at"))
        connection.execute(text("UPDATE mv_schema SET version = 10"))
    used.store.close()
    Store(state_url).close()
    assert (dump(state_url), used.map()) == (stored, before)
    assert before.look is not None
    assert before.look.whole_at is None
    with used.store.write(used.name) as tx:
        tx.put_look(replace(before.look, whole_at=5))
    assert used.map().look == replace(before.look, whole_at=5)


def test_migrations_run_one_after_the_other(used: Deployment, state_url: str) -> None:
    def use_note(connection: Connection) -> None:
        connection.execute(text("UPDATE mv_partition SET note = 'some'"))

    migrate(used.store.database, NEXT + 1, {NEXT + 1: use_note, NEXT: add_note})
    assert ask(state_url, "SELECT DISTINCT note FROM mv_partition") == [("some",)]
    assert ask(state_url, "SELECT version FROM mv_schema") == [(NEXT + 1,)]


def test_a_migration_that_fails_leaves_the_old_schema(used: Deployment, state_url: str) -> None:
    def half(connection: Connection) -> None:
        add_note(connection)
        connection.execute(text("DELETE FROM mv_partition"))
        raise Crash

    before, names = dump(state_url), columns(state_url, "mv_partition")
    with pytest.raises(Crash):
        migrate(used.store.database, NEXT, {NEXT: half})
    assert dump(state_url) == before
    assert columns(state_url, "mv_partition") == names
    assert used.watermark == 3


def test_two_openers_migrate_once(used: Deployment, state_url: str) -> None:
    second_is_on_its_way = threading.Event()
    migrated: list[int] = []

    def slow(connection: Connection) -> None:
        second_is_on_its_way.wait()
        migrated.append(NEXT)
        add_note(connection)

    first_has_the_lock = threading.Event()

    def first(connection: Connection) -> None:
        first_has_the_lock.set()
        slow(connection)

    def follow() -> None:
        first_has_the_lock.wait()
        other = Database(state_url)
        second_is_on_its_way.set()
        migrate(other, NEXT, {NEXT: slow})
        other.close()

    with ThreadPoolExecutor(2) as pool:
        openers = [pool.submit(migrate, used.store.database, NEXT, {NEXT: first}), pool.submit(follow)]
        for opener in openers:
            opener.result()
    assert migrated == [NEXT]
    assert ask(state_url, "SELECT version FROM mv_schema") == [(NEXT,)]

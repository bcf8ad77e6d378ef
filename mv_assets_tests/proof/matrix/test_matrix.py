"""Operations, with a fault at a call to the database or the disk: after a restart everything is right."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from mv_assets.errors import MvError
from mv_assets.state import shared_clock
from mv_assets.state.heartbeat import Heartbeat
from mv_assets.state.store import retry
from mv_assets.tables.files import locations
from mv_assets_tests.conftest import state_of
from mv_assets_tests.proof.matrix import files, libraries, statements
from mv_assets_tests.proof.matrix.faults import Killed, Kind, Process, Site
from mv_assets_tests.proof.matrix.operations import OPERATIONS, Operation
from mv_assets_tests.proof.matrix.stores import store_of
from mv_assets_tests.proof.matrix.world import World, views_of
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import day, through
from mv_assets_tests.support.warehouse_lake import DuckDbLake

# Who is killed does not close what it has open.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tries again does so at once, and gives up after a few times; no heart beats by itself.

    Stores are this machine's disk, also to those who go on after a fault.
    """
    monkeypatch.setattr(locations, "_store", lambda *_: store_of(Process()))
    monkeypatch.setattr(shared_clock, "_ASKED_EVERY_S", 0.0)
    monkeypatch.setattr(Heartbeat, "__enter__", lambda heart: heart)
    monkeypatch.setattr(Heartbeat, "__exit__", lambda *_: None)
    profile = retry.Profile(6, 0, 0)
    monkeypatch.setattr(retry.Retry.__init__, "__defaults__", (profile, profile, lambda _seconds: None))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def state_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return state_of(request.param, request, tmp_path)


@pytest.fixture
def world(tmp_path: Path, state_url: str, name: str) -> World:
    """Four days, up to date, in two generations; as the operation wants them."""
    clock = Clock(time.time_ns() // 1_000_000 + 3_600_000)
    made = World(tmp_path / "site", state_url, clock, kind=OPERATIONS[name].kind)
    with made.deployment() as lake:
        lake.write("names.parquet", through(0), 1, table="names")
        for first in (0, 2):
            lake.days(first, first + 1)
            lake.days(first, first + 1, table="payments")
            lake.run()
    return made


# The ordinary tests take some of the combinations, `make prove` all of them.
_ONE_IN = 240


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_happens_at_a_call_all_is_right_after_a_restart(
    name: str, world: World, record_property: Callable[[str, object], None]
) -> None:
    run_combinations(name, world, record_property, one_in=_ONE_IN)


@pytest.mark.deep
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_fault_at_every_call(
    name: str, world: World, record_property: Callable[[str, object], None]
) -> None:
    run_combinations(name, world, record_property, one_in=1)


def run_combinations(
    name: str, world: World, record_property: Callable[[str, object], None], *, one_in: int
) -> None:
    operation, database = OPERATIONS[name], make_url(world.url).get_backend_name()
    with world.deployment() as lake:
        operation.before(lake)
    world.keep()
    sites = calls(world, operation)
    kinds = set(Kind) - (set() if operation.delays else {Kind.DELAY})
    every = [(site, kind) for site in sites for kind in site.kinds if kind in kinds]
    chosen = random.Random(f"{name} {database}").sample(every, -(-len(every) // one_in))
    for site, kind in chosen:
        try:
            happen(world, operation, site, kind)
        except BaseException as error:
            error.add_note(f"{name} on {database}: {site} {kind}")
            raise
    record_property(
        "proved",
        f"faults: {name} on {database}: {len(chosen)} of {len(every)} combinations at {len(sites)} calls",
    )


def calls(world: World, operation: Operation) -> list[Site]:
    """The sites that the operation comes by when nothing happens; and that it is right then."""
    process = Process()
    with process_of(world, operation, process) as lake:
        operation.do(lake)
    check(world, operation)
    assert len(process.sites) > 5
    return list(process.sites)


def happen(world: World, operation: Operation, site: Site, kind: Kind) -> None:
    process, said = Process(site, kind, meanwhile=lambda apart: others_work(world, apart=apart)), True
    try:
        with process_of(world, operation, process) as lake:
            operation.do(lake)
    except (MvError, Killed):
        said = False
    # What a dead process had open is closed.
    gc.collect()
    assert process.happened
    world.views = operation.views or views_of(operation.kind)
    if said and kind is not Kind.DELAY:
        with world.deployment() as lake:
            assert operation.done(lake), "it said that it had done it"
    world.look_at_published()
    check(world, operation)


@contextmanager
def process_of(world: World, operation: Operation, process: Process) -> Iterator[DuckDbLake]:
    """The world as it was, and a process in it; of one that starts cold, from its very beginning."""
    world.restore()
    world.views = views_of(operation.kind)
    if operation.cold:
        world.clear()
    with ExitStack() as held:
        if not operation.cold:
            lake = held.enter_context(world.deployment())
        held.enter_context(statements.faulty(process))
        held.enter_context(files.faulty(process))
        held.enter_context(libraries.faulty(process))
        if operation.cold:
            lake = held.enter_context(world.deployment())
        yield lake


def others_work(world: World, *, apart: bool) -> None:
    """Time passes, and where the call leaves them room a file arrives, and a peer does all there is to do."""
    world.clock.now += 120_000
    if apart:
        with world.deployment() as peer:
            peer.write("meanwhile.parquet", [day(0)], 1)
            peer.write("meanwhile.parquet", [day(0)], 1, table="payments")
            peer.run()
            peer.gc("v")


def check(world: World, operation: Operation) -> None:
    world.views = operation.views or views_of(operation.kind)
    with world.deployment() as lake:
        operation.after(lake)
    world.heal()
    world.check()

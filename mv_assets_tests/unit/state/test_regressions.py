"""Inputs and schedules that once broke the engine."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Connection, event, text

from mv_assets.errors import BucketError, StateError
from mv_assets.state import rules
from mv_assets.state.errors import LeaseExpired, UnknownView
from mv_assets.state.health import stall
from mv_assets.state.model import (
    DataFile,
    Declaration,
    GenerationState,
    Mark,
    OldestWaiting,
    Operation,
    Outcome,
    State,
)
from mv_assets.state.store import Store
from mv_assets.state.store.map_reader import CHUNK
from mv_assets.state.store.retry import Profile
from mv_assets_tests.support.faults import failing, interrupted
from mv_assets_tests.support.harness import Clock, Deployment
from mv_assets_tests.support.memory_table import DAY, BaseTable


@pytest.fixture
def on_postgres(postgres: str, clock: Clock) -> Iterator[Deployment]:
    store = Store(postgres, now=clock)
    made = Deployment(store, BaseTable(), clock, Declaration("on postgres", "d1", "1d", 0))
    made.manager.declare(made.declaration)
    yield made
    made.manager.drop(made.name)
    store.close()


def until_one_waits(d: Deployment) -> None:
    """Until somebody waits for a lock in the database."""
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    # A transaction would see the same again and again.
    engine = d.store.database._engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as watcher:
        while not watcher.execute(waiting).scalar():
            pass


@pytest.mark.parametrize("prior", [State.VACANT, State.STALE])
@pytest.mark.parametrize("days", [1, pytest.param(CHUNK + 1, marks=pytest.mark.slow)])
def test_a_commit_that_waits_for_gc_does_not_revive_what_gc_doomed(
    on_postgres: Deployment, prior: State, days: int
) -> None:
    d = on_postgres
    d.table.day("a", 1, 0, days - 1)
    d.clock.now = (days + 10) * DAY
    d.look()
    if prior is State.STALE:
        d.refresh(*range(days))
        d.table.day("a", 2, 0, days - 1)
        d.look()
    work = d.begin(*range(days))
    d.outlive()
    outcomes = dict[int, Outcome]()
    writer = threading.Thread(target=lambda: outcomes.update(d.commit(work)))
    with d.store.write(d.name) as gc:
        gc.known_header()
        gc.doom(d.clock(), 10**9)
        writer.start()
        until_one_waits(d)
    writer.join()
    assert set(outcomes.values()) == {Outcome.PLANNED_AGAIN}
    generation = d.generation(work.attempt.generation)
    assert generation is not None
    assert generation.state is GenerationState.DOOMED


def test_a_commit_that_waits_for_a_peers_sees_what_it_wrote(on_postgres: Deployment) -> None:
    d, engine = on_postgres, on_postgres.store.database._engine
    d.fill(0)
    d.table.day("f0", 2, 0)
    d.look()
    peer = Deployment(d.store, d.table, d.clock, d.declaration)
    mine, theirs, outcomes, sent = d.begin(0), peer.begin(0), dict[int, Outcome](), list[str]()
    writer = threading.Thread(target=lambda: outcomes.update(d.commit(mine)))

    def hold(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if threading.current_thread() is writer:
            sent.append(statement)
        elif statement.startswith("UPDATE mv_view"):
            writer.start()
            until_one_waits(d)

    event.listen(engine, "before_cursor_execute", hold)
    assert peer.commit(theirs) == {0: Outcome.COMMITTED}
    writer.join()
    event.remove(engine, "before_cursor_execute", hold)
    assert outcomes == {0: Outcome.REPLAY}
    assert not [statement for statement in sent if statement.startswith("UPDATE mv_partition")]


def test_a_row_that_somebody_changed_without_the_views_lock_is_read_again(deployment: Deployment) -> None:
    deployment.fill(0)
    deployment.table.day("f0", 2, 0)
    deployment.look()
    work, engine, changed = deployment.begin(0), deployment.store.database._engine, list[bool]()

    def change(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("UPDATE mv_partition") and not changed:
            changed.append(True)
            connection.exec_driver_sql("UPDATE mv_partition SET token = token + 1")

    deployment.sleeps.clear()
    event.listen(engine, "before_cursor_execute", change)
    assert deployment.commit(work) == {0: Outcome.COMMITTED}
    event.remove(engine, "before_cursor_execute", change)
    assert (changed, len(deployment.sleeps)) == ([True], 1)


def test_a_lease_that_gc_ends_while_it_is_renewed_stays_ended(on_postgres: Deployment) -> None:
    d = on_postgres
    lease = d.leases.acquire(d.name)

    def end() -> None:
        d.outlive()
        d.registry.doom(d.name)

    with interrupted(d.store, "UPDATE mv_lease", end), pytest.raises(LeaseExpired):
        d.leases.renew(lease)
    with d.store.read(d.name) as reader:
        assert reader.leases() == []


def test_files_given_as_an_iterator_survive_a_retry(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    work, files = deployment.begin(0), (DataFile(name, 1, 1) for name in ["part-0"])
    with failing(deployment.store, "INSERT INTO mv_event") as failed:
        deployment.manager.commit(
            deployment.declaration, work.attempt, work.staged, lambda: deployment.look_again(work), files
        )
    assert failed
    generation = deployment.generation(work.attempt.generation)
    assert generation is not None
    assert generation.files == (DataFile("part-0", 1, 1),)


def test_new_inputs_start_the_backoff_anew(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    for _ in range(12):
        deployment.fail(deployment.begin(0), 0)
    deployment.table.day("a", 2, 0)
    assert deployment.retry_state(0) == [rules.RetryState.FREE]
    deployment.fail(deployment.begin(0), 0)
    record = deployment.map().attempts[0]
    assert (record.count, record.retry_after) == (1, deployment.clock() + rules.retry_delay(1))


def test_a_cancelled_retry_keeps_the_failure_before_it(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    deployment.fail(deployment.begin(0), 0, error="a is damaged")
    work = deployment.begin(0)
    deployment.manager.abandon("v", work.attempt)
    record = deployment.map().attempts[0]
    assert (record.count, record.generation, record.last_error) == (1, None, "a is damaged")


def test_work_that_kills_its_process_backs_off(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    for _ in range(8):
        deployment.begin(0)
    deployment.outlive()
    assert deployment.retry_state(0) == [rules.RetryState.BACKING_OFF]
    deployment.clock.now += rules.retry_delay(8)
    assert deployment.retry_state(0) == [rules.RetryState.ALONE]


def test_a_sparse_batch_reads_only_its_own_rows(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 900)
    deployment.look()
    statements: list[str] = []

    def count(*args: object) -> None:
        statements.append(str(args[2]))

    work = deployment.begin(0, 900)
    event.listen(deployment.store.database._engine, "before_cursor_execute", count)
    assert deployment.commit(work) == {0: Outcome.COMMITTED, 900: Outcome.COMMITTED}
    assert not [sql for sql in statements if "BETWEEN" in sql]
    assert deployment.watermark == 1


def test_text_that_no_database_holds_is_recorded_readably(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    deployment.fail(deployment.begin(0), 0, error="can't read caf\udce9\0.parquet")
    assert deployment.map().attempts[0].last_error == "can't read caf\\udce9\\0.parquet"


@pytest.mark.parametrize("name", ["nul\0", "half a pair \ud800"])
def test_a_name_that_no_database_holds_is_a_typed_error(deployment: Deployment, name: str) -> None:
    deployment.with_profile(Profile(3, 0, 0))
    with contextlib.suppress(StateError):
        deployment.manager.declare(Declaration(name, "d1", "1d", 0))
        assert deployment.store.snapshot(name).header.view == name
    assert deployment.sleeps == []


def test_a_number_that_no_column_holds_is_a_typed_error(deployment: Deployment) -> None:
    with pytest.raises(StateError):
        deployment.manager.force(deployment.declaration, [10**25 * DAY], "a person")


def test_extending_a_view_that_has_nothing_lowers_w_with_its_start(deployment: Deployment) -> None:
    deployment.manager.declare(Declaration("v", "d1", "1d", -300 * DAY))
    assert (deployment.watermark, len(deployment.map().rows)) == (-300, 0)
    assert next((event.operation, event.version) for event in deployment.events()) == (Operation.EXTEND, 2)


def test_extending_a_view_leaves_nothing_hidden_below_w(deployment: Deployment) -> None:
    deployment.fill(0)
    deployment.manager.force(deployment.declaration, [-3 * DAY], "a person", extend=True)
    assert [deployment.state(day) for day in (-3, -2, -1, 0)] == [State.STALE] * 3 + [State.VALID]
    assert deployment.watermark == 1
    forced = {event.bucket for event in deployment.events() if event.operation is Operation.FORCE}
    assert forced == {-3 * DAY}


def test_marking_what_is_no_bucket_is_refused(deployment: Deployment) -> None:
    with pytest.raises(BucketError):
        deployment.manager.mark_stale(deployment.declaration, {DAY + 1: Mark("late")})


def test_the_summary_of_a_view_that_nobody_declared_is_an_error(deployment: Deployment) -> None:
    with pytest.raises(UnknownView):
        deployment.store.summary("nobody's")


def test_what_is_before_the_start_is_nobodys_work(deployment: Deployment) -> None:
    deployment.table.day("a", 1, -1, 0)
    deployment.look()
    assert rules.due(None, deployment.header(), -DAY, deployment.current(-DAY), DAY) is rules.Due.NOTHING


def test_work_that_does_not_end_is_a_stall_of_its_run(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    deployment.begin(0)
    snapshot, now = deployment.map(), deployment.clock()
    assert snapshot.look is not None
    waits = replace(snapshot, look=replace(snapshot.look, oldest_waiting=OldestWaiting(0, now)))
    assert stall(waits, 0, DAY, now + DAY) is None
    said = stall(waits, 0, DAY, now + DAY + 1)
    assert said is not None
    assert "what began to compute it has not ended; see that its run still works" in said

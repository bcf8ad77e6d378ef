from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import delete

from mv_assets.config import StateDatabase
from mv_assets.state import rules
from mv_assets.state.errors import Fenced, GaveUp, UnknownView
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import EMPTY, CurrentInputs, Mark, Operation, Outcome, SecondLook, State
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store, open_state, schema
from mv_assets.state.store.retry import Profile
from mv_assets_tests.support.faults import ALWAYS, failing, interrupted, lost_acknowledgements
from mv_assets_tests.support.harness import Clock, Deployment, Work, view
from mv_assets_tests.support.memory_table import DAY, BaseTable

Peer = Callable[..., Deployment]


def _vacant(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()


def _stale(deployment: Deployment) -> None:
    deployment.fill(0)
    deployment.table.day("f0", 2, 0)
    deployment.look()


def _emptied(deployment: Deployment) -> None:
    deployment.fill(0)
    deployment.table.remove("f0")
    deployment.look()


KINDS = pytest.mark.parametrize(
    ("prepare", "operation"),
    [(_vacant, Operation.APPEND), (_stale, Operation.OVERWRITE), (_emptied, Operation.DELETE)],
    ids=["append", "refresh", "clear"],
)


def test_01_append_on_vacant_is_valid_and_moves_w_by_one_bucket_in_one_write(deployment: Deployment) -> None:
    _vacant(deployment)
    with deployment.one_write():
        assert deployment.refresh(0) == {0: Outcome.COMMITTED}
    assert (deployment.state(0), deployment.watermark) == (State.VALID, 1)
    assert [(e.operation, e.before, e.after) for e in deployment.events() if e.bucket == 0] == [
        (Operation.APPEND, State.VACANT, State.VALID)
    ]


def test_02_append_at_w_jumps_over_the_valid_bucket_behind_it(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 1)
    deployment.look()
    deployment.refresh(1)
    assert deployment.watermark == 0
    deployment.refresh(0)
    assert deployment.watermark == 2


def test_02_append_at_w_jumps_over_as_many_as_are_valid(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 99)
    deployment.look()
    deployment.refresh(*range(1, 100))
    assert deployment.watermark == 0
    deployment.refresh(0)
    assert deployment.watermark == 100


@KINDS
def test_03_commit_with_a_fenced_definition_is_refused_and_writes_nothing(
    deployment: Deployment, peer: Peer, prepare: Callable[[Deployment], None], operation: Operation
) -> None:
    prepare(deployment)
    work = deployment.begin(0)
    peer(declaration=view(definition="d2")).declare()
    with deployment.untouched(), pytest.raises(Fenced, match=r"'v' is now defined as d2.*d1.*adopt"):
        deployment.commit(work)
    assert deployment.sleeps == [], f"{operation} was tried again"


@KINDS
def test_04_replay_after_a_lost_acknowledgement_succeeds_and_writes_nothing(
    deployment: Deployment, prepare: Callable[[Deployment], None], operation: Operation
) -> None:
    prepare(deployment)
    work = deployment.begin(0)
    with deployment.one_write(), lost_acknowledgements(deployment.store):
        assert deployment.commit(work) == {0: Outcome.REPLAY}
    assert next(event.operation for event in deployment.events() if event.bucket == 0) is operation
    with deployment.untouched():
        assert deployment.commit(work) == {0: Outcome.REPLAY}


@KINDS
def test_05_commit_to_an_unknown_view_is_an_error(
    deployment: Deployment, prepare: Callable[[Deployment], None], operation: Operation
) -> None:
    prepare(deployment)
    work, unknown = deployment.begin(0), view(name="nobody")
    with pytest.raises(UnknownView, match="nobody"):
        deployment.manager.commit(unknown, work.attempt, work.staged, lambda: deployment.look_again(work))
    with pytest.raises(UnknownView, match="nobody"):
        deployment.manager.register(unknown, work.attempt)
    assert deployment.sleeps == [], f"{operation} was tried again"
    assert deployment.store.views() == ["v"]


def test_06_overwrite_has_new_inputs_and_time_and_leaves_w(deployment: Deployment) -> None:
    deployment.fill(0, 1)
    deployment.table.day("f0", 2, 0)
    deployment.look()
    deployment.clock.now += 1
    deployment.refresh(0)
    row = deployment.row(0)
    assert row is not None
    assert (row.state, row.operation) == (State.VALID, Operation.OVERWRITE)
    assert (row.inputs, row.refreshed_at) == (deployment.current(0).inputs, deployment.clock.now)
    assert deployment.watermark == 2


def test_06_overwrite_of_the_bucket_that_held_w_moves_it(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    deployment.fail(deployment.begin(0), 0)
    assert (deployment.state(0), deployment.watermark) == (State.STALE, 0)
    deployment.refresh(0)
    row = deployment.row(0)
    assert row is not None
    assert (row.operation, deployment.watermark) == (Operation.OVERWRITE, 1)


def test_07_a_peer_made_it_valid_with_the_current_inputs_mine_is_superseded(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    work = deployment.begin(0)
    deployment.table.day("late", 2, 0)
    assert peer().refresh(0) == {0: Outcome.COMMITTED}
    with deployment.untouched():
        assert deployment.commit(work) == {0: Outcome.SUPERSEDED}
    assert deployment.state(0) is State.VALID


def test_07_a_peer_made_it_valid_with_older_inputs_mine_is_committed(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    old, late = peer(), peer().begin(0)
    deployment.table.day("late", 2, 0)
    work = deployment.begin(0)
    removed = deployment.table.remove("late")
    assert old.commit(late) == {0: Outcome.COMMITTED}
    deployment.table.files["late"] = removed
    assert deployment.commit(work) == {0: Outcome.COMMITTED}
    row = deployment.row(0)
    assert row is not None
    assert (row.state, row.inputs) == (State.VALID, work.attempt.work[0].inputs)


def test_08_delete_with_an_empty_source_leaves_a_valid_row_with_the_empty_fingerprint(
    deployment: Deployment,
) -> None:
    _emptied(deployment)
    assert deployment.refresh(0) == {0: Outcome.COMMITTED}
    row = deployment.row(0)
    assert row is not None
    assert row.inputs is not None
    assert (row.state, row.operation, row.inputs.base) == (State.VALID, Operation.DELETE, EMPTY)
    assert (row.rows, row.generation, deployment.watermark) == (0, None, 1)


def test_09_delete_after_a_backfill_landed_writes_nothing_and_stays_stale(deployment: Deployment) -> None:
    _emptied(deployment)
    work = deployment.begin(0)
    deployment.table.day("backfill", 3, 0)
    with deployment.untouched():
        assert deployment.commit(work) == {0: Outcome.SOURCE_CHANGED}
    assert deployment.state(0) is State.STALE


def test_10_delete_whose_source_is_backfilled_between_two_attempts_stays_stale(
    deployment: Deployment, peer: Peer
) -> None:
    _emptied(deployment)
    work, other = deployment.begin(0), peer().begin(0)

    def conflict_then_backfill() -> None:
        assert peer().fail(other, 0) == [0]
        deployment.table.day("backfill", 3, 0)

    assert deployment.commit_while(work, conflict_then_backfill) == {0: Outcome.SOURCE_CHANGED}
    assert len(deployment.sleeps) == 1
    row = deployment.row(0)
    assert row is not None
    assert row.inputs is not None
    assert (row.state, row.inputs.base == EMPTY) == (State.STALE, False)


def test_11_revert_keeps_inputs_and_time_and_is_a_no_op_elsewhere(deployment: Deployment) -> None:
    deployment.fill(0, 1)
    before = deployment.row(0)
    deployment.manager.mark_stale(deployment.declaration, {0: Mark("false alarm")})
    deployment.clock.now += 1
    current_inputs = {day * DAY: deployment.current(day * DAY) for day in (0, 1, 5)}
    with deployment.one_write():
        assert deployment.manager.revert(deployment.declaration, current_inputs) == [0]
    after = deployment.row(0)
    assert before is not None
    assert after is not None
    assert (after.state, after.inputs, after.refreshed_at, after.generation, after.content) == (
        State.VALID,
        before.inputs,
        before.refreshed_at,
        before.generation,
        before.content,
    )
    with deployment.untouched():
        assert deployment.manager.revert(deployment.declaration, current_inputs) == []


def test_11_revert_mark_and_fail_of_a_view_that_nobody_declared_do_nothing(deployment: Deployment) -> None:
    deployment.fill(0)
    deployment.table.day("f1", 1, 1)
    unknown, work, current_inputs = view(name="nobody"), deployment.begin(1), {0: deployment.current(0)}
    with deployment.untouched():
        assert deployment.manager.revert(unknown, current_inputs) == []
        assert deployment.manager.mark_stale(unknown, {0: Mark("late")}) == []
        assert deployment.manager.fail(unknown, work.attempt, {DAY: "damaged"}) == []
    assert (deployment.store.views(), deployment.sleeps) == (["v"], [])
    # A person's mark is an order: one that nobody can follow is refused.
    with pytest.raises(UnknownView, match="nobody"):
        deployment.manager.force(unknown, [0], "a person")


def test_11_revert_needs_all_inputs_equal_and_data(deployment: Deployment) -> None:
    deployment.fill(0)
    deployment.table.day("f1", 1, 1)
    deployment.look()
    deployment.fail(deployment.begin(1), 1)
    deployment.table.day("f0", 2, 0)
    deployment.look()
    with deployment.untouched():
        current_inputs = {day * DAY: deployment.current(day * DAY) for day in (0, 1)}
        assert deployment.manager.revert(deployment.declaration, current_inputs) == []


def test_12_mark_stale_is_one_write_that_flips_valid_and_synthesises_vacant_below_w(
    store: Store, table: BaseTable, clock: Clock
) -> None:
    deployment = Deployment(store, table, clock, view(start=1 * DAY))
    deployment.declare()
    deployment.fill(1, 2, 3)
    deployment.manager.mark_stale(deployment.declaration, {2 * DAY: Mark("first")})
    # A row that vanished is not reachable by any operation; the rule is there for damage.
    with store.database.write() as connection:
        connection.execute(delete(schema.partition).where(schema.partition.c.bucket == 3 * DAY))
    assert deployment.watermark == 4
    marks = {day * DAY: Mark("again") for day in (0, 1, 2, 3, 4, 9)}
    with deployment.one_write():
        assert deployment.manager.mark_stale(deployment.declaration, marks) == [1 * DAY, 3 * DAY]
    rows = deployment.map().rows
    assert {b // DAY: (row.state, row.reason, row.has_data) for b, row in rows.items()} == {
        1: (State.STALE, "again", True),
        2: (State.STALE, "first", True),
        3: (State.STALE, "again", False),
    }
    with deployment.untouched():
        assert deployment.manager.mark_stale(deployment.declaration, marks) == []


def test_13_empty_batches_do_no_io(deployment: Deployment) -> None:
    nothing, manager, declared = deployment.plan(), deployment.manager, deployment.declaration
    with failing(deployment.store, "SELECT INSERT UPDATE DELETE BEGIN", ALWAYS) as attempted:
        assert manager.mark_stale(declared, {}) == []
        assert manager.revert(declared, {}) == []
        assert manager.fail(declared, nothing.attempt, {}) == []
        assert manager.force(declared, [], "nothing") == []
        assert deployment.commit(nothing) == {}
    assert attempted == []


def test_14_two_conflicts_then_success_at_the_third_attempt(deployment: Deployment, peer: Peer) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    first = deployment.begin(0)
    deployment.table.day("b", 2, 0)
    second = deployment.begin(0)
    deployment.table.day("c", 3, 0)
    work, slow = deployment.begin(0), peer()
    outcomes: list[dict[int, Outcome]] = []
    conflicts = (lambda: outcomes.append(slow.commit(first)), lambda: outcomes.append(slow.commit(second)))
    assert deployment.commit_while(work, *conflicts) == {0: Outcome.COMMITTED}
    assert outcomes == [{0: Outcome.COMMITTED_STALE}] * 2
    assert len(deployment.sleeps) == 2
    assert all(0.05 <= pause <= 0.2 for pause in deployment.sleeps)


@pytest.mark.parametrize("words", ["SELECT", "INSERT", "UPDATE"])
def test_15_transport_errors_on_read_and_write_are_tried_again(deployment: Deployment, words: str) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    work = deployment.begin(0)
    looks: list[int] = []
    with deployment.one_write(), failing(deployment.store, words, times=2) as failed:
        decided = deployment.manager.commit(
            deployment.declaration, work.attempt, work.staged, lambda: _counted(deployment, work, looks)
        )
    assert decided[0].outcome is Outcome.COMMITTED
    assert (len(failed), len(deployment.sleeps), len(looks)) == (2, 2, 3)


def _counted(deployment: Deployment, work: Work, looks: list[int]) -> SecondLook:
    """Each attempt looks again: what an earlier one saw may be out of date by now."""
    looks.append(1)
    return deployment.look_again(work)


@pytest.mark.parametrize("operation", ["commit", "mark_stale", "revert"])
def test_16_a_spent_budget_is_an_error_that_names_view_and_operation(
    deployment: Deployment, operation: str
) -> None:
    deployment.fill(0)
    deployment.table.day("f1", 1, 1)
    work = deployment.begin(1)
    deployment.with_profile(Profile(3, 0.0, 0.0))
    manager, declared = deployment.manager, deployment.declaration
    call: dict[str, Callable[[], object]] = {
        "commit": lambda: deployment.commit(work),
        "mark_stale": lambda: manager.mark_stale(declared, {0: Mark("alarm")}),
        "revert": lambda: manager.revert(declared, {0: deployment.current(0)}),
    }
    deployment.sleeps.clear()
    with deployment.untouched():
        with (
            failing(deployment.store, "SELECT", ALWAYS) as failed,
            pytest.raises(GaveUp, match=f"{operation} on view 'v' gave up after 3 attempts"),
        ):
            call[operation]()
        assert (len(failed), len(deployment.sleeps)) == (3, 2)


def test_16_the_budgets_are_128_tries_for_commits_and_8_for_reverts(deployment: Deployment) -> None:
    deployment.fill(0)
    with failing(deployment.store, "SELECT", ALWAYS) as failed:
        with pytest.raises(GaveUp):
            deployment.manager.mark_stale(deployment.declaration, {0: Mark("alarm")})
        critical = len(failed)
        with pytest.raises(GaveUp):
            deployment.manager.revert(deployment.declaration, {0: CurrentInputs(None)})
    assert (critical, len(failed) - critical) == (128, 8)
    assert all(0.005 <= pause <= 0.025 for pause in deployment.sleeps[-7:])


def test_16_the_budget_is_a_setting_of_the_project_for_all_who_work_on_its_state(state_url: str) -> None:
    store = open_state(StateDatabase(url=state_url, attempts=2))
    manager = PartitionManager(store, clock=Clock())
    manager.declare(view())
    tried: list[Callable[[], object]] = [
        lambda: manager.mark_stale(view(), {0: Mark("late")}),
        lambda: Registry(store).doom("v"),
        lambda: Leases(store).acquire("v"),
        store.views,
    ]
    for attempt in tried:
        with (
            failing(store, "SELECT INSERT UPDATE DELETE", ALWAYS) as failed,
            pytest.raises(GaveUp, match="gave up after 2 attempts"),
        ):
            attempt()
        assert len(failed) == 2
    store.close()


def test_17_mark_and_append_of_the_next_bucket_at_once_both_survive(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.fill(0)
    deployment.table.day("f1", 1, 1)
    deployment.look()
    work = deployment.begin(1)
    other = peer()
    outcome = deployment.commit_while(
        work, lambda: other.manager.mark_stale(other.declaration, {0: Mark("late file")})
    )
    assert outcome == {1: Outcome.COMMITTED}
    assert (deployment.state(0), deployment.state(1), deployment.watermark) == (State.STALE, State.VALID, 2)


def test_18_a_forced_mark_is_not_reverted_though_all_inputs_are_equal(deployment: Deployment) -> None:
    deployment.fill(0)
    before = deployment.row(0)
    assert deployment.manager.force(deployment.declaration, [0], "look at it again") == [0]
    with deployment.untouched():
        assert deployment.manager.revert(deployment.declaration, {0: deployment.current(0)}) == []
    assert deployment.planned() == {0: rules.Due.OVERWRITE}
    deployment.converge()
    after = deployment.row(0)
    assert before is not None
    assert after is not None
    assert (after.state, after.forced) == (State.VALID, False)
    assert after.generation != before.generation


def test_19_drop_makes_all_vacant_and_their_generations_garbage_in_one_write(
    deployment: Deployment,
) -> None:
    deployment.fill(0, 1)
    deployment.fill(2)
    names = {row.generation for row in deployment.map().rows.values()}
    work = deployment.begin(0)
    reader = deployment.leases.acquire("v")
    with deployment.one_write():
        deployment.manager.drop("v", "not needed")
    assert (deployment.map().rows, deployment.map().attempts, deployment.watermark) == ({}, {}, 0)
    assert deployment.commit(work) == {0: Outcome.PLANNED_AGAIN}
    deployment.clock.now += 30_000
    deployment.leases.renew(reader)
    deployment.clock.now += 30_000
    # A reader that began before the DROP keeps its files until its lease ends.
    assert set(deployment.collect()).isdisjoint(names)
    deployment.clock.now += 30_000
    assert set(deployment.collect()) >= names
    deployment.converge()
    assert deployment.watermark == 3


def test_19_a_view_and_what_is_based_on_it_are_dropped_in_one_transaction(
    store: Store, table: BaseTable, clock: Clock
) -> None:
    both = [Deployment(store, table, clock, view(name=name)) for name in ("v", "a")]
    for each in both:
        each.declare()
        each.fill(0, 1)
    versions = [each.header().version for each in both]
    # The last of them stops it, when the others' rows are gone already: nothing of that stays.
    with pytest.raises(UnknownView, match="zzz"):
        both[0].manager.drop("v", dependants=["a", "zzz"])
    assert [each.header().version for each in both] == versions
    assert [each.state(day) for each in both for day in (0, 1)] == [State.VALID] * 4
    both[0].manager.drop("v", dependants=["a"])
    assert [each.header().version for each in both] == [version + 1 for version in versions]
    assert [each.map().rows for each in both] == [{}, {}]


def test_20_a_batch_of_many_buckets_is_one_version_step(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 29)
    deployment.look()
    work = deployment.begin(*range(30))
    with deployment.one_write():
        assert set(deployment.commit(work).values()) == {Outcome.COMMITTED}
    assert {row.token for row in deployment.map().rows.values()} == {deployment.header().version}
    deployment.table.day("a", 2, 0, 29)
    with deployment.one_write():
        assert len(deployment.look()) == 30


def test_35_two_cold_starts_at_once_make_one_view(state_url: str, clock: Clock) -> None:
    together = Barrier(2)

    def start(who: str) -> int:
        together.wait()
        store = Store(state_url, now=clock)
        version = Deployment(store, BaseTable(), clock, who=who).declare().version
        store.close()
        return version

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(start, ["a", "b"])) == [1, 1]
    store = Store(state_url, now=clock)
    started = Deployment(store, BaseTable(), clock)
    assert (store.views(), [event.operation for event in started.events()]) == (["v"], [Operation.DECLARE])
    store.close()


# SQLite lets only one transaction write at a time, so there the race is over before it begins.
@pytest.mark.parametrize("state_url", ["postgresql"], indirect=True)
def test_35_a_peer_that_inserts_the_view_row_first_wins_and_the_other_finds_it(
    store: Store, table: BaseTable, clock: Clock
) -> None:
    deployment, first = Deployment(store, table, clock), Deployment(store, table, clock)
    with interrupted(store, "INSERT INTO mv_view", first.declare):
        assert deployment.declare() == first.header()
    assert (len(deployment.sleeps), first.sleeps, len(deployment.events())) == (1, [], 1)

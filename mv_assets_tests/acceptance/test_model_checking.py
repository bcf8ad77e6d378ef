"""Schedules that a model checker found against earlier rules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from mv_assets.state import rules
from mv_assets.state.errors import Fenced
from mv_assets.state.model import (
    Attempt,
    Copied,
    DataFile,
    Fingerprint,
    GenerationState,
    Look,
    Mark,
    Operation,
    Outcome,
    State,
)
from mv_assets.state.store import Store
from mv_assets_tests.support.faults import lost_acknowledgements
from mv_assets_tests.support.harness import Clock, Deployment, view
from mv_assets_tests.support.memory_table import DAY, BaseTable

Peer = Callable[..., Deployment]


def test_82_a_file_rewritten_and_restored_while_it_was_read_does_not_become_valid(
    deployment: Deployment,
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    work = deployment.register(deployment.plan(0))
    listed = deployment.table.files["a"]
    deployment.table.day("a", 2, 0)
    work = deployment.stage(work)
    deployment.table.restore("a", listed)
    assert deployment.current(0).inputs == work.attempt.work[0].inputs
    with deployment.untouched():
        assert deployment.commit(work) == {0: Outcome.SOURCE_CHANGED}
    assert deployment.planned() == {0: rules.Due.APPEND}


def test_83_a_generation_of_which_one_bucket_committed_stays(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.table.day("b", 1, 1)
    deployment.look()
    work = deployment.begin(0, 1)
    deployment.table.day("a", 2, 0)
    assert deployment.commit(work) == {0: Outcome.SOURCE_CHANGED, 1: Outcome.COMMITTED}
    deployment.outlive()
    assert deployment.collect() == []
    deployment.converge()
    deployment.outlive()
    assert deployment.collect() == []
    row = deployment.row(1)
    assert row is not None
    assert row.generation == work.attempt.generation


@pytest.mark.parametrize("forgotten", [False, True], ids=["doomed", "forgotten"])
def test_84_a_commit_of_a_generation_that_gc_decided_on_is_refused_and_planned_again(
    deployment: Deployment, *, forgotten: bool
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    slow = deployment.begin(0)
    deployment.outlive()
    assert [doomed.id for doomed in deployment.registry.doom("v")] == [slow.attempt.generation]
    if forgotten:
        deployment.registry.forget("v", slow.attempt.generation)
    with deployment.untouched():
        assert deployment.commit(slow) == {0: Outcome.PLANNED_AGAIN}
    assert deployment.planned() == {0: rules.Due.APPEND}
    assert deployment.retry_state(0) == [rules.RetryState.FREE]


def test_85_a_changed_dimension_is_refreshed_once_and_never_reverted(deployment: Deployment) -> None:
    deployment.dimensions["zones"] = Fingerprint(1, 1)
    deployment.fill(0, 1)
    deployment.dimensions["zones"] = Fingerprint(1, 2)
    assert deployment.look() == [0, 1]
    with deployment.untouched():
        current_inputs = {day * DAY: deployment.current(day * DAY) for day in (0, 1)}
        assert deployment.manager.revert(deployment.declaration, current_inputs) == []
    assert deployment.planned() == {0: rules.Due.OVERWRITE, 1: rules.Due.OVERWRITE}
    deployment.converge()
    with deployment.untouched():
        deployment.converge()
    assert deployment.state(0) is State.VALID


def test_86_compaction_does_not_bring_back_rows_that_an_overwrite_replaced(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.table.day("b", 1, 1)
    deployment.look()
    copied = deployment.begin(0, 1)
    deployment.commit(copied)
    deployment.manager.register(deployment.declaration, Attempt("copy", deployment.header().version, ()))
    deployment.table.day("a", 2, 0)
    deployment.look()
    newer = deployment.begin(0)
    deployment.commit(newer)
    old = deployment.row(1)
    files = [DataFile("copy/part-0.parquet", 1, 1)]
    with deployment.one_write():
        rows = dict.fromkeys([0, DAY], Copied(copied.attempt.generation, 7))
        moved = deployment.manager.repoint("v", "copy", rows, files)
    assert moved == [DAY]
    kept, repointed = deployment.row(0), deployment.row(1)
    assert old is not None
    assert kept is not None
    assert repointed is not None
    assert kept.generation == newer.attempt.generation
    assert (repointed.generation, repointed.content, repointed.inputs) == ("copy", old.content, old.inputs)
    assert (repointed.rows, repointed.bytes) == (old.rows, 7)
    deployment.outlive()
    assert deployment.collect() == [copied.attempt.generation]


def test_87_bucket_0_fails_1_is_valid_0_heals_and_w_is_2(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 1)
    deployment.look()
    deployment.fail(deployment.begin(0), 0)
    deployment.refresh(1)
    assert deployment.watermark == 0
    deployment.refresh(0)
    assert deployment.watermark == 2


def test_88_a_look_that_only_restores_the_sources_end_moves_w(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 1)
    deployment.clock.now = DAY
    deployment.look()
    deployment.refresh(0, 1)
    assert (deployment.header().source_end, deployment.watermark) == (0, 0)
    deployment.clock.now = 2 * DAY
    with deployment.one_write():
        assert deployment.look() == []
    assert deployment.watermark == 2


def test_89_a_force_between_a_lost_acknowledgement_and_its_retry_stays(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    work = deployment.begin(0)

    def force() -> None:
        deployment.manager.force(deployment.declaration, [0], "not to be trusted")

    with lost_acknowledgements(deployment.store):
        assert deployment.commit_while(work, lambda: None, force) == {0: Outcome.PLANNED_AGAIN}
    row = deployment.row(0)
    assert row is not None
    assert (row.state, row.forced, row.has_data) == (State.STALE, True, True)
    assert deployment.planned() == {0: rules.Due.OVERWRITE}


@pytest.mark.parametrize("whole", [False, True], ids=["bucket", "whole view"])
def test_89_work_planned_before_a_force_does_not_serve_it(deployment: Deployment, *, whole: bool) -> None:
    deployment.fill(0)
    deployment.table.day("f0", 2, 0)
    deployment.table.day("f1", 1, 1)
    deployment.look()
    before = deployment.begin(0)
    deployment.manager.force(deployment.declaration, None if whole else [0], "read it anew")
    assert deployment.commit(before) == {0: Outcome.PLANNED_AGAIN}
    after = deployment.begin(0)
    assert deployment.commit(before) == {0: Outcome.PLANNED_AGAIN}
    assert deployment.commit(after) == {0: Outcome.COMMITTED}


def test_89_work_planned_before_a_force_does_not_fail_the_bucket(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    before = deployment.begin(0)
    deployment.manager.force(deployment.declaration, [0], "read it anew")
    assert deployment.fail(before, 0) == []
    assert rules.fail(deployment.row(0), deployment.header(), 0, before.attempt, "damaged") is None
    assert deployment.retry_state(0) == [rules.RetryState.FREE]


def test_89_a_force_outlives_the_rows_that_another_width_dropped(deployment: Deployment, peer: Peer) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    before = deployment.begin(0)
    deployment.manager.force(deployment.declaration, [0], "read it anew")
    peer(declaration=view(definition="d2", width="1h")).declare()
    deployment.manager.adopt("v", "d1")
    assert deployment.commit(before) == {0: Outcome.PLANNED_AGAIN}
    assert deployment.state(0) is not State.VALID


def test_90_a_change_between_a_commits_look_and_its_write_is_found_by_the_next_look(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    work, other = deployment.begin(0), peer()

    def change_and_look() -> None:
        deployment.table.day("late", 2, 0)
        assert other.look() == []

    assert deployment.commit_while(work, change_and_look) == {0: Outcome.COMMITTED}
    record = deployment.map().look
    assert record is not None
    assert record.table_version == deployment.table.version
    assert not _idle(deployment)
    assert deployment.look() == [0]
    assert _idle(deployment)
    deployment.converge()
    deployment.look()
    assert _idle(deployment)


def test_90_a_row_that_a_peer_writes_during_a_look_is_not_covered_by_it(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    found = deployment.map()
    look = Look(deployment.table.version, found.header.version, deployment.clock(), found.header.source_end)
    deployment.refresh(0)
    deployment.manager.look(deployment.declaration, look)
    assert not _idle(deployment)
    deployment.look()
    assert _idle(deployment)


def _idle(deployment: Deployment) -> bool:
    found = deployment.map()
    return rules.idle(found.look, deployment.table.version, found.header.version, deployment.clock())


@pytest.mark.parametrize("width", ["1d", "1h"])
def test_91_of_two_definitions_restarted_in_any_order_one_takes_over_and_the_other_is_fenced(
    store: Store, table: BaseTable, clock: Clock, width: str
) -> None:
    widths = {"d1": "1d", "d2": width}
    for number, order in enumerate(product(widths, repeat=4)):
        appeared = list(dict.fromkeys(order))
        started = [Deployment(store, table, clock, view(f"v{number}", d, widths[d])) for d in order]
        for deployment in started:
            fenced = _starts(deployment)
            assert fenced == (deployment.header().definition != deployment.declaration.definition), order
        last = started[-1]
        assert last.header().definition == appeared[-1], order
        taken = [event for event in last.events() if event.operation is Operation.TAKE_OVER]
        assert len(taken) == len(appeared) - 1, order
        with last.untouched():
            assert [_starts(deployment) for deployment in started] == [d != appeared[-1] for d in order]


def _starts(deployment: Deployment) -> bool:
    """A restart, and whether it was fenced; a fenced deployment neither looks, reverts nor plans."""
    try:
        deployment.declare()
    except Fenced:
        with deployment.untouched():
            _is_fenced_from_everything(deployment)
        return True
    return False


def _is_fenced_from_everything(deployment: Deployment) -> None:
    manager, declared = deployment.manager, deployment.declaration
    with pytest.raises(Fenced):
        deployment.look([])
    with pytest.raises(Fenced):
        manager.mark_stale(declared, {0: Mark("difference")})
    with pytest.raises(Fenced):
        manager.revert(declared, {0: deployment.current(0)})
    with pytest.raises(Fenced):
        manager.force(declared, [0], "a person")
    with pytest.raises(Fenced):
        deployment.register(deployment.plan(0))


def test_92_a_bucket_whose_files_never_rest_still_gets_data_and_w_moves(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    contents = []
    for number in range(3):
        work = deployment.begin(0)
        deployment.table.day(f"late{number}", 1, 0)
        assert deployment.commit(work) == {0: Outcome.COMMITTED_STALE}
        row = deployment.row(0)
        assert row is not None
        assert (row.state, row.rows, deployment.watermark) == (State.STALE, number + 1, 1)
        assert row.inputs == work.attempt.work[0].inputs
        contents.append(row.content)
    assert len(set(contents)) == 3
    deployment.converge()
    assert deployment.state(0) is State.VALID


def test_93_work_that_kills_its_process_runs_alone_next_time_and_its_neighbours_commit(
    deployment: Deployment,
) -> None:
    deployment.table.day("a", 1, 0, 2)
    deployment.look()
    deployment.begin(0, 1, 2)
    assert deployment.retry_state(0, 1, 2) == [rules.RetryState.IN_FLIGHT] * 3
    deployment.outlive()
    assert deployment.retry_state(0, 1, 2) == [rules.RetryState.ALONE] * 3
    for day in (0, 1, 2):
        work = deployment.begin(day)
        if day != 1:
            assert deployment.commit(work) == {day: Outcome.COMMITTED}
    deployment.outlive()
    assert deployment.map().attempts.keys() == {DAY}
    assert deployment.map().attempts[DAY].count == 2
    assert deployment.retry_state(0, 1, 2) == [
        rules.RetryState.FREE,
        rules.RetryState.ALONE,
        rules.RetryState.FREE,
    ]
    assert [deployment.state(day) for day in (0, 1, 2)] == [State.VALID, State.VACANT, State.VALID]


def test_93_an_unfinished_attempt_runs_alone_though_an_older_failure_had_other_inputs(
    deployment: Deployment,
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    deployment.fail(deployment.begin(0), 0)
    deployment.table.day("a", 2, 0)
    assert deployment.retry_state(0) == [rules.RetryState.FREE]
    deployment.begin(0)
    deployment.outlive()
    assert deployment.retry_state(0) == [rules.RetryState.ALONE]


def test_94_one_row_dated_2099_does_not_let_w_run_away(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.table.day("b", 1, 1)
    deployment.table.day("wrong", 1, 1, 129 * 365)
    deployment.converge()
    assert (deployment.header().source_end, deployment.watermark) == (2 * DAY - 1, 2)
    assert deployment.planned() == {}
    with deployment.untouched():
        deployment.converge()


def test_95_frozen_buckets_are_not_replaced_by_a_forced_mark_while_files_are_missing(
    deployment: Deployment,
) -> None:
    deployment.freezes = True
    deployment.fill(0)
    before, removed = deployment.row(0), deployment.table.remove("f0")
    assert deployment.look() == [0]
    frozen = deployment.row(0)
    assert frozen is not None
    assert (frozen.state, frozen.frozen) == (State.VALID, True)
    deployment.manager.force(deployment.declaration, [0], "again")
    assert deployment.planned() == {0: rules.Due.WAIT}
    with deployment.untouched():
        assert deployment.refresh(0) == {0: Outcome.FROZEN}
    deployment.table.restore("f0", removed)
    deployment.converge()
    after = deployment.row(0)
    assert before is not None
    assert after is not None
    assert (after.state, after.frozen, after.inputs) == (State.VALID, False, before.inputs)
    assert after.generation != before.generation


def test_95_frozen_buckets_are_not_replaced_by_a_dimension_mark_while_files_are_missing(
    deployment: Deployment,
) -> None:
    deployment.freezes = True
    deployment.dimensions["zones"] = Fingerprint(1, 1)
    deployment.fill(0)
    before, removed = deployment.row(0), deployment.table.remove("f0")
    deployment.look()
    deployment.dimensions["zones"] = Fingerprint(1, 2)
    assert deployment.look() == [0]
    marked = deployment.row(0)
    assert before is not None
    assert marked is not None
    assert (marked.state, marked.frozen, marked.generation) == (State.STALE, True, before.generation)
    assert deployment.planned() == {0: rules.Due.WAIT}
    with deployment.untouched():
        assert deployment.refresh(0) == {0: Outcome.FROZEN}
    deployment.table.restore("f0", removed)
    deployment.converge()
    assert deployment.state(0) is State.VALID


def test_96_while_upstream_is_stale_downstream_is_not_emptied(deployment: Deployment) -> None:
    deployment.fill(0, 1)
    deployment.manager.force(deployment.declaration, [DAY], "again")
    work = deployment.begin(1)
    before = deployment.row(0)
    deployment.waiting = {0: "u 1970-01-01", DAY: "u 1970-01-02"}
    deployment.table.remove("f0")
    deployment.table.remove("f1")
    with deployment.untouched():
        # The tables' end went back as well, and a look must not take that for emptiness.
        deployment.manager.mark_stale(deployment.declaration, {0: Mark("gone", deployment.current(0))})
        assert deployment.commit(work) == {1: Outcome.WAITING}
    assert deployment.row(0) == before
    assert deployment.planned() == {1: rules.Due.WAIT}


def test_99_peers_that_commit_other_buckets_all_the_time_do_not_hold_mine_up(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.table.day("a", 1, 0, 5)
    deployment.look()
    work, busy = deployment.begin(0), peer()
    version = deployment.header().version
    assert deployment.commit_while(work, lambda: [busy.refresh(day) for day in range(1, 6)]) == {
        0: Outcome.COMMITTED
    }
    assert (deployment.header().version, deployment.sleeps) == (version + 6, [])
    found = deployment.generation(work.attempt.generation)
    assert found is not None
    assert (found.state, deployment.watermark) == (GenerationState.LIVE, 6)

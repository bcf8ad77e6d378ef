"""What a plan holds, as far as the rules decide it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from mv_assets.buckets import HOUR, Buckets
from mv_assets.state import rules
from mv_assets.state.model import EMPTY, Operation, State
from mv_assets.state.store import Store
from mv_assets.tables.reach import source_end
from mv_assets_tests.support.harness import Clock, Deployment, view
from mv_assets_tests.support.memory_table import DAY, BaseTable, File
from mv_assets_tests.support.memory_view import listed

Peer = Callable[..., Deployment]


def test_27_the_latest_end_ignores_what_lies_after_now() -> None:
    past, running, ahead = (0, 5), (7, 2_000), (1_500, 2_000)

    def end(*ranges: tuple[int, int]) -> int | None:
        files = {str(at): File(1, *each, 1) for at, each in enumerate(ranges)}
        return source_end(listed("base", files, "", 1_000), 1_000)

    assert end(past) == 5
    assert end(past, running, ahead) == 7
    assert end(past, ahead) == 5
    assert end((0, 1_000)) == 1_000
    assert end(ahead) is None
    assert end() is None


def test_27_without_a_known_source_end_there_is_no_append_and_w_stays(deployment: Deployment) -> None:
    deployment.table.put("ahead", 1, deployment.clock.now + 1, deployment.clock.now + DAY)
    deployment.look()
    assert deployment.header().source_end is None
    current = deployment.current(0)
    assert rules.due(None, deployment.header(), 0, current, cutoff=DAY) is rules.Due.NOTHING
    assert deployment.planned() == {}
    deployment.refresh(0)
    assert deployment.watermark == 0


@pytest.mark.parametrize(("end", "planned"), [(DAY - 1, {0: rules.Due.APPEND}), (DAY - 2, {})])
def test_28_a_segment_ending_at_the_buckets_last_millisecond_admits_it(
    deployment: Deployment, end: int, planned: dict[int, rules.Due]
) -> None:
    deployment.table.put("a", 1, 0, end)
    deployment.look()
    assert deployment.planned() == planned
    deployment.refresh(0)
    assert deployment.watermark == len(planned)


def test_29_w_stops_at_the_tail_of_a_stalled_source_however_late_it_is(deployment: Deployment) -> None:
    deployment.table.put("a", 1, 0, 3 * DAY + HOUR)
    deployment.converge()
    assert deployment.watermark == 3
    deployment.clock.now += 1_000 * DAY
    with deployment.untouched():
        deployment.converge()
    assert deployment.watermark == 3


def test_30_with_data_ahead_of_the_buffer_the_clock_wins(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 9)
    deployment.look()
    header, now, buffer = deployment.header(), 5 * DAY + HOUR, 2 * HOUR
    assert header.source_end == 10 * DAY - 1
    cutoff = min(now - buffer, header.source_end + 1)
    due = [rules.due(None, header, day * DAY, deployment.current(day * DAY), cutoff) for day in range(6)]
    assert due == [rules.Due.APPEND] * 4 + [rules.Due.NOTHING] * 2


def test_31_after_a_failure_in_the_middle_the_plan_holds_only_it_and_then_w_jumps(
    deployment: Deployment,
) -> None:
    deployment.table.day("a", 1, 0, 2)
    deployment.look()
    work = deployment.begin(0, 1, 2)
    assert deployment.fail(work, 1) == [DAY]
    deployment.refresh(0, 2)
    deployment.look()
    assert (deployment.watermark, deployment.planned()) == (1, {1: rules.Due.OVERWRITE})
    assert deployment.retry_state(1) == [rules.RetryState.BACKING_OFF]
    deployment.clock.now += rules.retry_delay(1)
    assert deployment.retry_state(1) == [rules.RetryState.ALONE]
    deployment.refresh(1)
    assert (deployment.watermark, deployment.planned()) == (3, {})


def test_32_a_false_alarm_is_reverted_without_a_run(deployment: Deployment) -> None:
    deployment.fill(0)
    before, content = deployment.row(0), deployment.table.files["f0"]
    deployment.table.day("f0", 2, 0)
    deployment.look()
    deployment.table.restore("f0", content)
    assert deployment.planned() == {0: rules.Due.REVERT}
    with deployment.one_write():
        deployment.converge()
    after = deployment.row(0)
    assert before is not None
    assert after is not None
    assert (after.state, after.generation) == (State.VALID, before.generation)
    assert deployment.events()[0].operation is Operation.REVERT


def test_34_changed_inputs_and_a_forced_mark_reset_the_backoff(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 1)
    deployment.look()
    deployment.fail(deployment.begin(0, 1), 0, 1)
    assert deployment.retry_state(0, 1) == [rules.RetryState.BACKING_OFF] * 2
    deployment.manager.force(deployment.declaration, [0], "try now")
    assert deployment.retry_state(0, 1) == [rules.RetryState.FREE, rules.RetryState.BACKING_OFF]
    deployment.table.day("late", 2, 1)
    assert deployment.retry_state(1) == [rules.RetryState.FREE]


def test_34_the_pause_doubles_with_each_failure_and_is_bounded(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    pauses = []
    for number in range(1, 13):
        deployment.fail(deployment.begin(0), 0, error=f"failure {number}")
        record = deployment.map().attempts[0]
        assert (record.count, record.last_error) == (number, f"failure {number}")
        assert record.retry_after is not None
        pauses.append(record.retry_after - deployment.clock.now)
        deployment.clock.now = record.retry_after
    assert all(two == min(2 * one, 3_600_000) for one, two in pairwise(pauses))
    assert (pauses[0], pauses[-1]) == (10_000, 3_600_000)


def test_36_a_stale_bucket_that_is_still_empty_is_not_emptied_again(deployment: Deployment) -> None:
    deployment.fill(0, 1)
    deployment.table.remove("f0")
    deployment.converge()
    deployment.table.day("backfill", 1, 0)
    assert deployment.look() == [0]
    deployment.table.remove("backfill")
    assert deployment.planned() == {0: rules.Due.REVERT}
    deployment.converge()
    row = deployment.row(0)
    assert row is not None
    assert row.inputs is not None
    assert (row.state, row.inputs.base) == (State.VALID, EMPTY)
    with deployment.untouched():
        deployment.converge()


def test_37_a_new_definition_makes_every_bucket_stale_and_w_start_anew_in_one_write(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.fill(0, 1, 2)
    newer = peer(declaration=view(definition="d2"))
    with deployment.one_write():
        newer.declare()
    assert [newer.state(day) for day in range(3)] == [State.STALE] * 3
    assert (newer.watermark, newer.events()[0].operation) == (0, Operation.TAKE_OVER)
    assert newer.events()[0].why == "definition d2"
    assert {row.state for row in newer.map().rows.values()} == {State.VALID}
    newer.look()
    assert newer.planned() == dict.fromkeys(range(3), rules.Due.OVERWRITE)
    newer.converge()
    assert (newer.watermark, newer.state(0)) == (3, State.VALID)


def test_37_a_new_width_drops_the_rows_and_their_generations_become_garbage(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.fill(0)
    row = deployment.row(0)
    newer = peer(declaration=view(definition="d2", width="1mo"))
    with deployment.one_write():
        newer.declare()
    assert newer.map().rows == {}
    deployment.outlive()
    assert row is not None
    assert newer.collect() == [row.generation]


def test_37_rows_of_an_adopted_definition_are_trusted_again_only_after_a_look(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.fill(0, 1)
    peer(declaration=view(definition="d2")).declare()
    with deployment.one_write():
        deployment.manager.adopt("v", "d1")
    deployment.table.day("f1", 2, 1)
    assert [deployment.state(day) for day in (0, 1)] == [State.STALE] * 2
    deployment.look()
    assert deployment.planned() == {0: rules.Due.REVERT, 1: rules.Due.OVERWRITE}
    deployment.converge()
    assert ([deployment.state(day) for day in (0, 1)], deployment.watermark) == ([State.VALID] * 2, 2)


@pytest.mark.parametrize("width", ["1w", "1mo"])
def test_100_week_and_month_buckets_commit_and_move_w_by_the_calendar_before_1970_too(
    store: Store, table: BaseTable, clock: Clock, width: str
) -> None:
    buckets = Buckets.of(width)
    deployment = Deployment(store, table, clock, view(width=width, start=buckets.floor(-40 * DAY)))
    deployment.declare()
    table.put("a", 1, -40 * DAY, 70 * DAY)
    deployment.converge()
    expected = list(buckets.between(-40 * DAY, buckets.floor(70 * DAY + 1)))
    assert list(deployment.map().rows) == expected
    assert deployment.header().watermark == buckets.floor(70 * DAY + 1)
    late = -1
    table.put("late", 2, late, late)
    assert deployment.look() == [buckets.floor(late) // DAY]
    deployment.converge()
    assert {row.state for row in deployment.map().rows.values()} == {State.VALID}

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations

import pytest

from mv_assets.state import rules
from mv_assets.state.errors import RowsMoved, Sealed
from mv_assets.state.model import (
    Attempt,
    GenerationState,
    Header,
    Outcome,
    PartitionRow,
    Planned,
    SecondLook,
    Staged,
    State,
)
from mv_assets.state.store import Store
from mv_assets_tests.support.faults import lost_acknowledgements
from mv_assets_tests.support.harness import Clock, Deployment, Work, view
from mv_assets_tests.support.memory_table import DAY, BaseTable, see

Peer = Callable[..., Deployment]


def test_40_number_5_missing_holds_w_in_2000_completion_orders() -> None:
    table, declared = BaseTable(), view()
    table.day("a", 1, 0, 11)
    for seed in range(2_000):
        days = [day for day in range(12) if day != 5]
        random.Random(seed).shuffle(days)
        header = rules.see_source(rules.start_view(declared, 0), 12 * DAY - 1)
        rows = dict[int, PartitionRow]()
        for day in days:
            header = _append(header, rows, table, day * DAY)
        assert header.watermark == 5 * DAY, seed
        assert _append(header, rows, table, 5 * DAY).watermark == 12 * DAY, seed


def _append(header: Header, rows: dict[int, PartitionRow], table: BaseTable, bucket: int) -> Header:
    """What the commit of one bucket does to the map, without a database."""
    current = see(table.files, view(), bucket)
    assert current.inputs is not None
    planned = Planned(bucket, None, current.inputs)
    attempt = Attempt("g", header.version, (planned,))
    decision = rules.decide(
        None, header, attempt, planned, Staged(1, 1, 1), current, None, collected=False, now=0
    )
    assert decision.row is not None
    rows[bucket] = decision.row
    above = [rows[at] for at in sorted(rows) if at >= header.watermark]
    return rules.next_version(rules.climb(header, above))


@pytest.mark.parametrize("fails", [False, True], ids=["vacant", "failed"])
def test_40_number_5_missing_holds_w_in_the_store_in_any_order(
    store: Store, table: BaseTable, clock: Clock, *, fails: bool
) -> None:
    table.day("a", 1, 0, 11)
    for seed in range(12):
        deployment = Deployment(store, table, clock, view(name=f"v{seed}"))
        deployment.declare()
        deployment.look()
        days = list(range(12))
        random.Random(seed).shuffle(days)
        for day in days:
            if day != 5:
                deployment.refresh(day)
            elif fails:
                deployment.fail(deployment.begin(5), 5)
        assert deployment.watermark == 5, seed


def test_41_completing_2_1_0_holds_w_at_0_then_moves_it_to_3(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 2)
    deployment.look()
    watermarks = []
    for day in (2, 1, 0):
        deployment.refresh(day)
        watermarks.append(deployment.watermark)
    assert watermarks == [0, 0, 3]


def test_42_healing_bucket_1_moves_w_from_1_to_3_and_bucket_2_is_not_computed_again(
    deployment: Deployment,
) -> None:
    deployment.table.day("a", 1, 0, 2)
    deployment.look()
    deployment.refresh(0)
    deployment.fail(deployment.begin(1), 1)
    deployment.refresh(2)
    above = deployment.row(2)
    assert deployment.watermark == 1
    deployment.converge()
    assert deployment.watermark == 3
    assert deployment.row(2) == above


def test_44_work_that_a_peer_committed_is_dropped_and_the_writer_goes_on(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.table.day("a", 1, 0, 9)
    deployment.look()
    work = deployment.begin(5, 7)
    peer().converge()
    assert deployment.watermark == 10
    with deployment.untouched():
        assert deployment.commit(work) == {5: Outcome.REPLAY, 7: Outcome.REPLAY}
    deployment.table.day("b", 1, 10)
    deployment.look()
    assert deployment.planned() == {10: rules.Due.APPEND}
    deployment.converge()
    assert (deployment.watermark, deployment.sleeps[1:]) == (11, [])


def test_45_of_work_5_7_10_12_the_bucket_at_w_is_written_and_12_commits_above_it(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.table.day("a", 1, 0, 12)
    deployment.look()
    work = deployment.begin(5, 7, 10, 12)
    peer().refresh(*range(10))
    outcomes = deployment.commit(work)
    assert [outcomes[day] for day in (5, 7)] == [Outcome.REPLAY] * 2
    assert [outcomes[day] for day in (10, 12)] == [Outcome.COMMITTED] * 2
    assert (deployment.watermark, deployment.state(12)) == (11, State.VALID)


def test_46_an_old_bucket_below_w_is_repaired_and_w_stays(deployment: Deployment) -> None:
    deployment.fill(0, 1, 2, 3, 4)
    before = deployment.row(2)
    deployment.table.day("f2", 9, 2)
    assert deployment.look() == [2]
    assert deployment.refresh(2) == {2: Outcome.COMMITTED}
    after = deployment.row(2)
    assert before is not None
    assert after is not None
    assert (after.state, after.inputs) == (State.VALID, deployment.current(2 * DAY).inputs)
    assert after.content != before.content
    assert deployment.watermark == 5


class Writer:
    """A refresh in four steps. Staging is part of the second: it touches nothing that is shared."""

    STEPS = 4

    def __init__(self, deployment: Deployment, *days: int) -> None:
        self.deployment = deployment
        self.days = days
        self.outcomes: dict[int, Outcome] = {}
        self.steps = iter([self.plan, self.register, self.look, self.commit])

    def step(self) -> None:
        next(self.steps)()

    def plan(self) -> None:
        self.work: Work = self.deployment.plan(*self.days)
        self.noted = {planned.bucket: planned.token for planned in self.work.attempt.work}

    def register(self) -> None:
        self.work = self.deployment.stage(self.deployment.register(self.work))

    def look(self) -> None:
        self.seen: SecondLook = self.deployment.look_again(self.work)

    def commit(self) -> None:
        """One try, and if rows moved since they were looked at, the next one with a new look."""
        try:
            self._once()
        except RowsMoved as moved:
            self.noted = moved.tokens
            self.look()
            self._once()

    def _once(self) -> None:
        manager, mine = self.deployment.manager, self.work
        decided = manager.commit_once(
            self.deployment.declaration, mine.attempt, mine.staged, self.seen, self.noted
        )
        self.outcomes = {bucket // DAY: decision.outcome for bucket, decision in decided.items()}


def interleavings(ones: int, twos: int) -> Iterator[list[bool]]:
    """All orders of two sequences of steps; True is a step of the first."""
    total = ones + twos
    for chosen in combinations(range(total), ones):
        yield [at in chosen for at in range(total)]


def test_47_two_writers_with_the_same_input_commit_each_bucket_once_in_all_interleavings(
    deployment: Deployment, peer: Peer
) -> None:
    orders = list(interleavings(Writer.STEPS, Writer.STEPS))
    deployment.table.day("a", 1, 0, 2 * len(orders) - 1)
    deployment.look()
    for number, order in enumerate(orders):
        days = 2 * number, 2 * number + 1
        writers = Writer(deployment, *days), Writer(peer(), *days)
        with deployment.one_write():
            for first in order:
                writers[0 if first else 1].step()
        won, lost = sorted(writers, key=lambda writer: Outcome.COMMITTED not in writer.outcomes.values())
        assert won.outcomes == dict.fromkeys(days, Outcome.COMMITTED), order
        assert lost.outcomes == dict.fromkeys(days, Outcome.REPLAY), order
        assert deployment.watermark == 2 * number + 2, order
        states = [_generation_state(writer) for writer in (won, lost)]
        assert states == [GenerationState.LIVE, GenerationState.DEAD], order
        deployment.outlive()
        assert deployment.collect() == [lost.work.attempt.generation], order


def _generation_state(writer: Writer) -> GenerationState | None:
    found = writer.deployment.generation(writer.work.attempt.generation)
    return None if found is None else found.state


@pytest.mark.parametrize("prior", [State.VACANT, State.STALE])
@pytest.mark.parametrize("change", ["a late file", "a file rewritten in place", "a file removed"])
def test_48_of_two_writers_with_old_and_new_input_the_new_remains_in_all_interleavings(
    deployment: Deployment, peer: Peer, change: str, prior: State
) -> None:
    # The old writer plans before the change, which is the first step of the other sequence.
    orders = [order for order in interleavings(Writer.STEPS, Writer.STEPS + 1) if order[0]]
    deployment.fill(*range(len(orders)))
    if prior is State.VACANT:
        deployment.manager.drop(deployment.name)
    for day, order in enumerate(orders):
        deployment.table.day(f"f{day}", 2, day)
        deployment.table.day(f"late{day}", 1, day)
        if prior is State.STALE:
            assert deployment.look([day]) == [day]
        old, new = Writer(deployment, day), Writer(peer(), day)
        steps: Iterator[Callable[[], None]] = iter(
            [partial(_change, deployment.table, change, day), *[new.step] * Writer.STEPS]
        )
        for first in order:
            (old.step if first else next(steps))()
        row = deployment.row(day)
        assert row is not None, order
        assert (row.state, row.inputs) == (State.VALID, deployment.current(day * DAY).inputs), order
        assert new.outcomes == {day: Outcome.COMMITTED}, order
    assert deployment.watermark == len(orders)
    with deployment.untouched():
        assert deployment.look() == []


def _change(table: BaseTable, change: str, day: int) -> None:
    if change == "a late file":
        table.day(f"later{day}", 3, day)
    elif change == "a file removed":
        table.remove(f"late{day}")
    else:
        table.day(f"late{day}", 3, day)


def test_49_a_commit_that_landed_unheard_is_a_no_op_at_the_retry_and_keeps_its_files(
    deployment: Deployment,
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    work = deployment.begin(0)
    with deployment.one_write(), lost_acknowledgements(deployment.store):
        assert deployment.commit(work) == {0: Outcome.REPLAY}
    deployment.outlive()
    assert deployment.collect() == []
    found = deployment.generation(work.attempt.generation)
    assert found is not None
    assert (found.state, len(found.files)) == (GenerationState.LIVE, 1)


def test_50_a_lagging_deployment_behind_a_finished_one_ends_with_no_write_and_no_error(
    deployment: Deployment, peer: Peer
) -> None:
    deployment.table.day("a", 1, 0, 4)
    deployment.look()
    lagging = peer(who="lagging")
    begun = [lagging.begin(day) for day in range(3)]
    deployment.converge()
    assert deployment.watermark == 5
    with deployment.untouched():
        for work in begun:
            assert set(lagging.commit(work).values()) == {Outcome.REPLAY}
        cold = peer(who="cold")
        cold.declare()
        cold.converge()
    assert deployment.map().attempts == {}


def test_53_w_is_not_moved_without_rows(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0, 4)
    deployment.look()
    header = deployment.header()
    with pytest.raises(Sealed, match="rules only"):
        replace(header, watermark=5 * DAY)
    with pytest.raises(Sealed):
        Header("v", 9, 5 * DAY, "1d", 0, "d1", None, 0)
    with pytest.raises(Sealed):
        PartitionRow(0, State.VALID, 9)
    assert rules.climb(header, []).watermark == 0
    with deployment.untouched():
        deployment.look()

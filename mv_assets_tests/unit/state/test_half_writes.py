"""Whatever fails, and wherever in a transaction it does: the map is as before, or the write is whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mv_assets.state.errors import StateUnavailable
from mv_assets.state.model import Copied, DataFile, GenerationState, Mark, Operation, Outcome, State
from mv_assets_tests.support.harness import Deployment, view
from mv_assets_tests.support.memory_table import DAY, whole_look
from mv_assets_tests.unit.state.faults import Crash, after_commit, at_statement, dump, recorded

Step = Callable[[], object]


def crash(_connection: object = None) -> None:
    raise Crash


def lose_connection(_connection: object = None) -> None:
    raise StateUnavailable("the connection was lost")


@pytest.fixture
def busy(deployment: Deployment) -> Deployment:
    """A map in full use: VALID, STALE and failed rows, and attempts under way."""
    for day in range(6):
        deployment.table.day(f"f{day}", day, day)
    deployment.look()
    deployment.refresh(0, 1, 2)
    deployment.fail(deployment.begin(3), 3)
    deployment.table.day("f1", 11, 1)
    deployment.look()
    return deployment


def commit_of_many(d: Deployment) -> Step:
    work = d.begin(1, 3, 4)
    return lambda: d.commit(work)


def commit_that_loses(d: Deployment) -> Step:
    work = d.begin(1)
    d.refresh(1)
    return lambda: d.commit(work)


def registration(d: Deployment) -> Step:
    work = d.plan(1, 4)
    return lambda: d.register(work)


def failure(d: Deployment) -> Step:
    work = d.begin(1, 4)
    return lambda: d.fail(work, 1, 4)


def abandonment(d: Deployment) -> Step:
    work = d.begin(1, 4)
    return lambda: d.manager.abandon(d.name, work.attempt)


def look(d: Deployment) -> Step:
    d.table.day("f0", 10, 0)
    d.table.day("f6", 6, 6)
    snapshot = d.map()
    current_inputs = {bucket: d.current(bucket) for bucket in d.covered(snapshot)}
    made = whole_look(d.table.files, "2", snapshot.header, snapshot.rows, current_inputs, d.clock())
    return lambda: d.manager.look(d.declaration, made)


def revert(d: Deployment) -> Step:
    d.manager.mark_stale(d.declaration, {0: Mark("a false alarm")})
    current_inputs = {0: d.current(0)}
    return lambda: d.manager.revert(d.declaration, current_inputs)


def repoint(d: Deployment) -> Step:
    row = d.row(0)
    assert row is not None
    assert row.generation is not None
    old = row.generation
    copy = d.register(d.plan(5)).attempt.generation
    files = [DataFile("copy.parquet", 1, 1)]
    copied = dict.fromkeys([0, 2 * DAY], Copied(old, 1))
    return lambda: d.manager.repoint(d.name, copy, copied, files)


def take_over(d: Deployment) -> Step:
    return lambda: d.manager.declare(view(definition="d2", width="6h"))


def collection(d: Deployment) -> Step:
    d.begin(1)
    d.manager.drop(d.name)
    d.clock.now += DAY
    return lambda: d.registry.doom(d.name)


OPERATIONS: dict[str, Callable[[Deployment], Step]] = {
    "commit": commit_of_many,
    "commit that loses": commit_that_loses,
    "register": registration,
    "fail": failure,
    "abandon": abandonment,
    "look": look,
    "force": lambda d: lambda: d.manager.force(d.declaration, [0, 5 * DAY], "a person asked"),
    "force all": lambda d: lambda: d.manager.force(d.declaration, None, "a person asked"),
    "extend": lambda d: lambda: d.manager.declare(view(start=-2 * DAY)),
    "revert": revert,
    "repoint": repoint,
    "drop": lambda d: lambda: d.manager.drop(d.name),
    "declare": lambda d: lambda: d.manager.declare(view("w")),
    "take over": take_over,
    "lease": lambda d: lambda: d.leases.acquire(d.name),
    "gc": collection,
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_crash_at_any_statement_leaves_the_map_unchanged(
    busy: Deployment, state_url: str, operation: str, when: str
) -> None:
    step = OPERATIONS[operation](busy)
    before = dump(state_url)
    for number in itertools.count(1):
        try:
            with at_statement(busy.store, number, crash, when):
                step()
            break
        except Crash:
            assert dump(state_url) == before
    assert number > 3
    assert dump(state_url) != before


def test_a_crash_at_the_commit_itself_leaves_the_map_unchanged(
    busy: Deployment, state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = commit_of_many(busy)
    before = dump(state_url)
    with monkeypatch.context() as patch:
        patch.setattr(busy.store.database._engine.dialect, "do_commit", crash)
        with pytest.raises(Crash):
            step()
    assert dump(state_url) == before


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name != "lease"])
def test_a_lost_acknowledgement_changes_nothing(busy: Deployment, state_url: str, operation: str) -> None:
    """The write landed, the caller is told otherwise and does it again: the map is as after the one write."""
    step = OPERATIONS[operation](busy)
    landed: list[Any] = []

    def lose() -> None:
        landed.append(dump(state_url))
        raise StateUnavailable("the connection was lost")

    with after_commit(busy.store, lose):
        step()
    assert busy.sleeps
    after, again = landed[0], dump(state_url)
    assert {table for table in after if again[table] != after[table]} == REPEATED.get(operation, set())


# A person's mark made twice is two marks, a second DROP drops nothing but is logged, and a look that finds
# its own marks in the map claims less than it saw, so that the next one is not skipped.
REPEATED = {
    "force": {"mv_view", "mv_partition", "mv_event", "mv_counter"},
    "force all": {"mv_view", "mv_partition", "mv_event", "mv_counter"},
    "drop": {"mv_view", "mv_event", "mv_counter"},
    "look": {"mv_look", "mv_counter"},
}


@pytest.fixture
def statements(deployment: Deployment) -> Iterator[int]:
    """How many statements the commit of an APPEND takes; days from 1 on are for the test."""
    for day in range(40):
        deployment.table.day(f"f{day}", day, day)
    deployment.look()
    work = deployment.begin(0)
    with recorded(deployment.store) as issued:
        deployment.commit(work)
    yield len(issued)
    assert [event.version for event in log(deployment)] == list(range(1, deployment.header().version + 1))


def log(deployment: Deployment) -> list[Any]:
    with deployment.store.read(deployment.name) as reader:
        return reader.events(most=1_000)[::-1]


def check_committed_once(d: Deployment, day: int, generation: str) -> None:
    row, events = d.row(day), [event for event in log(d) if event.bucket == day * DAY]
    assert row is not None
    assert (row.state, row.generation) == (State.VALID, generation)
    assert [(event.operation, event.version) for event in events] == [(Operation.APPEND, row.token)]
    assert d.watermark == day + 1
    assert d.map().attempts == {}
    with d.store.read(d.name) as reader:
        made = reader.generation(generation)
    assert made is not None
    assert (made.state, len(made.files)) == (GenerationState.LIVE, 1)


def test_a_commit_whose_connection_is_lost_at_any_statement_is_tried_again(
    deployment: Deployment, statements: int
) -> None:
    for number in range(1, statements + 1):
        work = deployment.begin(number)
        deployment.sleeps.clear()
        with at_statement(deployment.store, number, lose_connection):
            assert deployment.commit(work) == {number: Outcome.COMMITTED}
        assert len(deployment.sleeps) == 1
        check_committed_once(deployment, number, work.attempt.generation)


@pytest.mark.usefixtures("statements")
def test_a_commit_whose_acknowledgement_was_lost_is_a_replay(deployment: Deployment) -> None:
    work = deployment.begin(1)
    with after_commit(deployment.store, lose_connection):
        assert deployment.commit(work) == {1: Outcome.REPLAY}
    check_committed_once(deployment, 1, work.attempt.generation)

"""One write of the map: what steps the version, what stands beside it, and how many round trips it takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets.state import rules
from mv_assets.state.change import Change, Line, write
from mv_assets.state.model import (
    AttemptRecord,
    Generation,
    GenerationState,
    LookRecord,
    Mark,
    Operation,
)
from mv_assets_tests.support.harness import Deployment
from mv_assets_tests.support.memory_table import DAY, whole_look
from mv_assets_tests.unit.state.faults import dump, recorded

Step = Callable[[], object]

LOOK = LookRecord("1", 1, 0, None)
STAGED = Generation("g", "v", GenerationState.STAGED, 0)


def put(d: Deployment, change: Change) -> Change:
    with d.store.write(d.name) as tx:
        return write(tx, change, d.clock(), "somebody")


def test_an_empty_change_writes_nothing(deployment: Deployment, state_url: str) -> None:
    header, before = deployment.header(), dump(state_url)
    change = Change(header, header, line=Line(Operation.LOOK, "nothing to tell"))
    with recorded(deployment.store) as statements:
        assert put(deployment, change) == change
    assert [sql for sql in statements if not sql.startswith("BEGIN")] == []
    assert (change.steps, change.version) == (False, header.version)
    assert dump(state_url) == before


def test_what_stands_beside_the_map_takes_no_version_and_no_line(deployment: Deployment) -> None:
    header, log = deployment.header(), deployment.events()
    record = AttemptRecord(1, "g")
    change = Change(header, header, registered=STAGED, attempts={0: record}, look=LOOK)
    assert put(deployment, change).after == header
    found = deployment.map()
    assert (found.header, found.attempts, found.look) == (header, {0: record}, LOOK)
    assert deployment.events() == log


def test_a_change_of_the_header_is_one_step_that_says_what_it_wrote(deployment: Deployment) -> None:
    header = deployment.header()
    change = Change(header, rules.see_source(header, DAY), line=Line(Operation.LOOK, "why not"))
    written = put(deployment, change)
    assert written.after == deployment.header()
    assert written.version == written.after.version == header.version + 1 == change.version
    line = deployment.events()[0]
    assert (line.operation, line.bucket, line.version, line.who) == (
        Operation.LOOK,
        None,
        written.version,
        "somebody",
    )


def test_a_change_of_rows_is_one_step_even_if_the_header_says_the_same(deployment: Deployment) -> None:
    deployment.fill(0)
    before = deployment.header()
    found = deployment.map().rows
    marked = rules.mark(found[0], before, 0, Mark("a person's doubt"))
    assert marked is not None
    change = Change(before, before, found=found, rows={0: marked})
    assert put(deployment, change).after.version == before.version + 1
    assert deployment.map().rows == {0: marked}


def test_a_generation_that_no_row_names_is_left_behind(deployment: Deployment) -> None:
    header, name = deployment.header(), deployment.begin().attempt.generation
    put(deployment, Change(header, header, generation=name))
    left = deployment.generation(name)
    assert left is not None
    assert left.state is GenerationState.DEAD


def registration(d: Deployment) -> Step:
    work = d.plan(4)
    return lambda: d.register(work)


def append(d: Deployment) -> Step:
    work = d.begin(4)
    return lambda: d.commit(work)


def overwrite(d: Deployment) -> Step:
    work = d.begin(1)
    return lambda: d.commit(work)


def mark(d: Deployment) -> Step:
    return lambda: d.manager.mark_stale(d.declaration, {0: Mark("x"), 2 * DAY: Mark("y")})


def look(d: Deployment) -> Step:
    d.table.day("f0", 10, 0)
    snapshot = d.map()
    seen = {bucket: d.current(bucket) for bucket in d.covered(snapshot)}
    made = whole_look(d.table.files, "2", snapshot.header, snapshot.rows, seen, d.clock())
    return lambda: d.manager.look(d.declaration, made)


@pytest.mark.parametrize(
    ("operation", "most"), [(registration, 5), (append, 7), (overwrite, 7), (mark, 6), (look, 9)]
)
def test_what_happens_most_takes_few_round_trips(
    deployment: Deployment, operation: Callable[[Deployment], Step], most: int
) -> None:
    deployment.fill(0, 1, 2)
    for day in (3, 4, 5):
        deployment.table.day(f"f{day}", day, day)
    deployment.table.day("f1", 11, 1)
    deployment.look()
    step = operation(deployment)
    with recorded(deployment.store) as statements:
        step()
    assert len([sql for sql in statements if not sql.startswith("BEGIN")]) == most, statements

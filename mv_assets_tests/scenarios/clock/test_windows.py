"""Clocks that differ or are set, under views with windows, a dimension and a function."""

from __future__ import annotations

import pytest

from mv_assets.buckets import HOUR
from mv_assets_tests.proof.matrix.world import PAID, VIEWS
from mv_assets_tests.scenarios.clock.conftest import Machine, Machines
from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.support.memory_table import DAY

NAMES = [each.name for each in VIEWS]
# A day counts the payments of its own and of the hour after it.
AFTER = view(
    "after",
    sql="SELECT max(events.at) AS hour, count(*) AS n FROM events, payments",
    scope="bucket",
    **{"with": [{"table": "payments", "to": "1h"}]},
)


def made_of(machine: Machines, *views: object, ahead: int = 0) -> Machine:
    made: Machine = machine(
        *views, dimensions=("names",), further=("payments",), oracle={"p": PAID}, ahead=ahead
    )
    made.write("names.parquet", through(0), 1, table="names")
    return made


def fill(made: Machine, *numbers: int) -> None:
    for table in ("events", "payments"):
        made.days(*numbers, table=table)


def begin(made: Machine, number: int) -> None:
    """The first hours of a day."""
    for table in ("events", "payments"):
        made.write(f"begins-{number}.parquet", [day(number, 0), day(number, 1.5)], table=table)


@pytest.mark.parametrize("step", [-HOUR, DAY], ids=["an hour back", "a day ahead"])
def test_what_is_computed_is_the_same_whatever_the_clock_does_while_it_is(
    machine: Machines, step: int
) -> None:
    made = made_of(machine, *VIEWS)
    fill(made, 0, 1)
    made.before = made.after = lambda: made.later(step)
    made.run()
    assert [made.states(0, 1, name=name) for name in NAMES] == ["VV"] * 3
    versions = [made.version(name) for name in NAMES]
    made.run()
    assert [made.version(name) for name in NAMES] == versions


def test_deployments_on_machines_with_different_clocks_come_to_rest(machine: Machines) -> None:
    """With payments of this very hour, which one takes for past and the other for future."""
    both = [made_of(machine, *VIEWS, ahead=ahead) for ahead in (-HOUR, HOUR)]
    today = both[0].clock.now // DAY
    now = (both[0].clock.now % DAY) / HOUR
    fill(both[0], today - 2, today - 1)
    both[0].write("now.parquet", [day(today, now - 0.5), day(today, now + 0.5)], table="payments")
    start = day(today - 2).strftime("%Y-%m-%d")
    views = [each.model_copy(update={"start": today * DAY - 2 * DAY}) for each in VIEWS]
    assert views[0].start == view(start=start).start
    for each in both:
        each.declare(*views)
        each.run()
    versions = [both[0].version(name) for name in NAMES]
    for each in both * 2:
        each.run()
    assert [both[0].version(name) for name in NAMES] == versions
    assert [both[0].watermark(name) for name in NAMES] == [today] * 3


def test_w_does_not_follow_a_clock_that_is_set_back_over_the_end_of_a_window(machine: Machines) -> None:
    made = made_of(machine, AFTER)
    made.clock.now = 12_000 * DAY + 2 * HOUR
    made.declare(AFTER.model_copy(update={"start": 11_999 * DAY}))
    fill(made, 11_999)
    begin(made, 12_000)
    made.run()
    assert (made.watermark("after"), made.states(11_999, name="after")) == (12_000, "V")
    made.clock.now -= 2 * HOUR
    assert not made.run()["after"].results
    assert (made.watermark("after"), made.states(11_999, name="after")) == (12_000, "V")
    made.clock.now += DAY + 2 * HOUR
    fill(made, 12_000)
    begin(made, 12_001)
    made.run()
    assert (made.watermark("after"), made.states(12_000, name="after")) == (12_001, "V")

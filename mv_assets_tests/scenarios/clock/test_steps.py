"""The clock that all go by is set back or forth in the middle of things: nothing is wrong or waits for it."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

import pytest

from mv_assets.buckets import HOUR
from mv_assets.plan import planner
from mv_assets.progress import Progress
from mv_assets.query.route.eligibility import Eligibility, Freshness
from mv_assets.query.route.pinned import Pinned
from mv_assets.run.attempt import OpenAttempt
from mv_assets.run.refresher import Refresher
from mv_assets.run.two_steps import TwoStepRefresh
from mv_assets.run.warehouse import Contents
from mv_assets.state.errors import LeaseExpired
from mv_assets.state.model import CurrentInputs, Outcome, SecondLook
from mv_assets.state.rules import RetryState
from mv_assets_tests.scenarios.clock.conftest import Machine, Machines
from mv_assets_tests.support.harness import Deployment
from mv_assets_tests.support.lake import current_inputs_of, day, observation_of, operations_of, through, view
from mv_assets_tests.support.memory_table import DAY

STEPS = pytest.mark.parametrize("step", [-HOUR, DAY], ids=["an hour back", "a day ahead"])
SETTLE = {"settle": "10s", "settle_at_most": "20s"}


# Between a plan and its commit


@STEPS
def test_a_commit_is_the_same_whatever_the_clock_did_since_its_plan(machine: Machines, step: int) -> None:
    made = machine()
    made.days(0, 1)
    observed = made.look()

    def inputs_now() -> Mapping[int, CurrentInputs]:
        made.later(step)
        return current_inputs_of(made.dry())

    [work] = planner.plan(observed).work
    decided = made.compute(observed, work, inputs_now)
    assert decided == {0: Outcome.COMMITTED, 1: Outcome.COMMITTED}
    assert made.refresh() == {}
    assert made.watermark() == 2


@STEPS
def test_how_long_a_bucket_took_is_what_it_took_whatever_the_clock_did_meanwhile(
    machine: Machines, step: int
) -> None:
    made = machine()
    made.days(0)
    observed = made.look()
    [work] = planner.plan(observed).work

    def compute(_generation: str, _buckets: Sequence[int]) -> Contents:
        made.later(step)
        return Contents()

    attempt = OpenAttempt(made.open(), observed.view.declaration, observed.header.version, work.buckets)
    attempt.stage(compute, lambda _bucket: ())
    attempt.commit(lambda: SecondLook(current_inputs_of(observed)))
    assert 0 <= (made.data(0).duration_ms or 0) < HOUR
    # It has no rows: what it holds is of no matter here.
    made.manager.drop("v")


def test_w_does_not_follow_a_clock_that_is_set_back_and_goes_on_from_there(machine: Machines) -> None:
    made = machine(view(start="2000-01-01"))
    made.clock.now = 12_000 * DAY
    made.days(11_998, 11_999)
    made.write("over-midnight.parquet", through(11_999, 12_000))
    made.declare(view(start="2002-11-07"))
    made.converge()
    assert made.watermark() == 12_000
    made.clock.now -= HOUR
    for _ in range(3):
        assert made.refresh() == {}
    assert (made.watermark(), made.states(11_998, 11_999)) == (12_000, "VV")
    made.clock.now += DAY + HOUR
    made.converge()
    assert (made.watermark(), made.states(12_000)) == (12_001, "V")


# Pauses


def test_a_pause_set_by_a_clock_that_was_a_day_ahead_is_over_when_that_is_set_right(
    deployment: Deployment,
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    deployment.clock.now += DAY
    deployment.fail(deployment.begin(0), 0)
    assert deployment.retry_state(0) == [RetryState.BACKING_OFF]
    deployment.clock.now -= DAY
    assert deployment.retry_state(0) == [RetryState.ALONE]


def test_a_pause_begun_before_the_clock_went_back_a_little_still_holds(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    for _ in range(3):
        deployment.fail(deployment.begin(0), 0)
    deployment.clock.now += 30_000
    assert deployment.retry_state(0) == [RetryState.BACKING_OFF]
    deployment.clock.now -= 20_000
    assert deployment.retry_state(0) == [RetryState.BACKING_OFF]


class _SetsTheClock(Progress):
    """Between a plan and the wait for its files, the clock goes back by a day."""

    def __init__(self, lake: Machine) -> None:
        self._lake = lake

    def plans(self, buckets: int, size: int) -> None:
        assert (buckets, size) == (0, 0)
        self._lake.later(-DAY)


@dataclass
class _Asleep:
    """Somebody who waits, once: for how long."""

    seconds: float = 0.0

    def __call__(self, seconds: float) -> None:
        self.seconds = seconds
        raise KeyboardInterrupt


def arriving(machine: Machines) -> Machine:
    """A file that is a second old."""
    made = machine(table=SETTLE)
    made.days(0)
    made.set_machine(made.changed_at("day-0.parquet") + 1_000)
    return made


def test_a_refresh_waits_no_longer_for_its_files_than_they_may_take(machine: Machines) -> None:
    made, asleep = arriving(machine), _Asleep()
    with pytest.raises(KeyboardInterrupt):
        Refresher(made.open(), progress=_SetsTheClock(made), sleep=asleep).run()
    assert asleep.seconds == 40.0


def test_a_run_waits_no_longer_for_its_files_than_they_may_take(machine: Machines) -> None:
    made, asleep = arriving(machine), _Asleep()
    # Right when the run looks, and set back by a day when it is about to wait.
    now = made.clock.now
    times = chain([now] * 3, repeat(now - DAY))
    project = replace(made.open(), clock=lambda: next(times))
    with (
        pytest.raises(KeyboardInterrupt),
        TwoStepRefresh(project, made.catalog.view("v"), [0], asleep) as refresh,
    ):
        refresh.stage()
    assert asleep.seconds == 40.0


def test_files_that_never_rest_do_not_hold_a_bucket_that_was_refreshed_by_a_clock_since_set_back(
    machine: Machines,
) -> None:
    made = machine(table=SETTLE)
    made.days(0)
    made.converge()
    made.later(-HOUR)
    made.write("never-rests.parquet", [day(0)])
    observed = made.look(whole=True)
    listing, now = observation_of(observed).view_inputs.base, made.clock.now
    ages = {"day-0.parquet": 30_000, "never-rests.parquet": 1_000}
    listing.changed = array("q", (now - ages[name] for name in listing.names))
    assert operations_of(planner.plan(observed)) == [("OVERWRITE", [0])]


# Looks


def test_a_look_made_before_the_clock_was_set_back_is_made_again(machine: Machines) -> None:
    made = machine(table=SETTLE)
    made.days(0)
    made.damage("day-0.parquet")
    made.set_machine(made.changed_at("day-0.parquet") + 1_000)
    made.look()
    made.later(-HOUR)
    made.later(60_000)
    made.look()
    look = made.snapshot().look
    assert look is not None
    assert look.at == made.clock.now
    assert "day-0.parquet" in look.broken[0]
    version = made.version()
    made.look()
    assert made.version() == version


def test_a_bounded_query_does_not_trust_a_look_of_a_clock_that_was_set_back(machine: Machines) -> None:
    made = machine(view(start="2024-10-04", max_staleness="3650d"))
    made.days(20_000)
    made.converge()
    assert _too_old(made) is None
    made.later(-HOUR)
    assert "of a clock that has been set back" in (_too_old(made) or "")
    made.look()
    assert _too_old(made) is None


def _too_old(made: Machine) -> str | None:
    with Pinned(made.open()) as pinned:
        eligibility = Eligibility(made.catalog, made.store, pinned, Freshness.BOUNDED)
        return eligibility.too_old(made.catalog.view("v"))


# Hearts and leases


def test_who_died_before_the_clock_was_set_back_does_not_live_until_then(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    dead, living = deployment.begin(0), deployment.begin(1)
    deployment.clock.now -= HOUR
    deployment.registry.beat("v", living.attempt.generation)
    assert deployment.registry.alive("v") == {living.attempt.generation}
    assert deployment.retry_state(0) == [RetryState.ALONE]
    # Work may be begun again at once, but files are deleted only when it is sure that nobody writes them.
    assert deployment.collect() == []
    assert deployment.generation(dead.attempt.generation) is not None


def test_an_attempt_that_gc_took_for_dead_as_the_clock_leapt_commits_nothing_and_is_planned_again(
    deployment: Deployment,
) -> None:
    deployment.table.day("a", 1, 0)
    deployment.look()
    work = deployment.begin(0)
    deployment.clock.now += DAY
    assert deployment.collect() == [work.attempt.generation]
    assert deployment.commit(work) == {0: Outcome.PLANNED_AGAIN}
    deployment.clock.now -= DAY
    deployment.converge()
    assert deployment.watermark == 1


def test_a_reader_whose_lease_ran_out_as_the_clock_leapt_gets_an_error_and_no_answer(
    deployment: Deployment,
) -> None:
    deployment.fill(0)
    with pytest.raises(LeaseExpired), deployment.leases.pin("v"):
        deployment.clock.now += DAY

"""Things that happen at once or in the middle: all converges, and nothing is computed needlessly."""

from __future__ import annotations

import time
from itertools import combinations

import pytest

from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.deployment import Deployment
from mv_assets_tests.e2e.site import HOURLY, WEEKLY, day, days, week


@pytest.mark.deep
def test_killed_in_the_middle_and_started_again_everything_converges(deployment: Deployment) -> None:
    dagster, site, processes = deployment.dagster, deployment.site, deployment.processes
    before = site.versions()
    with deployment.holding(HOURLY, day(5)):
        site.put_trips(5, "before-the-crash.parquet")
        deployment.wait_until_held()
        processes.kill()
        site.put_trips(8, "while-it-was-down.parquet")
    processes.start()
    deployment.calm_down()
    assert site.computed(HOURLY, before[HOURLY]) == {day(5): 1, day(8): 1}
    assert set(site.computed(WEEKLY, before[WEEKLY])) == {week(5), week(8)}
    assert list(dagster.partitions(HOURLY).failed) == []


@pytest.mark.deep
def test_files_that_arrive_in_the_range_of_a_backfill_are_not_asked_for_twice(deployment: Deployment) -> None:
    dagster, site = deployment.dagster, deployment.site
    since = time.time()
    with deployment.holding(HOURLY, day(5)):
        backfill = dagster.backfill(HOURLY, days(2, 7))
        # Requested, but not launched yet: the sensor must know of it all the same.
        site.put_trips(3, "before-its-run.parquet")
        deployment.ticked("watch_trips")
        deployment.wait_until(lambda: dagster.backfill_runs(backfill), "the backfill's run")
        deployment.wait_until_held()
        site.put_trips(5, "during-its-run.parquet")
        deployment.ticked("watch_trips")
        assert _overlapping(dagster, since) == []
    deployment.calm_down()
    assert list(dagster.partitions(HOURLY).failed) == []


def _overlapping(dagster: Dagster, since: float) -> list[tuple[str, str]]:
    """Pairs of unfinished runs about the same bucket."""
    going = [run for run in dagster.runs(since=since, view=HOURLY) if not run.finished]
    return [
        (one.id, other.id)
        for one, other in combinations(going, 2)
        if any(one.covers(HOURLY, bucket) and other.covers(HOURLY, bucket) for bucket in days(1, 14))
    ]

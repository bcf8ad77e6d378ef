"""What a person asks of Dagster: a bucket, a range, a cancelled run, another try."""

from __future__ import annotations

import time

import pytest

from mv_assets.state.model import State
from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.deployment import Deployment
from mv_assets_tests.e2e.site import HOURLY, WEEKLY, Site, day, week

pytestmark = pytest.mark.slow


def test_materializing_a_valid_bucket_computes_it_again(deployment: Deployment) -> None:
    site, before = deployment.site, deployment.site.versions()
    run = deployment.finished(deployment.dagster.materialize(HOURLY, day(5)))
    assert run.status == "SUCCESS"
    assert site.computed(HOURLY, before[HOURLY]) == {day(5): 1}
    told = deployment.dagster.materialization(HOURLY, day(5))
    assert told is not None
    assert told.run == run.id


def test_a_cancelled_run_leaves_its_buckets_as_they_were_and_the_sensor_asks_again(
    deployment: Deployment,
) -> None:
    dagster, site = deployment.dagster, deployment.site
    before, since = site.versions(), time.time()
    with deployment.holding(HOURLY, day(10)):
        site.put_trips(10, "cancelled.parquet")
        [run] = deployment.wait_until(lambda: dagster.runs(since=since, view=HOURLY), "a run")
        deployment.wait_until_held()
        deployment.ticked("watch_trips")
        assert dagster.runs(since=since, view=HOURLY) == [dagster.run(run.id)], "asked for twice"
        dagster.cancel(run.id)
        assert deployment.finished(run.id).status == "CANCELED"
        assert site.computed(HOURLY, before[HOURLY]) == {}
        assert site.state_of(HOURLY, day(10)) is State.STALE
        assert day(10) in dagster.partitions(HOURLY).materialized
    deployment.calm_down()
    assert site.computed(HOURLY, before[HOURLY]) == {day(10): 1}
    assert site.computed(WEEKLY, before[WEEKLY]) == {week(10): 1}


def test_a_poisoned_file_fails_its_bucket_by_name_and_spares_the_rest_of_the_range(
    deployment: Deployment,
) -> None:
    dagster, site = deployment.dagster, deployment.site
    dagster.stop_sensor("watch_trips")
    site.poison(site.put_trips(12, "poisoned.parquet"))
    before = site.versions()
    failed = deployment.finished(dagster.materialize(HOURLY, day(11), day(13)))
    assert failed.status == "FAILURE"
    assert day(12) in dagster.errors(failed.id)
    assert "poisoned.parquet" in dagster.errors(failed.id)
    assert site.computed(HOURLY, before[HOURLY]) == {day(11): 1, day(13): 1}
    assert list(dagster.partitions(HOURLY).failed) == [day(12)]
    assert [_run_of(dagster, number) for number in (11, 13)] == [failed.id, failed.id]

    dagster.start_sensor("watch_trips")
    _check_says(deployment, "no_failed_buckets", passed=False, naming=day(12))
    site.heal()
    deployment.calm_down()
    assert list(dagster.partitions(HOURLY).failed) == []
    assert site.computed(HOURLY, before[HOURLY]) == {day(11): 1, day(12): 1, day(13): 1}
    _check_says(deployment, "no_failed_buckets", passed=True)


def test_a_run_executed_again_from_its_failure_computes_what_failed(deployment: Deployment) -> None:
    dagster, site = deployment.dagster, deployment.site
    dagster.stop_sensor("watch_trips")
    site.poison(site.put_trips(13, "again.parquet"))
    failed = deployment.finished(dagster.materialize(HOURLY, day(13), day(14)))
    assert failed.status == "FAILURE"
    site.heal()
    before = site.versions()
    again = deployment.finished(dagster.reexecute_from_failure(failed.id))
    assert again.status == "SUCCESS", dagster.errors(again.id)
    assert site.computed(HOURLY, before[HOURLY]) == {day(13): 1}
    assert list(dagster.partitions(HOURLY).failed) == []


def test_the_launchpad_audits_a_view(deployment: Deployment, site: Site) -> None:
    before = site.versions()
    config = {"ops": {"mv_assets_audit": {"config": {"view": HOURLY, "sample": 3}}}}
    run = deployment.finished(deployment.dagster.launch_job("audit_view", config))
    assert run.status == "SUCCESS", deployment.dagster.errors(run.id)
    check = deployment.dagster.check(HOURLY, "matches_base")
    assert check is not None
    assert check.passed
    assert site.versions() == before


def _run_of(dagster: Dagster, number: int) -> str | None:
    told = dagster.materialization(HOURLY, day(number))
    return None if told is None else told.run


def _check_says(deployment: Deployment, name: str, *, passed: bool, naming: str = "") -> None:
    def says() -> bool:
        check = deployment.dagster.check(HOURLY, name)
        return check is not None and check.passed is passed and naming in (check.description or "")

    deployment.wait_until(says, f"{name} to {'pass' if passed else 'fail'} {naming}")

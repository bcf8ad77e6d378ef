"""Runs that Dagster's daemon forks from a process that has loaded all, and what dies of these processes."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from dagster import DagsterInstance

from mv_assets.launcher.launcher import _PROCESS
from mv_assets.launcher.warm import started
from mv_assets_tests.e2e.deployment import Deployment
from mv_assets_tests.e2e.site import HOURLY, day

pytestmark = pytest.mark.slow


def test_runs_are_forked_from_one_process_and_from_another_once_that_is_killed(
    deployment: Deployment,
) -> None:
    assert _parent_of_a_run(deployment, 4) == _parent_of_a_run(deployment, 5)
    warm = _warm(deployment)
    assert len(warm) == 1
    os.kill(warm[0], signal.SIGKILL)
    assert _parent_of_a_run(deployment, 6) not in (None, warm[0])


def test_a_run_whose_process_is_killed_is_failed_and_its_bucket_computed_by_another(
    deployment: Deployment,
) -> None:
    dagster, site = deployment.dagster, deployment.site
    before, since = site.versions(), time.time()
    with deployment.holding(HOURLY, day(9)):
        site.put_trips(9, "killed.parquet")
        [run] = deployment.wait_until(lambda: dagster.runs(since=since, view=HOURLY), "a run")
        deployment.wait_until_held()
        os.kill(_process(deployment, run.id), signal.SIGKILL)
        assert deployment.finished(run.id).status == "FAILURE"
        assert "has ended" in dagster.errors(run.id)
        assert site.computed(HOURLY, before[HOURLY]) == {}
    deployment.calm_down()
    assert site.computed(HOURLY, before[HOURLY]) == {day(9): 1}


def test_nothing_is_left_once_dagster_has_ended(deployment: Deployment) -> None:
    _parent_of_a_run(deployment, 7)
    warm = _warm(deployment)
    assert warm
    deployment.processes.interrupt()
    deployment.wait_until(lambda: all(started(pid) is None for pid in warm), "its processes to end")


def _parent_of_a_run(deployment: Deployment, number: int) -> int | None:
    """The process that a run was forked from."""
    with deployment.holding(HOURLY, day(number)):
        run = deployment.dagster.materialize(HOURLY, day(number))
        deployment.wait_until_held()
        status = Path(f"/proc/{_process(deployment, run)}/stat").read_text()
    assert deployment.finished(run).status == "SUCCESS"
    return int(status.rpartition(") ")[2].split()[1])


def _process(deployment: Deployment, run_id: str) -> int:
    with DagsterInstance.from_config(str(deployment.processes.home)) as instance:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        return int(json.loads(run.tags[_PROCESS])["pid"])


def _warm(deployment: Deployment) -> list[int]:
    """The warm process of this Dagster; its runs have its command, too."""
    home, found = f"DAGSTER_HOME={deployment.processes.home}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            ours = home in (folder / "environ").read_bytes().split(b"\0")
            if ours and b"mv_assets.launcher.process" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return [pid for pid in found if started(pid) is not None]

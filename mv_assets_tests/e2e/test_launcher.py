"""Runs that Dagster's daemon forks from a process that has loaded all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from dagster import DagsterInstance

from mv_assets.launcher.launcher import _PROCESS
from mv_assets_tests.e2e.deployment import Deployment
from mv_assets_tests.e2e.site import HOURLY, day

pytestmark = pytest.mark.slow


def test_runs_are_forked_from_one_process(deployment: Deployment) -> None:
    # The first ones are no forks: nobody waits until the code is loaded.
    deployment.wait_until(
        lambda: _PROCESS in _tags(deployment, _computed(deployment, 4)), "a run that is forked"
    )
    assert _parent_of_a_run(deployment, 4) == _parent_of_a_run(deployment, 5)


def _computed(deployment: Deployment, number: int) -> str:
    run = deployment.dagster.materialize(HOURLY, day(number))
    assert deployment.finished(run).status == "SUCCESS"
    return run


def _parent_of_a_run(deployment: Deployment, number: int) -> int:
    """The process that a run was forked from."""
    with deployment.holding(HOURLY, day(number)):
        run = deployment.dagster.materialize(HOURLY, day(number))
        deployment.wait_until_held()
        status = Path(f"/proc/{_process(deployment, run)}/stat").read_text()
    assert deployment.finished(run).status == "SUCCESS"
    return int(status.rpartition(") ")[2].split()[1])


def _process(deployment: Deployment, run_id: str) -> int:
    return int(json.loads(_tags(deployment, run_id)[_PROCESS])["pid"])


def _tags(deployment: Deployment, run_id: str) -> Mapping[str, str]:
    with DagsterInstance.from_config(str(deployment.processes.home)) as instance:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        return run.tags

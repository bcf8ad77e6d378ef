"""Runs with the tags of others: Dagster copies them to a run that it tries again."""

from __future__ import annotations

import json
import socket

import dagster as dg
from dagster._core.launcher import WorkerStatus

from mv_assets.launcher import WarmRunLauncher
from mv_assets.launcher.launcher import _PROCESS

# A number that no process has.
_DEAD = {"host": socket.gethostname(), "pid": 1 << 22, "started": 1}


def test_a_retry_that_was_not_forked_is_not_taken_for_the_run_whose_tags_it_has() -> None:
    settings = {"module": "mv_assets.launcher", "class": "WarmRunLauncher"}
    with dg.instance_for_test(overrides={"run_launcher": settings}) as instance:
        launcher = instance.run_launcher
        assert isinstance(launcher, WarmRunLauncher)
        first = instance.add_run(dg.DagsterRun("job", status=dg.DagsterRunStatus.STARTED))
        instance.add_run_tags(first.run_id, {_PROCESS: json.dumps({"run": first.run_id, **_DEAD})})
        dead = instance.get_run_by_id(first.run_id)
        assert dead is not None
        assert launcher.check_run_worker_health(dead).status is WorkerStatus.NOT_FOUND

        retry = dg.DagsterRun("job", status=dg.DagsterRunStatus.STARTED, tags=dead.tags)
        instance.add_run(retry)
        assert launcher.check_run_worker_health(retry).status is WorkerStatus.RUNNING
        # It is the code server's, were there one.
        assert not launcher.terminate(retry.run_id)
        assert "Unable to get grpc client" in [each.message for each in instance.all_logs(retry.run_id)][-1]
        for run in (dead, retry):
            instance.report_run_canceled(run)

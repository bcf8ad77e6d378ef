"""What `dagster.yaml` names: Dagster's default launcher, but that runs of some modules are forked."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, Self, cast

import dagster as dg

from mv_assets.dagster_internals import (
    CheckRunHealthResult,
    ConfigurableClassData,
    ExecuteRunArgs,
    JobPythonOrigin,
    LaunchRunContext,
    QueuedRunCoordinator,
    WorkerStatus,
    serialize_value,
)
from mv_assets.launcher.warm import Line, Unforked, WarmProcess, started

_OURS = ("mv_assets.definitions",)
# Where the process of a run is; Dagster does not show tags of that name.
_PROCESS = ".dagster/mv_assets_process"
_GIVEN_UP = [dg.DagsterRunStatus.CANCELED, dg.DagsterRunStatus.FAILURE]
_log = logging.getLogger("mv_assets.launcher")


class WarmRunLauncher(dg.DefaultRunLauncher):
    """Forks runs of `modules` whose code is served on this machine; all others are the default's."""

    def __init__(
        self, inst_data: ConfigurableClassData | None = None, modules: tuple[str, ...] = _OURS
    ) -> None:
        super().__init__(inst_data)
        self._modules = modules
        self._warm: dict[tuple[str, str], WarmProcess] = {}
        self._lines: dict[str, Line] = {}
        self._lock = Lock()
        self._said = False

    @classmethod
    def config_type(cls) -> Any:
        return {"modules": dg.Field([str], is_required=False, default_value=list(_OURS))}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> Self:
        return cls(inst_data, tuple(config_value["modules"]))

    def launch_run(self, context: LaunchRunContext) -> None:
        run, origin = context.dagster_run, context.job_code_origin
        if origin is None or not self._is_ours(origin):
            super().launch_run(context)
            return
        try:
            line = self._forked(context, origin)
        except Unforked as error:
            what = f"{error}; this run gets a process that imports all anew"
            _log.warning("run %s: %s", run.run_id, what)
            self._instance.report_engine_event(what, run, cls=type(self))
            super().launch_run(context)
            return
        try:
            host, born = socket.gethostname(), started(line.pid)
            where = {"run": run.run_id, "host": host, "pid": line.pid, "started": born}
            # Before it begins: whoever wants to end it looks here.
            self._instance.add_run_tags(run.run_id, {_PROCESS: json.dumps(where)})
            line.begin(serialize_value(ExecuteRunArgs(origin, run.run_id, self._instance.get_ref())))
        except BaseException:
            line.close()
            raise
        self._run_ids.add(run.run_id)

    def _is_ours(self, origin: JobPythonOrigin) -> bool:
        repository = origin.repository_origin
        ours = (
            sys.platform == "linux"
            # Then it is the daemon that launches: a command would end, and its runs with it.
            and isinstance(self._instance.run_coordinator, QueuedRunCoordinator)
            # Dagster names a module in several ways; a file has no name.
            and getattr(repository.code_pointer, "module", None) in self._modules
            and repository.container_image is None
            and repository.executable_path == sys.executable
        )
        if ours and not self._instance.run_monitoring_enabled:
            # A run that was killed would be shown as running for ever.
            if not self._said:
                _log.warning(
                    "runs are not forked: dagster.yaml does not say `run_monitoring: {enabled: true}`"
                )
            self._said = True
            return False
        return ours

    def _forked(self, context: LaunchRunContext, origin: JobPythonOrigin) -> Line:
        run = context.dagster_run
        location, server = _location(context)
        with self._lock:
            self._forget_ended()
            repository = serialize_value(origin.repository_origin)
            new = WarmProcess(repository, location, self._instance.get_ref())
            kept = self._warm.setdefault((repository, location), new)
            line = self._lines[run.run_id] = kept.forked(server)
        return line

    def _forget_ended(self) -> None:
        """Also those that Dagster has given up, though their processes are there: they end by that."""
        for run_id in [run_id for run_id, line in self._lines.items() if not line.is_alive()]:
            self._lines.pop(run_id).close()
        if self._lines:
            given_up = dg.RunsFilter(run_ids=list(self._lines), statuses=_GIVEN_UP)
            for run in self._instance.get_runs(given_up):
                self._lines.pop(run.run_id).close()

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        where = None if run is None else _process_of(run)
        if run is None or run.is_finished or where is None:
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        self._instance.report_run_canceling(run)
        if where["host"] != socket.gethostname():
            self._instance.report_engine_event(f"its process is on {where['host']}", run, cls=type(self))
            return False
        if started(where["pid"]) != where["started"]:
            return False
        with suppress(ProcessLookupError):
            os.kill(where["pid"], signal.SIGTERM)
            return True
        return False

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        where = _process_of(run)
        if where is None:
            # The code server that has its process watches it.
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        with self._lock:
            # Now and then is often enough, and this comes every few seconds.
            self._forget_ended()
            line = self._lines.get(run.run_id)
        if line is not None and line.is_alive():
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        # Where the line is that of an earlier daemon, the run has ended with that.
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, f"its process {where['pid']} has ended")

    def dispose(self) -> None:
        with self._lock:
            for kept in self._warm.values():
                kept.close()
            for line in self._lines.values():
                line.close()
            self._lines.clear()
        super().dispose()


def _process_of(run: dg.DagsterRun) -> dict[str, Any] | None:
    """Where it was forked; None if it was not. Dagster's retries have the tags of the run that they retry."""
    where: dict[str, Any] = json.loads(run.tags.get(_PROCESS, "{}"))
    return where if where.get("run") == run.run_id else None


def _location(context: LaunchRunContext) -> tuple[str, str]:
    """Where the code is, and a name of it as it is loaded, another one each time that Dagster loads it anew.

    Raises:
        Unforked: the code is served elsewhere.

    """
    origin, workspace = context.dagster_run.remote_job_origin, context.workspace
    if origin is None or workspace is None:
        raise Unforked("it is not known where its code is served")
    name = origin.repository_origin.code_location_origin.location_name
    client = cast("Any", workspace.get_code_location(name)).client
    # Those that Dagster has started itself; any other has an environment and a folder of its own.
    if not client.socket:
        raise Unforked(f"its code is served by a server of its own, at {client.host}:{client.port}")
    return name, str(client.get_server_id())

"""Runs that are forked: real processes, launched as Dagster does it, of code behind a real code server."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.launcher import WorkerStatus
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget

from mv_assets.launcher import WarmRunLauncher
from mv_assets.launcher.launcher import _PROCESS
from mv_assets.launcher.warm import started

pytestmark = pytest.mark.processes

_CODE = """
import os, time
from pathlib import Path
import dagster as dg

@dg.op
def write():
    Path({out!r}).write_text(f"{word} {{os.getpid()}} {{os.getcwd()}}")

@dg.op
def last():
    Path({out!r}).write_text("began")
    time.sleep(120)

@dg.job(executor_def=dg.in_process_executor)
def short():
    write()

@dg.job(executor_def=dg.in_process_executor)
def long():
    last()

defs = dg.Definitions(jobs=[short, long])
"""
_SLOW_S = 90.0


@dataclass
class Place:
    """Code, behind a code server, and an instance that launches its runs warm."""

    folder: Path
    module: str
    instance: dg.DagsterInstance
    workspace: WorkspaceProcessContext

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def launcher(self) -> WarmRunLauncher:
        launcher = self.instance.run_launcher
        assert isinstance(launcher, WarmRunLauncher)
        return launcher

    def write(self, word: str = "one", more: str = "") -> None:
        code = _CODE.format(out=str(self.out), word=word) + more
        (self.folder / f"{self.module}.py").write_text(code)

    def reload(self) -> None:
        self.workspace.reload_code_location(self.module)

    def launch(self, job: str) -> str:
        request = self.workspace.create_request_context()
        [repository] = request.get_code_location(self.module).get_repositories().values()
        found = repository.get_full_job(job)
        run = self.instance.create_run(
            job_name=job,
            run_id=None,
            run_config={},
            status=dg.DagsterRunStatus.NOT_STARTED,
            tags={},
            root_run_id=None,
            parent_run_id=None,
            step_keys_to_execute=None,
            execution_plan_snapshot=None,
            job_snapshot=found.job_snapshot,
            parent_job_snapshot=None,
            asset_selection=None,
            asset_check_selection=None,
            resolved_op_selection=None,
            op_selection=None,
            remote_job_origin=found.get_remote_origin(),
            job_code_origin=found.get_python_origin(),
            asset_graph=repository.asset_graph,
        )
        self.instance.launch_run(run.run_id, request)
        return run.run_id

    def status(self, run: str) -> str:
        found = self.instance.get_run_by_id(run)
        assert found is not None
        return found.status.value

    def finished(self, run: str) -> str:
        until(lambda: self.status(run) in ("SUCCESS", "FAILURE", "CANCELED"))
        return self.status(run)

    def process(self, run: str) -> int | None:
        """The process that was forked for it."""
        found = self.instance.get_run_by_id(run)
        assert found is not None
        return json.loads(found.tags[_PROCESS])["pid"] if _PROCESS in found.tags else None

    def warm(self) -> int | None:
        [kept] = self.launcher._warm.values()
        return None if kept._process is None else kept._process.pid

    def health(self, run: str) -> WorkerStatus:
        found = self.instance.get_run_by_id(run)
        assert found is not None
        return self.launcher.check_run_worker_health(found).status

    def said(self, run: str) -> str:
        return "\n".join(entry.message for entry in self.instance.all_logs(run))


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _SLOW_S
    while not condition():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder, module = tmp_path_factory.mktemp("launcher"), "code_of_the_launchers_tests"
    settings = {"module": "mv_assets.launcher", "class": "WarmRunLauncher", "config": {"modules": [module]}}
    queue = {"module": "dagster._core.run_coordinator", "class": "QueuedRunCoordinator"}
    overrides = {"run_launcher": settings, "run_coordinator": queue}
    with dg.instance_for_test(temp_dir=str(folder), overrides=overrides) as instance:
        place = Place(folder, module, instance, workspace=None)  # type: ignore[arg-type]
        place.write()
        target = ModuleTarget(module, attribute=None, working_directory=str(folder), location_name=module)
        with WorkspaceProcessContext(instance, target) as place.workspace:
            yield place


@pytest.fixture(autouse=True)
def as_it_was(place: Place) -> Iterator[None]:
    place.out.unlink(missing_ok=True)
    yield
    place.write()
    place.reload()


def test_a_run_is_forked_from_one_process_that_stays_and_has_a_process_of_its_own(place: Place) -> None:
    first = place.launch("short")
    assert place.finished(first) == "SUCCESS"
    warm = place.warm()
    second = place.launch("short")
    assert place.finished(second) == "SUCCESS"
    assert place.out.read_text() == f"one {place.process(second)} {Path.cwd()}"
    assert place.warm() == warm
    assert len({warm, place.process(first), place.process(second), os.getpid()}) == 4
    # Nothing is left of them, and the system keeps no trace either.
    until(lambda: started(place.process(first) or 0) is started(place.process(second) or 0) is None)


def test_code_that_was_edited_is_loaded_anew_whether_dagster_was_told_to_or_not(place: Place) -> None:
    assert place.finished(place.launch("short")) == "SUCCESS"
    warm = place.warm()
    place.write("two")
    assert place.finished(place.launch("short")) == "SUCCESS"
    assert place.out.read_text().startswith("two ")
    edited = place.warm()
    place.reload()
    assert place.finished(place.launch("short")) == "SUCCESS"
    assert len({warm, edited, place.warm()}) == 3


def test_a_warm_process_that_was_killed_is_started_again_for_the_next_run(place: Place) -> None:
    assert place.finished(place.launch("short")) == "SUCCESS"
    warm = place.warm()
    assert warm is not None
    os.kill(warm, signal.SIGKILL)
    until(lambda: started(warm) is None)
    again = place.launch("short")
    assert place.finished(again) == "SUCCESS"
    assert place.process(again) is not None
    assert place.warm() != warm


def test_a_run_that_is_under_way_outlives_the_process_that_it_was_forked_from(place: Place) -> None:
    run = place.launch("long")
    until(place.out.exists)
    warm = place.warm()
    assert warm is not None
    os.kill(warm, signal.SIGKILL)
    until(lambda: started(warm) is None)
    assert place.health(run) is WorkerStatus.RUNNING
    assert place.launcher.terminate(run)
    assert place.finished(run) == "CANCELED"


def test_a_run_is_terminated_by_a_process_that_has_not_launched_it(place: Place) -> None:
    run = place.launch("long")
    until(place.out.exists)
    with dg.DagsterInstance.from_ref(place.instance.get_ref()) as another:
        assert another.run_launcher.terminate(run)
    assert place.finished(run) == "CANCELED"
    until(lambda: started(place.process(run) or 0) is None)


def test_a_run_whose_process_was_killed_is_found_to_have_none(place: Place) -> None:
    run = place.launch("long")
    until(place.out.exists)
    assert place.health(run) is WorkerStatus.RUNNING
    os.kill(place.process(run) or 0, signal.SIGKILL)
    until(lambda: place.health(run) is WorkerStatus.NOT_FOUND)
    assert not place.launcher.terminate(run)


def test_a_run_of_an_earlier_launcher_is_found_to_have_ended(place: Place) -> None:
    """With its launcher, at the latest: a run that nobody watches is interrupted."""
    with dg.DagsterInstance.from_ref(place.instance.get_ref()) as earlier:
        before, place.instance = place.instance, earlier
        try:
            run = place.launch("long")
            until(place.out.exists)
        finally:
            place.instance = before
    assert place.health(run) is WorkerStatus.NOT_FOUND
    assert place.finished(run) == "FAILURE"
    until(lambda: started(place.process(run) or 0) is None)


@pytest.mark.parametrize(
    "unforkable",
    ["threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", "os._exit(3)"],
    ids=["has a thread", "does not load"],
)
def test_what_can_not_be_forked_is_run_the_plain_way_and_says_so(place: Place, unforkable: str) -> None:
    where = "any('launcher.process' in each for each in sys.orig_argv)"
    place.write("plain", f"\nimport sys, threading\nif {where}:\n    {unforkable}\n")
    place.reload()
    for why in ("does not start", "could not load"):
        # It is not tried again before the code is another.
        run = place.launch("short")
        assert place.finished(run) == "SUCCESS"
        assert place.process(run) is None
        assert why in place.said(run)
        assert place.out.read_text().startswith("plain ")


def test_runs_of_other_modules_are_the_default_launchers(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.launcher, "_modules", ("another",))
    run = place.launch("short")
    assert place.finished(run) == "SUCCESS"
    assert place.process(run) is None
    assert "imports all anew" not in place.said(run)
    assert place.health(run) is WorkerStatus.RUNNING

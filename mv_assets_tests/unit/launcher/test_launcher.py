"""Runs that are forked: real processes, launched as Dagster does it, of code behind a real code server."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import deltalake
import pyarrow as pa
import pytest
from dagster._core.launcher import WorkerStatus
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget, ModuleTarget
from dagster._grpc.server import GrpcServerProcess

from mv_assets.launcher import WarmRunLauncher, warm
from mv_assets.launcher.launcher import _PROCESS
from mv_assets.launcher.process import _received_socket
from mv_assets.launcher.warm import Unforked, started

pytestmark = pytest.mark.processes

_CODE = """
import os, signal, sys, time
from pathlib import Path
import dagster as dg
import numpy

word = os.environ.get("THE_LAUNCHERS_WORD", {word!r})
in_warm_process = "mv_assets.launcher.process" in sys.orig_argv

@dg.op
def write():
    Path({out!r}).write_text(f"{{word}} {{os.getpid()}} {{os.getcwd()}}")

@dg.op
def draw():
    Path({out!r}).write_text(str(numpy.random.random()))

@dg.op
def last():
    Path({out!r}).write_text(str(os.getpid()))
    time.sleep(120)

@dg.op
def stuck():
    # As in a library that does not come back to see a signal.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    sys.modules["__main__"]._END_WITHIN_S = sys.modules["__main__"]._GONE_WITHIN_S = 0.2
    Path({out!r}).write_text("stuck")
    time.sleep(120)

@dg.job(executor_def=dg.in_process_executor)
def short():
    write()

@dg.job(executor_def=dg.multiprocess_executor)
def apart():
    write()

@dg.job(executor_def=dg.multiprocess_executor)
def long_apart():
    last()

@dg.job(executor_def=dg.in_process_executor)
def lots():
    draw()

@dg.job(executor_def=dg.in_process_executor)
def long():
    last()

@dg.job(executor_def=dg.in_process_executor)
def endless():
    stuck()

defs = dg.Definitions(jobs=[short, apart, long_apart, lots, long, endless])
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

    @property
    def code(self) -> Path:
        return self.folder / f"{self.module}.py"

    def write(self, word: str = "one", more: str = "") -> None:
        self.code.write_text(_CODE.format(out=str(self.out), word=word) + more)

    def reload(self) -> None:
        self.workspace.reload_code_location(self.module)

    def warm_up(self) -> set[str]:
        """Until runs are forked; why they were not at once."""
        if not self.launcher._warm:
            assert self.finished(self.launch("short")) == "SUCCESS"
        [kept] = self.launcher._warm.values()
        location: Any = self.workspace.create_request_context().get_code_location(self.module)
        reasons = set()

        def forks() -> bool:
            try:
                kept.forked(str(location.client.get_server_id())).close()
            except Unforked as error:
                reasons.add(str(error))
                return False
            return True

        until(forks)
        # What the run before has written is not that of the next.
        self.out.unlink(missing_ok=True)
        return reasons

    def wait_until_loaded(self) -> None:
        """Until the warm process has said so, or has ended, which reads as well."""
        [kept] = self.launcher._warm.values()
        requests = kept._requests
        assert requests is not None
        assert select.select([requests], [], [], _SLOW_S)[0]

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
    overrides = {
        "run_launcher": settings,
        "run_coordinator": queue,
        "run_monitoring": {"enabled": True, "poll_interval_seconds": 5},
    }
    with dg.instance_for_test(temp_dir=str(folder), overrides=overrides) as instance:
        place = Place(folder, module, instance, workspace=None)  # type: ignore[arg-type]
        place.write()
        target = ModuleTarget(module, attribute=None, working_directory=str(folder), location_name=module)
        with WorkspaceProcessContext(instance, target) as place.workspace:
            yield place
        # Nobody looks after the runs that tests have killed, and the instance would wait for their end.
        for run in instance.get_runs():
            if not run.is_finished:
                instance.report_run_failed(run)


@pytest.fixture(autouse=True)
def as_it_was(place: Place) -> Iterator[None]:
    place.out.unlink(missing_ok=True)
    before = place.code.read_text()
    yield
    if place.code.read_text() != before:
        place.code.write_text(before)
        place.reload()


def test_a_run_is_forked_from_one_process_that_stays_and_has_a_process_of_its_own(place: Place) -> None:
    place.warm_up()
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
    place.warm_up()
    warm = place.warm()
    place.write("two")
    run = place.launch("short")
    assert place.finished(run) == "SUCCESS"
    assert place.process(run) is None
    assert f"{place.code} has changed" in place.said(run)
    assert place.out.read_text().startswith("two ")
    place.warm_up()
    edited = place.warm()
    run = place.launch("short")
    assert place.finished(run) == "SUCCESS"
    assert place.out.read_text().startswith(f"two {place.process(run)} ")
    place.reload()
    assert "the warm process is loading the code" in place.warm_up()
    assert len({warm, edited, place.warm()}) == 3


def test_a_warm_process_that_was_killed_is_started_again_for_the_next_run(place: Place) -> None:
    place.warm_up()
    warm = place.warm()
    assert warm is not None
    os.kill(warm, signal.SIGKILL)
    until(lambda: started(warm) is None)
    run = place.launch("short")
    assert place.finished(run) == "SUCCESS"
    assert "imports all anew" in place.said(run)
    place.warm_up()
    again = place.launch("short")
    assert place.finished(again) == "SUCCESS"
    assert place.process(again) is not None
    assert place.warm() != warm


def test_a_warm_process_that_hangs_is_given_up_and_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "_FORKED_WITHIN_S", 0.5)
    place.warm_up()
    hung = place.warm()
    assert hung is not None
    os.kill(hung, signal.SIGSTOP)
    run = place.launch("short")
    assert "did not answer" in place.said(run)
    assert place.finished(run) == "SUCCESS"
    assert started(hung) is None


def test_runs_do_not_draw_the_same_numbers(place: Place) -> None:
    place.warm_up()
    drawn = list[str]()
    for _ in range(2):
        run = place.launch("lots")
        assert place.finished(run) == "SUCCESS"
        assert place.process(run) is not None
        drawn.append(place.out.read_text())
    assert drawn[0] != drawn[1]


def test_steps_of_a_run_may_have_processes_of_their_own_and_end_with_it(place: Place) -> None:
    place.warm_up()
    run = place.launch("apart")
    assert place.finished(run) == "SUCCESS"
    word, step, _ = place.out.read_text().split()
    assert (word, int(step) == place.process(run)) == ("one", False)
    place.out.unlink()
    run = place.launch("long_apart")
    until(lambda: place.out.exists() and place.out.read_text())
    step = place.out.read_text()
    assert int(step) != place.process(run)
    assert place.launcher.terminate(run)
    assert place.finished(run) == "CANCELED"
    until(lambda: started(int(step)) is started(place.process(run) or 0) is None)


def test_what_is_printed_while_code_is_loaded_is_not_printed_by_each_run(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    place.write("printed", "\nif in_warm_process:\n    print('loaded by', os.getpid())\n")
    place.reload()
    place.warm_up()
    run = place.launch("short")
    assert place.finished(run) == "SUCCESS"
    process, warm = place.process(run), place.warm()
    assert process is not None
    until(lambda: started(process) is None)
    assert capfd.readouterr().out.count(f"loaded by {warm}") == 1


def test_a_run_of_a_code_server_that_somebody_else_has_started_is_that_servers(place: Place) -> None:
    """It has another environment, perhaps, and works in another folder."""
    where = LoadableTargetOrigin(
        executable_path=sys.executable, module_name=place.module, working_directory=str(place.folder)
    )
    with (
        GrpcServerProcess(
            place.instance.get_ref(),
            location_name=place.module,
            loadable_target_origin=where,
            force_port=True,
            wait_on_exit=True,
        ) as server,
        WorkspaceProcessContext(
            place.instance, GrpcServerTarget("localhost", server.port, None, place.module)
        ) as workspace,
    ):
        ours, place.workspace = place.workspace, workspace
        try:
            run = place.launch("short")
            assert place.finished(run) == "SUCCESS"
        finally:
            place.workspace = ours
    assert place.process(run) is None
    assert "a server of its own" in place.said(run)


def test_a_run_that_is_under_way_outlives_the_process_that_it_was_forked_from(place: Place) -> None:
    place.warm_up()
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
    place.warm_up()
    run = place.launch("long")
    until(place.out.exists)
    with dg.DagsterInstance.from_ref(place.instance.get_ref()) as another:
        assert another.run_launcher.terminate(run)
    assert place.finished(run) == "CANCELED"
    until(lambda: started(place.process(run) or 0) is None)


def test_a_run_whose_process_was_killed_is_found_to_have_none(place: Place) -> None:
    place.warm_up()
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
            place.warm_up()
            run = place.launch("long")
            until(place.out.exists)
        finally:
            place.instance = before
    assert place.health(run) is WorkerStatus.NOT_FOUND
    assert place.finished(run) == "FAILURE"
    until(lambda: started(place.process(run) or 0) is None)


@pytest.mark.parametrize(
    "unforkable",
    [
        "import threading; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        "import deltalake; deltalake.DeltaTable({table!r})",
        "import socket; kept = socket.socketpair()",
        "import tempfile; kept = tempfile.TemporaryDirectory()",
        "os._exit(3)",
    ],
    ids=["has a thread", "has a library's threads", "has a connection", "has a folder", "does not load"],
)
def test_what_can_not_be_forked_is_run_the_plain_way_and_says_so(place: Place, unforkable: str) -> None:
    table = str(place.folder / "table")
    deltalake.write_deltalake(table, pa.table({"a": [1]}), mode="overwrite")
    place.write("plain", f"\nif in_warm_process:\n    {unforkable.format(table=table)}\n")
    place.reload()
    for _ in range(2):
        run = place.launch("short")
        assert place.finished(run) == "SUCCESS"
        assert place.process(run) is None
        assert place.out.read_text().startswith("plain ")
        place.wait_until_loaded()
    assert "could not load" in place.said(run)


def test_code_that_could_not_be_loaded_is_loaded_again_after_a_while(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    mended = place.folder / "mended"
    place.write("mended", f"\nif in_warm_process and not Path({str(mended)!r}).exists():\n    os._exit(3)\n")
    place.reload()
    place.launch("short")
    place.wait_until_loaded()
    mended.touch()
    with monkeypatch.context() as now:
        now.setattr(warm, "_LOADED_AGAIN_AFTER_S", 0)
        assert "could not load" in place.said(place.launch("short"))
    place.warm_up()


def test_a_file_that_is_saved_while_it_is_loaded_is_read_once_more(place: Place) -> None:
    conf, draft = place.folder / "conf", place.folder / "draft"
    for path in (conf, draft):
        path.write_text("")
    place.write(
        "saved",
        f"\nconf, draft = Path({str(conf)!r}), Path({str(draft)!r})\nconf.read_text()\n"
        "if in_warm_process and draft.exists():\n    draft.rename(conf)\n",
    )
    place.reload()
    assert f"the warm process loads the code anew, as {conf} has changed" in place.warm_up()


def test_nobody_waits_until_code_is_loaded(place: Place) -> None:
    go_on = place.folder / "go on"
    waits = f"\nwhile in_warm_process and not Path({str(go_on)!r}).exists():\n    time.sleep(0.1)\n"
    place.write("slow", waits)
    place.reload()
    run = place.launch("short")
    assert place.finished(run) == "SUCCESS"
    assert "is loading the code" in place.said(run)
    go_on.touch()
    place.warm_up()


def test_a_run_that_is_stuck_and_given_up_by_dagster_is_ended(place: Place) -> None:
    place.warm_up()
    run = place.launch("endless")
    until(place.out.exists)
    assert place.launcher.terminate(run)
    found = place.instance.get_run_by_id(run)
    assert found is not None
    # As run monitoring does it after a while.
    place.instance.report_run_canceled(found)
    assert started(place.process(run) or 0) is not None
    place.launch("short")
    until(lambda: started(place.process(run) or 0) is None)


def test_without_run_monitoring_runs_are_the_default_launchers_and_that_is_said_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(place.instance, "_run_monitoring_enabled", False)
    for _ in range(2):
        run = place.launch("short")
        assert place.finished(run) == "SUCCESS"
        assert place.process(run) is None
    assert caplog.text.count("run_monitoring") == 1


def test_environment_variables_of_a_location_are_there_while_its_code_is_loaded(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place.folder / "of the location" / ".env"
    file.parent.mkdir()
    file.write_text("THE_LAUNCHERS_WORD=secret")
    monkeypatch.setenv("DAGSTER_PROJECT_ENV_FILE_PATHS", json.dumps({place.module: str(file.parent)}))
    place.write("not set")
    place.reload()
    for word in ("secret", "other"):
        file.write_text(f"THE_LAUNCHERS_WORD={word}")
        place.warm_up()
        run = place.launch("short")
        assert place.finished(run) == "SUCCESS"
        assert place.out.read_text().startswith(f"{word} {place.process(run)} ")


def test_no_setting_stands_among_the_arguments_of_a_process(place: Place) -> None:
    place.warm_up()
    arguments = Path(f"/proc/{place.warm()}/cmdline").read_text()
    assert "mv_assets.launcher.process" in arguments
    assert str(place.folder) not in arguments


def test_processes_that_a_run_starts_do_not_hold_its_line_open() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        socket.send_fds(ours, [b"f"], [its.fileno()])
        _, [received], _, _ = socket.recv_fds(its, 1, 1)
        with _received_socket(received) as line:
            assert not line.get_inheritable()


def test_runs_of_other_modules_are_the_default_launchers(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.launcher, "_modules", ("another",))
    run = place.launch("short")
    assert place.finished(run) == "SUCCESS"
    assert place.process(run) is None
    assert "imports all anew" not in place.said(run)
    assert place.health(run) is WorkerStatus.RUNNING

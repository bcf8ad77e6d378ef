from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.resources import files
from io import StringIO
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml
from click.testing import CliRunner
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.instance.ref import InstanceRef
from rich.console import Console

from mv_assets.cli import main
from mv_assets.cli.commands.dev import _environment, _ui_port
from mv_assets.cli.dev import dagster, ports, supervisor
from mv_assets.cli.dev.children import Child
from mv_assets.cli.dev.kept import Kept
from mv_assets.cli.dev.lock import locked
from mv_assets.cli.dev.ports import free_port, listens
from mv_assets.cli.dev.spark import Address, spark_server
from mv_assets.cli.errors import HomeInUse, NoPort, PortForbidden, RunsUnreadable
from mv_assets.cli.session import Session
from mv_assets.config import Spark
from mv_assets.config.errors import HomeUnwritable
from mv_assets.errors import SettingRefused
from mv_assets_tests.scenarios.security.listeners import listening
from mv_assets_tests.support.dev import PATIENCE_S, UP, dev

NOBODY = "http://127.0.0.1:9"
pytestmark = pytest.mark.processes
NO_SPARK = "spark: {remote: 'sc://127.0.0.1:9'}\n"


def alive(pids: dict[int, str]) -> dict[int, str]:
    """Those that still run; a number that another command has got since counts as gone."""
    found = {}
    for pid, name in pids.items():
        with suppress(OSError):
            if (Path("/proc") / str(pid) / "cmdline").read_text().replace("\0", " ") == name:
                found[pid] = name
    return found


def asked(address: str, query: str) -> dict[str, object]:
    body = json.dumps({"query": query}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{address}/graphql", body, headers)  # noqa: S310 - the address is ours
    with urlopen(request, timeout=30) as answer:  # noqa: S310 - the address is ours
        found: dict[str, object] = json.load(answer)["data"]
        return found


@pytest.mark.slow
@pytest.mark.e2e
def test_dev_keeps_everything_running_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with dev(tmp_path) as running:
        running.until(lambda: UP in running.said())
        (ui,) = re.findall(r"http://127\.0\.0\.1:\d+", running.said())
        (port,) = re.findall(r"sc://localhost:(\d+)", running.said())
        assert "can't be loaded" not in running.said()
        assert asked(ui, "{ version }")["version"]
        assert listens(int(port))

        # The demo grows.
        before = set(running.demo.trips.rglob("*.parquet"))
        running.until(lambda: set(running.demo.trips.rglob("*.parquet")) - before)

        # What is served is this home's, and nobody else can serve it meanwhile.
        with dev(tmp_path_of(tmp_path, "other"), "dev", MV_ASSETS_HOME=str(running.home)) as second:
            assert second.ended() == 2
            assert f"kill -INT {running.process.pid}" in second.said()

        # What dies comes back, where it was: Spark, and the process of the code, which Dagster only misses.
        spark = running.spark()
        assert spark is not None
        os.kill(spark, signal.SIGKILL)
        (code,) = [pid for pid, name in running.started().items() if " -m dagster api grpc " in name]
        os.kill(code, signal.SIGKILL)
        running.until(lambda: "Spark is back" in running.said())
        assert listens(int(port))
        assert running.spark() not in (None, spark)
        running.until(lambda: "Dagster is back" in running.said())
        assert "Dagster has lost the process that runs the code" in running.said()
        assert asked(ui, "{ version }")["version"]

        started = running.started()
        assert any("dagster" in name for name in started.values())
        # None of it asks who is there, so nobody from elsewhere gets in.
        heard = listening(started)
        assert int(port) in {number for _, number in heard}
        assert [(str(place), number) for place, number in heard if not place.is_loopback] == []
        writable = [path for path in running.home.rglob("*") if path.lstat().st_mode & 0o1002 == 0o2]
        assert [path for path in writable if not path.is_symlink()] == []
        running.process.send_signal(signal.SIGINT)
        assert running.ended() == 0
        deadline = time.monotonic() + PATIENCE_S
        while alive(started) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert alive(started) == {}
        assert not listens(int(port))
        assert {path.name for path in (running.home / "logs").iterdir()} == {
            "dagster.log",
            "spark.log",
            "spark.properties",
        }
        assert (running.home / "dagster" / "history" / "runs.db").is_file()


def test_a_child_that_dies_is_started_again_but_not_one_that_never_came_up(tmp_path: Path) -> None:
    said, starts = list[str](), list[int]()
    child = Child("It", ["sleep", "600"], dict(os.environ), tmp_path / "log", ((signal.SIGTERM, 1.0),))
    kept = Kept(child, lambda: len(starts) != 1, said.append, lambda: starts.append(1))

    def killed() -> int | None:
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        return kept.check()

    kept.start()
    try:
        assert kept.check() is None
        assert killed() == -signal.SIGKILL
        kept.start()
        assert kept.check() is None
        assert kept.ready
        assert killed() is None
        assert not kept.ready
        # It is time to start it again; then it is up.
        assert [kept.check(), kept.check()] == [None, None]
        assert (len(starts), child.exit_code()) == (3, None)
        assert said == [
            "[yellow]It ended by itself (exit code -9)[/]; starting it again",
            "It is back",
        ]
    finally:
        child.stop()


SERVER = """
import json, pathlib, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
starts = pathlib.Path(sys.argv[1])
number = len(starts.read_text()) if starts.exists() else 0
starts.write_text("x" * (number + 1))
said = "io.grpc UNAVAILABLE: nobody listens"
lost = {"className": "DagsterUserCodeUnreachableError", "message": said, "causes": []}
entry = {"name": "code", "loadStatus": "LOADED", "locationOrLoadError": {} if number else lost}
answer = json.dumps({"data": {"workspaceOrError": {"locationEntries": [entry]}}}).encode()
class Answers(BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)
HTTPServer(("127.0.0.1", int(sys.argv[2])), Answers).serve_forever()
"""


@pytest.fixture
def webserver(tmp_path: Path) -> Iterator[tuple[Child, int]]:
    """In Dagster's place stands what answers as it does, and its port."""
    port, environment = free_port(), dict(os.environ)
    (tmp_path / "starts").write_text("one")
    command = [sys.executable, "-c", SERVER, str(tmp_path / "starts"), str(port)]
    child = Child("Dagster", command, environment, tmp_path / "log", ((signal.SIGTERM, 1.0),))
    child.start()
    deadline = time.monotonic() + PATIENCE_S
    while not listens(port):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield child, port
    child.stop()


def test_dagster_is_asked_without_the_proxy_that_the_shell_names(
    webserver: tuple[Child, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy"):
        monkeypatch.setenv(name, NOBODY)
    monkeypatch.setenv("no_proxy", "a.com")
    assert dagster.loaded(webserver[1]) == dagster.Loaded({})
    monkeypatch.setenv("MV_ASSETS_HOME", str(tmp_path))
    # And so are those that Dagster and its runs ask.
    found = _environment(Session(None), tmp_path / "project.yaml")
    assert (found["no_proxy"], found["http_proxy"]) == ("a.com,127.0.0.1,localhost", NOBODY)


@pytest.mark.parametrize(("given", "seconds"), [(None, "2"), ("", "2"), ("60", "60")])
def test_sensors_look_as_often_as_dagster_lets_them_unless_somebody_says_how_often(
    given: str | None, seconds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MV_ASSETS_HOME", str(tmp_path))
    monkeypatch.delenv("MV_ASSETS_SENSOR_INTERVAL", raising=False)
    if given is not None:
        monkeypatch.setenv("MV_ASSETS_SENSOR_INTERVAL", given)
    assert _environment(Session(None), tmp_path / "project.yaml")["MV_ASSETS_SENSOR_INTERVAL"] == seconds


def test_a_dagster_whose_code_is_lost_before_it_is_up_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Dagster's place stands what answers as it does: it would have to be killed in the right moment."""
    monkeypatch.setattr(supervisor, "_LOOK_S", 0.0)
    monkeypatch.setattr(supervisor, "_NEVER_CAME_S", 0.0)
    port, said, signals = free_port(), list[str](), supervisor.Signals()
    command = [sys.executable, "-c", SERVER, str(tmp_path / "starts"), str(port)]
    child = Child("Dagster", command, dict(os.environ), tmp_path / "log", ((signal.SIGTERM, 1.0),))

    def answers() -> bool:
        how = dagster.loaded(port)
        return how is not None and not how.lost

    def up(how: dagster.Loaded) -> None:
        assert how == dagster.Loaded({})
        signals.count = 1

    with locked(tmp_path) as lock:
        assert (
            supervisor.Supervisor(Kept(child, answers, said.append), port, None, up, signals).run(lock) == 0
        )
    assert "has lost the process that runs the code" in said[0]


def tmp_path_of(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def test_mistakes_in_the_project_are_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "project.yaml").write_text("tabels: []\n")
    with dev(tmp_path, "--project", "project.yaml", "dev") as running:
        assert running.ended() == 2
    assert "did you mean tables?" in running.said()
    assert not (running.home / "logs").exists()


def test_a_spark_that_can_not_start_is_one_sentence(tmp_path: Path) -> None:
    with dev(tmp_path, JAVA_HOME=str(tmp_path / "nowhere")) as running:
        assert running.ended() == 1
    assert "Spark is not available" in running.said()
    assert "install Java 17 or newer, or set JAVA_HOME" in running.said()
    assert "Traceback" not in running.said()


def test_what_another_process_says_at_the_port_is_not_dagsters(
    webserver: tuple[Child, int], tmp_path: Path
) -> None:
    """It took the port after `dev` had seen that it was free."""
    other, port = webserver
    assert dagster.loaded_by(other, port) == dagster.Loaded({})
    binds = f"import socket; socket.socket().bind(('127.0.0.1', {port}))"
    said, command = list[str](), [sys.executable, "-c", f"import time; time.sleep(1); {binds}"]
    child = Child("Dagster", command, dict(os.environ), tmp_path / "its.log", ((signal.SIGTERM, 1.0),))
    kept = Kept(child, lambda: dagster.loaded_by(child, port) is not None, said.append)
    with locked(tmp_path) as lock:
        assert supervisor.Supervisor(kept, port, None, lambda how: said.append(str(how))).run(lock) == 1
    assert "Dagster ended by itself (exit code 1)" in said[0]
    assert "Address already in use" in said[1]
    assert said[2] == f"port {port} is another process's; name another with --port"


def test_where_the_system_does_not_say_who_listens_anybody_will_do(
    webserver: tuple[Child, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.cli.dev.children.sockets", lambda _port: None)
    assert webserver[0].listens(webserver[1])
    assert not webserver[0].listens(free_port())


def test_a_dagster_that_does_not_come_up_is_shown_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_SILENT_S", 1.0)
    said, signals = list[str](), supervisor.Signals()

    def say(what: str) -> None:
        said.append(what)
        signals.count += "[room]" in what

    command = ["sh", "-c", "echo 'no [room]'; sleep 600"]
    child = Child("Dagster", command, dict(os.environ), tmp_path / "log", ((signal.SIGTERM, 1.0),))
    with locked(tmp_path) as lock:
        kept = Kept(child, lambda: False, say)
        assert supervisor.Supervisor(kept, free_port(), None, lambda _: None, signals).run(lock) == 0
    assert said[:2] == [
        f"[yellow]Dagster is not up after 1 s[/], still waiting; the end of {child.log}:",
        r"  no \[room]",
    ]


def test_a_dagster_that_ends_by_itself_is_shown_with_what_it_said(tmp_path: Path) -> None:
    """In Dagster's place stands what ends as it does, for whatever reason it has."""
    said, command = list[str](), [sys.executable, "-c", "import sys; print('no [room]'); sys.exit(3)"]
    child = Child("Dagster", command, dict(os.environ), tmp_path / "log", ((signal.SIGTERM, 1.0),))
    kept = Kept(child, lambda: False, said.append)
    with locked(tmp_path) as lock:
        assert supervisor.Supervisor(kept, free_port(), None, lambda _: None).run(lock) == 1
    assert "Dagster ended by itself (exit code 3)" in said[0]
    assert said[1] == r"  no \[room]"


def test_a_home_that_dagster_would_not_take_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "project.yaml").write_text(NO_SPARK)
    with dev(tmp_path, "--project", "project.yaml", "dev", DAGSTER_HOME="not/absolute") as running:
        assert running.ended() == 2
    said = "DAGSTER_HOME is 'not/absolute', which is not an absolute path; unset it, or write it from / on\n"
    assert running.said() == f"project.yaml declares no view yet; add one under views:\n{said}"
    assert not (running.home / "logs").exists()


@pytest.mark.slow
@pytest.mark.e2e
def test_code_that_can_not_be_loaded_is_shown_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "project.yaml").write_text(NO_SPARK)
    # Only what is loaded needs it; whoever starts it does not.
    (tmp_path / "dagster_pyspark.py").write_text("raise ValueError('the moon is full')\n")
    # A workspace that happens to be there is not what was asked for.
    (tmp_path / "workspace.yaml").write_text("load_from:\n  - python_file: nothing.py\n")
    options = ("--project", "project.yaml", "dev", "--port", str(free_port()))
    with dev(tmp_path, *options, PYTHONPATH=str(tmp_path)) as running:
        running.until(lambda: UP in running.said())
        assert "mv_assets.definitions can't be loaded: ValueError: the moon is full" in running.said()
        assert "sc://" not in running.said()
        running.process.send_signal(signal.SIGTERM)
        assert running.ended() == 0


# Dagster's home


CHECKOUT = Path(__file__).parents[3]


def places(ref: InstanceRef) -> dict[str, tuple[str, str, object]]:
    parts = ("local_artifact_storage_data", "compute_logs_data", "storage_data")
    found = {part: getattr(ref, part) for part in parts}
    return {
        part: (each.module_name, each.class_name, yaml.safe_load(each.config_yaml))
        for part, each in found.items()
    }


def test_both_dagster_yaml_say_the_same_and_keep_runs_at_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = yaml.safe_load((CHECKOUT / "dagster.yaml").read_text())
    del given["instance_class"]
    assert given == yaml.safe_load(files("mv_assets.cli.dev").joinpath("dagster.yaml").read_text())

    (tmp_path / "dagster.yaml").write_text((CHECKOUT / "dagster.yaml").read_text())
    (tmp_path / "temporary").mkdir()
    ours = InstanceRef.from_dir(str(dagster.home(None, tmp_path / ".mv_assets" / "dagster")))
    # As DAGSTER_HOME, from anywhere; and without it, where Dagster would keep all in a temporary folder.
    monkeypatch.chdir("/")
    named = InstanceRef.from_dir(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    unnamed = InstanceRef.from_dir(str(tmp_path / "temporary"), config_dir=str(tmp_path))
    for plain in (named, unnamed):
        assert plain.settings == ours.settings
        assert places(plain) == places(ours)


@pytest.mark.e2e
def test_dagster_keeps_to_its_home_wherever_it_is_started(tmp_path: Path) -> None:
    """Real commands of Dagster's: one opens the instance, one loads the definitions."""
    home, elsewhere = tmp_path_of(tmp_path, "home"), tmp_path_of(tmp_path, "elsewhere")
    (home / "dagster.yaml").write_text((CHECKOUT / "dagster.yaml").read_text())
    (home / "workspace.yaml").write_text((CHECKOUT / "workspace.yaml").read_text())
    ours = ("MV_ASSETS_", "DAGSTER_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment = inherited | {"DAGSTER_HOME": str(home)}

    def run(*command: str) -> str:
        ran = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "dagster", *command],
            cwd=elsewhere,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr

    assert str(home / ".mv_assets" / "dagster") in run("instance", "info")
    said = run("definitions", "validate", "-w", str(home / "workspace.yaml"))
    assert f"it is {home}/.mv_assets/demo/project.yaml" in said
    assert list(elsewhere.iterdir()) == []
    assert {path.name for path in (home / ".mv_assets").iterdir()} == {"dagster", "demo"}


def test_somebodys_own_dagster_home_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own").mkdir()
    for given in (str(tmp_path / "own"), "~/own"):
        assert dagster.home(given, tmp_path / "ours") == tmp_path / "own"
    assert list((tmp_path / "own").iterdir()) == []
    assert not (tmp_path / "ours").exists()
    for given in (str(tmp_path / "none"), "~/none", __file__):
        with pytest.raises(SettingRefused, match="there is no such folder; unset it, or make the folder"):
            dagster.home(given, tmp_path / "ours")
    with pytest.raises(SettingRefused, match="not an absolute path"):
        dagster.home("~nobody-of-this-name/own", tmp_path / "ours")


def test_dev_says_that_somebodys_own_dagster_home_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project.yaml").write_text(NO_SPARK)
    (tmp_path / "own").mkdir()
    # Far enough to hear it.
    monkeypatch.setattr(supervisor.Supervisor, "run", lambda *_: 0)
    result = CliRunner().invoke(
        main,
        ["--project", str(tmp_path / "project.yaml"), "dev"],
        env={"DAGSTER_HOME": str(tmp_path / "own"), "MV_ASSETS_HOME": None},
    )
    assert result.exit_code == 0, result.output
    assert f"DAGSTER_HOME is in use: {tmp_path}/own" in result.stderr


def test_what_can_not_be_written_below_the_home_is_one_sentence(tmp_path: Path) -> None:
    """A file in the folder's place, as root may write anywhere."""
    logs = tmp_path / "logs"
    logs.write_text("")
    with pytest.raises(HomeUnwritable, match=f"nothing can be written to {logs}/dagster: Not a directory"):
        dagster.home(None, logs / "dagster")
    with pytest.raises(HomeUnwritable, match=f"nothing can be written to {logs}: File exists"):
        spark_server(Spark(), Address(1), {}, logs, ())
    with pytest.raises(HomeUnwritable, match=f"nothing can be written to {logs}: File exists"):
        Child("It", ["true"], {}, logs / "it.log", ()).start()


@pytest.mark.parametrize("kind", ["damaged", "outdated"])
def test_a_database_that_dagster_can_not_use_is_one_sentence(tmp_path: Path, kind: str) -> None:
    home = dagster.home(None, tmp_path / "dagster")
    database = home / "history" / "runs.db"
    database.parent.mkdir()
    if kind == "damaged":
        database.write_bytes(b"hello" * 1_000)
    else:
        # Made before its runs had a status of their own.
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(
                "CREATE TABLE runs (id INTEGER PRIMARY KEY, run_id TEXT, run_body TEXT);"
                "CREATE TABLE alembic_version (version_num TEXT);"
                "INSERT INTO alembic_version VALUES ('c34498c29964')"
            )
    with pytest.raises(RunsUnreadable) as refused:
        dagster.fail_leftovers(home)
    said = str(refused.value)
    assert f"in {home} (" in said
    assert f"`DAGSTER_HOME={home} dagster instance migrate`, or delete the folder" in said
    assert "\n" not in said


def test_runs_that_a_killed_dagster_left_behind_are_failed(tmp_path: Path) -> None:
    home = dagster.home(None, tmp_path / "dagster")
    assert dagster.fail_leftovers(home) == 0
    with DagsterInstance.from_config(str(home)) as instance:
        for status in (DagsterRunStatus.STARTED, DagsterRunStatus.STARTING, DagsterRunStatus.SUCCESS):
            instance.add_run(DagsterRun(job_name="refresh", run_id=status.value, status=status))
    assert dagster.fail_leftovers(home) == 2
    with DagsterInstance.from_config(str(home)) as instance:
        found = {run.run_id: run.status.value for run in instance.get_runs()}
    assert found == {"STARTED": "FAILURE", "STARTING": "FAILURE", "SUCCESS": "SUCCESS"}


def test_what_a_killed_dev_has_left_running_holds_its_home(tmp_path: Path) -> None:
    with locked(tmp_path) as lock:
        left = subprocess.Popen(["sleep", "600"], pass_fds=[lock.descriptor])  # noqa: S607
        dead = subprocess.Popen(["true"])  # noqa: S607
        dead.wait()
        lock.note(dead.pid, left.pid)
    with pytest.raises(HomeInUse, match=f"kill -INT {left.pid}`"), locked(tmp_path):
        pass
    left.kill()
    left.wait()
    with locked(tmp_path):
        pass


def test_a_port_that_is_taken_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) > port
        assert listens(port)
        said = StringIO()
        assert _ui_port(port, Console(file=said)) > port
        assert f"port {port} is taken; Dagster's UI gets " in said.getvalue()


def test_where_no_port_is_left_only_real_ones_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(_port: int) -> int:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    monkeypatch.setattr(ports, "_bound", taken)
    with pytest.raises(NoPort, match="no free port from 65530 to 65535; name another"):
        free_port(65_530)
    with pytest.raises(NoPort, match="port 65535 is taken; name another"):
        free_port(65_535)


def test_a_port_that_the_system_keeps_for_others_is_not_called_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_port: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(ports, "_bound", forbidden)
    with pytest.raises(PortForbidden, match="port 80 is not for this user to listen at"):
        free_port(80)

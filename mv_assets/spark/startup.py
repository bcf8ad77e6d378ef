"""Starting Spark, or finding it: quietly if that works, in one sentence if it does not."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mv_assets.config import Spark
from mv_assets.config.values import connect_address
from mv_assets.spark.errors import EngineUnavailable, NoJava
from mv_assets.spark.interrupts import deferred, listening
from mv_assets.spark.proxies import LOCAL, direct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_QUIET = {"spark.ui.showConsoleProgress": "false"}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_ANSWERS_WITHIN_S = 10
_RESTARTS_WITHIN_S = 45
_CHATTER = ("WARN", "INFO", "Picked up", "NOTE", "OpenJDK 64-Bit Server VM warning")
# Before what the shell says stands which line of Spark's scripts it was about.
_SCRIPT = re.compile(r"^\S+: line \d+: ")
_TOO_OLD = re.compile(r"UnsupportedClassVersionError: .* up to (\d+)")
# Java 1 had class files of version 45.
_JAVA_0 = 44
_WITHOUT_JAVA = re.compile(
    r"JAVA_HOME|bin/java: |\bjava: |UnsupportedClassVersion|Java (Runtime|SE|Virtual Machine)|libj(ava|vm|li)"
)
# A Connect server that is there already, which `mv-assets dev` names to all that it starts.
REMOTE = "MV_ASSETS_SPARK_REMOTE"
# With these pyspark would take another Spark for the one that a project declares.
OTHERS = ("SPARK_REMOTE", "SPARK_API_MODE")

# What pyspark gives to Spark's script, and what stands there if nobody says anything.
_SUBMIT, _SHELL = "PYSPARK_SUBMIT_ARGS", "pyspark-shell"

# The Python of Spark's workers.
WORKERS = "PYSPARK_PYTHON"


def start(declared: Spark) -> SparkSession:
    """Spark as declared; where that is a local one, rather a warm server that the environment names.

    Raises:
        EngineUnavailable: it can't be had.

    """
    warm = os.environ.get(REMOTE) if is_local(declared) else None
    if warm is not None:
        # Who names one starts it again if it dies.
        return attached(warm, patience_s=_RESTARTS_WITHIN_S)
    if declared.remote is not None:
        return attached(declared.remote)
    if is_local(declared):
        # Its workers run the code of users, which is written for this Python.
        os.environ.setdefault(WORKERS, sys.executable)
    with _without(OTHERS):
        return started(declared.master or "local[*]", declared.conf)


@contextmanager
def _without(variables: Sequence[str]) -> Iterator[None]:
    """The environment, of this process and of what it starts, without some variables for a while."""
    taken = {name: os.environ.pop(name) for name in variables if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(taken)


def is_local(declared: Spark) -> bool:
    """Whether Spark would run in a process of its own here."""
    return declared.remote is None and (declared.master or "local").startswith("local")


def starts_here(declared: Spark) -> bool:
    """Whether `start` begins a Spark in this process that computes on this machine."""
    return is_local(declared) and os.environ.get(REMOTE) is None


def started(master: str, settings: Mapping[str, str]) -> SparkSession:
    """A driver in this process's own JVM.

    Raises:
        EngineUnavailable: it does not start; with what it said.

    """
    from pyspark import SparkContext  # noqa: PLC0415 - a second, which most commands need not spend
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    _leave_dead()
    local = _LOCAL if master.startswith("local") else {}
    chosen = {_JAVA_OPTIONS: _logging(), **_QUIET, **local, **settings}
    if SparkContext._gateway is None:  # noqa: SLF001 - whoever started a JVM before has its own ways
        submitted = {**chosen, "spark.master": master, "spark.app.name": "mv_assets"}
        with tempfile.TemporaryFile() as said, _submitting(submitted):
            try:
                # Java would stay for ever if nobody came to meet it.
                with deferred():
                    gateway = launch_gateway(popen_kwargs={"stderr": said})  # type: ignore[no-untyped-call]
            except OSError as error:
                raise EngineUnavailable(str(error)) from error
            except PySparkRuntimeError as error:
                said.seek(0)
                raise unstarted(said.read().decode(errors="replace").splitlines()) from error
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as SparkContext(gateway=...) would
    builder = SparkSession.builder.master(master).appName("mv_assets")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    # The handler that pyspark leaves behind would talk to Spark in the middle of what it interrupts.
    with listening():
        return builder.getOrCreate()


@contextmanager
def _submitting(settings: Mapping[str, str]) -> Iterator[None]:
    """Have Spark's script take settings from a file, beside what else it is told in the environment."""
    before = os.environ.get(_SUBMIT)
    with tempfile.TemporaryDirectory() as folder:
        file = write_properties(Path(folder) / "spark.properties", settings)
        ours = f"--properties-file {shlex.quote(str(file))} --load-spark-defaults"
        os.environ[_SUBMIT] = f"{ours} {before or _SHELL}"
        try:
            yield
        finally:
            os.environ.pop(_SUBMIT)
            os.environ.update({} if before is None else {_SUBMIT: before})


def write_properties(file: Path, settings: Mapping[str, str]) -> Path:
    """Settings in a file for its owner only: some are secrets, and everybody may see a command line."""
    escaped = {key: value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in settings.items()}
    file.unlink(missing_ok=True)
    file.touch(mode=0o600, exist_ok=False)
    file.write_text("".join(f"{key}={value}\n" for key, value in escaped.items()), encoding="utf-8")
    return file


def unstarted(said: Iterable[str], log: Path | None = None) -> EngineUnavailable:
    """The error of a Spark that did not start, by what it said; if for want of Java, with what to do."""
    lines = [line.strip() for line in said if not line.startswith(_CHATTER) and " WARN " not in line]
    lines = [_SCRIPT.sub("", line) for line in lines if line] or ["it ended at once"]
    where = "" if log is None else f" (its log is {log})"
    too_old = next((found for found in map(_TOO_OLD.search, lines) if found is not None), None)
    if too_old is not None:
        return NoJava(f"Java {int(too_old[1]) - _JAVA_0} is too old for it{where}")
    without = _WITHOUT_JAVA.search(lines[0]) is not None
    return (NoJava if without else EngineUnavailable)(f"{lines[0]}{where}")


def _leave_dead() -> None:
    """Let pyspark know of a JVM that has died under it; it would go on asking it."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if SparkContext._gateway is None:  # noqa: SLF001
        return
    try:
        SparkContext._gateway.jvm.System.nanoTime()  # noqa: SLF001
    except (Py4JError, OSError):
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        SparkContext._active_spark_context = None  # noqa: SLF001
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001


def attached(remote: str, patience_s: float = 0, answers_within_s: float | None = None) -> SparkSession:
    """A session on a Connect server, which is given some time to come up, and some to answer if it is near.

    Raises:
        EngineUnavailable: nobody listens there. Spark's own client would try for minutes.

    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    try:
        host, port = connect_address(remote)
    except ValueError as error:
        raise EngineUnavailable(f"{REMOTE} is {error}") from None
    until = time.monotonic() + patience_s
    while True:
        try:
            socket.create_connection((host, port), _ANSWERS_WITHIN_S).close()
            break
        except (OSError, UnicodeError) as error:
            if time.monotonic() >= until:
                raise EngineUnavailable(f"no Connect server answers at {host}:{port} ({error})") from error
        time.sleep(0.5)
    if host in LOCAL:
        # What just answered gRPC would ask a proxy for.
        os.environ.update(direct(os.environ))
    if answers_within_s is not None:
        _greet(host, port, answers_within_s)
    return SparkSession.builder.remote(remote).getOrCreate()


def _greet(host: str, port: int, within_s: float) -> None:
    """See that a server does more than to listen: one that was stopped would be waited for without end."""
    import grpc  # type: ignore[import-untyped] # noqa: PLC0415 - as above

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(within_s)
        except grpc.FutureTimeoutError:
            raise EngineUnavailable(f"it does not answer at {host}:{port}") from None


def _logging() -> str:
    """A logging set-up of the user's own stays."""
    if os.environ.get("SPARK_CONF_DIR"):
        return ""
    return f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"

"""The Sparks that tests run on: in this process, behind a Connect server, or on a cluster of processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from mv_assets.config import Spark

_SPARK_HOME = Path(pyspark.__file__).parent
SMALL = {
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.warehouse.dir": f"{tempfile.gettempdir()}/mv_assets_tests_spark",
}
# A handful of rows is computed sooner than a query is compiled. Servers and clusters do compile.
_QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.openCostInBytes": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.retainedExecutions": "1",
}
# Hadoop's S3, which `make` fetches. It is older than Spark's Hadoop, and does not understand its `60s`.
JARS = Path(__file__).parents[2] / ".jars"
_BY_OLD_JARS = {
    f"spark.hadoop.fs.s3a.{key}": value
    for key, value in {
        "threads.keepalivetime": "60",
        "multipart.purge.age": "86400",
        "connection.timeout": "20000",
        "connection.establish.timeout": "5000",
        "connection.request.timeout": "0",
        "connection.ttl": "300000",
        # Who is refused is to say so, and not to try for minutes.
        "attempts.maximum": "3",
        "retry.limit": "3",
        "retry.interval": "50ms",
        "retry.throttle.limit": "3",
        "retry.throttle.interval": "50ms",
    }.items()
}
_READY_S = 240


@contextmanager
def running(kind: str) -> Iterator[Spark]:
    """An engine of a kind: local, connect or cluster; how to reach it."""
    with ExitStack() as stopped:
        if kind == "local":
            yield Spark(master="local[2]", conf=SMALL | _QUICK | with_s3())
        elif kind == "connect":
            yield Spark(remote=stopped.enter_context(connect_server(SMALL | with_s3())))
        elif kind == "cluster":
            yield Spark(master=stopped.enter_context(cluster()), conf=SMALL | _CLUSTER)
        else:
            raise ValueError(f"no engine of kind {kind!r}: local, connect or cluster")


def with_s3() -> dict[str, str]:
    """What has Spark know S3, if the jars are there; a test that needs them says so if not."""
    jars = [str(jar) for jar in sorted(JARS.glob("*.jar"))]
    return {**_BY_OLD_JARS, "spark.driver.extraClassPath": ":".join(jars)} if jars else {}


_CLUSTER = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
}


@contextmanager
def connect_server(conf: Mapping[str, str] = SMALL) -> Iterator[str]:
    """A Spark Connect server; its address."""
    with connect_process(conf) as (address, _):
        yield address


@contextmanager
def connect_process(conf: Mapping[str, str] = SMALL) -> Iterator[tuple[str, int]]:
    """A Spark Connect server; its address and its process group."""
    port = free_port()
    settings = {
        **conf,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = ["bin/spark-submit", "--master", "local[2]", *options, "--class", server, "spark-internal"]
    with process(command) as started:
        wait_for(port)
        yield f"sc://127.0.0.1:{port}", started.pid


@contextmanager
def cluster(workers: int = 2) -> Iterator[str]:
    """A standalone cluster on loopback; its master's address."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    at = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stopped:
        stopped.enter_context(
            process(["bin/spark-class", "org.apache.spark.deploy.master.Master", *at, "--port", str(port)])
        )
        wait_for(port)
        for _ in range(workers):
            folder = stopped.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            sized = ["--cores", "1", "--memory", "1g", "--work-dir", folder]
            worker = ["bin/spark-class", "org.apache.spark.deploy.worker.Worker", *at, *sized, master]
            stopped.enter_context(process(worker))
        yield master


@contextmanager
def process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process of Spark's, with its children ended when the block ends."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(_SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    started = subprocess.Popen(  # noqa: S603 - the command is ours
        [str(_SPARK_HOME / command[0]), *command[1:]],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_for(port: int) -> None:
    """Until somebody listens there."""
    deadline = time.monotonic() + _READY_S
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing listens at port {port} after {_READY_S} s")
        time.sleep(0.2)

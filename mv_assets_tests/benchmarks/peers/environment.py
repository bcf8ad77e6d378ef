"""A peer's own virtual environment, and the commands that are run in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from mv_assets_tests.benchmarks.trace import SPARK

PEERS = Path(".peers").absolute()
# dbt-spark 1.11 needs dbt-core below 1.12; SQLMesh 0.236 is known to run on Spark 4.1.
REQUIREMENTS = {
    "sqlmesh": ("sqlmesh==0.236.4", "pyspark==4.1.4", "time-machine==3.6.0"),
    "dbt": ("dbt-core==1.11.16", "dbt-spark[session]==1.11.0", "pyspark==4.3.0", "time-machine==3.6.0"),
    "pipelines": ("pyspark[pipelines]==4.3.0",),
}
_AT = Path(__file__).with_name("at.py")
# A benchmark is no use to count, and waiting for a network that is not there no work to measure.
_TELL_NOBODY = {"DO_NOT_TRACK": "1", "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true"}
_LOGGING = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


class PeerFailed(Exception):
    """A command of a peer did not work; with the end of what it said."""


class Environment:
    """The environment of one peer, made if need be, and a folder with a Spark warehouse for one project."""

    def __init__(self, name: str, folder: Path) -> None:
        self._bin = _made(name) / "bin"
        self.folder, self.warehouse = folder, folder / "warehouse"
        conf = folder / "conf"
        conf.mkdir(parents=True)
        settings = {
            **SPARK,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": str(self.warehouse),
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/metastore;create=true",
        }
        (conf / "spark-defaults.conf").write_text("".join(f"{key} {settings[key]}\n" for key in settings))
        (conf / "log4j2.properties").write_text(_LOGGING)
        path = f"{self._bin}{os.pathsep}{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
        settled = {"PATH": path, "SPARK_CONF_DIR": str(conf), "TZ": "UTC"}
        self._variables = {**kept, **settled, **_TELL_NOBODY}

    def call(self, *command: str, today: date | None = None) -> str:
        """Run a command of the environment, that day if one is given; what it printed.

        Raises:
            PeerFailed: it failed.

        """
        program = [str(self._bin / command[0])]
        if today is not None:
            program = [str(self._bin / "python"), "-P", str(_AT), str(today), command[0]]
        return _call([*program, *command[1:]], self.folder, self._variables)

    def add_table(self, name: str, path: Path) -> None:
        """Put a folder of Parquet files into the catalog, as a table of the database `lake`."""
        statements = (
            "CREATE DATABASE IF NOT EXISTS lake",
            f"CREATE TABLE IF NOT EXISTS lake.{name} USING parquet LOCATION '{path}'",
        )
        session = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()"
        self.call("python", "-c", "\n".join([session, *(f"spark.sql({text!r})" for text in statements)]))

    def files(self, database: str, table: str) -> Sequence[Path]:
        return sorted((self.warehouse / f"{database}.db" / table).rglob("*.parquet"))


def _made(name: str) -> Path:
    folder, ready = PEERS / name, PEERS / name / ".ready"
    wanted = " ".join(REQUIREMENTS[name])
    if not ready.exists() or ready.read_text() != wanted:
        _call([sys.executable, "-m", "venv", "--clear", str(folder)], Path())
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        _call([*pip, *REQUIREMENTS[name]], Path())
        ready.write_text(wanted)
    return folder


def _call(command: list[str], folder: Path, variables: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise PeerFailed(f"{' '.join(command)}: exit code {done.returncode}\n{said[-3000:]}")
    return done.stdout

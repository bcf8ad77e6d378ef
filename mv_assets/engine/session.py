"""Spark sessions: started or attached to when first needed, and set so that results don't depend on them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mv_assets.errors import EngineRefused
from mv_assets.project import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where a server was configured otherwise, the project's conf has the last word on these.
_DEFAULTS = {"spark.sql.ansi.enabled": "true"}
# And on these nobody has: buckets are UTC, the SQL is taken literally, files are found as they were listed.
_FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.adaptive.enabled": "true",
    # Sizes decide how many files a generation has, not the number of cores.
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}
# With these a file that is not there, or not whole, counts as empty.
_REFUSED = (
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.files.ignoreCorruptFiles",
    "spark.files.ignoreMissingFiles",
    "spark.files.ignoreCorruptFiles",
)
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@dataclass(slots=True)
class Engine:
    """Spark as a project declares it. Nothing starts before a session is asked for."""

    declared: Spark
    _spark: SparkSession | None = field(default=None, repr=False)

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session of its own for one piece of work: its settings and names are nobody else's.

        Raises:
            EngineRefused: Spark is set to overlook missing or damaged files.

        """
        if self._spark is None:
            self._spark = self._start()
        own = self._spark.newSession()
        _configure(own, self.declared.conf)
        yield own

    def attach(self, spark: SparkSession) -> None:
        """Use a session that somebody else started."""
        self._spark = spark

    def stop(self) -> None:
        if self._spark is not None:
            self._spark.stop()
            self._spark = None

    def _start(self) -> SparkSession:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - a second, which most commands need not spend

        declared = self.declared
        _refuse(declared.conf)
        builder = SparkSession.builder
        if declared.remote is not None:
            return builder.remote(declared.remote).getOrCreate()
        master = declared.master or "local[*]"
        builder = builder.master(master).appName("mv_assets")
        settings = {
            _JAVA_OPTIONS: _quiet(),
            **(_LOCAL if master.startswith("local") else {}),
            **declared.conf,
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def _quiet() -> str:
    """A logging set-up of the user's own stays."""
    if os.environ.get("SPARK_CONF_DIR"):
        return ""
    return f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}"


def _configure(spark: SparkSession, conf: Mapping[str, str]) -> None:
    # A Connect server knows nothing of the project's settings; a local Spark was started with them.
    for key, value in {**_DEFAULTS, **conf, **_FIXED}.items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    _refuse({key: spark.conf.get(key, "false") or "false" for key in _REFUSED})


def _refuse(conf: Mapping[str, str]) -> None:
    for key in _REFUSED:
        if conf.get(key, "false").lower() == "true":
            raise EngineRefused(key)

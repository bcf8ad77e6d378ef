"""Spark sessions: started or attached to when first needed, and set so that results don't depend on them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

from mv_assets.config import Spark
from mv_assets.spark.connect import close, is_client, let_go_soon, new_session, set_all
from mv_assets.spark.errors import EngineRefused, EngineUnavailable, JobFailed
from mv_assets.spark.failures import in_short, spark_errors
from mv_assets.spark.job_size import PER_JOB
from mv_assets.spark.startup import start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where a server was configured otherwise, the project's conf has the last word on these.
_DEFAULTS = {"spark.sql.ansi.enabled": "true"}
_ZONE = "spark.sql.session.timeZone"
# And on these nobody has: buckets are UTC unless a view says where, the SQL is taken literally, files are
# found as they were listed.
_FIXED = {
    _ZONE: "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    # CHAR(n) in SQL is plain text, as it is to whoever matches queries with views.
    "spark.sql.preserveCharVarcharTypeInfo": "false",
    # Nor can SQL name a file in place of a table.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # A file that should have ids and has none would else be all nulls.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # Nor would a struct be there if a file has other fields of it than those that are asked for.
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Files that do not say their calendar are in the one that the look ranged them by. Those in Spark's old
    # one, by their own words, are moved all the same: the look refuses them.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
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
# The last of them after 17 s: a server that was started anew does not know the session anyway.
_RETRIES = 5


# Starts Spark, or attaches to it, as a project declares it.
Start = Callable[[Spark], "SparkSession"]


def borrowed(spark: SparkSession) -> Start:
    """Sessions of a Spark that is somebody's, whatever the project declares."""
    with spark_errors():
        # The caller's own is neither changed nor kept from being closed.
        own = new_session(spark)
    return lambda _declared: own


@dataclass(slots=True)
class Engine:
    """Spark as a project declares it. Nothing starts before a session is asked for.

    Whoever has one closes it, and stops it if the Spark that it started is nobody else's.
    """

    declared: Spark
    start: Start = field(default=start, repr=False)
    _spark: SparkSession | None = field(default=None, repr=False)
    # Sessions that nobody uses at the moment. A new one would compile again what others have compiled.
    _free: list[SparkSession] = field(default_factory=list, repr=False)
    # Sessions that were made here, as far as anybody still has them.
    _made: WeakSet[SparkSession] = field(default_factory=WeakSet, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session for one piece of work: while that goes on, its settings and names are nobody else's.

        Raises:
            EngineRefused: Spark is set to overlook missing or damaged files.
            EngineUnavailable: Spark can't be started or reached.

        """
        with self._lock:
            own = self._own()
        try:
            yield own
        except EngineUnavailable:
            self._forget()
            raise
        except KeyboardInterrupt:
            # Nobody waits for it any more, and Spark would go on; a client has told its server.
            if not is_client(own):
                with suppress(JobFailed, EngineUnavailable), spark_errors():
                    own.interruptAll()
            raise
        finally:
            if self._spark is not None:
                self._free.append(own)

    def check(self) -> None:
        """See that work could begin.

        Raises:
            EngineRefused: Spark is set to overlook missing or damaged files.
            EngineUnavailable: Spark can't be started or reached.

        """
        with self.session():
            pass

    def shared(self) -> SparkSession:
        """Everybody's session, for what is read here and worked on elsewhere.

        Raises:
            EngineRefused: Spark is set to overlook missing or damaged files.
            EngineUnavailable: Spark can't be started or reached.

        """
        self.check()
        if self._spark is None:
            raise EngineUnavailable("it was stopped")
        with spark_errors():
            _give_up_early(self._spark)
            _refuse({key: self._spark.conf.get(key, None) or "false" for key in _REFUSED})
        return self._spark

    def _own(self) -> SparkSession:
        _refuse(self.declared.conf)
        if self._spark is not None:
            with suppress(EngineUnavailable):
                return self._ready()
        # It was not there yet, or has gone since it was last used.
        return self._ready()

    def _ready(self) -> SparkSession:
        _be_quiet()
        try:
            with spark_errors():
                self._spark = self._spark or self.start(self.declared)
                return self._used() or self._new(self._spark)
        except (JobFailed, EngineUnavailable, AttributeError) as error:
            # A Spark that was stopped has lost its parts.
            self._forget()
            if isinstance(error, EngineUnavailable):
                raise
            raise EngineUnavailable(in_short(error)) from error

    def _used(self) -> SparkSession | None:
        """A session that was used before, unless somebody has spoiled it."""
        while self._free:
            own = self._free.pop()
            with suppress(EngineRefused):
                for key in PER_JOB:
                    own.conf.unset(key)
                _configure(own, self.declared.conf)
                return own
        return None

    def _new(self, spark: SparkSession) -> SparkSession:
        own = new_session(spark)
        self._made.add(own)
        _give_up_early(own)
        _configure(own, self.declared.conf)
        return own

    def close(self) -> None:
        """Close all sessions that were made here; the Spark goes on."""
        self._free.clear()
        for own in list(self._made):
            close(own)
        self._made.clear()

    def stop(self) -> None:
        """Close all sessions and stop Spark, if it has not stopped by itself."""
        self.close()
        if self._spark is not None:
            close(self._spark)
            with suppress(JobFailed, EngineUnavailable), spark_errors():
                self._spark.stop()
            self._forget()

    def _forget(self) -> None:
        self._spark = None
        self._free.clear()


@contextmanager
def in_zone(spark: SparkSession, zone: str | None) -> Iterator[None]:
    """A session that has a time zone while the block runs; None leaves it as it is."""
    if zone is None:
        yield
        return
    with spark_errors():
        before = str(spark.conf.get(_ZONE))
    if before == zone:
        yield
        return
    with spark_errors():
        spark.conf.set(_ZONE, zone)
    try:
        yield
    except EngineUnavailable:
        # A Spark that is gone would be asked in vain and for long.
        raise
    except BaseException:
        with suppress(JobFailed, EngineUnavailable), spark_errors():
            spark.conf.set(_ZONE, before)
        raise
    with spark_errors():
        spark.conf.set(_ZONE, before)


def _be_quiet() -> None:
    """No trace of every failed query on the terminal."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _give_up_early(spark: SparkSession) -> None:
    """No ten minutes of waiting for a lost server."""
    if is_client(spark):
        from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415

        spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
        let_go_soon(spark.client)


def _configure(spark: SparkSession, conf: Mapping[str, str]) -> None:
    # A Connect server knows nothing of the project's settings; a local Spark was started with them.
    own = {key: value for key, value in conf.items() if spark.conf.isModifiable(key)}
    _set(spark, {**_DEFAULTS, **own, **_FIXED})
    _refuse({key: spark.conf.get(key, None) or "false" for key in _REFUSED})


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    if is_client(spark):
        set_all(spark, settings)
        return
    for key, value in settings.items():
        spark.conf.set(key, value)


def _refuse(conf: Mapping[str, str]) -> None:
    for key in _REFUSED:
        if conf.get(key, "false").strip().lower() == "true":
            raise EngineRefused(key)

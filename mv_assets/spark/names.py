"""What frames and functions are called in a session: names that go when the work does."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from mv_assets.errors import MvError
from mv_assets.spark.connect import is_client
from mv_assets.spark.errors import EngineUnavailable, JobFailed
from mv_assets.spark.failures import spark_errors


class TemporaryNames:
    """Names in a session that others will use: when the block ends, theirs must not find these rows."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._prefix, self._names = f"_mv_{uuid.uuid4().hex[:12]}", list[str]()
        self._functions: list[str] = []
        # Temporary views that others had made before.
        self._before: frozenset[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A Spark that is gone, or is to be gone, would be asked in vain and for long.
        if error is None or (isinstance(error, MvError) and not isinstance(error, EngineUnavailable)):
            with suppress(JobFailed, EngineUnavailable), spark_errors():
                for name in dict.fromkeys([*self._names, *self._of_others()]):
                    self._spark.catalog.dropTempView(name)
                for name in self._functions:
                    self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")

    def call(self, frame: DataFrame, name: str) -> None:
        """Have a frame be found by a name, in place of what was called so before."""
        frame.createOrReplaceTempView(name)
        self._names.append(name)

    def register(self, name: str, function: Callable[..., Any], returns: str) -> None:
        """Have SQL find a function of Python's by a name."""
        self._spark.udf.register(name, function, returns)
        self._functions.append(name)

    def notice_others(self) -> None:
        """From now on, have temporary views that others make go as well."""
        self._before = self._before or self._there()

    def of_others(self) -> list[str]:
        """Temporary views on a Connect server that others have made since they are noticed."""
        return self._of_others() if is_client(self._spark) else []

    def _of_others(self) -> list[str]:
        return [] if self._before is None else sorted(self._there() - self._before - set(self._names))

    def _there(self) -> frozenset[str]:
        # In that database there are none but temporary ones.
        return frozenset(row["viewName"] for row in self._spark.sql("SHOW VIEWS IN global_temp").collect())

    def of(self, frame: DataFrame) -> str:
        """A name for a frame, never the same again: a Connect server looks names up late."""
        name = f"{self._prefix}_{len(self._names)}"
        self.call(frame, name)
        return name

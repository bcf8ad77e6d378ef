"""Rows that Spark keeps: computed once, and independent of the files that they were read from."""

from __future__ import annotations

from pyspark.sql import DataFrame

from mv_assets.spark.connect import is_client


def kept(frame: DataFrame) -> DataFrame:
    """The rows of a frame, computed now."""
    made = frame.localCheckpoint()
    if is_client(frame):
        # PySpark looks for them in the session that was made first, where a server does not have them.
        own = frame.sparkSession
        made._session = own  # noqa: SLF001
        made._plan._spark_session = own  # type: ignore[attr-defined]  # noqa: SLF001
    return made

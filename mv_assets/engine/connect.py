"""Spark here, or a client of a Connect server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_client(of: SparkSession | DataFrame) -> bool:
    """Whether a session, or a frame's, is on a Connect server. Nothing of Connect is loaded to find out."""
    return type(of).__module__.startswith("pyspark.sql.connect")

"""What one supported Spark can do and another can't. Nothing else asks for its version."""

from __future__ import annotations

import re
from inspect import signature
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def keeps_structs(spark: SparkSession) -> bool:
    """Whether a struct is there where a file has none of the fields that are asked of it.

    Before 4.1, Spark takes such a struct for null.
    """
    return release(spark) >= (4, 1)


def release(spark: SparkSession) -> tuple[int, int]:
    """The first two numbers of its version; of a server, that of the server."""
    found = re.match(r"(\d+)\.(\d+)", spark.version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def arrow_schema(schema: StructType) -> pa.Schema:
    """A schema as Arrow has it, with its times in UTC: older clients of Spark know no other zone."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - Spark is loaded by those who use it

    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)  # type: ignore[arg-type]

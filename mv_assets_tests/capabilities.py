"""What the installed libraries can do: a test of what only newer ones can is skipped, and says so."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession


def _int96_survives() -> bool:
    before_1970 = pa.table({"t": pa.array([-1], pa.timestamp("us"))})
    file = io.BytesIO()
    pq.write_table(before_1970, file, use_deprecated_int96_timestamps=True)
    return bool(pq.read_table(file, coerce_int96_timestamp_unit="us").equals(before_1970))


writes_int96 = pytest.mark.skipif(
    not _int96_survives(),
    reason="this Arrow writes INT96 times before 1970 as old writers did, which are refused",
)

_SEES_STRUCTS = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)
sees_structs = pytest.mark.skipif(
    not _SEES_STRUCTS, reason="this Spark takes a struct for null if a file has none of the fields asked for"
)
misses_structs = pytest.mark.skipif(
    _SEES_STRUCTS, reason="this Spark sees that a struct is there whatever fields a file has"
)


def parses(spark: SparkSession, text: str) -> bool:
    """Whether a Spark knows the syntax."""
    try:
        spark.sql(text)
    except ParseException:
        return False
    return True

"""What the installed libraries can do: a test of what only newer ones can is skipped, and says so."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
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

_UNKNOWN = ("PARSE_SYNTAX_ERROR", "UNRESOLVED_ROUTINE")


def _reorders_structs() -> bool:
    one, other = (pa.struct(dict.fromkeys(names, pa.int64())) for names in ("pq", "qp"))
    try:
        pa.array([{"p": 1, "q": 2}], one).cast(other)
    except pa.ArrowTypeError:
        return False
    return True


reorders_structs = pytest.mark.skipif(
    not _reorders_structs(), reason="this Arrow casts structs only if their fields are in the same order"
)


def knows(spark: SparkSession, text: str) -> bool:
    """Whether a Spark knows the syntax and the functions of a query."""
    try:
        _ = spark.sql(text).schema
    except AnalysisException as error:
        if error.getCondition() not in _UNKNOWN:
            raise
        return False
    return True


def has_qualify(spark: SparkSession) -> bool:
    return knows(spark, "SELECT 1 QUALIFY row_number() OVER (ORDER BY 1) = 1")

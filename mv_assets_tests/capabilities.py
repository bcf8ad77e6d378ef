"""What the installed libraries can do: a test of what only newer ones can is skipped, and says so."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def _int96_survives() -> bool:
    before_1970 = pa.table({"t": pa.array([-1], pa.timestamp("us"))})
    file = io.BytesIO()
    pq.write_table(before_1970, file, use_deprecated_int96_timestamps=True)
    return bool(pq.read_table(file, coerce_int96_timestamp_unit="us").equals(before_1970))


writes_int96 = pytest.mark.skipif(
    not _int96_survives(),
    reason="this Arrow writes INT96 times before 1970 as old writers did, which are refused",
)

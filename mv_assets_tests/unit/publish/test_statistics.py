"""What a Delta log says of a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.publish.delta.statistics import statistics
from mv_assets.state.model import BUCKET


def of(folder: Path, **columns: Any) -> dict[str, Any]:
    rows = pa.table({**columns, BUCKET: [0] * len(next(iter(columns.values())))})
    pq.write_table(rows, folder / "f.parquet", row_group_size=1)
    found: dict[str, Any] = json.loads(statistics(pq.read_metadata(folder / "f.parquet")))
    return found


def test_rows_bounds_and_nulls_of_all_row_groups(tmp_path: Path) -> None:
    found = of(tmp_path, n=[3, None, 1], t=["b", "a", None])
    assert found == {
        "numRecords": 3,
        "minValues": {"n": 1, "t": "a"},
        "maxValues": {"n": 3, "t": "b"},
        "nullCount": {"n": 1, "t": 1},
    }


def test_bounds_of_times_hold_what_lies_between_two_milliseconds(tmp_path: Path) -> None:
    at = datetime(2024, 1, 1, 0, 0, 0, 1_500, UTC)
    found = of(tmp_path, at=pa.array([at], pa.timestamp("us", "UTC")))
    assert found["minValues"] == {"at": "2024-01-01T00:00:00.001Z"}
    assert found["maxValues"] == {"at": "2024-01-01T00:00:00.002Z"}


@pytest.mark.parametrize("microseconds", [datetime.max.replace(tzinfo=UTC), 50_000 * 365 * 86_400_000_000])
def test_times_that_python_can_not_name_are_left_out(tmp_path: Path, microseconds: object) -> None:
    found = of(tmp_path, at=pa.array([microseconds], pa.timestamp("us", "UTC")), n=[1])
    assert found["maxValues"] == {"n": 1}


def test_what_does_not_tell_for_sure_is_left_out(tmp_path: Path) -> None:
    found = of(tmp_path, long=["x" * 100], whole=[float("inf")], flag=[True], inside=[{"a": 1}])
    assert found["minValues"] == found["maxValues"] == {}

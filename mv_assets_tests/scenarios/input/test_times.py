"""Times at the ends of what a type can hold: in the right bucket, or an error that names the file."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from mv_assets.spark.session import Engine
from mv_assets.state.store import Store
from mv_assets.tables.parquet.footer import Unusable, extent
from mv_assets.tables.times import FIRST, LAST, TimeColumn, Unit
from mv_assets.views.errors import TooManyBuckets
from mv_assets_tests.support.capabilities import knows, writes_int96
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import Lake, view
from mv_assets_tests.unit.spark.unchecked_lake import AT, UncheckedLake, rows_at
from mv_assets_tests.unit.tables.lake import DAY, content

Make = Callable[..., UncheckedLake]
EPOCH_DAY = 2_440_588
NANOS = 86_400 * 10**9
COUNTED: dict[Unit, str] = {
    "s": "timestamp_seconds(at)",
    "ms": "timestamp_millis(at)",
    "us": "timestamp_micros(at)",
    "ns": "CAST(timestamp_nanos(at) AS TIMESTAMP)",
}


@pytest.mark.parametrize("unit", COUNTED)
def test_the_first_and_the_last_number_are_in_nobodys_way(
    unchecked_lake: Make, engine: Engine, unit: Unit
) -> None:
    with engine.session() as spark:
        if not knows(spark, f"SELECT {COUNTED[unit]} FROM VALUES (1L) AS events (at)"):
            pytest.skip("this Spark has no such function")
    sql = f"SELECT date_trunc('day', {COUNTED[unit]}) AS hour, count(*) AS n FROM events GROUP BY ALL"
    lake = unchecked_lake(view(sql=sql), table={"time_unit": unit})
    day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    lake.put("days.parquet", rows_at([0, day - 1, day, 2 * day - 1], pa.int64()))
    lake.put("ends.parquet", rows_at([FIRST, -1, 5, LAST], pa.int64()))
    assert lake.outcomes() == {0: "committed", 1: "committed"}
    assert lake.rows("n") == [2, 3]


def test_milliseconds_that_spark_can_not_hold_fail_by_their_files_name(unchecked_lake: Make) -> None:
    lake = unchecked_lake()
    for name, counted in {"good": [0, DAY, 2 * DAY - 1], "ends": [FIRST, 5]}.items():
        times = pa.array(counted, pa.int64()).cast(pa.timestamp("ms", "UTC"))
        lake.put(f"{name}.parquet", pa.table({"at": times}))
    assert lake.outcomes() == {0: "failed", 1: "committed"}
    assert "/ends.parquet" in lake.failures()[0]


MOMENTS = [
    *(datetime(1582, 10, day, 12, tzinfo=UTC) for day in (4, 5, 14, 15)),
    datetime(1899, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2262, 4, 12, tzinfo=UTC),
    datetime(2999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]


@pytest.mark.slow
@pytest.mark.parametrize("int96", [False, pytest.param(True, marks=writes_int96)])
def test_old_and_far_times_are_in_their_months(unchecked_lake: Make, *, int96: bool) -> None:
    """Before 1582 Spark once had another calendar, and INT96 in nanoseconds would end in 2262."""
    sql = "SELECT date_trunc('day', at) AS hour, count(*) AS n FROM events GROUP BY ALL"
    month = view(sql=sql, bucket="1mo", start="1582-01-01", max_buckets_per_run=10_000)
    lake = unchecked_lake(month, clock=Clock(32_503_680_000_000))
    for number, moment in enumerate(MOMENTS):
        rows = rows_at([moment], AT, x=number)
        lake.put(f"{number}.parquet", rows, use_deprecated_int96_timestamps=int96)
    lake.run("v")
    days = [moment.replace(hour=0, minute=0, second=0, microsecond=0) for moment in MOMENTS]
    assert sorted(lake.rows("hour")) == sorted(days)
    assert lake.snapshot().header.watermark == 32_503_680_000_000


def int96(nanos: int, day: int) -> bytes:
    """A file with one INT96 value, of a time of day and a day after the epoch."""
    given = content(
        1_234_567,
        kind=pa.timestamp("ns"),
        use_deprecated_int96_timestamps=True,
        use_dictionary=False,
        compression="none",
        write_statistics=False,
        store_schema=False,
    )
    old = struct.pack("<qi", 1_234_567, EPOCH_DAY)
    assert given.count(old) == 1
    return given.replace(old, struct.pack("<qi", nanos, EPOCH_DAY + day))


@pytest.mark.parametrize("nanos", [-1, -1_000, -NANOS + 1])
@pytest.mark.parametrize("day", [1, 0, -1, -40_000])
def test_a_negative_time_of_day_is_not_taken_for_the_year_2554(nanos: int, day: int) -> None:
    with pytest.raises(Unusable, match="INT96 times of the years 2404 to 2554"):
        extent(pa.BufferReader(int96(nanos, day)), TimeColumn("ts"))


@pytest.mark.parametrize("day", [-719_162, 0, 100_000, 250_000, 2_932_896])
def test_other_int96_times_are_what_they_are(day: int) -> None:
    found = extent(pa.BufferReader(int96(NANOS - 1, day)), TimeColumn("ts"))
    assert found.range == (day * DAY + DAY - 1, day * DAY + DAY - 1)


def test_a_start_with_more_buckets_than_anybody_could_look_at_is_refused_before_it_is_kept(
    tmp_path: Path,
) -> None:
    store = Store(f"sqlite:///{tmp_path}/state.db")
    raw = "SELECT at AS hour, x FROM events"
    lake = Lake(tmp_path, store, [view(sql=raw, bucket="15m", start="1001-01-01"), view("w")])
    lake.days(0, 1)
    with pytest.raises(
        TooManyBuckets, match=r"'v' has \d\d,\d{3},\d{3} buckets of 15m from its start at 1001"
    ):
        lake.look()
    assert lake.planned("w") == [("APPEND", [0, 1])]
    lake.declare(view(start="1970-01-01"), view("w"))
    assert lake.planned() == [("APPEND", [0, 1])]
    store.close()

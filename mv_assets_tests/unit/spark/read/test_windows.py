"""Rows at the bounds of buckets, in every type that a time may have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from mv_assets.buckets import Buckets
from mv_assets_tests.support.capabilities import writes_int96
from mv_assets_tests.support.lake import EPOCH, view
from mv_assets_tests.unit.spark import own_process
from mv_assets_tests.unit.spark.unchecked_lake import MOMENT, UncheckedLake, moment, rows_at

Make = Callable[..., UncheckedLake]
AT = {
    "timestamp": (pa.timestamp("us", "UTC"), "at", {}),
    "ntz": (pa.timestamp("us"), "at", {}),
    "millis": (pa.timestamp("ms"), "at", {}),
    "int96": (pa.timestamp("ns"), "at", {"use_deprecated_int96_timestamps": True}),
}
UNITS = {"s": "timestamp_seconds(at)", "ms": "timestamp_millis(at)", "us": "timestamp_micros(at)"}


def bounds(first: datetime, width: str, count: int) -> list[datetime]:
    """The first and the last moments of some buckets."""
    buckets = Buckets.of(width)
    start = buckets.floor((first - EPOCH) // timedelta(milliseconds=1))
    found = []
    for _ in range(count):
        end = buckets.next(start)
        found += [EPOCH + timedelta(milliseconds=start), EPOCH + timedelta(milliseconds=end) - MOMENT]
        start = end
    return found


@pytest.mark.parametrize(
    ("width", "start"),
    [
        ("15m", "1969-12-31 23:30"),
        ("6h", "1970-01-01"),
        ("1d", "1500-02-28"),
        ("1w", "1969-12-29"),
        ("1mo", "1582-09-01"),
    ],
)
def test_each_row_is_in_its_bucket(unchecked_lake: Make, width: str, start: str) -> None:
    """Case 100, of one file that covers all buckets."""
    lake = unchecked_lake(
        view(sql="SELECT at AS hour, count(*) AS n FROM events GROUP BY 1", bucket=width, start=start)
    )
    times = bounds(moment(start), width, 4)
    lake.put("all.parquet", rows_at(times))
    report = lake.run()["v"]
    assert report.error is None
    assert {result.outcome.value for result in report.results.values()} == {"committed"}
    assert [result.rows for _, result in sorted(report.results.items())] == [2] * 4
    lake.check()


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=writes_int96 if kind == "int96" else ()) for kind in AT]
)
def test_each_type_of_time(unchecked_lake: Make, kind: str) -> None:
    arrow, column, options = AT[kind]
    start = "1970-01-01" if kind != "int96" else "1700-01-01"
    lake = unchecked_lake(view(sql=f"SELECT {column} AS hour, x FROM events", start=start))
    unit = timedelta(milliseconds=1) if kind == "millis" else MOMENT
    first = moment(start)
    times = [
        first,
        first + timedelta(days=1) - unit,
        first + timedelta(days=1),
        first + timedelta(days=2) - unit,
    ]
    lake.put("all.parquet", rows_at([t.replace(tzinfo=None) for t in times], arrow, x=1), **options)
    report = lake.run()["v"]
    assert [result.rows for _, result in sorted(report.results.items())] == [2, 2]
    found = [value.replace(tzinfo=None) for value in lake.stored()["hour"].to_pylist()]
    assert sorted(found) == [time.replace(tzinfo=None) for time in times]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_integers_before_and_after_the_epoch(unchecked_lake: Make, unit: str) -> None:
    per_day = 86_400 * {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    times = [-2 * per_day, -per_day - 1, -per_day, -1, 0, per_day - 1]
    day = f"date_trunc('day', {UNITS[unit]})"
    sql = f"SELECT {day} AS hour, count(*) AS n, min(at) AS at FROM events GROUP BY 1"
    lake = unchecked_lake(view(sql=sql, start="1969-12-30"), table={"time_unit": unit})
    lake.put("all.parquet", rows_at(times, pa.int64()))
    assert lake.outcomes() == dict.fromkeys([-2, -1, 0], "committed")
    assert lake.rows("n", "at") == [(2, -2 * per_day), (2, -per_day), (2, 0)]


def test_dates_in_buckets_of_hours(unchecked_lake: Make) -> None:
    lake = unchecked_lake(view(sql="SELECT at AS hour, x FROM events", bucket="6h", start="1969-12-31"))
    days = [moment("1969-12-31").date(), moment("1970-01-01").date()]
    lake.put("all.parquet", rows_at(days, pa.date32(), x=1))
    results = lake.run()["v"].results
    assert [result.rows for _, result in sorted(results.items())] == [1, 0, 0, 0, 1, 0, 0, 0]


def test_a_date_and_a_timestamp_are_one_time_column(unchecked_lake: Make) -> None:
    lake = unchecked_lake(view(sql="SELECT CAST(at AS timestamp) AS hour, x FROM events", bucket="6h"))
    lake.put("a.parquet", rows_at([moment("1970-01-01").date()], pa.date32(), x=1))
    lake.put(
        "b.parquet", rows_at([moment("1970-01-01 05:59:59.999999"), moment("1970-01-01 17:59:59.999")], x=2)
    )
    results = lake.run()["v"].results
    assert [result.rows for _, result in sorted(results.items())] == [2, 0, 1, 0]


@pytest.mark.slow
def test_time_zones_of_machines_change_nothing(tmp_path: Path) -> None:
    ends = ("1970-01-01 00:00:00", "1970-01-01 23:59:59.999999")
    expected = [(end, end, 0) for end in sorted(ends * 2)]
    said = own_process.run("times", "local", tmp_path, TZ="America/New_York")
    assert said == f"{{0: 'committed'}} {expected}\n"

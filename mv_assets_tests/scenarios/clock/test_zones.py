"""Time zones change nothing; days that are longer, or shorter, or counted otherwise somewhere are days."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.buckets import Buckets
from mv_assets.defs.partitions import partitions_of
from mv_assets.errors import BucketError
from mv_assets.state.store import Store
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.warehouse_lake import DuckDbLake

# When clocks go forth there, and back.
CHANGES = {
    "America/New_York": ("2024-03-10", "2024-11-03"),
    "Europe/Berlin": ("2024-03-31", "2024-10-27"),
}
HOURS = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY ALL"
KINDS: dict[str, Any] = {
    "with a zone": pa.timestamp("us", "UTC"),
    "without a zone": pa.timestamp("us"),
}


@pytest.fixture(params=CHANGES)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The time zone of this machine."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def _made(folder: Path, start: str, bucket: str = "1h") -> DuckDbLake:
    store = Store(f"sqlite:///{folder}/state.db")
    return DuckDbLake(folder / "lake", store, [view(sql=HOURS, bucket=bucket, start=start)])


def _put(lake: DuckDbLake, name: str, times: list[datetime], kind: pa.DataType) -> None:
    plain = pa.array([moment.replace(tzinfo=None) for moment in times], pa.timestamp("us"))
    column = plain if kind.tz is None else plain.cast(pa.timestamp("us", "UTC")).cast(kind)
    pq.write_table(pa.table({"at": column}), lake.folder / "events" / name)


def _quarters(first: str, days: int = 2) -> list[datetime]:
    """Every quarter of an hour, from noon before a day on, and the last millisecond of each."""
    start = datetime.fromisoformat(first).replace(tzinfo=UTC) - timedelta(hours=12)
    starts = [start + timedelta(minutes=15 * number) for number in range(96 * days)]
    return [each for begin in starts for each in (begin, begin + timedelta(minutes=15, milliseconds=-1))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [0, 1], ids=["forth", "back"])
def test_each_hour_of_a_day_on_which_clocks_change_is_a_bucket_with_its_own_rows(
    tmp_path: Path, zone: str, change: int, kind: str
) -> None:
    times = _quarters(CHANGES[zone][change])
    lake = _made(tmp_path, f"{times[0]:%Y-%m-%dT%H:%M}")
    _put(lake, "all.parquet", times, KINDS[kind])
    lake.converge()
    lake.check()
    hours = sorted({int(each.timestamp()) // 3_600 * 3_600_000 for each in times})
    assert (len(hours), sorted(lake.snapshot().rows)) == (48, hours)
    assert [row["n"] for row in lake.stored().to_pylist()] == [8] * 48
    lake.store.close()


@pytest.mark.parametrize("width", ["6h", "1d", "1w", "1mo"])
def test_partitions_of_dagster_are_the_buckets_all_year(zone: str, width: str) -> None:
    buckets, start = Buckets.of(width), datetime(2023, 12, 25, tzinfo=UTC)
    end = int(datetime(2025, 1, 6, tzinfo=UTC).timestamp() * 1_000)
    partitions = partitions_of(buckets, int(start.timestamp() * 1_000))
    keys = [buckets.key(each) for each in buckets.between(buckets.floor(int(start.timestamp() * 1_000)), end)]
    assert partitions.get_partition_keys(current_time=datetime(2025, 6, 1, tzinfo=UTC))[: len(keys)] == keys
    window = partitions.time_window_for_partition_key(keys[-1])
    assert int(window.start.timestamp() * 1_000) == buckets.parse(keys[-1]), zone


@pytest.mark.parametrize(
    ("start", "keys"),
    [
        ("1969-12-30", ["1969-12-30", "1969-12-31", "1970-01-01", "1970-01-02"]),
        ("1899-12-30", ["1899-12-30", "1899-12-31", "1900-01-01", "1900-01-02"]),
        ("2016-12-30", ["2016-12-30", "2016-12-31", "2017-01-01", "2017-01-02"]),
        ("2024-02-28", ["2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]),
        ("1900-02-27", ["1900-02-27", "1900-02-28", "1900-03-01", "1900-03-02"]),
    ],
    ids=["before 1970", "another century", "a leap second", "a leap day", "no leap day"],
)
def test_days_around_the_ends_of_years_and_months_are_days(
    tmp_path: Path, start: str, keys: list[str]
) -> None:
    lake = _made(tmp_path, start, "1d")
    first = datetime.fromisoformat(start).replace(tzinfo=UTC)
    times = [first + timedelta(hours=number) for number in range(96)]
    ends = [first + timedelta(days=number + 1, milliseconds=-1) for number in range(4)]
    _put(lake, "all.parquet", [*times, *ends], KINDS["with a zone"])
    lake.converge()
    lake.check()
    snapshot = lake.snapshot()
    assert [snapshot.header.buckets.key(bucket) for bucket in sorted(snapshot.rows)] == keys
    assert {row.rows for row in snapshot.rows.values()} == {24}
    assert snapshot.header.watermark == snapshot.header.buckets.next(max(snapshot.rows))
    lake.store.close()


def test_a_leap_second_is_no_bucket() -> None:
    """The time that computers count has none: it is the second before it, or the one after."""
    with pytest.raises(BucketError, match="is not a bucket"):
        Buckets.of("15m").parse("2016-12-31T23:59:60")

"""Views in a time zone as Spark computes them: rows around changes of clocks, in every type of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sql
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from mv_assets.buckets import DAY, HOUR, MINUTE, Buckets
from mv_assets.local_days import LocalDays
from mv_assets.spark.read.windows import bucket_of, disagreed_on, within
from mv_assets.spark.session import Engine, in_zone
from mv_assets_tests.support.lake import EPOCH, view
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, rows_at

Make = Callable[..., UncheckedLake]
NEW_YORK = "America/New_York"
# Each with days on which its clocks change, one day left out, and dates that came twice.
CHANGES = {
    NEW_YORK: ["2024-03-10", "2024-11-03"],
    "Australia/Lord_Howe": ["2024-04-07", "2024-10-06"],
    "America/Sao_Paulo": ["2018-02-18", "2018-11-04"],
    "Pacific/Apia": ["2011-12-29", "2011-04-02"],
    "America/St_Johns": ["2010-03-14", "2010-11-07"],
    "America/Havana": ["2024-03-10", "2024-11-03"],
    "Asia/Kolkata": ["2024-03-10"],
}
DAYS = "SELECT date_trunc('day', at) AS hour, count(*) AS n, sum(x) AS x FROM events GROUP BY ALL"


def moments(zone: str) -> list[int]:
    """Every quarter of an hour around changes of clocks, and the milliseconds beside it."""
    days = Buckets.of("1d", zone)
    middles = [days.parse(key) for key in CHANGES[zone]]
    steps = range(-3 * DAY, 3 * DAY, 15 * MINUTE)
    return sorted({at + step + near for at in middles for step in steps for near in (-1, 0, 1)})


@pytest.mark.parametrize("width", ["1d", "1w", "1mo"])
@pytest.mark.parametrize("zone", CHANGES)
def test_114_spark_puts_every_time_into_the_bucket_that_python_does(
    engine: Engine, zone: str, width: str
) -> None:
    buckets, times = Buckets.of(width, zone), moments(zone)
    with engine.session() as spark, in_zone(spark, zone):
        frame = spark.createDataFrame(pa.table({"ms": pa.array(times, pa.int64())}))
        found = frame.select("ms", bucket_of(sql.timestamp_millis("ms"), buckets).alias("bucket")).collect()
        assert disagreed_on(spark, buckets, [*buckets.between(times[0], times[-1])]) == []
    wrong = [(row.ms, row.bucket) for row in found if row.bucket != buckets.floor(row.ms)]
    assert wrong == []
    assert len(found) == len(times)


def test_a_session_has_its_zone_while_a_view_is_computed_and_utc_afterwards(engine: Engine) -> None:
    with engine.session() as spark:
        with in_zone(spark, NEW_YORK):
            assert spark.conf.get("spark.sql.session.timeZone") == NEW_YORK
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        with pytest.raises(KeyError), in_zone(spark, NEW_YORK):
            raise KeyError
    with engine.session() as again:
        assert again.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.parametrize("session", ["UTC", NEW_YORK, "Asia/Kolkata"])
def test_bounds_of_times_without_a_zone_do_not_depend_on_the_sessions(engine: Engine, session: str) -> None:
    # In New York this clock was never seen.
    at = datetime(2024, 3, 10, 2, 30, tzinfo=UTC)
    ms = (at - EPOCH) // timedelta(milliseconds=1)
    for kind, text in [
        (TimestampNTZType(), "TIMESTAMP_NTZ '2024-03-10 02:30:00'"),
        (TimestampType(), "timestamp_seconds(1710037800)"),
    ]:
        with engine.session() as spark, in_zone(spark, session):
            bounds = [(ms, ms + 1), (ms + 1, None), (None, ms)]
            asked = ", ".join(within(text, kind, None, *each) for each in bounds)
            assert [tuple(row) for row in spark.sql(f"SELECT {asked}").collect()] == [(True, False, False)]


def test_dates_are_days_of_their_zone(engine: Engine) -> None:
    days = Buckets.of("1d", NEW_YORK)
    start = days.parse("2024-03-10")
    for low, high, inside in [
        (start, days.next(start), True),
        (start + 1, days.next(start), False),
        (start - 5 * HOUR, start, False),
        (start - 5 * HOUR, start + 1, True),
    ]:
        with engine.session() as spark:
            text = within("DATE '2024-03-10'", DateType(), None, low, high, NEW_YORK)
            assert spark.sql(f"SELECT {text} AS inside").collect()[0].inside is inside


def test_rules_of_another_age_are_found_out(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Python knew of a change of clocks that Java has not heard of."""
    buckets = Buckets.of("1d", "Asia/Kolkata")
    starts = [*buckets.between(buckets.parse("2024-03-08"), buckets.parse("2024-03-12"))]
    changed, right = starts[2] // DAY + 1, LocalDays.start
    monkeypatch.setattr(
        LocalDays, "start", lambda self, day: right(self, day) + (HOUR if day == changed else 0)
    )
    with engine.session() as spark, in_zone(spark, "Asia/Kolkata"):
        # The one that begins later, and the one before it.
        assert disagreed_on(spark, buckets, [*starts[:2], starts[2] + HOUR, starts[3]]) == [
            starts[1],
            starts[2] + HOUR,
        ]


def every(minutes: int, first: str, last: str, zone: str) -> Iterator[datetime]:
    days = Buckets.of("1d", zone)
    for at in range(days.parse(first), days.next(days.parse(last)), minutes * MINUTE):
        yield EPOCH + timedelta(milliseconds=at)


def local_days(made: UncheckedLake) -> dict[str, int]:
    """How many rows each day has."""
    buckets, found = made.catalog.view("v").buckets, dict[str, int]()
    for time, n in made.rows("hour", "n"):
        # Truncated to a date, or to its first instant.
        ms = (time - EPOCH) // timedelta(milliseconds=1) if isinstance(time, datetime) else None
        found[str(time) if ms is None else buckets.key(ms)] = n
    return found


@pytest.mark.parametrize("truncated", ["date_trunc('day', at)", "to_date(at)"])
def test_114_days_of_23_and_25_hours_have_all_their_rows(unchecked_lake: Make, truncated: str) -> None:
    lake = unchecked_lake(
        view(
            sql=f"SELECT {truncated} AS hour, count(*) AS n, sum(x) AS x FROM events GROUP BY 1",
            timezone=NEW_YORK,
            start="2024-11-01",
        )
    )
    lake.put("all.parquet", rows_at([*every(30, "2024-11-01", "2024-11-05", NEW_YORK)], x=1))
    report = lake.run()["v"]
    assert report.error is None
    assert local_days(lake) == {
        "2024-11-01": 48,
        "2024-11-02": 48,
        "2024-11-03": 50,
        "2024-11-04": 48,
    }


@pytest.mark.parametrize("kind", ["date", "timestamp_ntz"])
def test_times_without_a_zone_fail_the_buckets_of_a_view_in_one(unchecked_lake: Make, kind: str) -> None:
    lake = unchecked_lake(view(sql=DAYS, timezone=NEW_YORK, start="1970-01-01"))
    times: list[Any] = [datetime(1970, 1, day, 12, tzinfo=UTC) for day in (2, 3, 4)]
    arrow = pa.date32() if kind == "date" else pa.timestamp("us")
    lake.put("all.parquet", rows_at([time.date() if kind == "date" else time for time in times], arrow, x=1))
    lake.run()
    why = (
        f"events.at is a {kind}, which is no moment that has a day in {NEW_YORK}; use a column of timestamps"
    )
    assert any(why in each for each in lake.failures().values())
    assert lake.stored().num_rows == 0


def test_a_time_column_without_a_zone_is_refused_in_one(unchecked_lake: Make) -> None:
    lake = unchecked_lake(
        view(sql="SELECT CAST(at AS TIMESTAMP_NTZ) AS hour, x FROM events", timezone=NEW_YORK)
    )
    lake.put("all.parquet", rows_at([0, 1, 2, 3], x=1))
    lake.run()
    assert any("hour is a timestamp_ntz, which has no zone" in each for each in lake.failures().values())
    assert lake.stored().num_rows == 0


def test_times_in_folders_names_are_utc_whatever_zone_the_view_has(unchecked_lake: Make) -> None:
    lake = unchecked_lake(view(sql=DAYS, timezone=NEW_YORK, start="1970-01-01"))
    for number, text in enumerate(
        ["1970-01-02 03%3A00%3A00", "1970-01-02 06%3A00", "1970-01-04T05%3A00%3A00"]
    ):
        lake.put(f"at={text}/{number}.parquet", pa.table({"x": [1]}))
    assert lake.run()["v"].error is None
    assert local_days(lake) == {"1970-01-01": 1, "1970-01-02": 1}


def test_one_bucket_is_the_same_alone_and_with_its_neighbours(unchecked_lake: Make) -> None:
    """In St. John's dates came twice: what is truncated to them fails, raw times do not."""
    zone = "America/St_Johns"
    sql_ = "SELECT at AS hour, x FROM events"
    for most in (1, 64):
        lake = unchecked_lake(
            view(f"v{most}", sql=sql_, timezone=zone, start="2010-11-05", max_buckets_per_run=most)
        )
        lake.put("all.parquet", rows_at([*every(30, "2010-11-05", "2010-11-09", zone)], x=1))
        lake.run()
        rows = lake.snapshot(f"v{most}").rows
        buckets = lake.catalog.view(f"v{most}").buckets
        assert {buckets.key(bucket): row.rows for bucket, row in rows.items()} == {
            "2010-11-05": 48,
            "2010-11-06": 48,
            "2010-11-07": 50,
            "2010-11-08": 48,
        }

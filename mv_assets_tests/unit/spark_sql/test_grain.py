from __future__ import annotations

from dataclasses import replace

import pytest

from mv_assets.buckets import Buckets
from mv_assets.spark_sql.grain import GRAINS, fits, holds_whole
from mv_assets.spark_sql.scope import Source
from mv_assets_tests.unit.spark_sql.analysed import ADVICE, EVENTS, TRIPS, look, only, view_of, whats

FITTING = {
    "1m": "second minute",
    "15m": "second minute",
    "60m": "second minute hour",
    "1h": "second minute hour",
    "6h": "second minute hour",
    "24h": "second minute hour day",
    "1d": "second minute hour day",
    "1w": "second minute hour day week",
    "1mo": "second minute hour day month",
}


@pytest.mark.parametrize("width", FITTING)
def test_a_grain_fits_where_each_one_lies_inside_one_bucket(width: str) -> None:
    assert [grain for grain in GRAINS if fits(grain, Buckets.of(width))] == FITTING[width].split()
    assert not any(fits(grain, Buckets.of(width)) for grain in ("quarter", "year"))


@pytest.mark.parametrize(
    ("expression", "grain"),
    [
        ("pickup_at", None),
        ("t.pickup_at", None),
        ("PICKUP_AT", None),
        ("(pickup_at)", None),
        ("CAST(pickup_at AS TIMESTAMP)", None),
        ("CAST(pickup_at AS TIMESTAMP_NTZ)", None),
        ("pickup_at::timestamp", None),
        ("date_trunc('second', pickup_at)", "second"),
        ("date_trunc('MINUTE', pickup_at)", "minute"),
        ("date_trunc('hour', pickup_at)", "hour"),
        ("date_trunc('DD', pickup_at)", "day"),
        ("to_date(pickup_at)", "day"),
        ("date(pickup_at)", "day"),
        ("CAST(pickup_at AS DATE)", "day"),
        ("pickup_at::date", "day"),
        ("date_trunc('mon', pickup_at)", "month"),
        ("date_trunc('month', pickup_at)", "month"),
        ("trunc(pickup_at, 'MM')", "month"),
        ("CAST(trunc(pickup_at, 'month') AS TIMESTAMP)", "month"),
        ("date_trunc('hour', date_trunc('day', pickup_at))", "day"),
        ("date_trunc('day', CAST(pickup_at AS TIMESTAMP))", "day"),
    ],
)
def test_the_time_column_is_followed_to_its_grain(expression: str, grain: str | None) -> None:
    assert view_of(f"SELECT {expression} AS hour FROM trips t", bucket="1mo").grain == grain


def test_the_time_column_is_followed_through_an_alias() -> None:
    assert view_of("SELECT pickup_at AS at, date_trunc('hour', at) AS hour FROM trips").grain == "hour"


@pytest.mark.parametrize("base", [TRIPS, Source("trips", time_column="pickup_at")])
def test_what_is_read_of_an_alias_or_of_a_table_of_its_name_is_not_the_time(base: Source) -> None:
    for table in ("trips", "trips at"):
        (what,) = whats(f"SELECT pickup_at AS at, at.fare AS hour FROM {table}", base=base)
        assert "`at.fare` is another column" in what


def test_weeks_fit_week_buckets() -> None:
    assert view_of("SELECT date_trunc('week', pickup_at) AS hour FROM trips", bucket="1w").grain == "week"
    assert view_of("SELECT trunc(pickup_at, 'week') AS hour FROM trips", bucket="1w").grain == "week"


@pytest.mark.parametrize(
    ("expression", "grain", "bucket", "wider"),
    [
        ("date_trunc('hour', pickup_at)", "hour", "15m", ", or make the bucket 1h or 1d or 1w or 1mo"),
        ("to_date(pickup_at)", "day", "6h", ", or make the bucket 1d or 1w or 1mo"),
        ("date_trunc('week', pickup_at)", "week", "1mo", ", or make the bucket 1w"),
        ("trunc(pickup_at, 'MM')", "month", "1w", ", or make the bucket 1mo"),
        ("trunc(pickup_at, 'year')", "year", "1mo", ""),
        ("date_trunc('day', date_trunc('quarter', pickup_at))", "quarter", "1mo", ""),
    ],
)
def test_a_grain_that_does_not_fit_is_refused_with_what_would(
    expression: str, grain: str, bucket: str, wider: str
) -> None:
    fitting = ", ".join(FITTING[bucket].split())
    assert str(only(f"SELECT {expression} AS hour FROM trips", bucket=bucket)) == (
        f"time_column: hour has the grain {grain}, and a {bucket} bucket does not hold whole {grain}s; "
        f"truncate to {fitting}{wider}"
    )


@pytest.mark.parametrize(
    ("expression", "because"),
    [
        ("fare", "`fare` is another column"),
        ("z.zone_id", "`z.zone_id` is another column"),
        ("payload.a", "`payload.a` is another column"),
        ("pickup_at + INTERVAL 1 HOUR", "can't be followed"),
        ("date_add(pickup_at, 1)", "can't be followed"),
        ("coalesce(pickup_at, fare)", "can't be followed"),
        ("date_format(pickup_at, 'yyyy')", "can't be followed"),
        ("from_utc_timestamp(pickup_at, 'CET')", "can't be followed"),
        ("window(pickup_at, '1 hour')", "can't be followed"),
        ("min(pickup_at)", "can't be followed"),
        ("DATE '2024-01-01'", "can't be followed"),
        ("hour(pickup_at)", "can't be followed"),
        ("CAST(pickup_at AS STRING)", "a cast to STRING is no time"),
        ("CAST(pickup_at AS BIGINT)", "a cast to BIGINT is no time"),
        ("to_date(pickup_at, 'yyyy')", "reads text"),
        ("date_trunc('millisecond', pickup_at)", "'millisecond', which is none of"),
        ("date_trunc('nonsense', pickup_at)", "'nonsense', which is none of"),
        ("trunc(pickup_at, 'hour')", "'hour', which is none of"),
        ("timestamp_millis(pickup_at)", "set `time_unit: ms`"),
    ],
)
def test_anything_else_is_no_time_column(expression: str, because: str) -> None:
    mistakes = look(f"SELECT {expression} AS hour FROM trips CROSS JOIN zones z")[1]
    (mistake,) = [mistake for mistake in mistakes if mistake.where == "time_column"]
    assert mistake.what.startswith("hour must be trips.pickup_at or a truncation of it, but ")
    assert because in mistake.what


def test_a_missing_time_column_is_answered_with_those_there_are() -> None:
    mistake = only("SELECT pickup_at AS hours, fare FROM trips")
    assert str(mistake) == (
        "time_column: hour is not an output column; did you mean hours? the SQL gives hours, fare"
    )


@pytest.mark.parametrize(
    ("unit", "expression", "grain"),
    [
        ("s", "ts", None),
        ("s", "timestamp_seconds(ts)", None),
        ("s", "CAST(ts AS TIMESTAMP)", None),
        ("s", "to_date(CAST(ts AS TIMESTAMP))", "day"),
        ("ms", "ts", None),
        ("ms", "TIMESTAMP_MILLIS(ts)", None),
        ("ms", "date_trunc('day', timestamp_millis(ts))", "day"),
        ("us", "date_trunc('hour', timestamp_micros(events.ts))", "hour"),
        ("us", "CAST(timestamp_micros(ts) AS DATE)", "day"),
        ("ns", "CAST(timestamp_nanos(ts) AS TIMESTAMP)", None),
        ("ns", "to_date(timestamp_nanos(ts))", "day"),
    ],
)
def test_an_integer_time_column_is_converted_by_its_unit(
    unit: str, expression: str, grain: str | None
) -> None:
    base = replace(EVENTS, time_unit=unit)
    assert view_of(f"SELECT {expression} AS hour FROM events", base=base).grain == grain


@pytest.mark.parametrize(
    ("unit", "expression"),
    [
        ("ms", "CAST(ts AS TIMESTAMP)"),
        ("ms", "timestamp_seconds(ts)"),
        ("s", "timestamp_millis(ts)"),
        ("s", "CAST(ts AS DATE)"),
        ("ms", "date_trunc('hour', ts)"),
        ("ms", "to_date(ts)"),
        ("us", "trunc(ts, 'MM')"),
    ],
)
def test_an_integer_time_column_of_another_unit_is_refused(unit: str, expression: str) -> None:
    mistake = only(
        f"SELECT {expression} AS hour FROM events", base=replace(EVENTS, time_unit=unit), bucket="1mo"
    )
    function = {"s": "timestamp_seconds", "ms": "timestamp_millis", "us": "timestamp_micros"}[unit]
    assert mistake.where == "time_column"
    assert f"counts {unit} since 1970 and wants {function}" in mistake.what


def test_nanoseconds_are_cast_to_what_pyspark_can_read() -> None:
    for expression in ("timestamp_nanos(ts)", "date_trunc('hour', timestamp_nanos(ts))"):
        mistake = only(f"SELECT {expression} AS hour FROM events", base=replace(EVENTS, time_unit="ns"))
        assert mistake.what.endswith(
            "write date_trunc('day', CAST(timestamp_nanos(ts) AS TIMESTAMP)) AS hour"
        )


def test_an_integer_without_unit_is_left_to_those_who_check_the_table() -> None:
    base = replace(EVENTS, time_unit=None)
    for expression in ("ts", "timestamp_millis(ts)", "CAST(ts AS TIMESTAMP)"):
        assert view_of(f"SELECT {expression} AS hour FROM events", base=base).grain is None


def test_the_base_s_own_grain_must_fit_and_is_kept() -> None:
    hourly = Source("hourly", {"hour": "timestamp", "n": "bigint"}, "hour", grain="hour")
    assert view_of("SELECT hour, n FROM hourly", base=hourly).grain == "hour"
    assert view_of("SELECT date_trunc('minute', hour) AS hour FROM hourly", base=hourly).grain == "hour"
    assert view_of("SELECT to_date(hour) AS hour FROM hourly", base=hourly).grain == "day"
    assert str(only("SELECT hour FROM hourly", base=hourly, bucket="15m")) == (
        "bucket: a 15m bucket does not hold whole hours, which are the times of hourly; "
        "use 1h or 1d or 1w or 1mo"
    )
    weekly = replace(hourly, grain="week")
    assert only("SELECT hour FROM hourly", base=weekly, bucket="1mo").where == "bucket"


@pytest.mark.parametrize(
    "key",
    ["ALL", "1", "hour", "HOUR", "date_trunc('hour', pickup_at)", "fare, date_trunc('hour', t.pickup_at)"],
)
def test_the_time_column_may_be_a_group_key_in_every_way(key: str) -> None:
    view = view_of(
        f"SELECT date_trunc('hour', t.pickup_at) AS hour, count(*) AS n FROM trips t GROUP BY {key}"
    )
    assert view.aggregates


@pytest.mark.parametrize("key", ["2", "zone_id", "7", "date_trunc('day', pickup_at)", "zone_id, fare"])
def test_groups_without_the_time_column_are_refused(key: str) -> None:
    sql = f"SELECT date_trunc('hour', pickup_at) AS hour, zone_id, count(*) AS n FROM trips GROUP BY {key}"
    assert only(sql).what.startswith("the time column hour is not a key of GROUP BY")


def test_group_by_a_name_that_base_and_output_share_means_the_base_column() -> None:
    sql = "SELECT to_date(pickup_at) AS pickup_at, count(*) AS n FROM trips GROUP BY pickup_at"
    assert "means the base column of that name" in only(sql, time_column="pickup_at").what


@pytest.mark.parametrize(
    "group",
    [
        "ROLLUP (hour)",
        "CUBE (hour, fare)",
        "GROUPING SETS ((hour), (fare))",
        "hour WITH ROLLUP",
        "hour, ROLLUP (fare)",
    ],
)
def test_rolled_up_groups_are_refused(group: str) -> None:
    assert any(
        "ROLLUP sum over all buckets" in what
        for what in whats(f"SELECT pickup_at AS hour FROM trips GROUP BY {group}")
    )


@pytest.mark.parametrize(
    "window",
    [
        "(PARTITION BY pickup_at ORDER BY fare)",
        "(PARTITION BY zone_id, date_trunc('day', pickup_at))",
        "(PARTITION BY to_date(t.pickup_at) ORDER BY fare ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "w",
    ],
)
def test_a_window_inside_a_bucket_is_fine(window: str) -> None:
    sql = f"""
        SELECT pickup_at AS hour, sum(fare) OVER {window} AS s FROM trips t
        WINDOW w AS (PARTITION BY to_date(pickup_at) ORDER BY fare)
    """
    assert view_of(sql).columns == ("hour", "s")


@pytest.mark.parametrize(
    "window",
    [
        "()",
        "(ORDER BY pickup_at)",
        "(PARTITION BY zone_id ORDER BY pickup_at)",
        "(PARTITION BY date_trunc('week', pickup_at))",
        "(PARTITION BY hour(pickup_at))",
        "w",
    ],
)
def test_a_window_across_buckets_is_refused(window: str) -> None:
    tail = "FROM trips WINDOW w AS (PARTITION BY zone_id)"
    assert only(f"SELECT pickup_at AS hour, sum(fare) OVER {window} AS s {tail}").what == (
        "the window of SUM(fare) looks across buckets; add date_trunc('day', pickup_at) to its PARTITION BY"
        + ADVICE
    )


def test_qualify_across_buckets_is_refused() -> None:
    qualify = "QUALIFY row_number() OVER (PARTITION BY zone_id ORDER BY fare) = 1"
    assert "looks across buckets" in only(f"SELECT pickup_at AS hour FROM trips {qualify}").what


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT date_trunc('hour', pickup_at) AS hour, x FROM trips QUALIFY {} = 1",
        "SELECT date_trunc('hour', pickup_at) AS hour, {} AS x FROM trips",
    ],
)
def test_a_window_by_what_may_be_another_column_is_refused(sql: str) -> None:
    """Spark takes a column before the output of its name."""
    window = "row_number() OVER (PARTITION BY {} ORDER BY fare)"
    unknown, no_hour = Source("trips", time_column="pickup_at"), dict.fromkeys(["pickup_at", "fare", "x"])
    may = (
        "may look across buckets: hour means a column of that name, if a table has one; add date_trunc('day'"
    )
    known = Source("trips", {**no_hour, "hour": None}, "pickup_at")
    for base, said in ((unknown, may), (known, "looks across buckets; add date_trunc('day'")):
        (what,) = whats(sql.format(window.format("hour")), base=base)
        assert said in what
        assert view_of(sql.format(window.format("date_trunc('hour', pickup_at)")), base=base)
    assert view_of(sql.format(window.format("hour")), base=Source("trips", no_hour, "pickup_at"))


def test_a_time_column_of_unknown_schema_is_followed() -> None:
    base = Source("trips", time_column=TRIPS.time_column)
    view = view_of("SELECT to_date(pickup_at) AS day, zone_id FROM trips", base=base, time_column="day")
    assert view.grain == "day"


@pytest.mark.parametrize(
    ("zone", "grain", "source_zone", "held"),
    [
        ("America/New_York", "hour", None, True),
        ("America/New_York", "day", None, False),
        ("America/New_York", "day", "America/New_York", True),
        ("America/New_York", "day", "America/Chicago", False),
        ("America/New_York", "hour", "America/Chicago", True),
        ("Asia/Kolkata", "hour", None, False),
        ("Asia/Kolkata", "minute", None, True),
        ("Asia/Kolkata", "hour", "Asia/Kolkata", True),
        ("America/New_York", "hour", "Asia/Kolkata", False),
        ("Australia/Lord_Howe", "hour", None, False),
        ("UTC", "day", "America/New_York", False),
        ("UTC", "hour", "America/New_York", True),
        ("UTC", "second", "America/New_York", True),
        ("America/New_York", "year", None, False),
    ],
)
def test_115_days_of_a_zone_hold_whole_grains_of_another_where_its_midnights_are_such(
    zone: str, grain: str, source_zone: str | None, *, held: bool
) -> None:
    assert holds_whole(Buckets.of("1d", zone), grain, source_zone) is held


@pytest.mark.parametrize("bucket", ["1d", "1w", "1mo"])
def test_the_sql_of_a_view_truncates_by_the_clock_of_its_zone(bucket: str) -> None:
    for grain in FITTING[bucket].split():
        sql = f"SELECT date_trunc('{grain}', pickup_at) AS hour FROM trips"
        assert view_of(sql, bucket=f"{bucket} Asia/Kolkata").grain == grain
    assert whats("SELECT date_trunc('week', pickup_at) AS hour FROM trips", bucket="1mo Asia/Kolkata")


def test_115_a_day_in_a_zone_on_times_that_cross_its_midnight_is_refused() -> None:
    hourly = Source("hourly", {"hour": None}, "hour", grain="hour")
    sql = "SELECT date_trunc('day', hour) AS day FROM hourly"
    assert view_of(sql, base=hourly, time_column="day", bucket="1d America/New_York").grain == "day"
    mistake = only(sql, base=hourly, time_column="day", bucket="1d Asia/Kolkata")
    assert mistake.where == "bucket"
    assert mistake.what == (
        "a 1d Asia/Kolkata bucket does not hold whole hours, which are the times of hourly, by the clocks of "
        "UTC; use that timezone, or a base with finer times"
    )


@pytest.mark.parametrize("kind", ["date", "timestamp_ntz"])
def test_times_without_a_zone_are_not_put_into_the_days_of_one(kind: str) -> None:
    base = Source("t", {"At": kind}, "at", grain="day" if kind == "date" else None)
    mistake = only("SELECT at AS hour FROM t", base=base, bucket="1d Asia/Kolkata")
    assert mistake.where == "timezone"
    assert mistake.what == (
        f"t.at is a {kind}, which is no moment that has a day in Asia/Kolkata; use a column of timestamps, "
        "or take timezone out"
    )
    assert view_of("SELECT at AS hour FROM t", base=base, bucket="1d")

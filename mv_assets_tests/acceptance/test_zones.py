"""Cases 114 and 115, and what follows from them: views whose days are those of a time zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mv_assets.buckets import DAY, HOUR, Buckets
from mv_assets.config import MaterializedView
from mv_assets.config.errors import ProjectError
from mv_assets.defs.partitions import milliseconds, partitions_of
from mv_assets.maintain.audit import audit
from mv_assets.query.execute.answer import Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets.spark.session import in_zone
from mv_assets.state import rules
from mv_assets.state.errors import Fenced
from mv_assets_tests.support.lake import EPOCH, HOURLY, Lake, view
from mv_assets_tests.support.queried_lake import QueriedLakes
from mv_assets_tests.support.spark_lake import SparkLake

Lakes = Callable[..., Lake]
SparkLakes = Callable[..., SparkLake]
NEW_YORK = "America/New_York"
DAYS = Buckets.of("1d", NEW_YORK)
DAILY = "SELECT date_trunc('day', at) AS day, count(*) AS n, sum(x) AS x FROM events GROUP BY ALL"
OF_HOURS = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM h GROUP BY ALL"


def new_york(name: str = "v", **given: Any) -> MaterializedView:
    declared = {"sql": DAILY, "time_column": "day", "timezone": NEW_YORK, "start": "2024-11-01"}
    return view(name, **{**declared, **given})


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def when(time: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time)


def whole(made: Lake, *keys: str) -> None:
    """A file for each local day, from its first to its last millisecond."""
    for key in keys:
        start = DAYS.parse(key)
        made.write(f"{key}.parquet", [when(start), when(DAYS.next(start) - 1)])


def states(made: Lake, name: str = "v") -> dict[str, str]:
    snapshot = made.snapshot(name)
    rows = sorted(snapshot.rows.items())
    return {
        snapshot.header.buckets.key(b): rules.effective_state(row, snapshot.header).value for b, row in rows
    }


def files(made: Lake, name: str = "v") -> dict[str, int]:
    """How many files each day was computed from."""
    snapshot = made.snapshot(name)
    return {
        snapshot.header.buckets.key(bucket): row.inputs.base.segment_count
        for bucket, row in sorted(snapshot.rows.items())
        if row.inputs is not None
    }


def test_114_a_day_of_25_hours_has_both_half_past_ones_none_twice_or_lost(lake: Lakes) -> None:
    made = lake(new_york())
    whole(made, "2024-11-01", "2024-11-02", "2024-11-03", "2024-11-04", "2024-11-05")
    made.write("twice.parquet", [utc("2024-11-03T05:30"), utc("2024-11-03T06:30")])
    made.converge()
    assert files(made) == {
        "2024-11-01": 1,
        "2024-11-02": 1,
        "2024-11-03": 2,
        "2024-11-04": 1,
        "2024-11-05": 1,
    }
    assert set(states(made).values()) == {"VALID"}
    assert made.snapshot().header.watermark == DAYS.parse("2024-11-06")
    # The last moment of that day is no other's, and midnight begins the next.
    made.write("last.parquet", [when(DAYS.parse("2024-11-04") - 1)])
    made.look()
    assert [key for key, state in states(made).items() if state == "STALE"] == ["2024-11-03"]
    made.converge()
    made.write("midnight.parquet", [when(DAYS.parse("2024-11-04"))])
    made.look()
    assert [key for key, state in states(made).items() if state == "STALE"] == ["2024-11-04"]


def test_114_a_day_of_23_hours_ends_an_hour_earlier(lake: Lakes) -> None:
    made = lake(new_york(start="2024-03-09"))
    whole(made, "2024-03-09", "2024-03-10", "2024-03-11")
    made.write("late.parquet", [utc("2024-03-11T03:59:59.999")])
    made.write("next.parquet", [utc("2024-03-11T04:00")])
    made.converge()
    assert files(made) == {"2024-03-09": 1, "2024-03-10": 2, "2024-03-11": 2}
    [start] = [bucket for bucket in made.snapshot().rows if DAYS.key(bucket) == "2024-03-10"]
    assert DAYS.next(start) - start == 23 * HOUR


@pytest.mark.parametrize(
    ("zone", "first", "last"),
    [
        (NEW_YORK, "2023-01-01", "2026-12-31"),
        ("America/Sao_Paulo", "2016-01-01", "2020-01-01"),
        ("Australia/Lord_Howe", "2023-01-01", "2025-01-01"),
        ("America/Havana", "2023-01-01", "2025-01-01"),
    ],
)
@pytest.mark.parametrize("width", ["1d", "1w", "1mo"])
def test_114_dagster_has_the_same_keys_and_windows(zone: str, first: str, last: str, width: str) -> None:
    buckets, days = Buckets.of(width, zone), Buckets.of("1d", zone)
    start, end = buckets.floor(days.parse(first)), buckets.floor(days.parse(last))
    made, starts = partitions_of(buckets, start), [*buckets.between(start, end)]
    assert made.get_partition_keys(current_time=when(end)) == [buckets.key(each) for each in starts]
    for each in starts:
        window = made.time_window_for_partition_key(buckets.key(each))
        assert milliseconds(window) == (each, buckets.next(each))


def test_115_a_late_hour_marks_the_local_day_that_it_is_in(lake: Lakes) -> None:
    hours = view("h", sql=HOURLY, bucket="1h", start="2024-03-09T05:00")
    made = lake(hours, new_york(base="h", sql=OF_HOURS, start="2024-03-09"))
    whole(made, "2024-03-09", "2024-03-10", "2024-03-11", "2024-03-12")
    made.converge()
    assert states(made) == dict.fromkeys(["2024-03-09", "2024-03-10", "2024-03-11", "2024-03-12"], "VALID")
    assert files(made)["2024-03-10"] == 23
    # In UTC this is the eleventh.
    made.write("late.parquet", [utc("2024-03-11T03:30")])
    made.look("h")
    made.refresh("h")
    made.look()
    assert [key for key, state in states(made).items() if state == "STALE"] == ["2024-03-10"]
    made.converge()
    assert set(states(made).values()) == {"VALID"}


@pytest.mark.parametrize(
    ("base", "zone", "why"),
    [
        ("1h", "Asia/Kolkata", "does not hold whole hours, which are the times of h, by the clocks of UTC"),
        ("1d", NEW_YORK, "does not hold whole days, which are the times of h, by the clocks of UTC"),
    ],
)
def test_115_a_day_that_begins_within_a_bucket_of_its_base_is_refused(
    lake: Lakes, base: str, zone: str, why: str
) -> None:
    sql = HOURLY if base == "1h" else HOURLY.replace("'hour'", "'day'")
    below = view("h", sql=sql, bucket=base, start="2024-03-09")
    with pytest.raises(ProjectError, match=why):
        lake(below, new_york(base="h", sql=OF_HOURS, timezone=zone))


def test_a_day_in_a_zone_may_be_on_days_of_that_zone(lake: Lakes) -> None:
    again = "SELECT day, sum(n) AS n FROM v GROUP BY ALL"
    weekly = "SELECT date_trunc('week', day) AS day, sum(n) AS n FROM v GROUP BY ALL"
    made = lake(
        new_york(start="2024-10-28"),
        new_york("d", base="v", sql=again, start="2024-10-28"),
        new_york("w", base="v", sql=weekly, bucket="1w", start="2024-10-28"),
    )
    whole(made, *(f"2024-{day}" for day in ("10-28", "10-29", "10-30", "10-31", "11-01", "11-02", "11-03")))
    made.converge()
    assert states(made, "w") == {"2024-10-28": "VALID"}
    assert len(states(made, "d")) == 7
    [week] = made.snapshot("w").rows
    assert made.catalog.view("w").buckets.next(week) - week == 7 * DAY + HOUR


def test_views_in_several_zones_are_on_one_table(lake: Lakes) -> None:
    made = lake(
        new_york(),
        new_york("k", timezone="Asia/Kolkata"),
        new_york("u", timezone="UTC"),
    )
    whole(made, "2024-11-01", "2024-11-02", "2024-11-03", "2024-11-04")
    made.converge()
    made.write("late.parquet", [utc("2024-11-03T19:00")])
    for name, key in (("v", "2024-11-03"), ("k", "2024-11-04"), ("u", "2024-11-03")):
        made.look(name)
        assert [each for each, state in states(made, name).items() if state == "STALE"] == [key]


def test_another_zone_is_another_definition_and_drops_what_was_cut_otherwise(lake: Lakes) -> None:
    made = lake(new_york())
    whole(made, "2024-11-01", "2024-11-02", "2024-11-03")
    made.converge()
    assert made.snapshot().header.width == f"1d {NEW_YORK}"
    made.declare(new_york(timezone="America/Chicago"))
    made.look()
    assert made.snapshot().header.width == "1d America/Chicago"
    assert made.snapshot().rows == {}
    made.converge()
    # Coverage is never given up, and New York's first midnight was before Chicago's.
    assert states(made) == dict.fromkeys(["2024-10-31", "2024-11-01", "2024-11-02"], "VALID")
    made.declare(new_york())
    with pytest.raises(Fenced):
        made.look()


@pytest.mark.parametrize("truncated", ["date_trunc('day', at)", "to_date(at)"])
def test_a_view_in_a_zone_is_asked_by_its_name_and_for_nothing_else(
    queried_lake: QueriedLakes, truncated: str
) -> None:
    sql = DAILY.replace("date_trunc('day', at)", truncated)
    asked = queried_lake(new_york(sql=sql))
    for key in ("2024-11-01", "2024-11-02", "2024-11-03", "2024-11-04", "2024-11-05"):
        start = DAYS.parse(key)
        times = [when(at) for at in range(start, DAYS.next(start), HOUR // 2)]
        asked.put(f"{key}.parquet", at=times, x=[1] * len(times))
    asked.lake.converge()
    # That day, and the last one, whose end is not known, are computed on the fly.
    asked.put("late.parquet", at=[utc("2024-11-03T05:45")], x=[5])
    asked.by_name("SELECT day, n, x FROM v ORDER BY day", "v: 3 + 2")
    for where in ("day = DATE '2024-11-03'", "day >= DATE '2024-11-02' AND day <= DATE '2024-11-03'"):
        asked.by_name(f"SELECT day, n, x FROM v WHERE CAST(day AS DATE) = day OR {where} ORDER BY day")
        asked.by_name(f"SELECT day, n, x FROM v WHERE {where} ORDER BY day")
    asked.right("SELECT count(*) AS n FROM events", None)
    asked.right(
        "SELECT date_trunc('day', at) AS day, count(*) AS n FROM events "
        "WHERE at >= '2024-11-02' AND at < '2024-11-04' GROUP BY ALL ORDER BY day",
        None,
    )
    stored = asked.ask("SELECT n FROM v ORDER BY day", Freshness.STORED).frame.collect()
    assert [row.n for row in stored] == [48, 48, 50, 48]


@pytest.mark.parametrize("zone", ["UTC", NEW_YORK, "Asia/Tokyo"])
def test_a_view_in_a_zone_has_the_same_rows_whatever_zone_its_reader_has(
    queried_lake: QueriedLakes, zone: str
) -> None:
    asked = queried_lake(new_york())
    whole(asked.lake, "2024-11-01", "2024-11-02", "2024-11-03", "2024-11-04")
    asked.lake.converge()
    asked.lake.write("late.parquet", [utc("2024-11-03T05:45")])
    text = "SELECT unix_millis(day) AS day, n FROM v ORDER BY 1"
    for freshness, late in ((Freshness.STRICT, 1), (Freshness.STORED, 0)):
        with asked.lake.engine.session() as spark, in_zone(spark, zone):
            found = asked.answers.answer(Question(text, freshness), spark).frame.collect()
            assert spark.conf.get("spark.sql.session.timeZone") == zone
        assert [(DAYS.key(row.day), row.n) for row in found] == [
            ("2024-11-01", 2),
            ("2024-11-02", 2),
            ("2024-11-03", 2 + late),
            ("2024-11-04", 2),
        ]


def test_an_audit_computes_by_the_clocks_of_the_view_and_so_does_one_by_arrow(spark_lake: SparkLakes) -> None:
    sql = "SELECT to_date(at) AS day, hour(at) AS hour, count(*) AS n FROM events GROUP BY ALL"
    made = spark_lake(new_york(sql=sql))
    whole(made, "2024-11-01", "2024-11-02", "2024-11-03", "2024-11-04")
    made.converge()
    made.write("late.parquet", [utc("2024-11-03T05:45")])
    made.converge()
    found = audit(made.open(), made.catalog.view("v"), None)
    assert [(DAYS.key(each.bucket), each.verdict.value, each.reread) for each in found] == [
        (f"2024-11-0{number}", "equal", True) for number in range(1, 5)
    ]

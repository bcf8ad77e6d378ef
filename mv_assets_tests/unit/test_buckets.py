from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from mv_assets.buckets import DAY, HOUR, MINUTE, WEEK, Buckets, iso
from mv_assets.errors import BucketError

WIDTHS = ["1m", "15m", "60m", "1h", "6h", "24h", "1d", "1w", "1mo"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(text_: str) -> int:
    return (datetime.fromisoformat(text_).replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


# Some weeks from the ends of the calendar, so that the next bucket still has a name.
TIMES = st.integers(at("0001-02-01"), at("9999-05-31"))


@given(st.sampled_from(WIDTHS), TIMES)
def test_every_time_lies_in_exactly_one_bucket_whose_key_round_trips(width: str, time: int) -> None:
    buckets = Buckets.of(width)
    start = buckets.floor(time)
    assert start <= time < buckets.next(start)
    assert buckets.floor(buckets.next(start) - 1) == start
    assert buckets.floor(buckets.next(start)) == buckets.next(start)
    assert buckets.parse(buckets.key(start)) == start


@given(st.sampled_from(WIDTHS), TIMES)
def test_ceil_is_the_start_itself_or_the_next_one(width: str, time: int) -> None:
    buckets = Buckets.of(width)
    assert buckets.ceil(time) == (time if buckets.is_start(time) else buckets.next(buckets.floor(time)))
    assert buckets.is_start(buckets.ceil(time))


@given(st.sampled_from(["1w", "1mo", "1d"]), TIMES, st.integers(0, 200))
def test_between_yields_the_buckets_that_overlap_a_range_without_gaps(
    width: str, start: int, days: int
) -> None:
    buckets, end = Buckets.of(width), start + days * DAY
    found = list(buckets.between(start, end))
    assert all(buckets.next(one) == two for one, two in pairwise(found))
    if days:
        assert found[0] <= start < end <= buckets.next(found[-1])
        assert found[-1] < end


def test_between_of_an_empty_range_is_empty() -> None:
    assert list(Buckets.of("1d").between(DAY, DAY)) == []


def test_100_week_and_month_buckets_are_those_of_date_trunc_before_1970_too(postgres: str) -> None:
    random_ = random.Random(100)
    times = [random_.randint(at("0001-02-01"), at("9999-11-30")) for _ in range(300)]
    times += [
        -1,
        0,
        1,
        -3 * DAY,
        -3 * DAY - 1,
        at("1969-12-31T23:59:59.999"),
        at("2000-02-29"),
        at("1900-03-01"),
    ]
    oracle = text(
        "SELECT extract(epoch FROM date_trunc(:unit, timestamp '1970-01-01' + :ms * interval '1 ms')) * 1000"
    )
    engine = create_engine(postgres)
    with engine.connect() as connection:
        for width, unit in [
            ("1w", "week"),
            ("1mo", "month"),
            ("1d", "day"),
            ("1h", "hour"),
            ("1m", "minute"),
        ]:
            expected = [int(connection.execute(oracle, {"unit": unit, "ms": t}).scalar_one()) for t in times]
            assert [Buckets.of(width).floor(time) for time in times] == expected
    engine.dispose()


def test_widths() -> None:
    ends = {width: Buckets.of(width).next(0) for width in WIDTHS if width not in ("1w", "1mo")}
    assert ends == {
        "1m": MINUTE,
        "15m": 15 * MINUTE,
        "60m": HOUR,
        "1h": HOUR,
        "6h": 6 * HOUR,
        "24h": DAY,
        "1d": DAY,
    }


def test_weeks_begin_on_monday() -> None:
    weeks = Buckets.of("1w")
    assert weeks.floor(0) == at("1969-12-29")
    assert weeks.floor(at("2024-03-03T23:59:59.999")) == at("2024-02-26")
    assert weeks.next(at("2024-02-26")) == at("2024-02-26") + WEEK == at("2024-03-04")


def test_months_follow_the_calendar() -> None:
    months = Buckets.of("1mo")
    starts = list(months.between(at("2023-12-15"), at("2024-04-01")))
    assert [months.key(start) for start in starts] == ["2023-12-01", "2024-01-01", "2024-02-01", "2024-03-01"]
    assert months.next(at("2024-02-01")) - at("2024-02-01") == 29 * DAY
    assert months.next(at("1900-02-01")) - at("1900-02-01") == 28 * DAY


def test_before_1970_times_are_floored_not_truncated() -> None:
    assert Buckets.of("1h").floor(-1) == -HOUR
    assert Buckets.of("1d").floor(-1) == -DAY
    assert Buckets.of("1mo").floor(-1) == at("1969-12-01")
    assert Buckets.of("15m").key(-15 * MINUTE) == "1969-12-31T23:45"


def test_keys_are_dates_for_days_and_longer_and_minutes_below() -> None:
    assert Buckets.of("1d").key(at("2024-01-31")) == "2024-01-31"
    assert Buckets.of("1w").key(at("2024-01-29")) == "2024-01-29"
    assert Buckets.of("6h").key(at("2024-01-31T18:00")) == "2024-01-31T18:00"
    assert Buckets.of("1d").key(at("0044-03-15")) == "0044-03-15"


def test_a_key_with_an_offset_names_the_same_moment() -> None:
    assert Buckets.of("1h").parse("2024-01-31T16:00+01:00") == at("2024-01-31T15:00")


def test_months_go_on_where_names_end() -> None:
    """Files may hold times of the year 12000, or of before the year 1, which no bucket is named for."""
    months = Buckets.of("1mo")
    last, first = at("9999-12-01"), at("0001-01-01")
    assert (months.floor(last + 31 * DAY - 1), months.next(last)) == (last, last + 31 * DAY)
    # The year 10000 is a leap year, the year 0 too.
    assert months.next(last + 62 * DAY) == months.ceil(last + 62 * DAY + 1) == last + 91 * DAY
    assert months.floor(first - 1) == first - 31 * DAY
    assert months.count(first - 366 * DAY, first) == 12
    assert months.count(-(2**62), 2**62) > 10**9


@pytest.mark.parametrize("width", ["", "d", "0h", "-1h", "1.5h", "1 d", "1D", "1y", "01h", "1d "])
def test_what_is_not_a_width_is_refused_with_what_is(width: str) -> None:
    with pytest.raises(BucketError, match=r"is not a bucket width; use minutes.*15m.*6h.*1d, 1w or 1mo"):
        Buckets.of(width)


@pytest.mark.parametrize("width", ["7m", "90m", "5h", "48h", "2d", "2w", "3mo"])
def test_widths_that_do_not_divide_time_evenly_are_refused(width: str) -> None:
    with pytest.raises(BucketError, match=f"'{width}' does not divide time evenly; use"):
        Buckets.of(width)


def test_a_key_that_is_no_bucket_says_how_to_write_one() -> None:
    with pytest.raises(BucketError, match=r"'yesterday' is not a bucket; write it like 2024-01-31T12:00"):
        Buckets.of("6h").parse("yesterday")
    with pytest.raises(
        BucketError, match=r"'2024-01-30' is not the start of a 1w bucket; it lies in 2024-01-29"
    ):
        Buckets.of("1w").parse("2024-01-30")
    with pytest.raises(BucketError, match=r"1970-01-01T00:00:00.001Z is not the start of a 1d bucket"):
        Buckets.of("1d").key(1)


@pytest.mark.parametrize("width", ["1d", "1mo"])
@pytest.mark.parametrize("time", [-(2**62), 2**62])
def test_a_time_outside_the_calendar_is_an_error_of_ours(width: str, time: int) -> None:
    buckets = Buckets.of(width)
    with pytest.raises(BucketError, match="outside the years 1 to 9999"):
        buckets.key(buckets.floor(time))


def test_iso_names_a_time_for_people() -> None:
    assert (iso(0), iso(-1)) == ("1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z")
    assert iso(2**62) == "4611686018427387904 ms since 1970"

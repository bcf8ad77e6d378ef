"""Buckets in a time zone, held against plain zoneinfo."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mv_assets.buckets import DAY, HOUR, MINUTE, Buckets, iso
from mv_assets.errors import BucketError
from mv_assets.local_days import LocalDays, is_utc, is_zone

ZONES = [
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Europe/London",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Pacific/Kwajalein",
]
WIDTHS = ["1d", "1w", "1mo"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Around changes of clocks in these zones, and one around nothing.
_CHANGES = [
    datetime(2024, 3, 10, 7, tzinfo=UTC),
    datetime(2024, 11, 3, 6, tzinfo=UTC),
    datetime(2018, 11, 4, 3, tzinfo=UTC),
    datetime(2018, 2, 18, 2, tzinfo=UTC),
    datetime(2024, 4, 6, 15, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),
    datetime(2011, 4, 2, 14, tzinfo=UTC),
    datetime(2024, 3, 10, 2, tzinfo=UTC),
    datetime(2024, 4, 14, 2, tzinfo=UTC),
    datetime(2024, 3, 30, 22, tzinfo=UTC),
    datetime(1993, 8, 20, 12, tzinfo=UTC),
    datetime(2024, 7, 15, tzinfo=UTC),
]


def ms(when: datetime) -> int:
    return (when - _EPOCH) // timedelta(milliseconds=1)


def at(text: str) -> int:
    return ms(datetime.fromisoformat(text).replace(tzinfo=UTC))


TIMES = st.one_of(
    st.integers(at("1930-01-01"), at("2037-01-01")),
    st.builds(
        lambda change, hours: ms(change) + hours,
        st.sampled_from(_CHANGES),
        st.integers(-40 * HOUR, 40 * HOUR),
    ),
)
# No day was left out here, so that calendar arithmetic on dates is the oracle.
NEVER_SKIPPING = [*ZONES[:4], "Europe/London", "UTC"]


def local(time: int, zone: str) -> date:
    return (_EPOCH + timedelta(milliseconds=time)).astimezone(ZoneInfo(zone)).date()


_NAMED: dict[str, Callable[[date], Any]] = {
    "1d": lambda day: day,
    "1w": lambda day: day.isocalendar()[:2],
    "1mo": lambda day: (day.year, day.month),
}


@given(st.sampled_from(WIDTHS), st.sampled_from(ZONES), TIMES)
def test_a_bucket_holds_exactly_the_times_of_its_local_days(width: str, zone: str, time: int) -> None:
    buckets, named = Buckets.of(width, zone), _NAMED[width]
    start = buckets.floor(time)
    end = buckets.next(start)
    own = named(local(time, zone))
    assert start <= time < end
    assert own == named(local(start, zone)) == named(local(end - 1, zone))
    assert own not in (named(local(start - 1, zone)), named(local(end, zone)))
    assert buckets.floor(end - 1) == start
    assert buckets.floor(end) == buckets.ceil(start + 1) == end
    assert buckets.parse(buckets.key(start)) == start
    assert buckets.key(start) == local(start, zone).isoformat()


@given(st.sampled_from(WIDTHS), st.sampled_from(ZONES), TIMES, st.integers(1, 400))
def test_between_count_and_stretches_agree_across_changes_of_clocks(
    width: str, zone: str, start: int, days: int
) -> None:
    buckets, end = Buckets.of(width, zone), start + days * DAY
    found = list(buckets.between(start, end))
    assert all(buckets.next(one) == two for one, two in pairwise(found))
    assert buckets.count(start, end) == len(found)
    assert buckets.stretches(found) == [found]


@given(st.sampled_from(NEVER_SKIPPING), TIMES, st.integers(-400, 400))
def test_a_time_moved_by_whole_days_is_in_the_day_that_many_dates_later(
    zone: str, time: int, days: int
) -> None:
    buckets = Buckets.of("1d", zone)
    moved = buckets.shifted(time, days * DAY)
    assert local(moved, zone) == local(time, zone) + timedelta(days=days)
    assert buckets.is_start(moved) or not buckets.is_start(time)


@given(st.sampled_from([*ZONES, "UTC"]), TIMES, TIMES, st.integers(-400, 400))
@example("Pacific/Apia", at("2011-12-29T10:00"), at("2011-12-30T09:59"), 1)
@example("Pacific/Apia", at("2011-12-30T10:00"), at("2011-12-29T10:00"), -1)
def test_moving_by_days_keeps_the_order_and_can_be_turned_around(
    zone: str, one: int, other: int, days: int
) -> None:
    buckets, by = Buckets.of("1d", zone), days * DAY
    low, high = sorted((one, other))
    assert buckets.shifted(low, by) <= buckets.shifted(high, by)
    start = buckets.floor(one)
    assert buckets.is_start(buckets.shifted(start, by))
    assert buckets.shifted(buckets.shifted(start, by), -by) == start
    for x in (other, buckets.shifted(start, by), buckets.shifted(start, by) - 1):
        assert (buckets.shifted(start, by) <= x) == (start <= buckets.shifted(x, -by))


@given(
    st.sampled_from(WIDTHS), st.sampled_from([*ZONES, "UTC"]), TIMES, st.integers(0, 60), st.integers(0, 60)
)
def test_a_time_is_in_a_window_exactly_if_it_moves_into_the_bucket_and_its_neighbours(
    width: str, zone: str, time: int, before: int, after: int
) -> None:
    buckets = Buckets.of(width, zone)
    start = buckets.floor(time)
    begin, end = buckets.window(start, before * DAY, after * DAY)
    days = Buckets.of("1d", zone)
    assert days.count(begin, start) == before
    assert days.count(buckets.next(start), end) == after


def test_what_is_no_whole_number_of_days_is_moved_by_the_clock() -> None:
    buckets = Buckets.of("1d", "America/New_York")
    start = buckets.parse("2024-03-11")
    assert buckets.shifted(start, -36 * HOUR) == start - 36 * HOUR
    assert buckets.window(start, 30 * MINUTE, DAY) == (start - 30 * MINUTE, buckets.parse("2024-03-13"))


def test_a_window_of_a_day_before_the_clocks_change_is_that_day_whatever_its_length() -> None:
    buckets = Buckets.of("1d", "America/New_York")
    begin, end = buckets.window(buckets.parse("2024-03-11"), DAY, 0)
    assert (iso(begin), iso(end)) == ("2024-03-10T05:00:00Z", "2024-03-12T04:00:00Z")
    assert end - begin == 47 * HOUR


def test_114_days_have_23_and_25_hours_where_the_clocks_change() -> None:
    buckets = Buckets.of("1d", "America/New_York")
    lengths = {
        key: buckets.next(buckets.parse(key)) - buckets.parse(key)
        for key in ("2024-03-09", "2024-03-10", "2024-11-02", "2024-11-03")
    }
    assert list(lengths.values()) == [DAY, 23 * HOUR, DAY, 25 * HOUR]
    both = (at("2024-11-03T05:30"), at("2024-11-03T06:30"))
    assert {buckets.key(buckets.floor(time)) for time in both} == {"2024-11-03"}


def test_a_day_whose_midnight_was_skipped_begins_at_one() -> None:
    buckets = Buckets.of("1d", "America/Sao_Paulo")
    start = buckets.parse("2018-11-04")
    assert iso(start) == "2018-11-04T03:00:00Z"
    assert (_EPOCH + timedelta(milliseconds=start)).astimezone(ZoneInfo("America/Sao_Paulo")).hour == 1
    # The clocks went from 23:30 to 00:30.
    toronto = Buckets.of("1d", "America/Toronto")
    assert iso(toronto.parse("1919-03-31")) == "1919-03-31T04:30:00Z"


def test_a_day_that_a_zone_left_out_has_no_bucket() -> None:
    buckets = Buckets.of("1d", "Pacific/Apia")
    found = buckets.between(buckets.parse("2011-12-28"), buckets.parse("2012-01-02"))
    assert [buckets.key(start) for start in found] == ["2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01"]
    with pytest.raises(BucketError, match="2011-12-30 has no bucket: Pacific/Apia left that day out"):
        buckets.parse("2011-12-30")
    assert buckets.count(buckets.parse("2011-01-01"), buckets.parse("2013-01-01")) == 365 + 366 - 1


def test_a_date_that_came_again_after_the_next_one_belongs_to_the_bucket_that_had_begun() -> None:
    """In St. John's the clocks went from 00:01 back to 23:01 of the day before."""
    buckets = Buckets.of("1d", "America/St_Johns")
    start = buckets.parse("2010-11-07")
    assert iso(start) == "2010-11-07T02:30:00Z"
    assert buckets.next(start) - start == 25 * HOUR
    assert {buckets.floor(start + minute * MINUTE) for minute in range(25 * 60)} == {start}


def test_a_key_without_an_offset_is_local_and_one_with_it_is_as_written() -> None:
    buckets = Buckets.of("1d", "America/New_York")
    named = ("2024-07-04", "2024-07-04T00:00", "2024-07-04T04:00Z", "2024-07-04T06:00+02:00")
    assert {iso(buckets.parse(key)) for key in named} == {"2024-07-04T04:00:00Z"}
    with pytest.raises(BucketError, match=r"is not the start of a 1d America/New_York bucket; .* 2024-07-04"):
        buckets.parse("2024-07-04T08:00")
    with pytest.raises(BucketError, match="write it like 2024-01-31"):
        buckets.parse("soon")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("zone", [*ZONES, "Pacific/Kiritimati"])
def test_arithmetic_goes_on_where_the_calendar_ends(width: str, zone: str) -> None:
    buckets = Buckets.of(width, zone)
    for time in (-(2**62), at("0001-01-01"), at("0002-01-01"), at("9998-12-31"), at("9999-12-31"), 2**62):
        start = buckets.floor(time)
        assert start <= time < buckets.next(start) == buckets.ceil(start + 1)
        assert buckets.shifted(buckets.shifted(start, 5 * DAY), -5 * DAY) == start
    assert buckets.count(-(2**62), 2**62) > 10**9
    with pytest.raises(BucketError, match="outside the years 1 to 9999"):
        buckets.key(buckets.floor(2**62))


def test_zone_and_width_are_one_text_that_the_state_keeps() -> None:
    local_, plain = Buckets.of("1d", "America/New_York"), Buckets.of("1d")
    assert (local_.text, local_.width, local_.zone) == ("1d America/New_York", "1d", "America/New_York")
    assert (plain.text, plain.zone) == ("1d", None)
    assert Buckets.of(local_.text) == local_ != plain
    assert pickle.loads(pickle.dumps(local_)) == local_  # noqa: S301


@pytest.mark.parametrize("zone", ["UTC", "Etc/UTC", "GMT", "Zulu"])
def test_utc_by_another_name_is_no_zone(zone: str) -> None:
    assert is_utc(zone)
    assert Buckets.of("1d", zone) == Buckets.of(f"1d {zone}") == Buckets.of("1d")


def test_what_a_machine_happens_to_be_set_to_is_no_zone() -> None:
    assert not is_zone("localtime")
    assert not is_zone("Factory")
    with pytest.raises(BucketError, match="'localtime' is not a time zone; write one as America/New_York"):
        Buckets.of("1d localtime")


@pytest.mark.parametrize("width", ["15m", "1h", "6h"])
def test_finer_buckets_are_utc_only(width: str) -> None:
    with pytest.raises(BucketError, match=f"{width} buckets have no time zone: finer .* are UTC only; take"):
        Buckets.of(width, "America/New_York")


def test_a_sweep_over_many_days_is_quick() -> None:
    buckets = Buckets.of("1d", "America/New_York")
    began = perf_counter()
    assert len(list(buckets.between(at("1850-01-01"), at("2120-01-01")))) > 98_000
    assert perf_counter() - began < 5


def test_114_a_day_of_24_hours_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: days that begin 24 hours after each other."""
    right = LocalDays.start

    def wrong(self: LocalDays, day: int) -> int:
        return right(self, 0) + day * DAY

    monkeypatch.setattr(LocalDays, "start", wrong)
    with pytest.raises(AssertionError):
        test_114_days_have_23_and_25_hours_where_the_clocks_change()

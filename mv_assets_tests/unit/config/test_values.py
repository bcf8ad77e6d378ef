from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from mv_assets.buckets import DAY, HOUR, MINUTE, iso
from mv_assets.config.values import BucketWidth, Duration, Name, Start, Text

WRONG_TYPES: list[Any] = [None, True, 5, 2.5, [], {}, b"1d", date(2024, 1, 1)]


def read(kind: Any, value: Any) -> Any:
    return TypeAdapter(kind).validate_python(value)


def complaint(kind: Any, value: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, value)
    (problem,) = caught.value.errors()
    return str(problem["msg"])


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0s", 0),
        ("250ms", 250),
        ("30s", 30_000),
        ("007s", 7_000),
        ("10m", 10 * MINUTE),
        ("2h", 2 * HOUR),
        ("3660d", 3_660 * DAY),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, milliseconds: int) -> None:
    assert read(Duration, text) == milliseconds


@pytest.mark.parametrize(
    "value", ["", "10", "m", "10 m", "-5m", "1.5h", "10M", "1w", "1mo", "1h30m", "10m\n", "٣s", *WRONG_TYPES]
)
def test_anything_else_is_no_duration_and_the_message_shows_one(value: Any) -> None:
    said = complaint(Duration, value)
    assert repr(value) in said
    assert "is not a duration; write a number and a unit: 30s, 10m, 2h, 1d" in said


@pytest.mark.parametrize("value", ["3661d", "99999999999999999999d", "9" * 5000 + "s"])
def test_a_duration_beyond_ten_years_is_refused_in_a_short_message(value: str) -> None:
    said = complaint(Duration, value)
    assert "longer than ten years" in said
    assert len(said) < 300


@pytest.mark.parametrize("name", ["a", "trips_hourly", "t2", "a" * 63])
def test_a_name_has_small_letters_digits_and_underscores(name: str) -> None:
    assert read(Name, name) == name


@pytest.mark.parametrize(
    "name",
    ["", "A", "1a", "_a", "a-b", "a.b", "a b", "a\n", "größe", "a" * 64, "a; DROP TABLE x", *WRONG_TYPES],
)
def test_any_other_name_is_refused_with_what_a_name_is(name: Any) -> None:
    said = complaint(Name, name)
    assert repr(name) in said
    assert "use lower-case letters, digits and underscores, at most 63, a letter first" in said


@pytest.mark.parametrize("width", ["1m", "15m", "1h", "6h", "1d", "1w", "1mo"])
def test_a_bucket_width_divides_time(width: str) -> None:
    assert read(BucketWidth, width) == width


@pytest.mark.parametrize(("written", "width"), [("60m", "1h"), ("24h", "1d")])
def test_two_names_of_one_width_are_one(written: str, width: str) -> None:
    assert read(BucketWidth, written) == width


@pytest.mark.parametrize("width", ["", "7h", "45m", "2d", "2w", "0h", "1y", "1 d", "d", "1D", *WRONG_TYPES])
def test_any_other_width_is_refused_with_the_allowed_ones(width: Any) -> None:
    said = complaint(BucketWidth, width)
    assert "minutes that divide the hour (15m), hours that divide the day (6h), 1d, 1w or 1mo" in said


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (date(2024, 1, 31), "2024-01-31T00:00:00Z"),
        (datetime(2024, 1, 31, 15), "2024-01-31T15:00:00Z"),  # noqa: DTZ001 - YAML's times have no zone
        (datetime(2024, 1, 31, 15, tzinfo=UTC), "2024-01-31T15:00:00Z"),
        ("2024-01-31", "2024-01-31T00:00:00Z"),
        ("2024-01-31T15:00", "2024-01-31T15:00:00Z"),
        ("2024-01-31T15:00Z", "2024-01-31T15:00:00Z"),
        ("2024-01-31T15:00:00+02:00", "2024-01-31T13:00:00Z"),
        ("1969-12-31T23:59:59.999900", "1969-12-31T23:59:59.999Z"),
    ],
)
def test_a_start_is_a_date_or_time_in_utc(value: Any, time: str) -> None:
    assert iso(read(Start, value)) == time


@pytest.mark.parametrize(
    "value",
    ["", "soon", "2024-02-30", "2024-13-01", "01/31/2024", "15:00", None, True, 20240101, 1.5, [], {}],
)
def test_any_other_start_is_refused_with_how_to_write_one(value: Any) -> None:
    said = complaint(Start, value)
    assert repr(value) in said
    assert "is not a time; write 2024-01-31, 2024-01-31T15:00 or earliest" in said


@given(st.datetimes(datetime(1001, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001
def test_every_time_survives_being_written_and_read(when: datetime) -> None:
    read_back = read(Start, when.isoformat())
    assert read_back == (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert read(Start, when) == read_back


@pytest.mark.parametrize(
    "value",
    ["0001-01-01T00:00+05:00", "9999-12-31T23:00-05:00", "0001-01-01", "1000-12-31", "9999-01-01"],
)
def test_a_start_that_dagster_can_not_count_from_is_refused(value: str) -> None:
    assert "lies outside the years 1001 to 9998 in UTC; is the year right?" in complaint(Start, value)


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
def test_a_text_says_something(blank: str) -> None:
    complaint(Text, blank)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.dates(), st.lists(st.none())))
def test_no_value_of_any_type_raises_anything_but_a_validation_error(value: Any) -> None:
    for kind in (Name, Text, Duration, BucketWidth, Start):
        try:
            read(kind, value)
        except ValidationError as error:
            assert error.errors()  # noqa: PT017 - either outcome is right

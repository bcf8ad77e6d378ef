from __future__ import annotations

import pytest

from mv_assets_tests.unit.spark_sql.analysed import only, view_of


@pytest.mark.parametrize(
    "condition",
    [
        "pickup_at > TIMESTAMP 'now'",
        "pickup_at > TIMESTAMP_NTZ'now'",
        "pickup_at > DATE 'today'",
        'pickup_at > DATE "yesterday"',
        "pickup_at > CAST('tomorrow' AS DATE)",
        "pickup_at > to_timestamp('now')",
        "pickup_at > 'now'",
        "pickup_at BETWEEN '2024-01-01' AND 'now'",
        "pickup_at IN (SELECT 'now' FROM zones)",
        "pickup_at > ' NoW\\t'",
        "pickup_at > '\n now'",
        "pickup_at > r'now'",
        "pickup_at > 'to' 'day'",
        "pickup_at > 'today UTC'",
        "pickup_at > 'today+02:00'",
        "pickup_at > 'Yesterday -08'",
        "pickup_at > 'tomorrow America/Los_Angeles '",
    ],
)
def test_a_text_that_means_a_time_of_the_clock_is_refused(condition: str) -> None:
    what = only(f"SELECT pickup_at AS hour FROM trips WHERE {condition}").what
    assert what.endswith(
        "' reads the clock where Spark makes a time of it; write a fixed date, or use the table's time column"
    )


@pytest.mark.parametrize(
    "condition",
    [
        "pickup_at < '12:00'",
        "'T1:30:00 UTC' >= pickup_at",
        "pickup_at > TIMESTAMP'12:00'",
        "pickup_at BETWEEN '2024-01-01' AND '12:00'",
        "pickup_at IN ('2024-01-01', '12:00')",
        "pickup_at > cast('12:00' AS timestamp)",
        "pickup_at > '12:00'::timestamp",
        "pickup_at > to_timestamp('12:00')",
    ],
)
def test_a_time_without_a_date_is_refused_where_spark_may_take_it_for_todays(condition: str) -> None:
    what = only(f"SELECT pickup_at AS hour FROM trips WHERE {condition}").what
    assert what.endswith("makes a time of it; write a date before it; if it is compared with text, use LIKE")


@pytest.mark.parametrize("item", ["'12:00'", "CASE WHEN fare > 1 THEN '12:00' END", "payload LIKE '12:00'"])
def test_a_time_without_a_date_is_a_text_like_any_other_where_nothing_is_made_of_it(item: str) -> None:
    assert view_of(f"SELECT pickup_at AS hour, {item} AS now FROM trips").columns == ("hour", "now")


@pytest.mark.parametrize(
    "text",
    ["epoch", "known", "now UTC", "now()", "todayUTC", "today only", "today 2020", "right now", "to day"],
)
def test_a_text_that_spark_takes_for_no_time_of_the_clock_is_fine(text: str) -> None:
    assert view_of(f"SELECT pickup_at AS hour, '{text}' AS now FROM trips").columns == ("hour", "now")

from __future__ import annotations

import pytest

from mv_assets_tests.views.sql.analysed import only, view_of


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
    "text",
    ["epoch", "known", "now UTC", "now()", "todayUTC", "today only", "today 2020", "right now", "to day"],
)
def test_a_text_that_spark_takes_for_no_time_of_the_clock_is_fine(text: str) -> None:
    assert view_of(f"SELECT pickup_at AS hour, '{text}' AS now FROM trips").columns == ("hour", "now")

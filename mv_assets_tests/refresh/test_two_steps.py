"""Chosen buckets: staged, then committed, and what is said of those that there is nothing to do about."""

from __future__ import annotations

from collections.abc import Callable

from mv_assets.buckets import DAY, HOUR
from mv_assets.refresh.two_steps import TwoStepRefresh
from mv_assets_tests.lake import view
from mv_assets_tests.refresh.yard import Yard


def said_of(made: Yard, *days: int) -> dict[int, str | None]:
    with TwoStepRefresh(made.open(), made.catalog.view("v"), [number * DAY for number in days]) as refresh:
        refresh.stage()
        return {bucket // DAY: result.reason for bucket, result in refresh.results.items()}


def test_a_bucket_that_is_not_due_says_what_it_really_waits_for(plain_yard: Callable[..., Yard]) -> None:
    made = plain_yard(view(buffer="2h", start="1970-01-02"))
    made.days(1, 2)
    made.clock.now = 3 * DAY + HOUR
    made.run()
    buffered = "not due: it ends at 1970-01-04T00:00:00Z, and is computed 2h later"
    assert said_of(made, 2) == {2: buffered}
    made.clock.now = 9 * DAY
    made.run()
    known = "events is known to have data up to 1970-01-03T23:59:59.999Z"
    # Before and after the round in which nothing is news.
    for _ in range(2):
        found = said_of(made, 0, 2, 3)
        assert (found[0] or "").startswith("not due: it lies before the view's coverage")
        assert found[2] == "it is VALID already"
        assert found[3] == f"not due: it ends at 1970-01-05T00:00:00Z, and {known}"

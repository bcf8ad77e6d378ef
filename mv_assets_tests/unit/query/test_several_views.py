"""One query, several views: days, hours and ragged ends put together, and answers joined with each other."""

from __future__ import annotations

import pytest

from mv_assets_tests.support.lake import view
from mv_assets_tests.support.queried_lake import HOURS, QueriedLake, QueriedLakes, came_from, rows_of

pytestmark = pytest.mark.slow
DAYS = (
    "SELECT date_trunc('day', at) AS day, zone, count(*) AS n, sum(fare) AS fare, count(fare) AS fares "
    "FROM events GROUP BY ALL"
)
RAGGED = "at >= '1970-01-01 05:30:00' AND at < '1970-01-05 17:45:00'"


@pytest.fixture
def several(queried_lake: QueriedLakes) -> QueriedLake:
    """Five days: a view of days has the first three, a view of hours has all."""
    views = (
        view("days", sql=DAYS, time_column="day"),
        view("hours", sql=HOURS, bucket="1h"),
    )
    made = queried_lake(*views)
    made.days(0, 1, 2)
    made.lake.converge()
    made.days(3, 4)
    made.lake.run("hours")
    return made


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT count(*) AS n, sum(fare) AS fare, avg(fare) AS mean FROM events WHERE {}",
        "SELECT zone, count(*) AS n, count(DISTINCT zone) AS z FROM events WHERE {} GROUP BY zone",
        "SELECT zone, sum(fare) AS fare FROM events WHERE {} GROUP BY ROLLUP (zone)",
        "SELECT max(n) AS n FROM (SELECT zone, count(*) AS n FROM events WHERE {} GROUP BY zone) AS q",
    ],
)
def test_days_hours_and_ragged_ends_make_one_answer(several: QueriedLake, asked: str) -> None:
    answer = several.like_base(asked.format(RAGGED))
    assert [each.view for each in answer.served.views] == ["days", "hours"]
    assert answer.served.views[0].buckets == 2
    assert answer.served.files_from_base > 0
    # A file that no view knows yet takes its hours out of the hourly view, and out of no other part.
    several.day(3, "late.parquet", rows=2, seed=5)
    assert [each.view for each in several.like_base(asked.format(RAGGED)).served.views] == ["days", "hours"]


@pytest.mark.parametrize(
    "joined",
    [
        "SELECT a.zone, a.n, b.s FROM ({0}) AS a JOIN ({1}) AS b ON a.zone = b.zone",
        "SELECT a.zone, a.n, b.s FROM ({0}) AS a LEFT JOIN ({1}) AS b ON a.zone <=> b.zone",
        "SELECT a.zone, b.zone AS other, n, s FROM ({0}) AS a FULL JOIN ({1}) AS b ON a.zone = b.zone + 1",
        "WITH a AS ({0}), b AS ({1}) SELECT a.* FROM a LEFT ANTI JOIN b ON a.zone = b.zone",
        "WITH a AS ({0}), b AS ({1}) SELECT zone, sum(n) OVER (ORDER BY zone) FROM a JOIN b USING (zone)",
        "WITH a AS ({0}), b AS ({1}) SELECT count(*) AS c, sum(a.n * b.s) AS t FROM a, b, a AS again",
    ],
)
def test_two_answers_are_joined_at_one_listing(several: QueriedLake, joined: str) -> None:
    days = "SELECT zone, count(*) AS n FROM events WHERE at < '1970-01-04' GROUP BY zone"
    hours = "SELECT zone, max(x) AS s FROM events GROUP BY zone"
    text = joined.format(days, hours)
    several.like_base(text)
    several.listings.clear()
    answer = several.ask(text)
    assert {each.view for each in answer.served.views} == {"days", "hours"}
    assert answer.served.files_from_base == 0
    assert several.listings == ["events"]


def test_a_file_that_comes_between_two_answers_is_in_neither(several: QueriedLake) -> None:
    text = (
        "SELECT a.n - b.n AS more FROM (SELECT count(*) AS n FROM events WHERE at < '1970-01-04') AS a, "
        "(SELECT count(*) AS n FROM events WHERE at < '1970-01-04' AND (x > 0 OR x <= 0 OR x IS NULL)) AS b"
    )
    several.listed.append(lambda: several.day(1, "between.parquet", seed=9))
    answer = several.ask(text)
    assert (rows_of(answer), several.listed) == ([(0,)], [])
    assert came_from(several.ask(text)) is not None

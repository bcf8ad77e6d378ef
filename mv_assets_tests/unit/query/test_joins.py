"""Queries that join what a view does not, or in another spelling: groups are joined by their keys."""

from __future__ import annotations

from typing import Any

import pytest

from mv_assets_tests.support.lake import view
from mv_assets_tests.support.queried_lake import HOURS, QueriedLake, QueriedLakes

ZONES: dict[str, list[Any]] = {
    "zone": [1, 1, 2, 4],
    "borough": ["north", "south", None, "west"],
    "rank": [3, 5, 7, 9],
}
JOINED = (
    "SELECT date_trunc('day', e.at) AS day, z.borough, e.zone, count(*) AS n, sum(e.x) AS x "
    "FROM events e LEFT JOIN zones z ON e.zone = z.zone GROUP BY ALL"
)


HIGH = "events e LEFT JOIN zones z ON e.zone = z.zone AND z.rank > 4"
LATER = "WHERE e.at >= '1970-01-01 12:30:00'"


@pytest.fixture
def joined(queried_lake: QueriedLakes) -> QueriedLake:
    """Hours of events by zone; of zones one is there twice, and one not at all."""
    made = queried_lake(view(sql=HOURS), dimensions=["zones"])
    made.put_all("zones.parquet", ZONES, "zones")
    made.days(0, 1, 2)
    made.lake.converge()
    made.day(2, "late.parquet", seed=3)
    return made


@pytest.mark.parametrize(
    "text",
    [
        "SELECT borough, count(*) AS n, sum(x) AS x FROM events e JOIN zones z ON e.zone = z.zone GROUP BY 1",
        "SELECT borough, sum(fare) AS fare FROM events LEFT JOIN zones USING (zone) GROUP BY borough",
        "SELECT zone, borough, min(x) AS x FROM events JOIN zones USING (zone) WHERE rank > 3 GROUP BY ALL",
        "SELECT count(z.borough) AS b, count(*) AS n FROM events e LEFT JOIN zones z ON z.zone = e.zone",
        "SELECT count(DISTINCT borough) AS b, max(rank) AS top FROM events JOIN zones USING (zone)",
        "SELECT e.zone, sum(e.x) AS x FROM events e, zones z WHERE e.zone = z.zone GROUP BY e.zone",
        "SELECT z.borough, count(*) AS n FROM events e JOIN zones z ON e.zone < z.zone GROUP BY z.borough",
        f"SELECT date_trunc('day', e.at) AS day, borough, avg(x) AS x FROM {HIGH} {LATER} GROUP BY ALL",
    ],
)
def test_groups_are_joined_by_their_keys(joined: QueriedLake, text: str) -> None:
    joined.right(text)
    assert joined.like_base(text).served.view == "v", text


@pytest.mark.parametrize(
    "text",
    [
        # Of how many rows a group is, a sum of what is joined must know; and of its own values, a join.
        "SELECT sum(z.rank) AS r FROM events e JOIN zones z ON e.zone = z.zone",
        "SELECT count(*) AS n FROM events e JOIN zones z ON e.x = z.rank",
        "SELECT count(*) AS n FROM events e JOIN zones z ON e.zone = z.zone WHERE e.x > z.rank",
    ],
)
def test_what_needs_single_rows_is_answered_by_the_base(joined: QueriedLake, text: str) -> None:
    joined.right(text, None)


@pytest.mark.parametrize(
    "source",
    [
        "events e LEFT JOIN zones z ON z.zone = e.zone",
        "events LEFT OUTER JOIN zones USING (zone)",
        "events AS one LEFT JOIN zones AS two ON (one.zone = two.zone)",
    ],
)
def test_the_same_join_is_the_same_however_it_is_written(queried_lake: QueriedLakes, source: str) -> None:
    made = queried_lake(view(sql=JOINED, time_column="day", dimensions=["zones"]), dimensions=["zones"])
    made.put_all("zones.parquet", ZONES, "zones")
    made.days(0, 1)
    made.lake.converge()
    made.right(f"SELECT borough, sum(x) AS x, count(*) AS n FROM {source} GROUP BY borough", "v: 2 + 0")
    made.right(
        f"SELECT borough, count(*) AS n FROM {source.replace('LEFT', '')} GROUP BY borough".replace(
            "OUTER", ""
        ),
        None,
    )

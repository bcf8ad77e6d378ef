"""Grouping sets, and aggregates that follow from others: each answer is held against the base table's."""

from __future__ import annotations

import pytest

from mv_assets_tests.support.lake import view
from mv_assets_tests.support.queried_lake import QueriedLakes

pytestmark = pytest.mark.slow
VIEW = (
    "SELECT date_trunc('hour', at) AS hour, zone, name, count(*) AS n, sum(fare) AS fare, "
    "count(fare) AS fares, sum(x) AS x, count(x) AS xs, sum(x * x) AS xx, sum(fare * fare) AS ff, "
    "max(x) AS high FROM events GROUP BY ALL"
)
COUNTS = "count(*) AS n, sum(fare) AS s, avg(fare) AS m, max(x) AS high, count(DISTINCT name) AS names"
NOTHING = "WHERE zone = 99"
GROUPED = (
    "ROLLUP (zone, name)",
    "CUBE (zone, name)",
    "zone, name WITH CUBE",
    "zone, name WITH ROLLUP",
    "zone, ROLLUP (name)",
    "GROUPING SETS ((zone, name), zone, (zone), ())",
    "GROUPING SETS (ROLLUP (zone), name)",
    "zone, name GROUPING SETS ((name), (zone, name), ())",
    "ROLLUP ((zone, name))",
    "CUBE (1, 2)",
)


def test_grouping_sets_of_keys_are_made_of_the_parts(queried_lake: QueriedLakes) -> None:
    made = queried_lake(view(sql=VIEW), filled=3)
    for grouped in GROUPED:
        asked = f"SELECT zone, name, grouping(name) AS g, grouping_id() AS id, {COUNTS} FROM events"
        made.like_base(f"{asked} GROUP BY {grouped}", "v: 3 + 0")
        # Rows of the base too, and none at all: then there is not even a total.
        made.like_base(f"{asked} WHERE at >= '1970-01-01 05:30:00' GROUP BY {grouped}", "v: 3 + 1")
        made.like_base(f"{asked} {NOTHING} GROUP BY {grouped}")


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT coalesce(zone, -1) AS z, count(*) AS n FROM events GROUP BY ROLLUP (zone)",
        "SELECT zone + 1 AS z, sum(zone) AS s, max(zone) AS m FROM events GROUP BY CUBE (zone + 1)",
        "SELECT zone, count(DISTINCT zone) AS d, count(zone) AS c FROM events GROUP BY ROLLUP (zone)",
        "SELECT date_trunc('day', at) AS d, zone, count(*) AS n FROM events GROUP BY CUBE (1, zone)",
        "SELECT zone, count(*) AS n FROM events GROUP BY ROLLUP (zone) HAVING grouping(zone) = 1",
        "SELECT zone, count(*) AS n FROM events GROUP BY ROLLUP (zone) ORDER BY grouping(zone), zone",
        "SELECT DISTINCT count(*) > 3 AS n FROM events GROUP BY CUBE (zone, name)",
        "SELECT grouping_id(zone, name) AS g FROM events GROUP BY ROLLUP (zone, name) HAVING count(*) > 1",
        "SELECT count(*) FILTER (WHERE zone IS NULL) AS n FROM events GROUP BY ROLLUP (zone)",
        "SELECT zone, zone, count(*) AS n FROM events GROUP BY GROUPING SETS ((zone), (zone))",
    ],
)
def test_what_is_asked_of_grouping_sets(queried_lake: QueriedLakes, asked: str) -> None:
    made = queried_lake(view(sql=VIEW), filled=2)
    made.like_base(asked, None if "sum(zone)" in asked else "v: 2 + 0")


@pytest.mark.parametrize(
    "grouped",
    [
        "GROUPING SETS (())",
        "GROUPING SETS ((), ())",
        "ROLLUP ('a', zone)",
        "zone, CUBE (zone, name)",
        "GROUPING SETS ((zone), (zone + 1))",
    ],
)
def test_grouping_sets_that_spark_reads_in_ways_of_its_own_are_the_bases(
    queried_lake: QueriedLakes, grouped: str
) -> None:
    made = queried_lake(view(sql=VIEW), filled=2)
    made.like_base(f"SELECT count(*) AS n FROM events GROUP BY {grouped}", None)
    made.like_base(f"SELECT count(*) AS n FROM events {NOTHING} GROUP BY {grouped}", None)


def test_a_constant_is_one_group_or_none(queried_lake: QueriedLakes) -> None:
    made = queried_lake(view(sql=VIEW), filled=2)
    for asked in (
        "SELECT 1 AS one, count(*) AS n FROM events {} GROUP BY 1",
        "SELECT 'a' AS a, sum(x) AS s FROM events {} GROUP BY ALL",
        "SELECT count(*) AS n FROM events {} GROUP BY 'a', 1.5",
    ):
        made.like_base(asked.format(""), "v: 2 + 0")
        made.like_base(asked.format("WHERE at >= '1970-01-01 05:30:00'"), "v: 2 + 1")
        made.like_base(asked.format(NOTHING))

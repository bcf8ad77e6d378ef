"""Grouping sets, and aggregates that follow from others: each answer is held against the base table's."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest

from mv_assets_tests.support.lake import view
from mv_assets_tests.support.queried_lake import HOURS, TYPES, QueriedLake, QueriedLakes, some

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


Days = Callable[[int], QueriedLake]


@pytest.fixture
def days(queried_lake: QueriedLakes) -> Days:
    """So many days of events that have a name as well, and the view of them, up to date."""

    def make(number: int) -> QueriedLake:
        made = queried_lake(view(sql=VIEW))
        for each in range(number):
            rows = some(each)
            names = [("a", "b", None)[at % 3] for at in range(len(rows["at"]))]
            made.put_all(f"day-{each}.parquet", {**rows, "name": names})
        made.lake.converge()
        return made

    return make


def test_grouping_sets_of_keys_are_made_of_the_parts(days: Days) -> None:
    made = days(3)
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
        "SELECT zone, count(*) AS n FROM events GROUP BY ROLLUP (zone) ORDER BY grouping(zone), zone",
        "SELECT DISTINCT count(*) > 3 AS n FROM events GROUP BY CUBE (zone, name)",
        "SELECT grouping_id(zone, name) AS g FROM events GROUP BY ROLLUP (zone, name) HAVING count(*) > 1",
        "SELECT count(*) FILTER (WHERE zone IS NULL) AS n FROM events GROUP BY ROLLUP (zone)",
        "SELECT zone, zone, count(*) AS n FROM events GROUP BY GROUPING SETS ((zone), (zone))",
    ],
)
def test_what_is_asked_of_grouping_sets(days: Days, asked: str) -> None:
    made = days(2)
    made.like_base(asked, "v: 2 + 0")


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
def test_grouping_sets_that_spark_reads_in_ways_of_its_own_are_the_bases(days: Days, grouped: str) -> None:
    made = days(2)
    made.like_base(f"SELECT count(*) AS n FROM events GROUP BY {grouped}", None)
    made.like_base(f"SELECT count(*) AS n FROM events {NOTHING} GROUP BY {grouped}", None)


def test_a_constant_is_one_group_or_none(days: Days) -> None:
    made = days(2)
    for asked in (
        "SELECT 1 AS one, count(*) AS n FROM events {} GROUP BY 1",
        "SELECT 'a' AS a, sum(x) AS s FROM events {} GROUP BY ALL",
        "SELECT count(*) AS n FROM events {} GROUP BY 'a', 1.5",
    ):
        made.like_base(asked.format(""), "v: 2 + 0")
        made.like_base(asked.format("WHERE at >= '1970-01-01 05:30:00'"), "v: 2 + 1")
        made.like_base(asked.format(NOTHING))


FOLLOWING = (
    "sum(CASE WHEN zone = 1 THEN fare END)",
    "sum(IF(zone = 1, fare, NULL)) FILTER (WHERE name = 'a')",
    "avg(CASE WHEN zone = 1 THEN fare END)",
    "count(CASE WHEN zone = 1 THEN 1 END)",
    "sum(CASE WHEN zone = 1 THEN fare ELSE 0 END)",
    "sum(IF(zone = 1, 1, 0))",
    "sum(CASE WHEN zone = 1 THEN 0 ELSE 1 END)",
    "sum(CASE WHEN zone = 1 THEN 0 ELSE fare END)",
    "sum(IF(zone > 1, 0, x)) FILTER (WHERE name = 'a')",
    "any(zone = 1) OR any(name IS NULL) FILTER (WHERE zone = 2)",
    "sum(IF(zone = 1, 3, 0)) FILTER (WHERE name IS NOT NULL) + 1",
    "sum(1) * 2.5",
    "sum(2 * x)",
    "sum(1 - x)",
    "sum(-(x + 3) * 2)",
    "sum(fare * 1.19)",
    "sum(fare + 1)",
    "sum(zone)",
    "avg(zone)",
    "stddev(x)",
    "std(x) + var_samp(x)",
    "var_pop(x)",
    "stddev_pop(x) FILTER (WHERE zone = 1)",
    "variance(fare)",
    "count(DISTINCT zone) FILTER (WHERE name = 'a')",
    "count(DISTINCT zone, name) FILTER (WHERE zone > 1)",
)


def test_aggregates_follow_from_others(days: Days) -> None:
    made = days(2)
    for asked in FOLLOWING:
        for grouped in ("", " GROUP BY name", " GROUP BY ROLLUP (name)"):
            made.like_base(f"SELECT {asked} AS a FROM events{grouped}", "v: 2 + 0")
        made.like_base(f"SELECT {asked} AS a FROM events WHERE at >= '1970-01-01 05:30:00'", "v: 2 + 1")
        made.like_base(f"SELECT {asked} AS a FROM events {NOTHING}")


def test_a_stored_aggregate_comes_before_what_it_could_be_made_of(queried_lake: QueriedLakes) -> None:
    sql = (
        "SELECT date_trunc('hour', at) AS hour, sum(2 * x) AS twice, sum(IF(zone = 1, fare, 0)) AS one "
        "FROM events GROUP BY ALL"
    )
    made = queried_lake(view(sql=sql), filled=2)
    made.like_base("SELECT sum(2 * x) AS a, sum(IF(zone = 1, fare, 0)) AS b FROM events", "v: 2 + 0")
    made.like_base("SELECT sum(3 * x) AS a FROM events", None)


def test_floating_point_is_not_made_of_other_sums(queried_lake: QueriedLakes) -> None:
    sql = (
        "SELECT date_trunc('hour', at) AS hour, sum(cast(x AS double)) AS s, count(cast(x AS double)) AS n, "
        "sum(cast(x AS double) * cast(x AS double)) AS ss FROM events GROUP BY ALL"
    )
    made = queried_lake(view(sql=sql), filled=2)
    made.like_base("SELECT sum(cast(x AS double) * 0.1) AS a FROM events", None)
    made.like_base("SELECT stddev(cast(x AS double)) AS a FROM events", None)


def test_sums_that_spark_rounds_row_by_row_are_not_made_of_other_sums(queried_lake: QueriedLakes) -> None:
    """Twice a decimal of 38 digits has fewer of them behind the point."""
    sql = "SELECT date_trunc('hour', at) AS hour, sum(w) AS w, count(w) AS n FROM events GROUP BY ALL"
    made = queried_lake(view(sql=sql))
    for number in range(2):
        rows = some(number)
        small = [Decimal("0.000000000000000003")] * len(rows["at"])
        made.put_all(f"{number}.parquet", {**rows, "w": small}, types={**TYPES, "w": pa.decimal128(38, 18)})
    made.lake.converge()
    made.like_base("SELECT sum(w) AS w FROM events", "v: 2 + 0")
    for asked in ("sum(w * 2)", "sum(w * 0.25)", "sum(1 - w)", "sum(2 * w + 1)"):
        made.like_base(f"SELECT {asked} AS w FROM events", None)


def test_a_spread_that_doubles_can_not_tell_is_the_bases(queried_lake: QueriedLakes) -> None:
    """Of numbers as close together as these, Spark's own has only a few digits, or none."""
    sql = (
        "SELECT date_trunc('hour', at) AS hour, zone, sum(x) AS s, count(x) AS n, sum(x * x) AS ss "
        "FROM events GROUP BY ALL"
    )
    made = queried_lake(view(sql=sql))
    for number in range(2):
        times = some(number, 6)["at"]
        far, close = [100_000_000 + at % 2 for at in range(6)], [at % 2 for at in range(6)]
        made.put(f"far-{number}.parquet", at=times, x=far, zone=[1] * 6)
        made.put(f"close-{number}.parquet", at=times, x=close, zone=[2] * 6)
        made.put(f"same-{number}.parquet", at=times, x=[100_000_007] * 6, zone=[3] * 6)
    made.lake.converge()
    for zone, served in ((1, None), (2, "v: 2 + 0"), (3, "v: 2 + 0")):
        made.like_base(f"SELECT stddev(x) AS s, var_pop(x) AS v FROM events WHERE zone = {zone}", served)


def test_a_query_that_other_aggregates_answered_before(queried_lake: QueriedLakes) -> None:
    """Asked again, a query is answered by another view, which has what it asks for as it is written."""
    far = "sum(CASE WHEN zone > 1 THEN fare ELSE 0 END) AS far"
    days = f"SELECT date_trunc('day', at) AS hour, {far} FROM events GROUP BY ALL"
    made = queried_lake(view("days", sql=days), view("hours", sql=HOURS))
    made.days(0, 1)
    made.lake.run("hours")
    made.like_base(f"SELECT {far} FROM events", "hours: 2 + 0")
    made.lake.run("days")
    made.like_base(f"SELECT {far} FROM events", "days: 2 + 0")


def test_sketches_of_other_kinds(queried_lake: QueriedLakes) -> None:
    sql = (
        "SELECT date_trunc('hour', at) AS hour, bitmap_bucket_number(zone) AS part, "
        "theta_sketch_agg(x) AS t, "
        "bitmap_construct_agg(bitmap_bit_position(zone)) AS b FROM events GROUP BY ALL"
    )
    made = queried_lake(view(sql=sql), filled=2)
    made.like_base("SELECT theta_sketch_estimate(theta_sketch_agg(x)) AS n FROM events", "v: 2 + 0")
    bits = "bitmap_construct_agg(bitmap_bit_position(zone))"
    counted = f"SELECT bitmap_bucket_number(zone) AS p, bitmap_count({bits}) AS n FROM events GROUP BY 1"
    made.like_base(counted, "v: 2 + 0")
    made.like_base(f"SELECT sum(n) AS n FROM ({counted})", "v: 2 + 0")
    made.like_base(f"SELECT {bits} AS b FROM events", None)
    made.lake.manager.drop("v")

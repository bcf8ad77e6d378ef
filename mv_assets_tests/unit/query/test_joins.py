"""Queries that join what a view does not, or in another spelling: groups are joined by their keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
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
SAME_ZONE = "SELECT count(*) AS n FROM events e JOIN zones z ON e.zone = z.zone"
BY_COMMA = "SELECT count(*) AS n FROM events e, zones z WHERE e.zone = z.zone"
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
        "SELECT sum(z.rank) AS r FROM events e JOIN zones z ON e.zone = z.zone",
        f"SELECT date_trunc('day', e.at) AS day, borough, avg(x) AS x FROM {HIGH} {LATER} GROUP BY ALL",
    ],
)
def test_groups_are_joined_by_their_keys(joined: QueriedLake, text: str) -> None:
    joined.right(text)
    assert joined.like_base(text).served.view == "v", text


@pytest.mark.parametrize(
    "text",
    [
        # Of values that are no keys, a join must know.
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


KEYED = [{"table": "zones", "key": "zone"}]
UNIQUE: dict[str, list[Any]] = {
    "zone": [1, 2, 4, None, None],
    "borough": ["north", None, "west", "void", "void"],
    "rank": [3, 7, 9, 1, 1],
}
BY_BOROUGH = (
    "SELECT date_trunc('day', e.at) AS day, z.borough, z.zone AS found, count(*) AS n, sum(e.x) AS x "
    "FROM events e LEFT JOIN zones z ON e.zone = z.zone GROUP BY ALL"
)
SINGLE = "SELECT e.at, e.zone, e.x, z.borough FROM events e LEFT JOIN zones z ON e.zone = z.zone"


def _lake(queried_lake: QueriedLakes, sql: str, zones: dict[str, list[Any]], **given: Any) -> QueriedLake:
    time = {"time_column": "day" if "AS day" in sql else "at"}
    made = queried_lake(view(sql=sql, **time, **{"dimensions": KEYED, **given}), dimensions=["zones"])
    made.put_all("zones.parquet", zones, "zones")
    made.days(0, 1, 2)
    made.lake.converge()
    made.day(2, "late.parquet", seed=3)
    return made


FEWER = [
    "SELECT count(*) AS n, sum(x) AS x FROM events",
    "SELECT date_trunc('month', at) AS month, sum(x) AS x FROM events GROUP BY 1",
]


@pytest.mark.parametrize("sql", [BY_BOROUGH, SINGLE])
def test_a_join_by_a_unique_key_loses_and_doubles_nothing(queried_lake: QueriedLakes, sql: str) -> None:
    made = _lake(queried_lake, sql, UNIQUE)
    for text in FEWER:
        made.right(text, "v: 2 + 1")
    # What was verified is true of other files no more; and what they are has to be seen first.
    made.put_all("more.parquet", {"zone": [1], "borough": ["south"], "rank": [5]}, "zones")
    for text in FEWER:
        made.right(text, None)
    (made.lake.folder / "zones" / "more.parquet").unlink()
    for text in FEWER:
        made.right(text, "v: 2 + 1")


@pytest.mark.parametrize("sql", [BY_BOROUGH, SINGLE])
@pytest.mark.parametrize(
    ("zones", "given"),
    [(UNIQUE, {"dimensions": ["zones"]}), (ZONES, {"dimensions": ["zones"]})],
    ids=["not declared", "doubled"],
)
def test_without_a_key_a_join_may_double_rows(
    queried_lake: QueriedLakes, sql: str, zones: dict[str, list[Any]], given: dict[str, Any]
) -> None:
    made = _lake(queried_lake, sql, zones, **given)
    for text in FEWER:
        made.right(text, None)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (BY_BOROUGH.replace("LEFT", ""), "may lose rows"),
        (BY_BOROUGH.replace("e.zone = z.zone", "e.zone < z.zone"), "by its key zone"),
        (BY_BOROUGH.replace("e.zone = z.zone", "e.zone + 1 = z.zone"), "by its key zone"),
        (BY_BOROUGH.replace("e.zone = z.zone", "e.x = z.rank"), "by its key zone"),
    ],
)
def test_a_key_says_nothing_of_other_joins(queried_lake: QueriedLakes, sql: str, why: str) -> None:
    made = _lake(queried_lake, sql, UNIQUE)
    for text in FEWER:
        made.right(text, None)
        assert why in made.why_not(text)


def test_a_key_of_texts_is_not_unique_as_numbers(queried_lake: QueriedLakes) -> None:
    """To Spark '1' and '01' are both the number 1: each row finds two."""
    made = _lake(queried_lake, BY_BOROUGH.replace("z.zone AS found, ", ""), UNIQUE)
    texts = {"zone": pa.string(), "borough": pa.string()}
    made.put_all("zones.parquet", {"zone": ["1", "01"], "borough": ["a", "b"]}, "zones", texts)
    made.lake.converge()
    for text in FEWER:
        made.like_base(text, None)
        assert "not verified" in made.why_not(text)


@pytest.mark.parametrize("zones", [UNIQUE, ZONES], ids=["unique", "doubled"])
@pytest.mark.parametrize(
    ("text", "served"),
    [
        ("SELECT borough, sum(x) AS x FROM events JOIN zones USING (zone) GROUP BY borough", "v: 2 + 1"),
        (
            "SELECT count(*) AS n FROM events e JOIN zones z ON z.zone = e.zone WHERE borough > 'a'",
            "v: 2 + 1",
        ),
        ("SELECT count(*) AS n FROM events e JOIN zones z ON z.zone = e.zone", "v: 2 + 1"),
        # The join's own equality is none that rows without a match meet.
        (f"{SAME_ZONE} WHERE z.zone IS NULL OR z.borough = 'north'", "v: 2 + 1"),
        (f"{SAME_ZONE} WHERE coalesce(z.zone, 0) <> 2", "v: 2 + 1"),
        (f"{BY_COMMA} AND (z.zone > 1 OR z.borough IS NULL)", "v: 2 + 1"),
        ("SELECT count(*) AS n FROM events e JOIN zones z ON z.zone = e.zone AND z.rank > 4", None),
    ],
)
def test_rows_that_found_no_match_are_left_out_of_a_left_join(
    queried_lake: QueriedLakes, zones: dict[str, list[Any]], text: str, served: str | None
) -> None:
    made = _lake(queried_lake, BY_BOROUGH, zones, dimensions=["zones"])
    made.right(text, served)


def test_a_view_that_can_not_tell_what_found_no_match_is_not_asked(queried_lake: QueriedLakes) -> None:
    made = _lake(queried_lake, BY_BOROUGH.replace("z.zone AS found, ", ""), UNIQUE)
    text = "SELECT count(*) AS n FROM events e JOIN zones z ON z.zone = e.zone"
    made.right(text, None)
    assert "add zones.zone" in made.why_not(text)
    made.right(
        "SELECT count(*) AS n FROM events e JOIN zones z ON z.zone = e.zone WHERE borough = 'north'",
        "v: 2 + 1",
    )


def test_an_inner_join_answers_a_left_one_that_takes_matches_only(queried_lake: QueriedLakes) -> None:
    made = _lake(queried_lake, BY_BOROUGH.replace("LEFT", ""), ZONES, dimensions=["zones"])
    left = "SELECT count(*) AS n, sum(x) AS x FROM events e LEFT JOIN zones z ON z.zone = e.zone"
    made.right(f"{left} WHERE z.borough = 'north'", "v: 2 + 1")
    made.right(f"{left} WHERE z.borough IS NULL", None)
    made.right(left, None)
    made.right(left.replace("LEFT", ""), "v: 2 + 1")


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
@pytest.mark.parametrize("on", ["e.zone = z.zone", "e.zone = z.zone AND z.rank > 4"])
def test_groups_are_kept_or_left_out_by_their_keys(joined: QueriedLake, kind: str, on: str) -> None:
    text = "SELECT e.zone, count(*) AS n, sum(e.x) AS x FROM events e LEFT {} JOIN zones z ON {} GROUP BY 1"
    duck = text.format(kind, on).replace("LEFT ", "")
    joined.right(text.format(kind, on), "v: 2 + 1", duck=duck)
    joined.right(text.format(kind, on.replace("e.zone", "e.x")), None, duck=duck.replace("e.zone =", "e.x ="))


def _with_zones(
    queried_lake: QueriedLakes, sql: str, zones: dict[str, list[Any]], **given: Any
) -> QueriedLake:
    made = queried_lake(view(sql=sql, **given), dimensions=["zones"])
    made.put_all("zones.parquet", zones, "zones")
    made.days(0, 1)
    made.lake.converge()
    return made


def test_inner_joins_say_the_same_by_on_and_by_where(queried_lake: QueriedLakes) -> None:
    inner = JOINED.replace("LEFT JOIN", "JOIN")
    inner = inner.replace("e.zone, count", "z.zone AS place, e.x AS way, e.zone, count")
    made = _with_zones(queried_lake, inner, ZONES, time_column="day", dimensions=["zones"])
    for source in (
        "events e, zones z WHERE e.zone = z.zone AND z.borough = 'north'",
        "zones z, events e WHERE z.zone = e.zone AND z.borough = 'north'",
        "zones z JOIN events e ON e.zone = z.zone AND z.borough = 'north'",
        "events e CROSS JOIN zones z WHERE (e.zone = z.zone) AND z.borough = 'north'",
        "zones z JOIN events e USING (zone) WHERE z.borough = 'north'",
        "zones z JOIN events e USING (zone) WHERE z.borough = 'north' AND z.zone = e.x",
    ):
        made.like_base(f"SELECT count(*) AS n, sum(e.x) AS s FROM {source}", "v: 2 + 0")
    made.like_base("SELECT count(*) AS n FROM zones z LEFT JOIN events e ON e.zone = z.zone", None)
    made.like_base("SELECT count(*) AS n FROM events e, zones z", None)


def test_what_an_inner_join_makes_equal_is_had_by_either_name(queried_lake: QueriedLakes) -> None:
    made = _with_zones(
        queried_lake, JOINED.replace("LEFT JOIN", "JOIN"), ZONES, time_column="day", dimensions=["zones"]
    )
    by_place = "SELECT z.zone, count(*) AS n FROM events e {} zones z ON e.zone = z.zone {} GROUP BY z.zone"
    made.right(by_place.format("JOIN", ""), "v: 2 + 0")
    made.right(by_place.format("JOIN", "WHERE z.zone > 1 OR z.zone IS NULL"), "v: 2 + 0")
    made.right(by_place.format("LEFT JOIN", ""), None)
    left = _with_zones(queried_lake, JOINED, ZONES, time_column="day", dimensions=["zones"])
    left.right(by_place.format("JOIN", "WHERE z.borough = 'north'"), None)
    assert "add zones.zone" in left.why_not(by_place.format("JOIN", "WHERE z.borough = 'north'"))


def test_what_a_view_knows_of_its_join_is_not_said_of_another(queried_lake: QueriedLakes) -> None:
    sql = (
        "SELECT e.at, e.zone, e.x FROM events e LEFT JOIN zones z ON e.zone = z.zone "
        "WHERE z.borough = 'north'"
    )
    once: dict[str, list[Any]] = {
        "zone": [1, 2, 4],
        "borough": ["north", "south", "north"],
        "rank": [3, 5, 7],
    }
    key = [{"table": "zones", "key": "zone"}]
    made = _with_zones(queried_lake, sql, once, time_column="at", dimensions=key)
    asked = "SELECT count(*) AS n FROM events e JOIN zones z ON e.{} = z.zone WHERE z.borough = 'north'"
    made.like_base(asked.format("zone"), "v: 2 + 0")
    made.like_base(asked.format("x"), None)

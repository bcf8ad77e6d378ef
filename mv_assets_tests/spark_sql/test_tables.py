from __future__ import annotations

import pytest

from mv_assets.spark_sql.scope import Source
from mv_assets_tests.spark_sql.analysed import TRIPS, ZONES, look, only, view_of, whats

CITIES = Source("cities", {"city_id": "int", "zone_id": "int", "city": "string"})
BOTH = (ZONES, CITIES)


def test_a_table_that_is_not_declared_is_named_with_the_nearest_one() -> None:
    mistakes = look("SELECT pickup_at AS hour FROM trips JOIN zonse USING (zone_id)", dimensions=[ZONES])[1]
    unknown = "zonse is neither the base trips nor a dimension"
    assert [str(mistake) for mistake in mistakes] == [
        f"sql: {unknown}; did you mean zones? Otherwise add it to `dimensions`",
        "dimensions: zones is not used by the SQL; join it there, or remove it from `dimensions`",
    ]


def test_table_names_are_case_insensitive() -> None:
    assert view_of(
        "SELECT T.pickup_at AS hour FROM TRIPS t JOIN Zones USING (zone_id)", dimensions=[ZONES]
    ).used == {
        "trips": {"pickup_at", "zone_id"},
        "zones": {"zone_id"},
    }


@pytest.mark.parametrize(
    ("relation", "sentence"),
    [
        ("parquet.`/data/x`", "names a table outside the project"),
        ("other.trips", "names a table outside the project"),
        ("spark_catalog.default.trips", "names a table outside the project"),
        ("range(10)", "is a table function"),
        ("read_files('/data/x')", "is a table function"),
        ("explode(array(1))", "is a table function"),
        ("IDENTIFIER('trips')", "is a table function"),
    ],
)
def test_what_is_not_a_plain_table_of_the_project_is_refused(relation: str, sentence: str) -> None:
    for sql in (
        f"SELECT pickup_at AS hour FROM trips CROSS JOIN {relation} AS r",
        f"WITH c AS (SELECT 1 AS x FROM {relation}) SELECT pickup_at AS hour FROM trips CROSS JOIN c",
        f"SELECT pickup_at AS hour FROM trips WHERE zone_id IN (SELECT 1 AS x FROM {relation})",
    ):
        assert any(sentence in what for what in whats(sql)), sql


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("SELECT 1 AS hour", "the base trips is not read"),
        ("SELECT a.pickup_at AS hour FROM trips a JOIN trips b USING (zone_id)", "read 2 times"),
        ("SELECT pickup_at AS hour FROM trips WHERE fare > (SELECT avg(fare) FROM trips)", "read 2 times"),
        ("SELECT hour FROM (SELECT pickup_at AS hour FROM trips)", "inside a subquery or CTE"),
        (
            "WITH t AS (SELECT pickup_at FROM trips) SELECT pickup_at AS hour FROM t",
            "inside a subquery or CTE",
        ),
        ("SELECT 1 AS hour FROM zones WHERE EXISTS (SELECT 1 FROM trips)", "inside a subquery or CTE"),
        (
            "WITH trips AS (SELECT 1 AS pickup_at) SELECT pickup_at AS hour FROM trips",
            "the base trips is not read",
        ),
    ],
)
def test_the_base_is_read_once_in_the_view_s_own_from(sql: str, sentence: str) -> None:
    assert any(sentence in what for what in whats(sql)), whats(sql)


@pytest.mark.parametrize(
    "relations",
    [
        "trips t JOIN zones z ON true",
        "trips t LEFT JOIN zones z ON true",
        "trips t CROSS JOIN zones z",
        "trips t, zones z",
        "trips t LEFT SEMI JOIN zones z ON true",
        "trips t LEFT ANTI JOIN zones z ON true",
        "zones z JOIN trips t ON true",
        "zones z, trips t",
        "zones z RIGHT JOIN trips t ON true",
        "zones z RIGHT OUTER JOIN trips t ON true LEFT JOIN cities c ON true",
        "zones z FULL JOIN cities c ON true JOIN trips t ON true",
        "zones z LEFT JOIN cities c ON true RIGHT JOIN trips t ON true",
        "trips t LEFT JOIN (zones z FULL JOIN cities c ON true) ON true",
        "(trips t JOIN zones z ON true)",
        "zones z RIGHT JOIN (trips t LEFT JOIN cities c ON true) ON true",
        "trips t JOIN LATERAL (SELECT borough FROM zones z WHERE z.zone_id = t.zone_id)",
    ],
)
def test_joins_that_keep_every_row_on_a_base_row_are_fine(relations: str) -> None:
    dimensions = [source for source in BOTH if source.name in relations]
    assert view_of(f"SELECT t.pickup_at AS hour FROM {relations}", dimensions=dimensions).columns == ("hour",)


@pytest.mark.parametrize(
    ("relations", "join"),
    [
        ("zones z LEFT JOIN trips t ON true", "LEFT JOIN t"),
        ("zones z FULL OUTER JOIN trips t ON true", "FULL OUTER JOIN t"),
        ("trips t RIGHT JOIN zones z ON true", "RIGHT JOIN z"),
        ("trips t FULL JOIN zones z ON true", "FULL JOIN z"),
        ("trips t JOIN zones z ON true RIGHT JOIN cities c ON true", "RIGHT JOIN c"),
        ("zones z RIGHT JOIN trips t ON true FULL JOIN cities c ON true", "FULL JOIN c"),
        ("zones z LEFT JOIN (trips t JOIN cities c ON true) ON true", "LEFT JOIN"),
        ("zones z JOIN (cities c LEFT JOIN trips t ON true) ON true", "LEFT JOIN t"),
    ],
)
def test_joins_that_make_rows_without_a_base_row_are_refused(relations: str, join: str) -> None:
    dimensions = [source for source in BOTH if source.name in relations]
    what = only(f"SELECT t.pickup_at AS hour FROM {relations}", dimensions=dimensions).what
    assert what == f"{join} gives rows that come from no row of trips; write FROM trips LEFT JOIN ..."


@pytest.mark.parametrize(
    "relations",
    [
        "trips JOIN zones z(a, b) ON a = 1",
        "trips JOIN zones AS z(a, b) ON a = 1",
        "trips JOIN (zones) z(a, b) ON a = 1",
        "trips JOIN (SELECT a FROM zones q(a, b)) z ON a = 1",
    ],
)
def test_columns_of_a_table_are_not_renamed_by_their_place(relations: str) -> None:
    assert only(f"SELECT pickup_at AS hour FROM {relations}").what == (
        "the columns of zones are renamed by their place, which changes when it gets another; "
        "use its own names, with AS in a SELECT"
    )


@pytest.mark.parametrize("kind", ["LEFT SEMI", "LEFT ANTI"])
def test_the_base_is_not_what_a_semi_join_tests(kind: str) -> None:
    assert any(
        f"{kind} JOIN t " in what
        for what in whats(f"SELECT 1 AS hour FROM zones {kind} JOIN trips t ON true")
    )


@pytest.mark.parametrize(
    "sql",
    [
        "WITH z AS (SELECT zone_id FROM zones) SELECT pickup_at AS hour FROM trips JOIN z USING (zone_id)",
        "WITH a AS (SELECT 1 FROM zones), b(j) AS (SELECT 1 FROM a) SELECT pickup_at AS hour FROM trips, b",
        "WITH zones AS (SELECT borough AS b FROM zones) SELECT pickup_at AS hour, b FROM trips, zones",
        "SELECT pickup_at AS hour, b FROM trips, (SELECT borough FROM zones UNION SELECT 'x') z(b)",
        "SELECT pickup_at AS hour, (SELECT count(*) FROM zones) AS n FROM trips",
        "SELECT pickup_at AS hour, v.y FROM trips, zones, VALUES (1, 2) AS v(x, y)",
        "SELECT pickup_at AS hour, z FROM trips, (SELECT rank() OVER (ORDER BY borough) AS z FROM zones)",
    ],
)
def test_ctes_and_subqueries_over_dimensions_are_fine(sql: str) -> None:
    assert set(view_of(sql, base=TRIPS).used) == {"trips", "zones"}

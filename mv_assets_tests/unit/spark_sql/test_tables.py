from __future__ import annotations

import pytest

from mv_assets.refusal import Refusal
from mv_assets.spark_sql.merge import Merging
from mv_assets.spark_sql.scope import Source
from mv_assets_tests.unit.spark_sql.analysed import ADVICE, TRIPS, ZONES, look, only, view_of, whats

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
        ("SELECT 1 AS hour FROM zones WHERE EXISTS (SELECT 1 FROM trips)", "inside an expression"),
        ("SELECT (SELECT max(pickup_at) FROM trips) AS hour FROM zones", "inside an expression"),
        ("SELECT hour FROM zones, LATERAL (SELECT pickup_at AS hour FROM trips)", "inside an expression"),
        (
            "WITH trips AS (SELECT 1 AS pickup_at) SELECT pickup_at AS hour FROM trips",
            "the base trips is not read",
        ),
    ],
)
def test_the_base_is_read_once_in_from(sql: str, sentence: str) -> None:
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
    assert what == f"{join} gives rows that come from no row of trips; write FROM trips LEFT JOIN ...{ADVICE}"


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


# The base's rows through other queries

HOUR = "date_trunc('hour', p) AS hour"
BY_HOUR = "SELECT date_trunc('hour', pickup_at) AS h, sum(fare) AS f FROM trips GROUP BY 1"


KEPT_APART = [
    (f"WITH c AS (SELECT pickup_at AS p FROM trips WHERE fare > 1) SELECT {HOUR} FROM c", "hour"),
    (
        f"WITH c(p) AS (SELECT pickup_at FROM trips) SELECT {HOUR}, count(*) AS n FROM c GROUP BY 1",
        "hour",
    ),
    (
        f"WITH a AS (SELECT pickup_at AS p FROM trips), b AS (SELECT p FROM a) SELECT {HOUR} FROM b",
        "hour",
    ),
    ("SELECT hour FROM (SELECT pickup_at AS hour FROM trips)", None),
    ("SELECT x.hour FROM (SELECT * FROM (SELECT pickup_at AS hour FROM trips) y) x", None),
    (f"SELECT {HOUR} FROM (SELECT pickup_at AS p FROM trips JOIN zones USING (zone_id)) c", "hour"),
    (f"SELECT {HOUR} FROM (SELECT borough FROM zones) z, (SELECT pickup_at AS p FROM trips) c", "hour"),
    (
        f"SELECT {HOUR}, s FROM (SELECT pickup_at AS p, s FROM trips LATERAL VIEW explode(stops) e AS s)",
        "hour",
    ),
    ("WITH trips AS (SELECT pickup_at AS hour FROM trips) SELECT hour FROM trips", None),
    (f"SELECT {HOUR} FROM (SELECT date_trunc('day', pickup_at) AS p FROM trips)", "day"),
    (f"SELECT h AS hour, max(f) AS f FROM ({BY_HOUR}) GROUP BY 1", "hour"),
    (f"SELECT {HOUR} FROM (SELECT DISTINCT pickup_at AS p, fare FROM trips)", "hour"),
    (
        (
            f"SELECT {HOUR}, s FROM (SELECT pickup_at AS p, sum(fare) OVER "
            "(PARTITION BY date_trunc('day', pickup_at)) AS s FROM trips)"
        ),
        "hour",
    ),
    ("SELECT pickup_at AS hour, 1 AS n FROM trips UNION ALL SELECT pickup_at, 2 FROM trips", None),
    (
        f"WITH c AS ({BY_HOUR}) SELECT h AS hour FROM c UNION ALL SELECT date_trunc('day', h) FROM c",
        "hour",
    ),
    (f"SELECT {HOUR} FROM (SELECT pickup_at AS p FROM trips UNION SELECT pickup_at FROM trips)", "hour"),
    (
        (
            "WITH z AS (SELECT zone_id, row_number() OVER (ORDER BY borough, zone_id) AS n FROM zones "
            "ORDER BY zone_id, n LIMIT 3) SELECT pickup_at AS hour, n FROM trips JOIN z USING (zone_id)"
        ),
        None,
    ),
]


@pytest.mark.parametrize(("sql", "grain"), KEPT_APART)
def test_rows_may_pass_queries_that_keep_buckets_apart(sql: str, grain: str | None) -> None:
    assert view_of(sql).grain == grain


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        (
            (
                "WITH c AS (SELECT zone_id, max(pickup_at) AS p FROM trips GROUP BY zone_id) "
                "SELECT p AS hour FROM c"
            ),
            (
                "the GROUP BY of a subquery or CTE makes groups that may span buckets; "
                "add date_trunc('day', pickup_at) to it"
            ),
        ),
        (
            f"SELECT {HOUR} FROM (SELECT date_trunc('month', pickup_at) AS p FROM trips GROUP BY 1)",
            "the GROUP BY of a subquery or CTE makes groups that may span buckets",
        ),
        (
            f"SELECT {HOUR} FROM (SELECT max(pickup_at) AS p FROM trips)",
            (
                "an aggregate without GROUP BY gives one row for all buckets; "
                "add GROUP BY date_trunc('day', pickup_at)"
            ),
        ),
        (
            f"SELECT {HOUR} FROM (SELECT pickup_at AS p FROM trips GROUP BY CUBE(pickup_at))",
            "GROUPING SETS, CUBE and ROLLUP",
        ),
        (
            (
                f"SELECT {HOUR} FROM (SELECT pickup_at AS p, rank() OVER (ORDER BY fare) AS r "
                f"FROM trips) WHERE r < 3"
            ),
            "the window of RANK() looks across buckets",
        ),
        (
            f"SELECT {HOUR} FROM (SELECT pickup_at AS p FROM trips ORDER BY p LIMIT 3)",
            "LIMIT keeps whichever",
        ),
        (f"SELECT {HOUR} FROM ((SELECT pickup_at AS p FROM trips) OFFSET 3)", "OFFSET keeps whichever"),
        (
            f"WITH c AS (SELECT pickup_at AS p FROM trips) SELECT {HOUR} FROM c WHERE p IN (SELECT p FROM c)",
            "2 times",
        ),
        ("WITH c AS (SELECT pickup_at AS p FROM trips) SELECT a.p AS hour FROM c a, c b", "read 2 times"),
        (
            f"SELECT {HOUR} FROM zones LEFT JOIN (SELECT pickup_at AS p FROM trips) c ON true",
            "LEFT JOIN c gives rows",
        ),
        (
            f"SELECT {HOUR} FROM (SELECT pickup_at AS p FROM trips RIGHT JOIN zones USING (zone_id))",
            "RIGHT JOIN zones gives rows that come from no row of trips",
        ),
        (
            "SELECT pickup_at AS hour FROM trips EXCEPT SELECT pickup_at FROM trips",
            "EXCEPT compares all rows",
        ),
        (
            "SELECT pickup_at AS hour FROM trips UNION ALL SELECT borough FROM zones",
            "the base trips is not read",
        ),
        ("SELECT pickup_at AS hour FROM trips UNION ALL SELECT fare FROM trips", "`fare` is another column"),
        (
            "SELECT pickup_at AS hour FROM trips UNION ALL SELECT max(pickup_at) FROM trips",
            "without GROUP BY",
        ),
        (
            f"SELECT {HOUR} FROM (SELECT pickup_at AS p FROM trips UNION ALL SELECT now() FROM trips)",
            "now reads the clock",
        ),
        (
            (
                f"SELECT {HOUR} FROM (SELECT pickup_at AS p FROM trips UNION ALL SELECT CAST(fare "
                f"AS timestamp) FROM trips)"
            ),
            "`fare` is another column",
        ),
        (
            (
                "WITH RECURSIVE c AS (SELECT pickup_at AS p FROM trips UNION ALL SELECT p FROM "
                "c) SELECT p AS hour FROM c"
            ),
            "the base trips is not read",
        ),
        (f"SELECT {HOUR} FROM (SELECT pickup_at AS p, fare AS p FROM trips)", "`fare` is another column"),
    ],
)
def test_rows_may_not_pass_queries_that_mix_buckets(sql: str, sentence: str) -> None:
    assert any(sentence in what for what in whats(sql)), whats(sql)


def test_files_are_merged_into_views_of_one_select_only() -> None:
    flat = "SELECT pickup_at AS hour, fare FROM trips"
    assert isinstance(view_of(flat).merging, Merging)
    for sql in (
        f"SELECT hour, fare FROM ({flat})",
        f"WITH c AS ({flat}) SELECT hour FROM c",
        f"{flat} UNION {flat}",
    ):
        assert view_of(sql).merging == Refusal("its rows come through a subquery, a CTE or a UNION")


@pytest.mark.parametrize(
    ("sql", "aggregates"),
    [
        ("SELECT hour FROM (SELECT pickup_at AS hour FROM trips)", False),
        (f"SELECT h AS hour FROM ({BY_HOUR})", True),
        ("SELECT pickup_at AS hour FROM trips UNION ALL SELECT pickup_at FROM trips", False),
        ("SELECT pickup_at AS hour FROM trips UNION SELECT pickup_at FROM trips", True),
        (
            (
                "SELECT pickup_at AS hour FROM trips WHERE zone_id IN (SELECT 1 UNION SELECT "
                "max(zone_id) FROM zones)"
            ),
            False,
        ),
    ],
)
def test_it_is_known_whether_rows_are_put_together_on_their_way(sql: str, aggregates: bool) -> None:  # noqa: FBT001
    assert view_of(sql).aggregates is aggregates

from __future__ import annotations

import pytest
from sqlglot import parse_one

from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Source
from mv_assets_tests.unit.spark_sql.analysed import ZONES, view_of, whats

UNKNOWN = Source("trips", time_column="pickup_at")


@pytest.mark.parametrize(
    "items",
    [
        "FARE AS f",
        "t.FARE AS f",
        "payload.a AS f",
        "PayLoad.B.C AS f",
        "t.payload.b.c AS f",
        "legs.km AS f",
        "tags.color AS f",
        "transform(stops, s -> s + zone_id) AS f",
        "transform(legs, l -> l.km) AS f",
        "aggregate(stops, 0, (sum, s) -> sum + s, total -> total * 2) AS f",
        "fare * 2 AS double_fare, double_fare + 1 AS f",
        "timestampdiff(HOUR, pickup_at, pickup_at) AS f",
        "dateadd(MONTH, 1, pickup_at) AS f",
        "extract(YEAR FROM pickup_at) AS f",
        "pickup_at + INTERVAL 1 DAY AS f",
        "CASE WHEN fare > 1 THEN 'a' ELSE borough END AS f",
        "named_struct('x', fare).x AS f",
        "fare NOT LIKE ALL ('a', 'b') AS f",
        "(SELECT max(borough) FROM zones i WHERE i.zone_id = t.zone_id) AS f",
    ],
)
def test_names_resolve_as_in_spark(items: str) -> None:
    sql = f"SELECT pickup_at AS hour, {items} FROM trips t JOIN zones z USING (zone_id)"
    assert view_of(sql, dimensions=[ZONES]).columns[-1] == "f"


@pytest.mark.parametrize(
    "tail",
    [
        "LATERAL VIEW explode(stops) e AS stop WHERE stop > 1 AND e.stop < 9",
        "LATERAL VIEW OUTER posexplode(stops) e AS place, stop WHERE place = stop",
        "LATERAL VIEW explode(legs) a AS leg LATERAL VIEW explode(stops) b AS s WHERE leg.km > s",
        "CROSS JOIN LATERAL explode(stops) AS e(stop) WHERE stop > 1",
        ", LATERAL (SELECT fare + 1 AS more) x WHERE x.more > 1",
        "GROUP BY hour HAVING count(*) > 1 ORDER BY hour",
        "GROUP BY hour, fare HAVING sum(fare) > 1",
        "WHERE zone_id IN (SELECT zone_id FROM zones WHERE borough = 'x')",
        "QUALIFY row_number() OVER (PARTITION BY hour ORDER BY fare) = 1",
        "WINDOW w AS (PARTITION BY pickup_at ORDER BY fare)",
    ],
)
def test_clauses_see_what_they_see_in_spark(tail: str) -> None:
    assert view_of(f"SELECT pickup_at AS hour FROM trips {tail}").columns == ("hour",)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        (
            "SELECT pickup_at AS hour, fara FROM trips",
            "column fara does not exist; did you mean Fare? trips has ",
        ),
        (
            "SELECT pickup_at AS hour FROM trips WHERE qqq = 1",
            "column qqq does not exist; trips has pickup_at, ",
        ),
        (
            "SELECT pickup_at AS hour, z.fare AS f FROM trips, zones z",
            "column z.fare does not exist; z has zone_id, borough",
        ),
        ("SELECT pickup_at AS hour, q.fare AS f FROM trips", "column q.fare does not exist; "),
        ("SELECT pickup_at AS hour FROM trips WHERE hour > 1", "column hour does not exist; "),
        ("SELECT f AS g, fare AS f, pickup_at AS hour FROM trips", "column f does not exist; "),
        ("SELECT pickup_at AS hour FROM trips GROUP BY 1, borouhg", "column borouhg does not exist; "),
        (
            "SELECT pickup_at AS hour FROM trips JOIN zones z ON z.zone = trips.zone_id",
            "column z.zone does not exist; ",
        ),
        (
            "SELECT pickup_at AS hour FROM trips JOIN zones USING (fare)",
            "USING (fare): zones has zone_id, borough",
        ),
        (
            "SELECT pickup_at AS hour, transform(stops, s -> s + r) AS f FROM trips",
            "column r does not exist; ",
        ),
        ("SELECT pickup_at AS hour, payload.d AS f FROM trips", "column payload has no field d, only a, b"),
        ("SELECT pickup_at AS hour, payload.b.d AS f FROM trips", "column payload has no field d, only c"),
        (
            "SELECT pickup_at AS hour, zone_id.d AS f FROM trips",
            "column zone_id is int, which has no field d",
        ),
        (
            "SELECT pickup_at AS hour, x FROM trips, (SELECT borough AS y FROM zones)",
            "column x does not exist; ",
        ),
        (
            "WITH z(b) AS (SELECT borough FROM zones) SELECT pickup_at AS hour, borough FROM trips, z",
            "column borough does",
        ),
        (
            "SELECT pickup_at AS hour FROM trips LEFT SEMI JOIN zones z ON true WHERE z.borough = 'x'",
            "column z.borough",
        ),
        (
            "SELECT pickup_at AS hour FROM trips LATERAL VIEW explode(stops) e AS s WHERE e.t = 1",
            "column e.t does not",
        ),
        (
            "SELECT pickup_at AS hour, _metadata.file_path AS f FROM trips",
            "column _metadata.file_path does not exist",
        ),
        (
            "SELECT pickup_at AS hour, zone_id FROM trips JOIN zones ON true",
            "column zone_id is ambiguous, trips, zones have it; write trips.zone_id",
        ),
    ],
)
def test_a_name_that_means_nothing_is_reported_with_what_there_is(sql: str, sentence: str) -> None:
    (what,) = whats(sql)
    assert what.startswith(sentence)


def test_an_unknown_column_is_reported_once() -> None:
    assert len(whats("SELECT pickup_at AS hour, qq + qq AS x FROM trips WHERE qq = 1 GROUP BY ALL")) == 1


def test_at_most_eight_columns_are_listed() -> None:
    wide = Source("trips", {"pickup_at": None, **{f"c{n}": None for n in range(20)}}, "pickup_at")
    assert whats("SELECT pickup_at AS hour, qqq FROM trips", base=wide) == [
        "column qqq does not exist; trips has pickup_at, c0, c1, c2, c3, c4, c5, c6 and 13 more"
    ]


def test_columns_joined_by_using_are_not_ambiguous() -> None:
    for join in ("JOIN zones USING (zone_id)", "LEFT JOIN zones USING (ZONE_ID)"):
        assert view_of(f"SELECT pickup_at AS hour, zone_id FROM trips {join}").used == {
            "trips": {"pickup_at", "zone_id"},
            "zones": {"zone_id"},
        }


def test_a_natural_join_is_refused_without_calling_its_columns_ambiguous() -> None:
    assert whats("SELECT pickup_at AS hour, zone_id FROM trips NATURAL JOIN zones") == [
        "NATURAL JOIN means another join once both tables get a column of one name; join with USING or ON"
    ]


def test_nothing_is_guessed_about_a_table_of_unknown_schema() -> None:
    items = "pickup_at AS hour, anything, t.other, payload.x.y"
    joined = "trips t JOIN zones z ON t.zone_id = z.zone_id"
    assert view_of(f"SELECT {items} FROM {joined}", base=UNKNOWN).used == {
        "trips": {"pickup_at", "anything", "other", "payload", "zone_id"},
        "zones": {"zone_id"},
    }
    assert whats("SELECT pickup_at AS hour, z.what FROM trips, zones z", base=UNKNOWN) == [
        "column z.what does not exist; z has zone_id, borough"
    ]


def test_a_name_that_two_unknown_tables_may_have_counts_for_both() -> None:
    view = view_of(
        "SELECT pickup_at AS hour, x FROM trips, zones", base=UNKNOWN, dimensions=[Source("zones")]
    )
    assert view.used == {"trips": {"pickup_at", "x"}, "zones": {"x"}}


def test_a_column_of_an_unknown_table_has_one_spelling() -> None:
    sql = "SELECT t.PICKUP_AT AS hour, sum(t.FARE) AS f FROM trips t WHERE fare > 0 GROUP BY ALL"
    assert view_of(sql, base=UNKNOWN).used == {"trips": {"pickup_at", "fare"}}


@pytest.mark.parametrize(
    ("sql", "mentioned"),
    [
        (
            "SELECT pickup_at AS hour, zone_id AS fare, fare * 2 AS f FROM trips",
            {"pickup_at", "zone_id", "fare"},
        ),
        (
            "SELECT pickup_at AS hour, 1 AS fare FROM trips GROUP BY hour HAVING max(fare) > 1 ORDER BY f",
            {"pickup_at", "hour", "fare", "f"},
        ),
        (
            "SELECT pickup_at AS hour FROM trips QUALIFY rank() OVER (PARTITION BY pickup_at ORDER BY x) = 1",
            {"pickup_at", "x"},
        ),
        (
            "SELECT pickup_at AS hour FROM trips t WHERE t.zone_id IN (SELECT 1 FROM zones WHERE x = 1)",
            {"pickup_at", "zone_id", "x"},
        ),
        ("SELECT pickup_at AS hour FROM trips JOIN zones USING (zone_id)", {"pickup_at", "zone_id"}),
    ],
)
def test_what_may_be_meant_does_not_depend_on_whether_schemas_are_known(
    sql: str, mentioned: set[str]
) -> None:
    every = dict.fromkeys(["pickup_at", "zone_id", "fare", "hour", "f", "x"])
    for base in (
        UNKNOWN,
        Source("trips", every, "pickup_at"),
        Source("trips", {"pickup_at": None}, "pickup_at"),
    ):
        for zones in (Source("zones"), Source("zones", every), ZONES):
            resolver = Resolver(base, [zones])
            resolver.query(parse_one(sql, dialect="spark"), {}, None)
            assert resolver.mentioned["trips"] == mentioned


def test_file_metadata_is_refused_even_if_the_schema_is_not_known() -> None:
    (what,) = whats("SELECT pickup_at AS hour, _metadata.file_path FROM trips", base=UNKNOWN)
    assert what.startswith("_metadata tells where rows are stored")


def test_a_column_of_unknown_type_may_have_fields() -> None:
    base = Source("trips", {"pickup_at": None, "payload": None}, "pickup_at")
    assert view_of("SELECT pickup_at AS hour, payload.anything FROM trips", base=base).columns == (
        "hour",
        "anything",
    )

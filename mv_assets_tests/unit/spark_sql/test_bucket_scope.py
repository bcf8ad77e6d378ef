"""What SQL a view may have that is meant over the rows of each bucket's windows."""

from __future__ import annotations

import pytest

from mv_assets.config.errors import Mistake
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.scope import Source
from mv_assets.views.admission import ViewSql
from mv_assets_tests.unit.spark_sql import analysed
from mv_assets_tests.unit.spark_sql.analysed import ADVICE, TRIPS

HOUR = "date_trunc('hour', pickup_at) AS hour"


def view_of(sql: str, **given: object) -> ViewSql:
    return analysed.view_of(sql, scope="bucket", **given)


def whats(sql: str, **given: object) -> list[str]:
    return analysed.whats(sql, scope="bucket", **given)


def only(sql: str, **given: object) -> str:
    (what,) = whats(sql, **given)
    return what


ANY = [
    "SELECT :bucket_start AS hour, count(*) AS n FROM trips",
    "SELECT date_trunc('day', min(pickup_at)) AS hour, max(fare) AS m FROM trips",
    (
        "WITH z AS (SELECT zone_id, sum(fare) AS f FROM trips GROUP BY 1) SELECT "
        ":bucket_start AS hour, f FROM z"
    ),
    "SELECT pickup_at AS hour FROM trips t WHERE fare > (SELECT avg(fare) FROM trips)",
    (
        "SELECT pickup_at AS hour, (SELECT max(fare) FROM trips s WHERE s.zone_id = "
        "t.zone_id) AS m FROM trips t"
    ),
    "SELECT a.pickup_at AS hour FROM trips a JOIN trips b ON a.zone_id = b.zone_id AND a.fare < b.fare",
    "SELECT pickup_at AS hour FROM trips RIGHT JOIN zones USING (zone_id)",
    (
        "SELECT coalesce(pickup_at, :bucket_start) AS hour FROM trips t FULL JOIN zones z ON "
        "t.zone_id = z.zone_id"
    ),
    "SELECT :bucket_start AS hour FROM zones LEFT ANTI JOIN trips USING (zone_id)",
    "SELECT pickup_at AS hour, lag(fare) OVER (PARTITION BY zone_id ORDER BY pickup_at) AS l FROM trips",
    (
        "SELECT pickup_at AS hour FROM trips QUALIFY row_number() OVER (PARTITION BY zone_id "
        "ORDER BY fare) = 1"
    ),
    "SELECT DISTINCT :bucket_start AS hour, zone_id FROM trips",
    "SELECT :bucket_start AS hour, zone_id, sum(fare) AS f FROM trips GROUP BY CUBE(zone_id)",
    "SELECT :bucket_start AS hour, zone_id, sum(fare) AS f FROM trips GROUP BY zone_id WITH ROLLUP",
    "SELECT :bucket_start AS hour, count(*) AS n FROM trips HAVING count(*) > 3",
    "SELECT pickup_at AS hour, s FROM trips LATERAL VIEW explode(stops) e AS s",
    (
        "SELECT pickup_at AS hour FROM trips t, LATERAL (SELECT max(km) AS m FROM rides r "
        "WHERE r.km > t.fare) l"
    ),
    "SELECT pickup_at AS hour, 1 AS n FROM trips UNION SELECT at, 2 FROM rides",
    "SELECT pickup_at AS hour FROM trips EXCEPT SELECT at FROM rides",
    (
        "(SELECT pickup_at AS hour FROM trips INTERSECT (SELECT at FROM rides)) UNION ALL "
        "(SELECT at FROM rides)"
    ),
    "SELECT pickup_at AS hour, zone_id FROM trips UNION ALL VALUES (TIMESTAMP '2024-01-01 00:00:00', 1)",
    (
        "SELECT pickup_at AS hour FROM trips WHERE pickup_at BETWEEN :bucket_start AND "
        ":bucket_end - INTERVAL 1 HOUR"
    ),
    "WITH trips AS (SELECT pickup_at AS hour, 1 AS n FROM trips) SELECT hour, n FROM trips",
    (
        "WITH a AS (SELECT zone_id FROM trips), b AS (SELECT zone_id FROM a) SELECT "
        ":bucket_end AS hour FROM a, b"
    ),
    "SELECT date_trunc('week', pickup_at) AS hour, sum(fare) AS f FROM trips GROUP BY ALL",
]


@pytest.mark.parametrize("sql", ANY)
def test_any_select_over_the_windows_rows_is_accepted(sql: str) -> None:
    found = view_of(sql)
    assert found.columns[0] == "hour"
    assert found.grain is None
    assert isinstance(found.merging, Refusal)


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("SELECT pickup_at AS hour, now() AS n FROM trips", "now reads the clock"),
        ("SELECT pickup_at AS hour FROM trips WHERE pickup_at > 'yesterday'", "'yesterday' reads the clock"),
        ("SELECT pickup_at AS hour, rand() AS r FROM trips", "rand answers differently"),
        ("WITH c AS (SELECT uuid() AS u FROM trips) SELECT pickup_at AS hour, u FROM trips, c", "uuid "),
        ("SELECT pickup_at AS hour, current_user() AS u FROM trips", "current_user answers from the session"),
        ("SELECT pickup_at AS hour FROM trips, parquet.`/x`", "names a table outside the project"),
        ("SELECT pickup_at AS hour FROM trips, range(3)", "is a table function"),
        ("SELECT pickup_at AS hour FROM trips NATURAL JOIN rides", "NATURAL JOIN"),
        ("SELECT pickup_at AS hour FROM trips TABLESAMPLE (3 ROWS)", "TABLESAMPLE"),
        ("SELECT TRANSFORM(pickup_at) USING 'cat' AS (hour) FROM trips", "runs a script"),
        ("SELECT pickup_at AS hour FROM trips VERSION AS OF 3", "time travel"),
        ("WITH a AS (DROP TABLE x) SELECT pickup_at AS hour FROM trips", "inside WITH"),
        ("SELECT pickup_at AS hour, fare * 2 FROM trips", "fare * 2 has no name"),
        ("SELECT pickup_at AS hour, fare, 1 AS FARE FROM trips", "two output columns are called fare"),
        ("SELECT pickup_at AS hour, 1 AS _mv_x FROM trips", "_mv_x starts with _mv"),
        ("SELECT pickup_at AS hour, fara FROM trips", "column fara does not exist; did you mean Fare?"),
        (
            "WITH c AS (SELECT pickup_at AS p FROM trips) SELECT pickup_at AS hour FROM c",
            "pickup_at does not exist",
        ),
        (
            "SELECT pickup_at AS hour, 1 AS n FROM trips UNION SELECT at, 2 FROM rides ORDER BY m",
            "column m does",
        ),
        ("SELECT pickup_at AS hour, 1 AS n FROM trips UNION SELECT at FROM rides", "give 2 and 1 columns"),
        ("SELECT pickup_at AS hour FROM trips UNION BY NAME SELECT at AS hour FROM rides", "BY NAME"),
        ("SELECT pickup_at AS hour FROM trips FETCH FIRST 3 ROWS ONLY", "FETCH is no word of Spark's"),
        ("SELECT pickup_at AS hour FROM trips, zones z(a, b)", "renamed by their place"),
        ("SELECT timestamp_nanos(pickup_at) AS hour FROM trips", "PySpark can't read"),
        ("SELECT pickup_at AS hour FROM trips PIVOT (sum(fare) FOR zone_id IN (1, 2))", "PIVOT"),
    ],
)
def test_what_no_view_may_have_is_refused(sql: str, sentence: str) -> None:
    base = (
        Source("trips", dict.fromkeys(TRIPS.columns or ()), "pickup_at", time_unit="ns")
        if "nanos" in sql
        else TRIPS
    )
    assert any(sentence in what for what in whats(sql, base=base)), whats(sql)


@pytest.mark.parametrize("parameter", [":start", ":Bucket_Start", "?"])
def test_another_parameter_is_refused_with_those_that_there_are(parameter: str) -> None:
    assert only(f"SELECT pickup_at AS hour FROM trips WHERE fare > {parameter}") == (
        f"{parameter} has no value when the view is computed; the parameters are :bucket_start "
        f"and :bucket_end"
    )


def test_the_time_column_is_one_of_the_outputs() -> None:
    (mistake,) = analysed.look("SELECT pickup_at AS hor FROM trips", scope="bucket")[1]
    assert mistake == Mistake(
        "time_column", "hour is not an output column; did you mean hor? the SQL gives hor"
    )


# Every declared table is read, and each column of it is known to be


def test_a_further_table_that_is_not_read_is_a_mistake() -> None:
    _, mistakes = analysed.look("SELECT pickup_at AS hour FROM trips -- rides, zones", scope="bucket")
    assert mistakes == [
        Mistake("with", "rides is not used by the SQL; join it there, or remove it from `with`"),
        Mistake("dimensions", "zones is not used by the SQL; join it there, or remove it from `dimensions`"),
    ]


def test_a_base_that_is_not_read_is_a_mistake() -> None:
    assert only("SELECT at AS hour FROM rides") == "the base trips is not read; write FROM trips"


def test_an_unknown_table_may_be_a_further_one() -> None:
    assert only("SELECT pickup_at AS hour FROM trips, others") == (
        "others is neither the base trips nor a dimension nor in `with`; add it to `dimensions` or `with`"
    )


def test_the_columns_of_all_tables_are_known_wherever_they_are_used() -> None:
    sql = """
        WITH r AS (SELECT zone_id AS z, sum(km) AS km FROM rides WHERE at >= :bucket_start GROUP BY 1)
        SELECT :bucket_start AS hour, (SELECT max(borough) FROM zones WHERE zones.zone_id = x.zone_id) AS b,
               count(*) AS n
        FROM (SELECT zone_id, tags['a'] AS a FROM trips WHERE fare > 1) x LEFT JOIN r ON r.z = x.zone_id
        GROUP BY ALL
        UNION ALL SELECT pickup_at, 'x', size(stops) FROM trips ORDER BY n
    """
    known = view_of(sql)
    unknown = view_of(sql, base=Source("trips", time_column="pickup_at"))
    for found in (known, unknown):
        assert {table: set(map(str.lower, columns)) for table, columns in found.used.items()} == {
            "trips": {"zone_id", "tags", "fare", "pickup_at", "stops"},
            "rides": {"zone_id", "km", "at"},
            "zones": {"borough", "zone_id"},
        }
        assert all(set(map(str.lower, found.used[table])) <= found.mentioned[table] for table in found.used)
    assert known.mentioned == unknown.mentioned


def test_a_table_in_any_number_of_parentheses_is_the_table() -> None:
    for depth in range(1, 4):
        table = "(" * depth + "trips" + ")" * depth
        assert view_of(f"SELECT pickup_at AS hour, fare FROM {table} t").used == {
            "trips": {"pickup_at", "Fare"}
        }


# Stars


STARS = [
    ("WITH c AS (SELECT pickup_at AS hour, fare FROM trips) SELECT * FROM c", ("hour", "fare")),
    ("SELECT * FROM (SELECT * FROM (SELECT pickup_at AS hour FROM trips))", ("hour",)),
    (
        "SELECT b.*, a.hour FROM (SELECT pickup_at AS hour FROM trips) a, VALUES (1, 2) b(x, y)",
        ("x", "y", "hour"),
    ),
    (
        "SELECT * FROM (SELECT pickup_at AS hour, stops FROM trips) LATERAL VIEW explode(stops) e AS s",
        ("hour", "stops", "s"),
    ),
    (
        (
            "SELECT * FROM (SELECT pickup_at AS hour FROM trips) a LEFT SEMI JOIN zones z ON "
            "a.hour = z.borough"
        ),
        ("hour",),
    ),
]


@pytest.mark.parametrize(("sql", "columns"), STARS)
def test_a_star_over_columns_that_are_named_is_those(sql: str, columns: tuple[str, ...]) -> None:
    assert view_of(sql).columns == columns


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM trips",
        "SELECT t.* FROM trips t",
        "SELECT hour FROM (SELECT pickup_at AS hour, * FROM trips)",
        "SELECT * FROM (SELECT pickup_at AS hour FROM trips) a JOIN zones z ON true",
        (
            "SELECT * FROM (SELECT pickup_at AS hour, zone_id FROM trips) a JOIN (SELECT zone_id "
            "FROM zones) b USING (zone_id)"
        ),
        "SELECT * EXCEPT (fare) FROM (SELECT pickup_at AS hour, fare FROM trips)",
        "SELECT pickup_at AS hour, payload.* FROM trips",
        "SELECT * FROM (SELECT pickup_at AS hour, fare * 2 FROM trips)",
    ],
)
def test_a_star_over_anything_else_is_refused(sql: str) -> None:
    assert "`*` would change the view whenever a table gets a column; name the columns" in whats(sql)


# LIMIT


LIMITED = [
    f"SELECT {HOUR}, sum(fare) AS f FROM trips GROUP BY ALL ORDER BY f DESC, hour LIMIT 3",
    f"SELECT {HOUR}, sum(fare) AS f FROM trips GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 3 OFFSET 1",
    "SELECT :bucket_start AS hour, count(*) AS n FROM trips GROUP BY zone_id ORDER BY n, zone_id LIMIT 3",
    "SELECT pickup_at AS hour, fare FROM trips ORDER BY fare, hour LIMIT 3",
    "SELECT pickup_at AS hour, fare, fare * 2 AS f FROM trips ORDER BY pickup_at, fare LIMIT 3",
    "SELECT pickup_at AS hour, fare FROM trips ORDER BY ALL LIMIT 3",
    "SELECT DISTINCT pickup_at AS hour, fare FROM trips ORDER BY fare, hour OFFSET 3",
    "SELECT :bucket_start AS hour, sum(fare) AS f FROM trips LIMIT 1",
    "SELECT pickup_at AS hour, 1 AS n FROM trips UNION ALL SELECT at, 2 FROM rides ORDER BY n, 1 LIMIT 3",
    "SELECT * FROM (SELECT pickup_at AS hour, fare FROM trips) ORDER BY fare, hour LIMIT 3",
    "SELECT :bucket_start AS hour, f FROM (SELECT fare AS f FROM trips ORDER BY fare DESC LIMIT 9)",
    "SELECT hour FROM ((SELECT pickup_at AS hour FROM trips) ORDER BY hour LIMIT 3)",
    "SELECT pickup_at AS hour FROM trips WHERE EXISTS (SELECT 1 FROM rides LIMIT 1)",
]


@pytest.mark.parametrize("sql", LIMITED)
def test_a_limit_is_fine_where_rows_that_tie_are_the_same(sql: str) -> None:
    assert view_of(sql).columns[0] == "hour"


@pytest.mark.parametrize(
    ("sql", "word", "missing"),
    [
        ("SELECT pickup_at AS hour, fare FROM trips LIMIT 3", "LIMIT", "hour, fare"),
        ("SELECT pickup_at AS hour, fare FROM trips ORDER BY hour LIMIT 3", "LIMIT", "fare"),
        ("SELECT pickup_at AS hour, fare FROM trips ORDER BY hour OFFSET 3", "OFFSET", "fare"),
        ("SELECT pickup_at AS hour, fare FROM trips ORDER BY hour, abs(fare) LIMIT 3", "LIMIT", "fare"),
        ("SELECT pickup_at AS hour, fare FROM trips SORT BY hour, fare LIMIT 3", "LIMIT", "hour, fare"),
        ("SELECT pickup_at AS hour, fare FROM trips ORDER BY 1, 7 LIMIT 3", "LIMIT", "hour, fare"),
        (f"SELECT {HOUR}, sum(fare) AS f FROM trips GROUP BY ALL ORDER BY f LIMIT 3", "LIMIT", "hour"),
        (
            (
                "SELECT :bucket_start AS hour, count(*) AS n FROM trips GROUP BY zone_id, fare ORDER "
                "BY fare LIMIT 3"
            ),
            "LIMIT",
            "zone_id",
        ),
        (
            (
                "SELECT :bucket_start AS hour, zone_id, count(*) AS n FROM trips GROUP BY "
                "CUBE(zone_id) ORDER BY 2 LIMIT 3"
            ),
            "LIMIT",
            "n",
        ),
        (
            (
                "SELECT pickup_at AS hour, row_number() OVER (ORDER BY pickup_at) AS n FROM trips "
                "ORDER BY hour LIMIT 3"
            ),
            "LIMIT",
            "n",
        ),
        (
            "SELECT pickup_at AS hour, explode(array(1, 2)) AS n FROM trips GROUP BY 1 ORDER BY hour LIMIT 3",
            "LIMIT",
            "n",
        ),
        (
            (
                "SELECT pickup_at AS hour, 1 AS n FROM trips UNION ALL SELECT at, 2 FROM rides ORDER "
                "BY n LIMIT 3"
            ),
            "LIMIT",
            "hour",
        ),
        (
            "SELECT hour FROM (SELECT pickup_at AS hour, fare FROM trips ORDER BY hour LIMIT 3)",
            "LIMIT",
            "fare",
        ),
        (
            "SELECT pickup_at AS hour, (SELECT km FROM rides ORDER BY at LIMIT 1) AS k FROM trips",
            "LIMIT",
            "km",
        ),
        (
            "SELECT hour FROM ((SELECT pickup_at AS hour, fare FROM trips) ORDER BY 1 LIMIT 3)",
            "LIMIT",
            "fare",
        ),
    ],
)
def test_a_limit_among_rows_that_tie_is_refused_with_what_would_tell_them_apart(
    sql: str, word: str, missing: str
) -> None:
    assert (
        only(sql) == f"{word} keeps whichever rows come first where they tie; add {missing} to its ORDER BY"
    )


def test_a_limit_among_columns_that_nobody_knows_is_refused() -> None:
    """The generator gives as many columns as it likes."""
    sql = "SELECT hour FROM (SELECT pickup_at AS hour, explode(tags) FROM trips ORDER BY hour LIMIT 3)"
    what = "LIMIT keeps whichever rows come first where they tie; name its columns, and order by them"
    assert only(sql) == what
    assert what in whats("SELECT hour FROM (SELECT pickup_at AS hour, * FROM trips LIMIT 3)")
    assert view_of("SELECT pickup_at AS hour FROM trips WHERE EXISTS (SELECT * FROM rides LIMIT 1)")


def test_a_group_key_that_may_be_another_column_tells_nothing_apart() -> None:
    """If the table has a column k, GROUP BY means that, and ORDER BY the output."""
    sql = "SELECT min(pickup_at) AS hour, upper(k) AS k FROM trips GROUP BY k ORDER BY k LIMIT 3"
    assert "add hour to its ORDER BY" in only(sql, base=Source("trips", time_column="pickup_at"))


# Functions that pick a row


@pytest.mark.parametrize(
    "call",
    [
        "max_by(fare, struct(pickup_at, fare))",
        "min_by(fare, (pickup_at, FARE))",
        "max_by(fare * 2, struct(pickup_at, t.fare AS f))",
        "max_by(zone_id, fare)",
        "max_by(struct(fare, pickup_at), named_struct('a', pickup_at, 'b', fare)) FILTER (WHERE fare > 1)",
        "max_by(fare, fare)",
        "any_value(zone_id)",
        "first(upper(zone_id))",
        "last_value(zone_id) IGNORE NULLS",
        "sort_array(collect_list(fare))",
        "array_sort(array_agg(fare))",
        "size(collect_set(fare))",
    ],
)
@pytest.mark.parametrize("keys", ["zone_id", "1", "ALL"])
def test_a_function_is_fine_that_gives_the_same_whichever_row_it_picks(call: str, keys: str) -> None:
    assert view_of(f"SELECT t.zone_id, :bucket_start AS hour, {call} AS x FROM trips t GROUP BY {keys}")
    hourly = f"SELECT zone_id, date_trunc('hour', pickup_at) AS hour, {call} AS x FROM trips t GROUP BY ALL"
    assert analysed.view_of(hourly)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            "max_by(fare, pickup_at)",
            "max_by picks any of the rows that tie; write max_by(x, struct(y, x)) for",
        ),
        (
            "min_by(fare, abs(fare))",
            "min_by picks any of the rows that tie; write min_by(x, struct(y, x)) for",
        ),
        ("max_by(struct(fare, stops), struct(fare, pickup_at))", "max_by picks any of the rows that tie"),
        ("max_by(fare, struct(zone_id, pickup_at), 3)", "max_by picks any of the rows that tie"),
        ("any_value(fare)", "any_value depends on the order in which rows arrive"),
        ("first(zone_id + fare)", "first depends on the order in which rows arrive"),
        ("struct(first(zone_id), first(fare))", "first depends on the order in which rows arrive"),
        (
            "collect_list(fare)",
            "collect_list depends on the order in which rows arrive; wrap it in sort_array",
        ),
        ("array_sort(collect_list(fare), (a, b) -> 0)", "collect_list depends on the order"),
        ("listagg(zone_id)", "listagg depends on the order in which rows arrive"),
        ("mode(fare)", "mode picks any of the values that tie"),
    ],
)
def test_a_function_that_may_pick_another_row_is_refused(call: str, sentence: str) -> None:
    assert only(f"SELECT zone_id, :bucket_start AS hour, {call} AS x FROM trips GROUP BY 1").startswith(
        sentence
    )


def test_what_is_rolled_up_is_no_key() -> None:
    sql = "SELECT :bucket_start AS hour, first(zone_id) AS z FROM trips GROUP BY ROLLUP(zone_id)"
    assert only(sql).startswith("first depends on the order")


def test_a_window_counts_rows_by_an_order_only() -> None:
    windowed = "SELECT pickup_at AS hour, {} OVER (PARTITION BY zone_id {}) AS x FROM trips"
    assert view_of(windowed.format("row_number()", "ORDER BY fare"))
    assert view_of(windowed.format("max_by(fare, struct(zone_id, fare))", ""))
    assert only(windowed.format("row_number()", "")).startswith(
        "the window of ROW_NUMBER() depends on the order"
    )
    assert only(windowed.format("max_by(fare, zone_id)", "")).startswith("max_by picks any")


# What is told of it


def test_approximate_values_inside_may_touch_every_column() -> None:
    approximate = "approx_percentile(fare, 0.5)"
    inside = f"WITH c AS (SELECT {approximate} AS p FROM trips) SELECT pickup_at AS hour, p FROM trips, c"
    beside = (
        f"SELECT pickup_at AS hour, 1 AS p FROM trips UNION ALL SELECT min(pickup_at), "
        f"{approximate} FROM trips"
    )
    limited = f"SELECT {HOUR}, {approximate} AS p FROM trips GROUP BY 1 ORDER BY p, hour LIMIT 3"
    starred = f"SELECT * FROM (SELECT {HOUR}, {approximate} AS p FROM trips GROUP BY 1)"
    for sql in (inside, beside, limited, starred):
        assert view_of(sql).approximate == {"hour", "p"}
    assert view_of(f"SELECT {HOUR}, {approximate} AS p FROM trips GROUP BY 1").approximate == {"p"}


@pytest.mark.parametrize(
    ("sql", "aggregates"),
    [
        ("SELECT pickup_at AS hour FROM trips", False),
        ("SELECT pickup_at AS hour FROM trips UNION ALL SELECT at FROM rides", False),
        ("SELECT pickup_at AS hour FROM trips UNION SELECT at FROM rides", True),
        ("SELECT DISTINCT pickup_at AS hour FROM trips", True),
        ("WITH c AS (SELECT max(pickup_at) AS hour FROM trips) SELECT hour FROM c", True),
    ],
)
def test_it_is_known_whether_rows_are_put_together(sql: str, aggregates: bool) -> None:  # noqa: FBT001
    assert view_of(sql).aggregates is aggregates


def test_the_lineage_goes_through_queries() -> None:
    sql = """
        WITH r AS (SELECT zone_id AS z, max(km) AS far FROM rides GROUP BY 1),
             u(a, b) AS (SELECT pickup_at, zone_id FROM trips UNION ALL SELECT at, 0 FROM rides)
        SELECT a AS hour, far + b AS x, 1 AS one, s, (SELECT max(borough) FROM zones) AS m, v.y
        FROM u JOIN r ON r.z = u.b CROSS JOIN VALUES (1) v(y) LATERAL VIEW explode(array(far)) e AS s
    """
    assert view_of(sql).lineage == {
        "hour": (("trips", "pickup_at"), ("rides", "at")),
        "x": (("rides", "km"), ("trips", "zone_id")),
        "one": (),
        "s": (("rides", "km"),),
        "m": (("zones", "borough"),),
        "y": (),
    }


def test_a_column_of_unknown_origin_has_no_lineage() -> None:
    sql = (
        "WITH RECURSIVE c(h, n) AS (SELECT pickup_at, 1 FROM trips UNION ALL SELECT h, n + 1 "
        "FROM c) SELECT h AS hour FROM c"
    )
    assert view_of(sql).lineage == {}


def test_many_queries_on_top_of_each_other_are_followed_once() -> None:
    steps = ["c0 AS (SELECT pickup_at AS h, fare AS f FROM trips)"]
    steps += [
        f"c{n} AS (SELECT h, f + f AS f FROM c{n - 1} UNION ALL SELECT h, f FROM c{n - 1})"
        for n in range(1, 40)
    ]
    sql = f"WITH {', '.join(steps)} SELECT h AS hour, f FROM c39"
    for found in (view_of(sql), analysed.view_of(sql)):
        assert found.lineage == {"hour": (("trips", "pickup_at"),), "f": (("trips", "Fare"),)}


# Functions of the project


def test_a_declared_function_is_called_in_either_scope() -> None:
    sql = "SELECT pickup_at AS hour, Channel_Of(zone_id) AS c FROM trips"
    for scope in ("table", "bucket"):
        found = analysed.view_of(sql, scope=scope, functions=["channel_of", "other"])
        assert found.calls == {"channel_of"}
    assert analysed.only(sql).what.startswith("Channel_Of is not a function of Spark")
    assert analysed.view_of("SELECT pickup_at AS hour FROM trips", functions=["other"]).calls == set()


# What `scope: table` says of it


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT date_trunc('day', pickup_at) AS hour FROM trips WHERE pickup_at < :bucket_end",
        "SELECT pickup_at AS hour FROM trips ORDER BY hour LIMIT 3",
        "SELECT pickup_at AS hour, sum(fare) OVER () AS s FROM trips",
        "SELECT a.pickup_at AS hour FROM trips a JOIN trips b USING (zone_id)",
        "SELECT session_window(pickup_at, '1 hour').start AS hour, count(*) AS n FROM trips GROUP BY ALL",
        "WITH c AS (SELECT zone_id, max(pickup_at) AS p FROM trips GROUP BY 1) SELECT p AS hour FROM c",
    ],
)
def test_a_refusal_names_the_scope_that_would_do(sql: str) -> None:
    first, *others = analysed.whats(sql)
    assert first.endswith(ADVICE)
    assert not any("scope: bucket" in what for what in others)


@pytest.mark.parametrize(
    ("sql", "bucket"),
    [
        ("SELECT pickup_at AS hour FROM trips ORDER BY fare LIMIT 3", "1d"),
        ("SELECT pickup_at AS hour, rand() AS r FROM trips", "1d"),
        ("SELECT pickup_at AS hour FROM trips WHERE fare > :x", "1d"),
        ("SELECT date_trunc('day', pickup_at) AS hour, count(*) AS n FROM trips GROUP BY 1", "1h"),
        ("SELECT date_trunc('day', pickup_at) AS hour, count(*) OVER () AS n FROM trips", "1h"),
        ("SELECT pickup_at AS hor FROM trips", "1d"),
    ],
)
def test_a_refusal_does_not_name_a_scope_that_would_not_do(sql: str, bucket: str) -> None:
    assert not any("scope: bucket" in what for what in analysed.whats(sql, bucket=bucket))

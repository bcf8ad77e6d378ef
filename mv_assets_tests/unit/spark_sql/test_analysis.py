from __future__ import annotations

import pytest

from mv_assets.spark_sql.scope import Source
from mv_assets_tests.unit.spark_sql.analysed import HOURLY, TRIPS, ZONES, look, only, view_of, whats


def test_a_good_view_is_described() -> None:
    view = view_of(HOURLY)
    assert view.columns == ("hour", "borough", "trips", "fare")
    assert view.grain == "hour"
    assert view.aggregates
    assert view.used == {
        "trips": {"pickup_at", "zone_id", "Fare"},
        "zones": {"zone_id", "borough"},
    }


@pytest.mark.parametrize(
    ("sql", "aggregates"),
    [
        ("SELECT pickup_at AS hour, fare FROM trips", False),
        ("SELECT DISTINCT pickup_at AS hour FROM trips", True),
        ("SELECT pickup_at AS hour FROM trips GROUP BY 1", True),
        ("SELECT pickup_at AS hour, sum(fare) OVER (PARTITION BY pickup_at) AS s FROM trips", False),
        ("SELECT pickup_at AS hour, (SELECT max(borough) FROM zones) AS z FROM trips", False),
        ("SELECT pickup_at AS hour, try_sum(fare) AS s FROM trips GROUP BY ALL", True),
    ],
)
def test_it_is_known_whether_a_view_aggregates(sql: str, aggregates: bool) -> None:  # noqa: FBT001
    assert view_of(sql).aggregates is aggregates


@pytest.mark.parametrize(
    "sql",
    [
        "select  Date_Trunc('hour', t.pickup_at)\nas hour, sum(t.fare) as S --\nfrom trips t group  by all;",
        "SELECT date_trunc( 'hour',t . pickup_at ) AS hour,SUM(t.fare)AS S FROM trips /* x */ t GROUP BY ALL",
    ],
)
def test_layout_comments_and_keyword_case_do_not_change_the_normalised_text(sql: str) -> None:
    plain = "SELECT date_trunc('hour', t.pickup_at) AS hour, sum(t.fare) AS S FROM trips t GROUP BY ALL"
    assert view_of(sql).sql == view_of(plain).sql


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10 AS x", "1 AS x"),
        ("1 AS x", "1L AS x"),
        ("'a  b' AS x", "'a b' AS x"),
        ("'a' AS x", "'A' AS x"),
        ("fare AS x", "fare AS X"),
        ("CAST(fare AS int) AS x", "try_cast(fare AS int) AS x"),
        (
            "listagg(fare) WITHIN GROUP (ORDER BY fare) AS x",
            "listagg(fare, ',') WITHIN GROUP (ORDER BY fare) AS x",
        ),
        ("'it''s' AS x", "'it' 's' AS x"),
        ("'it''s' AS x", "'it'/**/'s' AS x"),
        ('"a""b" AS x', '"a" "b" AS x'),
        ("'a''''b' AS x", "'a''' 'b' AS x"),
    ],
)
def test_a_change_that_may_change_rows_changes_the_normalised_text(one: str, other: str) -> None:
    texts = {view_of(f"SELECT pickup_at AS hour, {x} FROM trips GROUP BY ALL").sql for x in (one, other)}
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("one", "other"), [("'it' 's'", "'it'  /* x */\n's'"), ("'it''s'", " 'it''s' "), ("'a', 'b'", "'a','b'")]
)
def test_layout_between_texts_does_not_change_the_normalised_text(one: str, other: str) -> None:
    texts = {view_of(f"SELECT pickup_at AS hour, coalesce({x}) AS y FROM trips").sql for x in (one, other)}
    assert len(texts) == 1


def test_the_normalised_text_means_the_same_and_is_its_own_normal_form() -> None:
    sql = (
        "SELECT pickup_at AS hour, 10L + 1.5D AS date, r'\\d' AS `a b`, - -1 AS m FROM trips WHERE a.b <=> 1"
    )
    trips = Source("trips", time_column="pickup_at")
    view = view_of(sql, base=trips)
    assert view.sql.startswith("SELECT pickup_at AS hour , 10L + 1.5D AS date , r'\\d' AS `a b` , - - 1 AS m")
    assert view_of(view.sql, base=trips) == view


def test_all_mistakes_are_reported_at_once() -> None:
    sql = """
        SELECT date_trunc('week', pickup_at) AS week, rand() AS r, fara, count(*)
        FROM trips JOIN cities USING (zone_id) LIMIT 5
    """
    mistakes = look(sql, dimensions=[ZONES], time_column="week")[1]
    assert sorted((mistake.where, mistake.what.split(";")[0]) for mistake in mistakes) == [
        ("dimensions", "zones is not used by the SQL"),
        ("sql", "COUNT(*) has no name"),
        ("sql", "LIMIT keeps whichever rows come first"),
        ("sql", "an aggregate without GROUP BY gives one row for all buckets"),
        ("sql", "cities is neither the base trips nor a dimension"),
        ("sql", "rand answers differently on each run"),
        ("time_column", "week has the grain week, and a 1d bucket does not hold whole weeks"),
    ]


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("", "the SQL is empty"),
        (" ; -- nothing", "the SQL is empty"),
        ("SELECT pickup_at AS hour FROM trips; DROP TABLE trips", "several statements"),
        ("DROP TABLE trips", "not a SELECT, it starts with DROP"),
        ("INSERT INTO x SELECT 1", "not a SELECT, it starts with INSERT"),
        ("CACHE TABLE trips", "not a SELECT, it starts with CACHE"),
        ("OPTIMIZE trips ZORDER BY x", "not a SELECT, it starts with OPTIMIZE"),
        ("SET spark.x = 1", "not a SELECT, it starts with SET"),
        ("VALUES (1)", "not a SELECT, it starts with VALUES"),
        ("(SELECT pickup_at AS hour FROM trips) LIMIT 3", "in parentheses with something around it"),
        ("FROM trips |> SELECT pickup_at AS hour", "pipe syntax"),
        ("SELECT pickup_at AS hour\nFROM trips WHERE (1", "line 2, column 19, at `1`"),
        ("SELECT pickup_at AS hour FROM", "expected table name (line 1, column 26, at `FROM`)"),
        ("SELECT 'abc", "a ' at line 1, column 8 that is never closed"),
        ("SELECT `abc", "a ` at line 1, column 8 that is never closed"),
        ("SELECT pickup_at /* x", "close every comment"),
        ("SELECT pickup_at AS hour, '${env:HOME}' AS h FROM trips", "holds `${`"),
        ("SELECT pickup_at AS hour FROM trips WHERE zone_id = ${zone}", "holds `${`"),
        ("SELECT pickup_at AS hour FROM ${table}", "holds `${`"),
        ("SELECT pickup_at AS hour FROM trips -- ${spark.x}", "holds `${`"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "nested too deeply"),
        ("SELECT pickup_at AS hour, " + " + ".join(["1"] * 20000) + " AS n FROM trips", "fewer levels"),
    ],
)
def test_text_that_is_not_one_select_gets_one_sentence(sql: str, sentence: str) -> None:
    mistake = only(sql)
    assert mistake.where == "sql"
    assert sentence in mistake.what
    assert "\x1b" not in mistake.what
    assert "\n" not in mistake.what


def test_a_select_in_parentheses_is_a_select() -> None:
    assert view_of("((SELECT pickup_at AS hour FROM trips))").columns == ("hour",)


@pytest.mark.parametrize(
    ("tail", "sentence"),
    [
        ("FROM trips LIMIT 3", "LIMIT"),
        ("FROM trips LIMIT ALL", "LIMIT"),
        ("FROM trips OFFSET 3", "OFFSET"),
        ("FROM trips WHERE zone_id IN (SELECT zone_id FROM zones LIMIT 1)", "LIMIT"),
        ("FROM trips TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("FROM trips TABLESAMPLE (5 ROWS) t", "TABLESAMPLE"),
        ("FROM trips PIVOT (sum(fare) FOR zone_id IN (1, 2))", "PIVOT"),
        ("FROM trips UNPIVOT (v FOR k IN (zone_id, fare))", "PIVOT"),
        ("FROM trips WHERE zone_id = ?", "parameter"),
        ("FROM trips WHERE zone_id = :zone", "parameter"),
        ("FROM trips t NATURAL JOIN zones z", "NATURAL JOIN"),
        ("FROM trips t NATURAL LEFT JOIN zones z", "NATURAL JOIN"),
        ("FROM trips WHERE zone_id IN (SELECT 1 FROM zones a NATURAL JOIN zones b)", "NATURAL JOIN"),
        ("FROM trips VERSION AS OF 3", "time travel"),
        ("FROM trips TIMESTAMP AS OF '2024-01-01'", "time travel"),
        (", * FROM trips", "name the columns"),
        (", trips.* FROM trips", "name the columns"),
        (", struct(*) AS s FROM trips", "name the columns"),
        (", count(trips.*) AS s FROM trips GROUP BY 1", "name the columns"),
        (", count(* EXCEPT (fare)) AS s FROM trips GROUP BY 1", "name the columns"),
        (", count(*, fare) AS s FROM trips GROUP BY 1", "name the columns"),
        (", z.borough FROM trips CROSS JOIN (SELECT * FROM zones) z", "name the columns"),
        (", default.f(fare) AS x FROM trips", "qualified name"),
    ],
)
def test_a_clause_that_does_not_decompose_is_refused(tail: str, sentence: str) -> None:
    assert any(sentence in what for what in whats(f"SELECT pickup_at AS hour {tail}")), whats(
        f"SELECT pickup_at AS hour {tail}"
    )


def test_a_statement_inside_the_select_is_refused() -> None:
    assert any(
        "inside WITH" in what
        for what in whats("WITH a AS (DROP TABLE x) SELECT pickup_at AS hour FROM trips")
    )
    script = "SELECT TRANSFORM(pickup_at) USING 'cat' AS (hour) FROM trips"
    assert any("runs a script" in what for what in whats(script))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pickup_at AS hour, count(*) AS n FROM trips GROUP BY 1 HAVING count(*) > 1 ORDER BY n DESC",
        "SELECT /*+ BROADCAST(z), COALESCE(3) */ pickup_at AS hour FROM trips JOIN zones z USING (zone_id)",
        "SELECT pickup_at AS hour FROM trips t WHERE EXISTS (SELECT * FROM zones z WHERE borough = t.fare)",
        "SELECT ALL pickup_at AS hour FROM trips SORT BY fare",
        "FROM trips SELECT pickup_at AS hour",
    ],
)
def test_what_stays_inside_a_bucket_is_fine(sql: str) -> None:
    assert view_of(sql).columns[0] == "hour"


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        ("fare * 2", "fare * 2 has no name; write fare * 2 AS name"),
        ("legs[0].km", "legs[0].km has no name; write legs[0].km AS name"),
        ("CAST(fare AS int)", "CAST(fare AS INT) has no name; write CAST(fare AS INT) AS name"),
        ("fare, zone_id AS FARE", "two output columns are called fare; give one another name with AS"),
        ("fare AS _mv_fare", "_mv_fare starts with _mv, which is kept for mv_assets; rename it"),
    ],
)
def test_every_output_column_has_a_name_of_its_own(items: str, sentence: str) -> None:
    assert whats(f"SELECT pickup_at AS hour, {items} FROM trips") == [sentence]


@pytest.mark.parametrize(
    ("items", "columns"),
    [
        ("t.zone_id", ("zone_id",)),
        ("payload.b.c", ("c",)),
        ("t.payload.b.c", ("c",)),
        ("fare `Total Fare`", ("Total Fare",)),
        ("explode(tags) AS (k, v)", ("k", "v")),
    ],
)
def test_output_columns_are_named_as_spark_would(items: str, columns: tuple[str, ...]) -> None:
    assert view_of(f"SELECT pickup_at AS hour, {items} FROM trips t").columns == ("hour", *columns)


def test_sqlglot_logs_nothing(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    for sql in (
        "CACHE TABLE x y z",
        "WITH c AS (ALTER TABLE x FOO) SELECT a FROM t",
        "SELECT a:b[ FROM trips",
    ):
        assert look(sql)[0] is None
    view_of("SELECT pickup_at AS hour, get_json_object(payload.b.c, '$.x[') AS j FROM trips", base=TRIPS)
    assert not caplog.records
    assert capfd.readouterr() == ("", "")

"""Questions that views once answered otherwise than the base table; and what must not be read at all."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import parse_one

from mv_assets.config import Spark
from mv_assets.query.errors import QueryRefused
from mv_assets.query.execute.answer import Answer, Answers, Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets.spark.errors import JobFailed
from mv_assets.spark.session import Engine
from mv_assets.spark_sql.canonical import NotPlain, expanded
from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Source
from mv_assets.state.store import Store
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets_tests.support.capabilities import has_qualify
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.spark_lake import SparkLake

Make = Callable[..., SparkLake]
pytestmark = pytest.mark.slow
HOURLY = """
    SELECT date_trunc('hour', at) AS hour, zone, x, name, f, count(*) AS n, sum(b) AS b, count(b) AS bs,
           bool_and(x > 1) AS a, ok, ok > no AS more FROM events GROUP BY ALL
"""
QUALIFY = (
    "SELECT zone x, fare FROM events WHERE zone > 1 QUALIFY rank() OVER (PARTITION BY x ORDER BY at) = 1"
)
SINGLE = "SELECT at, zone, fare FROM events WHERE zone > 1"
TEXTS = """
    SELECT date_trunc('day', at) AS hour, cast(x AS string) AS xs, date_trunc('day', cast(s AS date)) AS sd,
           count(*) AS n FROM events GROUP BY ALL
"""
AS_THE_BASE = [
    "SELECT coalesce(zone, 0) AS zone, count(*) n FROM events GROUP BY zone HAVING zone IS NULL",
    "SELECT zone AS x, count(*) n FROM events GROUP BY zone HAVING max(x) > 2",
    "SELECT zone AS x, count(*) n FROM events WHERE zone > 1 GROUP BY zone HAVING max(x) > 2",
    "SELECT count(DISTINCT *) FROM events WHERE zone > 1",
    "SELECT zone, struct(*) h FROM events WHERE zone > 1",
    "SELECT count(*) FROM events WHERE zone > 1 AND hash(*) % 2 = 0",
    "SELECT count(*) FROM events WHERE concat(*) LIKE '%a%'",
    "SELECT count(*) FROM events WHERE at >= current_date() - INTERVAL 40000 DAYS AND name = 'it''s'",
    "SELECT count(*) FROM events WHERE at >= current_date() - (SELECT max(21000) FROM events)",
    "SELECT cast(f AS STRING) s, count(*) FROM events GROUP BY 1",
    "SELECT date_trunc('day', s), count(*) FROM events GROUP BY 1",
    "SELECT 1 AS one FROM events HAVING (bool_and(x > 1))",
    "SELECT hour(to_date(at)), count(*) FROM events GROUP BY 1",
    "SELECT x, count(*) FROM events WHERE (x > 1) GROUP BY x",
    "SELECT count(*) FROM events WHERE date_trunc('Q', at) = '1970-01-01'",
    "SELECT count(*) FROM events WHERE date_trunc('D', at) >= '1970-01-02'",
    "SELECT count(*) FROM events WHERE date_trunc('D', at) IS NULL",
    "SELECT trunc(at, 'W'), trunc(at, 'Y'), count(*) FROM events GROUP BY ALL",
    "SELECT count(*) FROM events WHERE ok = ok > no",
    "SELECT count(*) FROM events WHERE ok = no IS NULL",
    f"SELECT count(*) FROM events WHERE {' OR '.join(f'zone = {number}' for number in range(400))}",
    f"SELECT sum({' + '.join(['x'] * 300)}) FROM events",
]
FROM_VIEWS = [
    "SELECT zone AS z, count(*) n FROM events GROUP BY zone HAVING n > 2 AND z > 1",
    "SELECT count(*) FROM events WHERE at >= current_date() - INTERVAL 40000 DAYS AND name = 'a'",
    "SELECT date_trunc('day', date_trunc('hour', at)), count(*) FROM events GROUP BY 1",
    "SELECT upper(name), count(*) FROM events GROUP BY 1",
    "SELECT cast(x AS STRING), count(*) FROM events GROUP BY 1",
    "SELECT count(*) FROM events WHERE ok = (ok > no)",
    f"SELECT count(*) FROM events WHERE zone IN ({', '.join(map(str, range(3_000)))})",
]
NESTED = "SELECT date_trunc('hour', at) AS hour, zone, x, s, fs, name, count(*) AS n FROM events GROUP BY ALL"
OF_NESTED_VALUES = [
    "SELECT zone AS e, x, count(*) AS n FROM events e GROUP BY zone, x HAVING e.x > 5",
    "SELECT zone AS e, x, count(*) AS n FROM events e GROUP BY zone, x ORDER BY e.x DESC LIMIT 1",
    "SELECT zone, count(*) AS n FROM events AS n GROUP BY zone ORDER BY n.zone DESC LIMIT 1",
    "SELECT s AS z, count(*) AS n FROM events GROUP BY s HAVING z.f IS NULL",
    "SELECT s AS z, count(*) AS n FROM events GROUP BY s ORDER BY z.g DESC, z.f LIMIT 2",
    "SELECT s AS z, z.f IS NULL AS q, count(*) AS n FROM events GROUP BY s",
    "SELECT zone, count(* EXCEPT (s)) FROM events GROUP BY zone",
    "SELECT x, count(*, zone) FROM events GROUP BY x",
    "SELECT cast(fs AS STRING), count(*) FROM events GROUP BY 1",
    "SELECT count(*) FROM events WHERE x < 20 AND +name = '1'",
]
OF_A_WIDER_TYPE = [
    "SELECT cast(x AS STRING) s, count(*) FROM events GROUP BY 1",
    "SELECT count(*) FROM events WHERE cast(x AS STRING) = '1'",
    "SELECT concat(x, 'k'), count(*) FROM events GROUP BY 1",
    "SELECT x, count(*) FROM events WHERE at < '1970-01-03' GROUP BY x",
]


@pytest.fixture
def unchecked(tmp_path: Path, engine: Engine) -> Iterator[Make]:
    """Lakes whose views DuckDB would compute otherwise, as it knows one type a column and no wrapping."""
    opened = Store(f"sqlite:///{tmp_path}/state.db")
    yield lambda *views, **options: SparkLake(
        tmp_path / "lake", opened, views, **{"engine": engine, **options}
    )
    opened.close()


def write(lake: SparkLake, number: int, kind: pa.DataType | None = None) -> None:
    chance, count = random.Random(number), 40
    rows: dict[str, Any] = {
        "at": pa.array([day(number, chance.random() * 24) for _ in range(count)], pa.timestamp("us", "UTC")),
        "zone": pa.array([chance.choice([None, 1, 2, 3]) for _ in range(count)], pa.int32()),
        "fare": pa.array([Decimal(chance.randrange(1000)) / 100 for _ in range(count)], pa.decimal128(10, 2)),
        "x": pa.array([chance.randrange(4) for _ in range(count)], kind or pa.int32()),
        "b": pa.array([1 << 62 for _ in range(count)], pa.int64()),
        "name": [chance.choice(["its", "it's", "a"]) for _ in range(count)],
        "f": [chance.choice([0.0, -0.0, 1.5]) for _ in range(count)],
        "ok": [chance.choice([True, False]) for _ in range(count)],
        "no": [chance.choice([True, False, None]) for _ in range(count)],
        "t": pa.array([chance.choice([None, day(number)]) for _ in range(count)], pa.timestamp("us", "UTC")),
        "s": [chance.choice(["1970-01-02 00:30:00+05:00", "1970-01-03"]) for _ in range(count)],
    }
    pq.write_table(pa.table(rows), lake.folder / "events" / f"day-{number}.parquet")


def filled(spark_lake: Make, *views: str) -> SparkLake:
    named = {"hourly": HOURLY.replace("sum(b) AS b, count(b) AS bs,", ""), "texts": TEXTS}
    declared = [view(name, sql=named[name]) for name in views if name in named]
    if "single" in views:
        declared.append(view("single", sql=SINGLE, time_column="at"))
    lake = spark_lake(*declared)
    for number in range(3):
        write(lake, number)
    lake.run()
    return lake


def asked(lake: SparkLake, text: str) -> Answer:
    """The answer, which must be the base table's."""
    answers = Answers(lake.open())
    found, base = answers.answer(Question(text)), answers.answer(Question(text, Freshness.OFF))
    mine, theirs = found.frame.toArrow(), base.frame.toArrow()
    assert sorted(map(str, mine.to_pylist())) == sorted(map(str, theirs.to_pylist())), text
    assert (mine.schema.names, mine.schema.types) == (theirs.schema.names, theirs.schema.types), text
    return found


def test_what_two_readers_of_sql_read_otherwise_is_as_the_base_says(spark_lake: Make) -> None:
    lake = filled(spark_lake, "hourly", "single", "texts")
    for text in AS_THE_BASE:
        asked(lake, text)
    for text in FROM_VIEWS:
        assert asked(lake, text).served.views, text


def test_what_qualifies_is_as_the_base_says(spark_lake: Make, engine: Engine) -> None:
    with engine.session() as spark:
        if not has_qualify(spark):
            pytest.skip("this Spark has no QUALIFY")
    asked(filled(spark_lake, "single"), QUALIFY)


@pytest.mark.parametrize(
    "window", ["window(at, '2 hours', '1 hour')", "session_window(at, '5 minutes')", "window(t, '1 hour')"]
)
def test_windows_of_time_repeat_rows_and_leave_some_out(unchecked: Make, window: str) -> None:
    sql = f"SELECT date_trunc('day', at) AS hour, {window} AS w, sum(x) AS x, count(*) AS n FROM events"
    lake = unchecked(
        view(sql=f"{sql} GROUP BY ALL"),
        view("hidden", sql=sql.replace(f"{window} AS w, ", "") + f" GROUP BY 1, {window}"),
        view("single", time_column="at", sql=f"SELECT at, x, {window} AS w FROM events"),
    )
    for number in range(2):
        write(lake, number)
    lake.run()
    for text in ("sum(x), count(*) FROM events", "x FROM events WHERE x > 1"):
        assert not asked(lake, f"SELECT {text}").served.views


def test_a_wider_type_in_a_later_file_is_the_type_of_all(unchecked: Make) -> None:
    lake = filled(unchecked, "hourly", "texts")
    write(lake, 5, pa.float64())
    for text in OF_A_WIDER_TYPE:
        asked(lake, text)
    lake.run()
    for text in OF_A_WIDER_TYPE:
        asked(lake, text)


@pytest.mark.parametrize("inside", ["(TABLE secret)", "(table `secret`)", "(1 + (TABLE events))"])
def test_a_table_is_not_read_by_a_word_that_looks_like_a_column(spark_lake: Make, inside: str) -> None:
    lake = filled(spark_lake, "hourly")
    with pytest.raises(QueryRefused):
        Answers(lake.open()).answer(Question(f"SELECT {inside} AS s, count(*) FROM events"))


def test_a_refresh_leaves_no_names_for_queries_to_find(spark_lake: Make) -> None:
    lake = filled(spark_lake, "hourly", "single")
    with lake.engine.session() as spark:
        assert [table.name for table in spark.catalog.listTables()] == []


def test_without_ansi_means_of_integers_are_the_bases(unchecked: Make, engine: Engine) -> None:
    conf = {**engine.declared.conf, "spark.sql.ansi.enabled": "false"}
    declared = Spark(master=engine.declared.master, remote=engine.declared.remote, conf=conf)
    wrapping = Engine(declared, lambda _: engine.shared())
    lake = unchecked(view("hourly", sql=HOURLY), engine=wrapping)
    for number in range(3):
        write(lake, number)
    lake.run()
    assert asked(lake, "SELECT zone, avg(b) FROM events GROUP BY zone").served.views == ()
    assert asked(lake, "SELECT zone, sum(b) FROM events GROUP BY zone").served.views


def put(lake: SparkLake, file: str, number: int, table: str = "events", **columns: Any) -> None:
    """A file of rows of one day, an hour apart."""
    count = len(next(iter(columns.values())))
    times = pa.array([day(number, hour % 24) for hour in range(count)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": times, **columns}), lake.folder / table / f"{file}.parquet")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT at AS hour, explode(tags) AS tag, zone FROM events",
        "SELECT at AS hour, stack(2, zone, zone + 1) AS z, zone FROM events",
        "SELECT at AS hour, explode(array(1, 2)) AS e, count(*) AS n FROM events GROUP BY at",
    ],
)
def test_a_view_that_makes_several_rows_of_one_is_not_taken_for_the_base(unchecked: Make, sql: str) -> None:
    lake = unchecked(view(sql=sql))
    for number in range(3):
        put(lake, f"{number}", number, zone=[1, 2, 3], tags=[["a", "b"], ["c"], ["d", "e", "f"]])
    lake.run()
    text = "SELECT count(*) FROM events"
    assert asked(lake, text).served.views == ()
    said = Answers(lake.open()).explain(Question(text)).considered
    assert said == {"v": "it makes several rows of one; it can be asked by its own name"}


def test_a_name_that_unpivot_gives_to_other_values_limits_no_files(spark_lake: Make) -> None:
    lake = spark_lake(
        view(sql="SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY ALL")
    )
    for number in range(4):
        put(lake, f"{number}", number, later=pa.array([day(7)] * 3, pa.timestamp("us", "UTC")))
    unpivoted = "SELECT which, at FROM events UNPIVOT (at FOR which IN (at, later))"
    query = "SELECT which, count(*) AS n FROM {} WHERE at >= '1970-01-03' GROUP BY which"
    plain, wrapped = (
        sorted(map(tuple, asked(lake, query.format(source)).frame.collect()))
        for source in (unpivoted.partition("FROM ")[2], f"({unpivoted})")
    )
    assert plain == wrapped == [("at", 6), ("later", 12)]


def test_texts_in_a_join_are_disagreed_on_by_case(spark_lake: Make) -> None:
    joined = "FROM events e LEFT JOIN zones z ON e.zone = z.zone AND z.kind = '{}'"
    hours = "SELECT date_trunc('hour', e.at) AS hour, z.kind, count(*) AS n {} GROUP BY ALL"
    lake = spark_lake(view(sql=hours.format(joined.format("A")), dimensions=["zones"]), dimensions=["zones"])
    for number in range(2):
        put(lake, f"{number}", number, zone=[1, 2, 3])
    zones = {"zone": [1, 1, 2], "kind": ["a", "A", "a"]}
    pq.write_table(pa.table(zones), lake.folder / "zones" / "zones.parquet")
    lake.run()
    query = "SELECT z.kind, count(*) AS n {} GROUP BY z.kind"
    assert asked(lake, query.format(joined.format("A"))).served.views
    assert asked(lake, query.format(joined.format("a"))).served.views == ()


def test_what_was_rounded_to_a_narrower_type_is_computed_anew(unchecked: Make) -> None:
    sql = """
        SELECT date_trunc('hour', at) AS hour, round(f, 1) AS tenth, count(*) AS n, sum(fare) AS fare,
               sum(fare / zone) AS shares FROM events GROUP BY ALL
    """
    lake = unchecked(view(sql=sql))
    fares = [Decimal("1.10")] * 3
    narrow = {"f": pa.array([0.1] * 3, pa.float32()), "fare": pa.array(fares, pa.decimal128(10, 2))}
    wide = {"f": pa.array([0.1] * 3, pa.float64()), "fare": pa.array(fares, pa.decimal128(12, 4))}
    for number in range(2):
        put(lake, f"{number}", number, zone=[3, 7, 9], **narrow)
    lake.run()
    put(lake, "2", 2, zone=[3, 7, 9], **wide)
    for _ in range(2):
        asked(lake, "SELECT round(f, 1) AS tenth, count(*) AS n FROM events GROUP BY 1")
        asked(lake, "SELECT sum(fare / zone) AS shares FROM events")
        assert asked(lake, "SELECT sum(fare) AS fare FROM events").served.views
        lake.run()


def test_means_of_decimals_are_rounded_as_spark_rounds_them(spark_lake: Make) -> None:
    """Spark averages decimals of few digits as doubles: a tie comes out below or above the middle."""
    sql = "SELECT at AS hour, sum(fare) AS fare, count(fare) AS fares FROM events GROUP BY ALL"
    lake = spark_lake(view(sql=sql))
    fares = [Decimal("14003.24"), *[Decimal("0.00")] * 639]
    put(lake, "0", 0, fare=pa.array(fares[:400], pa.decimal128(10, 2)))
    put(lake, "1", 1, fare=pa.array(fares[400:], pa.decimal128(10, 2)))
    lake.run()
    answer = asked(lake, "SELECT avg(fare) AS mean FROM events")
    assert answer.served.views
    assert answer.frame.collect()[0].mean == Decimal("21.880062")


def test_collated_strings_that_are_one_key_are_disagreed_on_by_single_rows(unchecked: Make) -> None:
    lake = unchecked(
        view(sql="SELECT date_trunc('day', at) AS hour, s, count(*) AS n FROM events GROUP BY ALL")
    )
    collated = {"name": "s", "type": "string", "metadata": {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}}
    said = json.dumps({"type": "struct", "fields": [collated]})
    for number in range(2):
        put(lake, f"{number}", number, s=["x", "X", "y"])
        path = lake.folder / "events" / f"{number}.parquet"
        rows = pq.read_table(path).replace_schema_metadata(
            {"org.apache.spark.sql.parquet.row.metadata": said}
        )
        pq.write_table(rows, path)
    lake.run()
    answer = asked(lake, "SELECT lower(max(s)) AS s, count(*) AS n FROM events GROUP BY s")
    assert answer.served.views
    assert sorted(map(tuple, answer.frame.collect())) == [("x", 4), ("y", 2)]
    answer = asked(lake, "SELECT cast(s AS BINARY) AS s, count(*) AS n FROM events GROUP BY 1")
    assert "a collated string" in str(answer.served.considered["v"])


def test_names_and_signs_mean_what_they_mean_to_spark(unchecked: Make) -> None:
    lake = unchecked(view(sql=NESTED))
    structs = [{"f": 1, "g": 1}, {"f": None, "g": 5}, None, {"f": 2, "g": 0}, {"f": None, "g": 0}]
    for number in range(3):
        put(
            lake,
            f"{number}",
            number,
            zone=pa.array([1, 7, 8, None, 2], pa.int32()),
            x=[10, 3, 2, 1, 20],
            s=pa.array(structs, pa.struct([("f", pa.int32()), ("g", pa.int32())])),
            fs=[[0.0], [-0.0], [1.0], None, [2.0]],
            name=["1", "01", "1.0", "10", "2020-1-5"],
        )
    lake.run()
    for text in OF_NESTED_VALUES:
        asked(lake, text)
    days = (datetime.now(UTC) - day(1)).days
    asked(lake, f"SELECT count(*) FROM events WHERE at >= current_date() - INTERVAL {days} DAYS 2 HOURS")
    with pytest.raises(JobFailed):
        asked(lake, "SELECT to_date(name, 'yyyy-MM-dd'), count(*) FROM events WHERE zone = 2 GROUP BY 1")
    assert asked(
        lake, "SELECT s AS z, count(*) AS n FROM events e GROUP BY e.s HAVING z IS NULL"
    ).served.views


def test_columns_come_before_functions_without_parentheses(unchecked: Make) -> None:
    hours = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY date_trunc('hour', at)"
    lake = unchecked(view(sql=hours))
    for number in range(3):
        columns: dict[str, Any] = {"current_date": [date(2020, 1, 1)] * 3, "all": [1, 2, 2]}
        put(lake, f"{number}", number, current_user=["me"] * 3, **columns)
    lake.run()
    for text, rows in (
        ("count(*) FROM events WHERE current_date = date'2020-01-01'", [(9,)]),
        ("current_date, count(*) FROM events GROUP BY 1", [(date(2020, 1, 1), 9)]),
        ("max(current_user) FROM events", [("me",)]),
        ("count(*) FROM events GROUP BY all ORDER BY 1", [(3,), (6,)]),
    ):
        assert list(map(tuple, asked(lake, f"SELECT {text}").frame.collect())) == rows
    assert asked(lake, "SELECT count(*) FROM events WHERE at < '1970-01-02'").served.views


def test_types_that_are_written_otherwise_than_they_are_read_are_not_matched() -> None:
    select = parse_one("SELECT CAST(at AS TIME), CAST(at AS DATE) FROM events", dialect="spark")
    resolver = Resolver(Source("events", {"at": "timestamp"}, "at"), [])
    resolver.query(select, {}, None)
    with pytest.raises(NotPlain):
        expanded(select.expressions[0], resolver.meaning)
    assert expanded(select.expressions[1], resolver.meaning).sql("spark") == "CAST(`events`.`at` AS DATE)"


def test_a_column_that_one_of_many_files_has_is_found(
    unchecked: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More files than are looked into for a query whose columns are all known."""
    hours = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, sum(x) AS x FROM events GROUP BY ALL"
    lake = unchecked(view(sql=hours))
    for number in range(60):
        rare: dict[str, Any] = {"rare": [7, 8, 9]} if number == 17 else {}
        put(lake, f"{number:02}", number, x=[1, 2, 3], **rare)
    lake.run()
    for text, rows in (
        ("max(rare), count(rare), count(*) FROM events", [(9, 3, 180)]),
        ("count(*) FROM events WHERE rare > 7", [(2,)]),
        ("max(rare) FROM events WHERE at >= '1970-02-01'", [(None,)]),
        ("a.rare FROM events a JOIN events b ON a.rare = b.rare ORDER BY 1", [(7,), (8,), (9,)]),
    ):
        assert list(map(tuple, asked(lake, f"SELECT {text}").frame.collect())) == rows
    searches: list[bool] = []
    columns = ParquetFiles.columns

    def counted(
        table: ParquetFiles, *wanted: frozenset[str], everywhere: bool = False
    ) -> dict[str, str] | None:
        searches.append(everywhere)
        return columns(table, *wanted, everywhere=everywhere)

    monkeypatch.setattr(ParquetFiles, "columns", counted)
    with pytest.raises(JobFailed, match="rarest"):
        asked(lake, "SELECT rarest FROM events")
    assert searches.count(True) == 1

"""Which views fit a question, and that what they give is what the base table would."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mv_assets
from mv_assets.buckets import DAY
from mv_assets.query.errors import QueryRefused
from mv_assets.query.execute.answer import Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets.spark.errors import JobFailed
from mv_assets.state.model import State
from mv_assets_tests.support.lake import EPOCH, day, view
from mv_assets_tests.support.queried_lake import (
    COUNT,
    DAILY,
    HOURS,
    TYPES,
    QueriedLakes,
    rows_in,
    rows_of,
    some,
)

pytestmark = pytest.mark.slow
OFF = Freshness.OFF


def test_a_views_own_conditions_must_be_among_the_questions(queried_lake: QueriedLakes) -> None:
    near = HOURS.replace("FROM events", "FROM events WHERE zone = 1 AND x < 50")
    late = HOURS.replace("FROM events", "FROM events WHERE at >= '1970-01-02 10:30:00'")
    made = queried_lake(view(sql=near), view("late", sql=late), filled=3)
    made.right(f"{COUNT} WHERE x < 50 AND zone = 1", "v: 3 + 0")
    made.right(
        "SELECT sum(fare) AS s FROM events e WHERE (e.Zone = 1) AND (e.x < 50 AND at < '1970-01-03')",
        "v: 2 + 0",
    )
    for other in (
        "zone = 1 AND x < 49",
        "zone = 1 OR x < 50",
        "zone = 2 AND x < 50",
        "NOT (zone = 1 AND x < 50)",
    ):
        assert made.right(f"{COUNT} WHERE {other}").served.view != "v"
    # Its condition on the time is a range: before it, the base.
    made.right(COUNT, "late: 2 + 2")
    made.right(f"{COUNT} WHERE at >= '1970-01-03'", "late: 1 + 0")
    made.right(f"{COUNT} WHERE at < '1970-01-02'", None)


def test_single_rows_answer_whatever_their_columns_cover(queried_lake: QueriedLakes) -> None:
    made = queried_lake(
        view(sql="SELECT at, zone AS place, fare, x FROM events WHERE zone > 1", time_column="at"), filled=3
    )
    for text in (
        "SELECT * FROM events WHERE zone > 1",
        "SELECT median(x) AS m, count(*) AS n FROM events WHERE zone > 1 AND x IS NOT NULL",
        "SELECT zone, fare FROM events WHERE zone > 1 ORDER BY fare DESC NULLS LAST, zone, x LIMIT 3",
        "SELECT count(*) AS n FROM events WHERE zone > 1",
        "SELECT x + 1 AS y, upper(concat('a', zone)) AS z FROM events WHERE zone > 1 AND fare * 2 > 50",
        "SELECT DISTINCT zone, x % 3 AS r FROM events WHERE zone > 1",
        "SELECT zone, x, rank() OVER (PARTITION BY zone ORDER BY x) AS r FROM events WHERE zone > 1",
    ):
        made.right(text)
        assert made.ask(text).served.view in ("v", None if "OVER" in text else "v")
    made.right(
        "SELECT zone, fare FROM events WHERE zone > 1 AND at >= '1970-01-02 12:00:00.000001'", "v: 2 + 1"
    )
    made.right("SELECT zone FROM events", None)


def test_averages_need_the_count_of_the_same_values(queried_lake: QueriedLakes) -> None:
    lacking = HOURS.replace("count(fare)", "max(fare)").replace("min(x)", "max(x)")
    made = queried_lake(view(sql=lacking), filled=2)
    made.right("SELECT avg(fare) AS a FROM events", None)
    made.right(
        "SELECT avg(x) AS a, mean(x) AS b FROM events", "v: 2 + 0", duck="SELECT avg(x), avg(x) FROM events"
    )
    made.right("SELECT count(fare) AS a FROM events", None)
    made.right("SELECT min(x) AS a FROM events", None)
    made.right("SELECT median(x) AS a, stddev(x) AS b FROM events", None)
    made.right("SELECT sum(DISTINCT x) AS a, sum(x + 0) AS b FROM events", None)


def test_sketches_are_united(queried_lake: QueriedLakes) -> None:
    sketches = (
        "SELECT date_trunc('hour', at) AS hour, zone, hll_sketch_agg(x) AS seen FROM events GROUP BY ALL"
    )
    made = queried_lake(view(sql=sketches), filled=3)
    made.like_base(
        "SELECT zone, hll_sketch_estimate(hll_sketch_agg(x)) AS seen FROM events GROUP BY zone", "v: 3 + 0"
    )
    made.like_base(
        "SELECT hll_sketch_estimate(hll_sketch_agg(x)) FROM events WHERE at >= '1970-01-02 00:30:00'",
        "v: 2 + 1",
    )
    made.like_base("SELECT hll_sketch_estimate(hll_sketch_agg(x)) AS seen FROM events WHERE zone = 99")
    made.like_base("SELECT hll_sketch_estimate(hll_sketch_agg(x, 10)) AS seen FROM events", None)
    made.lake.manager.drop("v")


def _counting(sql: str) -> str:
    """For DuckDB, whose count_if is another."""
    return sql.replace("count_if(ok)", "count(*) FILTER (WHERE ok)").replace("', at)", '\', "at")')


def test_bools_and_cases_are_answered_by_what_the_view_keeps(queried_lake: QueriedLakes) -> None:
    bools = (
        "SELECT date_trunc('hour', at) AS hour, bool_and(ok) AS every, bool_or(ok) AS any_ok, "
        "sum(CASE WHEN name = 'a' THEN x ELSE 0 END) AS a, count_if(ok) AS oks, sum(f) AS f, count(f) AS fs "
        "FROM events GROUP BY ALL"
    )
    made = queried_lake(view(sql=bools), oracle={"v": _counting(bools)})
    for number in range(3):
        made.put(
            f"{number}.parquet",
            at=[day(number, hour) for hour in range(24)],
            ok=[[True, False, None][(hour + number) % 3] for hour in range(24)],
            name=[["a", "b", None][hour % 3] for hour in range(24)],
            x=list(range(24)),
            f=[0.1 * hour if hour % 5 else None for hour in range(24)],
        )  # fmt: skip
    made.lake.clock.now += DAY
    made.lake.converge()
    spread = made.lake.states(0, 1)
    assert spread == "VV"
    kept = "bool_and(ok) AS e, bool_or(ok) AS s, count_if(ok) AS c, avg(f) AS f, sum(f) AS g"
    by_hour = f"SELECT hour(at) AS h, {kept} FROM events GROUP BY h"
    made.right(by_hour, "v: 2 + 1", duck=_counting(by_hour).replace("hour(at)", 'hour("at")'))
    made.right(
        "SELECT sum(CASE WHEN events.name = 'a' THEN X ELSE 0 END), count(*) FILTER (WHERE ok) FROM events",
        "v: 2 + 1",
    )
    made.right("SELECT sum(CASE WHEN name = 'b' THEN x ELSE 0 END) AS a FROM events", None)
    made.right("SELECT sum(CASE WHEN name = 'A' THEN x ELSE 0 END) AS a FROM events", None)


def test_doubled_quotes_mean_what_spark_says(queried_lake: QueriedLakes) -> None:
    made = queried_lake(
        view(sql="SELECT date_trunc('hour', at) AS hour, name, count(*) AS n FROM events GROUP BY ALL")
    )
    names = ["its", "it's", "it's", None]
    made.put("0.parquet", at=[*(day(0, hour) for hour in range(3)), day(0, 24 - 1 / 3_600_000)], name=names)
    made.lake.converge()
    made.right(f"{COUNT} WHERE name = 'its'", "v: 1 + 0")
    made.like_base(f"{COUNT} WHERE name = 'it''s'")
    made.like_base(f"{COUNT} WHERE name = 'it' 's'")
    made.like_base(f"{COUNT} WHERE name = \"it's\" OR name = 'it\\'s'")
    made.like_base("SELECT concat(name, 'it''s') AS c, count(*) AS n FROM events GROUP BY c")


def test_decimals_keep_their_digits(queried_lake: QueriedLakes) -> None:
    amounts = ", ".join(f"sum({c}) AS s{c}, count({c}) AS c{c}, max({c}) AS m{c}" for c in "abc")
    made = queried_lake(
        view(sql=f"SELECT date_trunc('hour', at) AS hour, {amounts} FROM events GROUP BY ALL")
    )
    types = TYPES | {"a": pa.decimal128(5, 2), "b": pa.decimal128(20, 7), "c": pa.decimal128(38, 10)}
    for number in range(3):
        parts = [10**30 * (seven * 13 + number) // 7 for seven in range(1, 8)]
        made.put(
            f"{number}.parquet", types=types,
            at=[day(number, hour) for hour in (0, 1, 2, 3, 4, 5, 23.9999)],
            a=[Decimal(part // 10**28).scaleb(-2) for part in parts],
            b=[Decimal(part // 10**13).scaleb(-7) for part in parts],
            c=[Decimal(part // 10**5).scaleb(-10) for part in parts],
        )  # fmt: skip
    made.lake.converge()
    for column, served in (("a", "v: 2 + 1"), ("b", "v: 2 + 1"), ("c", None)):
        made.like_base(f"SELECT avg({column}) AS a FROM events", served)
        made.right(
            f"SELECT sum({column}) AS s, max({column}) AS m FROM events WHERE at < '1970-01-03'", "v: 2 + 0"
        )
        made.like_base(
            f"SELECT hour(at), sum({column}) / count({column}), sum({column}) * 2 FROM events GROUP BY 1",
            "v: 2 + 1",
        )
    made.like_base("SELECT avg(a) AS a, avg(b) AS b FROM events WHERE at >= '1970-01-01 00:30:00'")


def test_sums_that_overflow_raise_what_the_base_raises(queried_lake: QueriedLakes) -> None:
    made = queried_lake(view(sql=HOURS))
    made.put("0.parquet", at=[day(0, 0)], zone=[1], fare=[Decimal(1)], x=[1 << 62])
    made.put("1.parquet", at=[day(1, 0)], zone=[1], fare=[Decimal(1)], x=[1 << 62])
    made.put("2.parquet", at=[day(2, 0), day(3, 0)], zone=[1, 1], fare=[None, None], x=[-5, None])
    made.lake.converge()
    assert made.lake.states(0, 1, 2) == "VVV"
    said = []
    for freshness in (Freshness.STRICT, OFF):
        with pytest.raises(JobFailed) as raised:
            made.ask("SELECT sum(x) AS x FROM events WHERE at < '1970-01-03'", freshness)
        said.append(str(raised.value))
    assert "OVERFLOW" in said[0]
    assert said[0] == said[1]
    made.right("SELECT avg(x) AS x FROM events WHERE at < '1970-01-03'")
    made.right("SELECT sum(x) AS x FROM events WHERE at >= '1970-01-02' AND at < '1970-01-04'", "v: 2 + 0")


@pytest.mark.parametrize("kind", ["date", "timestamp_ntz", "s", "ms"])
def test_the_bases_time_may_be_of_any_kind(queried_lake: QueriedLakes, kind: str) -> None:
    counted = {"s": 1, "ms": 1_000}.get(kind)
    types = {
        "t": pa.date32() if kind == "date" else pa.int64() if counted else pa.timestamp("us"),
        "x": pa.int64(),
    }
    time = {"s": "timestamp_seconds(t)", "ms": "timestamp_millis(t)"}.get(kind, "t")
    grain = "day" if kind == "date" else "hour"
    made_of = "SELECT date_trunc('{}', {}) AS hour, count(*) AS n, sum(x) AS x FROM events GROUP BY ALL"
    made = queried_lake(
        view(sql=made_of.format(grain, time)),
        table={"time_column": "t", **({"time_unit": kind} if counted else {})},
        oracle={"v": made_of.format(grain, _duck(kind))},
    )
    for number in range(4):
        hours = [0, 0, 0] if kind == "date" else [0, 12.5, 23.99999]
        times = [day(number, hour) for hour in hours]
        made.put(f"{number}.parquet", types=types, t=[_as(kind, each) for each in times], x=[number, None, 3])
    made.lake.converge()
    whole, asked = "v: 2 + 0", "SELECT count(*) AS n, sum(x) AS x FROM events WHERE"
    low, high = (f"{n * 86_400 * counted}" if counted else f"'1970-01-0{n + 1}'" for n in (1, 3))
    made.right(f"{asked} t >= {low} AND t < {high}", whole)
    for operator in (">", ">=", "<", "<=", "="):
        made.right(f"{asked} t {operator} {low}")
    if not counted:
        made.right(
            f"{asked} t > timestamp'1970-01-02 12:00:00'", duck=f"{asked} t > timestamp'1970-01-02 12:00:00'"
        )
    by_day = (
        "SELECT date_trunc('day', {0}) AS d, count(*) AS n FROM events WHERE {0} >= '1970-01-02' GROUP BY 1"
    )
    made.right(by_day.format(time), duck=by_day.format(_duck(kind)))
    made.by_name("SELECT hour, n, x FROM v")


def _duck(kind: str) -> str:
    return {"s": "make_timestamp(t * 1000000)", "ms": "make_timestamp(t * 1000)"}.get(kind, "t")


def _as(kind: str, when: Any) -> Any:
    seconds = (when - EPOCH).total_seconds()
    return {"date": when.date(), "s": int(seconds), "ms": int(seconds * 1_000)}.get(
        kind, when.replace(tzinfo=None)
    )


def test_weeks_answer_no_months_and_days_answer_both(queried_lake: QueriedLakes) -> None:
    weekly = "SELECT date_trunc('week', at) AS hour, count(*) AS n FROM events GROUP BY ALL"
    monthly = weekly.replace("'week'", "'month'")
    made = queried_lake(view(sql=weekly, bucket="1w", start="1970-01-05"))
    for number in range(4, 46, 3):
        made.day(number, rows=5)
    made.lake.converge()
    by_month = "SELECT date_trunc('month', at) AS m, count(*) AS n FROM events GROUP BY m"
    made.right(by_month, None)
    made.right(by_month.replace("month", "year"), None)
    made.right(f"{COUNT} WHERE at >= '1970-01-12' AND at < '1970-02-02'", "v: 3 + 0")
    answer = made.right(f"{COUNT} WHERE at >= '1970-01-12' AND at < '1970-02-01'")
    assert (answer.served.buckets_from_view, answer.served.buckets_from_base) == (2, 1)
    made.right(
        "SELECT weekofyear(at) AS w, date_trunc('week', at) AS d, count(*) AS n FROM events GROUP BY ALL"
    )
    made.lake.declare(view("m", sql=monthly, bucket="1mo", start="1970-01-01"))
    made.declared()
    made.lake.converge()
    made.right(by_month, "m: 1 + 1")
    made.right(by_month.replace("month", "quarter"), "m: 1 + 1")
    made.right(by_month.replace("month", "week"), None)


def test_several_cuts_of_a_time_in_one_view_go_together(queried_lake: QueriedLakes) -> None:
    cuts = "date_trunc('year', at) AS year, date_trunc('week', at) AS hour"
    years = f"SELECT {cuts}, count(*) AS n FROM events GROUP BY ALL"
    made = queried_lake(view(sql=years, bucket="1w", start="1970-01-05"))
    for number in range(4, 26, 3):
        made.day(number, rows=5)
    made.lake.converge()
    made.right(COUNT)
    made.right("SELECT year(at) AS y, count(*) AS n FROM events GROUP BY y")
    made.right(
        "SELECT date_trunc('year', at) AS y, count(*) AS n FROM events WHERE at >= '1970-01-12' GROUP BY y"
    )


def test_a_valid_bucket_above_the_watermark_is_used(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=1)
    made.days(2, 1)
    made.lake.look()
    made.lake.damage("day-1.parquet")
    made.lake.converge()
    assert made.lake.watermark() == 1
    assert made.lake.state(2) is State.VALID
    made.right(f"{COUNT} WHERE at >= '1970-01-03'", "v: 1 + 0")
    made.day(1)
    made.right(COUNT, "v: 2 + 1")


def test_what_is_more_than_a_select_on_one_table_is_answered_by_the_base(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=3)
    for text in (
        f"WITH events AS (SELECT at FROM events ORDER BY at LIMIT 3) {COUNT} WHERE at >= '1970-01-02'",
        MOVED,
        "SELECT zone, count(*) AS n, sum(count(*)) OVER () AS s FROM events GROUP BY zone",
        "SELECT count(*) AS n FROM events a JOIN events b ON a.at = b.at WHERE a.at < '1970-01-02'",
        "SELECT count(*) AS n FROM events LEFT JOIN (SELECT 1 AS one) ON true WHERE at < '1970-01-02'",
    ):
        made.right(text, None, duck=DUCKS.get(text))
    # What the time is now is known before anything is read.
    made.right(f"{COUNT} WHERE at >= current_timestamp() - INTERVAL 99999 DAYS")


def test_clauses_that_use_columns_without_naming_them_have_all_of_them(queried_lake: QueriedLakes) -> None:
    made = queried_lake(dimensions=("zones",), filled=2)
    types = {"zone": pa.int32(), "city": pa.string()}
    made.put("zones.parquet", "zones", types, zone=[1, 2], city=["Ulm", "Bonn"])
    assert made.rows("SELECT count(*) AS n FROM events AS e(a, b, c, d)") == made.rows(COUNT)
    made.right(f"{COUNT} NATURAL JOIN zones", None)
    made.right("SELECT city, count(*) AS n FROM events NATURAL LEFT JOIN zones GROUP BY city", None)
    groups = made.expected('SELECT count(*) FROM (SELECT DISTINCT "at", fare FROM events)')
    assert len(made.rows("SELECT one FROM events PIVOT (sum(x) FOR zone IN (1 AS one))")) == groups[0][0]


MOVED = f"WITH events AS (SELECT date_add(at, 1) AS at FROM events) {COUNT} WHERE at >= '1970-01-04'"
DUCKS = {MOVED: f"""{COUNT} WHERE "at" >= '1970-01-03'"""}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("DELETE FROM events", "DELETE"),
        ("INSERT INTO events SELECT * FROM events", "INSERT"),
        ("DROP TABLE events", "DROP"),
        ("SELECT 1 FROM events; SELECT 2 FROM events", "statement"),
        ("SELECT count(*) FROM event", "no table event; did you mean events"),
        ("SELECT count(*) FROM other.events", "plain names"),
        ("SELECT count(*) FROM parquet.`/tmp/x`", "plain names"),
        ("SELECT reflect('java.lang.System', 'exit', 1) FROM events", "reflect"),
        ("SELECT count(*) FROM events WHERE zone = ?", "parameter"),
        ("SELECT count(*) FROM events WHERE zone = :zone", "parameter"),
        ("SELECT count(*) FROM events VERSION AS OF 1", ""),
        ("SELECT count(*) FROM events TABLESAMPLE (10 ROWS)", "other rows each time"),
        ("SELECT 1", "reads no table"),
        ("SELECT sume(x) FROM events", "did you mean sum"),
        ("SELECT FROM WHERE", ""),
        ("", ""),
        ("SELECT * FROM read_files('/tmp')", "read_files"),
        ("EXPLAIN SELECT 1 FROM events", "EXPLAIN"),
        ("CACHE TABLE events", "CACHE"),
        ("SET spark.sql.ansi.enabled = false", "SET"),
    ],
)
def test_what_is_no_select_on_the_project_is_refused(queried_lake: QueriedLakes, text: str, why: str) -> None:
    with pytest.raises(QueryRefused) as raised:
        queried_lake().ask(text)
    assert why.lower() in str(raised.value).lower()


def test_what_spark_can_not_compute_is_said_in_its_words(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=1)
    for text, why in (
        ("SELECT nothing FROM events", "nothing"),
        ("SELECT zone, count(*) FROM events", "GROUP BY"),
        ("SELECT sum(n) FROM v GROUP BY nowhere", "nowhere"),
        ("SELECT count(*) FROM events WHERE at >= 'no time'", "no time"),
    ):
        with pytest.raises(JobFailed, match=why):
            made.ask(text)


def test_odd_names_are_answered_like_any_others(queried_lake: QueriedLakes) -> None:
    names = ("select", "a b", "Käse", "t`k", "x.y", "MiXed")
    types = dict.fromkeys(names, pa.int32()) | {"at": TYPES["at"]}
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    sums = ", ".join(f"sum({each}) AS {each}" for each in quoted[1:])
    made = queried_lake(
        view(sql=f"SELECT date_trunc('hour', at) AS hour, `select`, {sums} FROM events GROUP BY ALL")
    )
    for number in range(3):
        columns: dict[str, list[Any]] = {name: [number, place, None] for place, name in enumerate(names)}
        columns["at"] = [day(number, 0), day(number, 1), day(number, 23.99999)]
        made.put_all(f"{number}.parquet", columns, types=types)
    made.lake.converge()
    for each in quoted[1:]:
        made.right(
            f"SELECT `select`, sum({each}) AS {each} FROM `events` AS `e e` GROUP BY 1 ORDER BY {each}",
            "v: 2 + 1",
        )
    made.right(
        "SELECT `SELECT`, SUM(mixed) AS `Σ``` FROM EVENTS WHERE Events.AT < '1970-01-03' GROUP BY 1",
        "v: 2 + 0",
    )
    made.right("SELECT sum(`e e`.`a b`) FROM events `e e`", "v: 2 + 1")
    made.by_name("SELECT `select`, `t``k`, v.`x.y` FROM v WHERE `MIXED` IS NOT NULL")


def test_a_caller_in_another_zone_is_answered_by_the_base(queried_lake: QueriedLakes, tmp_path: Path) -> None:
    made = queried_lake(filled=3)
    declared = {
        "state": f"sqlite:///{tmp_path}/state.db",
        "warehouse": str(made.lake.folder / "warehouse"),
        "tables": [{"name": "events", "path": str(made.lake.folder / "events"), "time_column": "at"}],
        "views": [{"name": "v", "base": "events", "sql": HOURS, "time_column": "hour"} | DAYS],
    }
    (tmp_path / "project.yaml").write_text(json.dumps(declared))
    by_day = (
        "SELECT date_trunc('day', at) AS d, count(*) AS n FROM events WHERE at >= '1970-01-02' GROUP BY d"
    )
    there = (
        "SELECT date_trunc('day', \"at\" - INTERVAL 5 HOUR) + INTERVAL 5 HOUR AS d, count(*) AS n "
        "FROM events WHERE \"at\" >= '1970-01-02 05:00:00' GROUP BY d"
    )
    with made.lake.engine.session() as spark:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        found = mv_assets.sql(spark, by_day, tmp_path / "project.yaml")
        assert sorted(rows_in(found)) == sorted(made.expected(there))
        with pytest.raises(QueryRefused, match="America/New_York"):
            mv_assets.sql(spark, "SELECT * FROM v", tmp_path / "project.yaml")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        here = mv_assets.sql(spark, by_day, tmp_path / "project.yaml")
        assert sorted(rows_in(here)) == sorted(rows_of(made.right(by_day)))


DAYS = {"bucket": "1d", "start": "1970-01-01"}


def test_hours_that_clocks_skip_elsewhere_are_like_any_others(queried_lake: QueriedLakes) -> None:
    skipped = (date(2026, 3, 29) - EPOCH.date()).days
    made = queried_lake(view(sql=HOURS, start="2026-03-28"))
    for number in (skipped - 1, skipped, skipped + 1):
        made.put_all(f"{number}.parquet", some(number, rows=40))
    made.lake.converge()
    by_day = (
        "SELECT cast(at AS date) AS d, count(*) AS n, count(DISTINCT hour(at)) AS h FROM events GROUP BY d"
    )
    made.right(by_day, "v: 3 + 0")
    made.right(f"{COUNT} WHERE at >= '2026-03-29 02:00:00' AND at < '2026-03-29 03:00:00'", "v: 1 + 0")


def test_columns_that_changed_their_types_or_came_later_are_those_of_the_whole_table(
    queried_lake: QueriedLakes,
) -> None:
    made = queried_lake(
        view(
            sql=HOURS.replace("zone, ", "")
            .replace("sum(fare)", "sum(x + 0)")
            .replace("count(fare)", "count(name)")
        )
    )
    old = TYPES | {"x": pa.int32()}
    for number in (0, 1):
        made.put(f"{number}.parquet", types=old, at=[day(number, 0), day(number, 23.999999)], x=[number, 7])
    for number in (2, 3):
        made.put(
            f"{number}.parquet", at=[day(number, 0), day(number, 23.999999)], x=[1 << 40, 7], name=["a", None]
        )
    made.lake.converge()
    for where in ("", "WHERE at < '1970-01-02'", "WHERE at >= '1970-01-02' AND at < '1970-01-04'"):
        made.right(f"SELECT sum(x) AS s, max(x) AS m, count(name) AS c FROM events {where}")
    made.right("SELECT x, name FROM events WHERE at < '1970-01-02'")
    made.right(
        "SELECT * FROM events WHERE at < '1970-01-02'",
        duck="""SELECT "at", x, name FROM events WHERE "at" < '1970-01-02'""",
    )


def test_explaining_says_of_every_view_why(queried_lake: QueriedLakes) -> None:
    made = queried_lake(
        view(sql=HOURS), view("w", sql="SELECT at, zone FROM events", time_column="at"), filled=2
    )
    served = made.answers.explain(Question("SELECT sum(x) AS x FROM events WHERE at >= '1970-01-02'"))
    assert (served.view, served.buckets_from_view, served.bytes_from_base) == ("v", 1, 0)
    assert served.considered["v"] is None
    assert "x" in str(served.considered["w"])
    served = made.answers.explain(Question("SELECT sum(fare) AS f FROM events", OFF))
    assert served.reason == "views are switched off"


def test_a_view_that_is_not_for_queries_on_its_base_answers_by_its_own_name(
    queried_lake: QueriedLakes,
) -> None:
    made = queried_lake(view(sql=HOURS, answers=False), filled=3)
    answer = made.right(COUNT, None)
    assert answer.served.considered == {"v": "it says `answers: false`; it can be asked by its own name"}
    assert made.ask("SELECT sum(n) AS n FROM v").served.view == "v"


def test_a_view_on_one_that_is_not_for_queries_may_answer_them(queried_lake: QueriedLakes) -> None:
    above = view("w", base="v", sql=DAILY, time_column="day")
    made = queried_lake(view(sql=HOURS, answers=False), above, filled=3)
    assert made.right(COUNT).served.view == "w"

"""Files that have a column in another type than those that a view was computed from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.config import Spark
from mv_assets.spark.session import Engine
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.spark_lake import SparkLake
from mv_assets_tests.unit.query.test_regressions import Make, asked, put
from mv_assets_tests.unit.query.test_regressions import unchecked as unchecked  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.slow
FIRST, SECOND = {"x": pa.array([1, 2, 3], pa.int32())}, {"x": pa.array([1.0, 2.0, 3.0])}
NOON = "d >= '2020-01-01 12:00:00'"
SHARE = "fare / zone > 0.33333333333333"
DATES = pa.array([date(2020, 1, 1), date(2020, 1, 2), date(2019, 1, 1)])
TIMES = pa.array([datetime(2020, 1, 1, hour, tzinfo=UTC) for hour in (1, 13, 2)], pa.timestamp("us", "UTC"))


def counting(where: str = "", *items: str) -> str:
    columns = ", ".join(["date_trunc('hour', at) AS hour", *items, "count(*) AS n"])
    return f"SELECT {columns} FROM events {where} GROUP BY ALL"


def grown(lake: SparkLake, narrow: dict[str, Any], wide: dict[str, Any]) -> None:
    """Two days that are VALID, and one that arrived since, with wider types."""
    for number in range(2):
        put(lake, f"{number}", number, **narrow)
    lake.run()
    put(lake, "2", 2, **wide)


def test_conditions_that_types_decide_are_the_bases(unchecked: Make) -> None:
    texts = view("texts", sql=counting("WHERE cast(x AS STRING) = '1'"))
    noon = view("noon", sql=counting(f"WHERE {NOON}"))
    dated = view("dated", sql=counting("WHERE d >= '2020-01-01'"))
    lake = unchecked(texts, noon, dated)
    grown(lake, {**FIRST, "d": DATES}, {**SECOND, "d": TIMES})
    for _ in range(2):
        asked(lake, "SELECT count(*) AS n FROM events WHERE cast(x AS STRING) = '1'")
        asked(lake, f"SELECT count(*) AS n FROM events WHERE {NOON}")
        assert asked(lake, "SELECT count(*) AS n FROM events WHERE d >= '2020-01-01'").served.views
        lake.run()


def test_values_that_types_decide_are_the_bases(unchecked: Make) -> None:
    items = (f"{NOON} AS late", "fare / zone AS share", f"count_if({NOON}) AS c")
    lake = unchecked(view(sql=counting("", *items, f"sum(CASE WHEN {NOON} THEN 1 ELSE 0 END) AS s")))
    fares, zones = [Decimal("1.00")] * 3, pa.array([3, 3, 7], pa.int32())
    narrow = {"d": DATES, "fare": pa.array(fares, pa.decimal128(10, 2)), "zone": zones}
    grown(lake, narrow, {"d": TIMES, "fare": pa.array(fares, pa.decimal128(12, 4)), "zone": zones})
    for text in (
        f"SELECT {NOON} AS late, count(*) AS n FROM events GROUP BY 1",
        f"SELECT count_if({NOON}) AS n FROM events",
        f"SELECT sum(CASE WHEN {NOON} THEN 1 ELSE 0 END) AS n FROM events",
        f"SELECT count(*) AS n FROM events WHERE {SHARE}",
        f"SELECT count(*) FILTER (WHERE {SHARE}) AS n FROM events",
    ):
        asked(lake, text)


WHOLE, PARTS = pa.array([1, 2, 3], pa.int32()), pa.array([1.0, 2.5, 3.0])
DAYS_ONLY = pa.array([date(2020, 1, day) for day in (1, 2, 3)])
HOURS_TOO = pa.array(
    [datetime(2020, 1, 2, hour, tzinfo=UTC) for hour in (0, 10, 13)], pa.timestamp("us", "UTC")
)


@pytest.mark.parametrize("files", [4, 40])
def test_no_next_number_and_no_next_day_is_relied_on_where_a_file_may_have_others(
    unchecked: Make, files: int
) -> None:
    """One file among many that nobody has asked for its types, or one of few."""
    lake = unchecked(
        view("least", time_column="at", sql="SELECT at, f, x FROM events WHERE x <= 2"),
        view("days", time_column="at", sql="SELECT at, f, d FROM events WHERE d <= '2020-01-02'"),
    )
    odd = 2 if files < 9 else 33
    for number in range(files):
        own = {"x": PARTS, "d": HOURS_TOO} if number == odd else {"x": WHOLE, "d": DAYS_ONLY}
        put(lake, f"{number:02}", number % 4, f=pa.array([0.5, 1.5, 2.5]), **own)
    lake.run()
    for where in ("x < 3", "d < '2020-01-03'"):
        assert not asked(lake, f"SELECT count(*) AS n, sum(f) AS f FROM events WHERE {where}").served.views
    for where in ("x < 2", "x BETWEEN 1 AND 2", "d < '2020-01-02'", "d = '2020-01-02'"):
        assert asked(lake, f"SELECT at, f FROM events WHERE {where}").served.views


def test_no_day_is_relied_on_as_a_time_where_a_file_may_have_times(unchecked: Make) -> None:
    lake = unchecked(
        view(sql="SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY ALL")
    )
    odd = pa.array([day(1, hour) for hour in (0, 10, 13)], pa.timestamp("us", "UTC"))
    for number in range(40):
        days = pa.array([day(number % 4).date()] * 3)
        table = pa.table({"at": odd if number == 33 else days})
        pq.write_table(table, lake.folder / "events" / f"{number:02}.parquet")
    lake.run()
    for where in (
        "at <= '1970-01-02'",
        "at > '1970-01-02'",
        "at = '1970-01-02'",
        "at BETWEEN '1970-01-01' AND '1970-01-02'",
        "at > TIMESTAMP '1970-01-02 11:00:00'",
    ):
        asked(lake, f"SELECT count(*) AS n FROM events WHERE {where}")
    for item in ("hour(at)", "to_date(at)", "date_trunc('day', at)"):
        assert asked(lake, f"SELECT {item} AS i, count(*) AS n FROM events GROUP BY 1").served.views
    assert asked(lake, "SELECT count(*) AS n FROM events WHERE at >= '1970-01-02'").served.views


def test_a_join_by_the_text_of_a_number_is_the_bases(unchecked: Make) -> None:
    joined = "FROM events e LEFT JOIN zones z ON concat(e.x, '') = z.code"
    sql = f"SELECT date_trunc('hour', e.at) AS hour, z.kind, count(*) AS n {joined} GROUP BY ALL"
    lake = unchecked(view(sql=sql, dimensions=["zones"]), dimensions=["zones"])
    codes = {"code": ["1", "2"], "kind": ["one", "two"]}
    pq.write_table(pa.table(codes), lake.folder / "zones" / "zones.parquet")
    grown(lake, FIRST, SECOND)
    asked(lake, f"SELECT z.kind, count(*) AS n {joined} GROUP BY z.kind")


@pytest.fixture
def wrapping(unchecked: Make, engine: Engine) -> Callable[..., SparkLake]:
    """Lakes of projects without ANSI mode."""
    conf = {**engine.declared.conf, "spark.sql.ansi.enabled": "false"}
    declared = Spark(master=engine.declared.master, remote=engine.declared.remote, conf=conf)
    return lambda *views: unchecked(*views, engine=Engine(declared, lambda _: engine.shared()))


def test_without_ansi_a_number_beside_a_text_is_a_text(wrapping: Callable[..., SparkLake]) -> None:
    lake = wrapping(view(sql=counting("", "f")))
    for number in range(2):
        put(lake, f"{number}", number, f=[0.0, -0.0, 1.0])
    lake.run()
    asked(lake, "SELECT coalesce(f, 'none') AS f, count(*) AS n FROM events GROUP BY 1")
    asked(
        lake, "SELECT CASE WHEN f IS NULL THEN 'none' ELSE f END AS f, count(*) AS n FROM events GROUP BY 1"
    )
    asked(lake, "SELECT count(*) AS n FROM events WHERE f IN ('-0.0')")
    signs = "SELECT CASE WHEN f > 0 THEN 'a' ELSE 'b' END AS f, count(*) AS n FROM events GROUP BY 1"
    assert asked(lake, signs).served.views


def test_without_ansi_integers_that_wrapped_are_the_bases(wrapping: Callable[..., SparkLake]) -> None:
    lake = wrapping(view(sql=counting("", "x * 1000000 AS m", "sum(x * 1000000) AS s")))
    wide = {"x": pa.array([5_000, 1, 2], pa.int64())}
    grown(lake, {"x": pa.array([5_000, 1, 2], pa.int32())}, wide)
    asked(lake, "SELECT x * 1000000 AS m, count(*) AS n FROM events GROUP BY 1")
    asked(lake, "SELECT sum(x * 1000000) AS s FROM events")
    asked(lake, "SELECT count(*) AS n FROM events WHERE x * 1000000 > 4000000000")


def test_chars_are_texts_whatever_the_project_sets(unchecked: Make, engine: Engine) -> None:
    conf = {**engine.declared.conf, "spark.sql.preserveCharVarcharTypeInfo": "true"}
    declared = Spark(master=engine.declared.master, remote=engine.declared.remote, conf=conf)
    lake = unchecked(view(sql=counting("", "name")), engine=Engine(declared, lambda _: engine.shared()))
    for number in range(2):
        put(lake, f"{number}", number, name=["a", "b", "b"])
    lake.run()
    answer = asked(lake, "SELECT count(*) AS n FROM events WHERE cast(name AS char(5)) = 'b'")
    assert [row.n for row in answer.frame.collect()] == [4]

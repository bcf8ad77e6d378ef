"""Case 118: a view that is meant bucket by bucket answers by its own name, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mv_assets.config import MaterializedView
from mv_assets.errors import MvError
from mv_assets.query.errors import OtherColumns, TooManyToCompute
from mv_assets.query.execute import view_relation
from mv_assets.query.execute.answer import Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.queried_lake import COUNT, QueriedLake, QueriedLakes
from mv_assets_tests.support.shop import Shop

ROLLING = "SELECT :bucket_start AS day, count(*) AS n, count(DISTINCT x) AS xs FROM events"
RANKED = """
    WITH ranked AS (
        SELECT at, zone, x, row_number() OVER (PARTITION BY zone ORDER BY at, x) AS place FROM events
    )
    SELECT :bucket_start AS day, zone, x, place FROM ranked WHERE place <= 2
"""
ALL = "SELECT * FROM v"


def rolling(name: str = "v", **given: Any) -> MaterializedView:
    """Three days that end with the bucket."""
    base = {"table": "events", "from": "2d"}
    return view(name, **{"base": base, "scope": "bucket", "sql": ROLLING, "time_column": "day", **given})


@pytest.mark.parametrize("sql", [ROLLING, RANKED])
def test_118_a_query_on_the_base_table_is_never_answered_by_it(queried_lake: QueriedLakes, sql: str) -> None:
    made = queried_lake(rolling(sql=sql), filled=4)
    for asked in (COUNT, "SELECT date_trunc('day', at) AS day, count(*) AS n FROM events GROUP BY 1"):
        made.right(asked, None)
        why = "it is meant bucket by bucket (`scope: bucket`); it can be asked by its own name"
        assert made.answers.explain(Question(asked)).considered == {"v": why}


@pytest.mark.parametrize("sql", [ROLLING, RANKED])
def test_118_by_its_name_missing_stale_and_early_buckets_are_computed_by_the_same_meaning(
    queried_lake: QueriedLakes, sql: str
) -> None:
    made = queried_lake(rolling(sql=sql))
    made.days(0, 1, 2)
    made.by_name(ALL, None)
    made.lake.converge()
    # The windows of days 3 and 4 reach day 2, but the base has no rows of them.
    made.by_name(ALL, "v: 3 + 0")
    made.day(1, "late.parquet", seed=1)
    made.by_name(ALL, "v: 1 + 2")
    made.lake.look()
    assert made.lake.states(0, 1, 2) == "VSS"
    made.by_name(ALL, "v: 1 + 2")
    made.lake.converge()
    made.by_name(ALL, "v: 3 + 0")


def test_118_a_bucket_with_nothing_in_its_window_has_no_rows_though_the_sql_would_give_one(
    queried_lake: QueriedLakes,
) -> None:
    made = queried_lake(rolling())
    # The windows of days 3 and 4 reach day 1 and 2, days 5 to 8 nothing.
    made.days(0, 1, 2, 9, 10)
    made.by_name("SELECT day, n FROM v", None)
    made.lake.converge()
    made.by_name("SELECT day, n FROM v")
    made.by_name("SELECT day, n FROM v", freshness=Freshness.OFF)


def test_118_a_range_computes_and_reads_its_own_buckets_only(queried_lake: QueriedLakes) -> None:
    made = queried_lake(rolling(), filled=6)
    made.day(3, "late.parquet", seed=1)
    made.by_name("SELECT * FROM v WHERE day >= '1970-01-02' AND day < '1970-01-05'", "v: 2 + 1")
    made.by_name("SELECT n FROM v WHERE day = '1970-01-01'", "v: 1 + 0")


def test_118_stored_bounded_and_off(queried_lake: QueriedLakes) -> None:
    made = queried_lake(rolling(), filled=4)
    before = made.rows(ALL, Freshness.STORED)
    made.day(1, "late.parquet", seed=1)
    assert sorted(made.rows(ALL, Freshness.STORED)) == sorted(before)
    # Views are up to date as of a look that is young enough, and days that are not due are computed.
    bounded = made.rows("SELECT * FROM v WHERE day < '1970-01-05'", Freshness.BOUNDED, 365 * 100 * DAY)
    assert sorted(bounded) == sorted(before)
    made.by_name(ALL, None, freshness=Freshness.OFF)


def test_118_views_on_it_are_computed_through_it(queried_lake: QueriedLakes) -> None:
    zones = rolling(sql="SELECT :bucket_start AS day, zone, count(*) AS n FROM events GROUP BY zone")
    sums = view("sums", base="v", sql="SELECT day, sum(n) AS n FROM v GROUP BY day", time_column="day")
    week = view(
        "week",
        base={"table": "v", "from": "1d"},
        scope="bucket",
        sql="SELECT :bucket_start AS day, sum(n) AS n, count(*) AS zones FROM v",
        time_column="day",
    )
    made = queried_lake(zones, sums, week)
    made.days(0, 1, 2, 3)
    for name in ("sums", "week"):
        made.by_name(f"SELECT * FROM {name}", None)
    made.lake.converge()
    made.day(1, "late.parquet", seed=1)
    for name in ("sums", "week"):
        made.by_name(f"SELECT * FROM {name}")
    made.lake.refresh("v")
    for name in ("sums", "week"):
        made.by_name(f"SELECT * FROM {name}")
        made.by_name(f"SELECT * FROM {name}", freshness=Freshness.OFF)


def test_too_many_buckets_are_not_computed_for_one_answer(
    queried_lake: QueriedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_relation, "MOST_COMPUTED", 3)
    made = queried_lake(rolling())
    made.days(*range(4))
    with pytest.raises(TooManyToCompute, match=r"4 buckets of view v that are not VALID, and at most 3 are"):
        made.ask(ALL)
    made.by_name("SELECT * FROM v WHERE day < '1970-01-03'", None)


def test_of_a_table_without_files_nothing_can_be_told(queried_lake: QueriedLakes) -> None:
    made = queried_lake(rolling())
    with pytest.raises(MvError, match="table events has no files yet, so its columns are not known"):
        made.ask(ALL)


VIEWS = """\
from pyspark.sql import functions as F


def sums(events, bucket):
    rows = events.groupBy("zone").agg(F.count("*").alias("n"), F.sum("x").alias("x"))
    return rows.select(F.lit(bucket.start).alias("day"), "zone", "n", "x")


def in_an_order_of_its_own(events, bucket):
    columns = ["day", "n", "x"] if bucket.start.day % 2 else ["x", "n", "day"]
    return sums(events, bucket).select(*columns)


def of_other_columns(events, bucket):
    return events.selectExpr("at AS day", "x" if bucket.key < "1970-01-02" else "zone")


def of_another_type(events, bucket):
    return events.selectExpr("at AS day", "x" if bucket.key < "1970-01-02" else "CAST(x AS STRING) AS x")


def by_a_temporary_view(events, bucket):
    events.createOrReplaceTempView("of_this_bucket")
    sql = "SELECT zone, count(*) AS n, sum(x) AS x FROM of_this_bucket GROUP BY zone"
    return events.sparkSession.sql(sql).withColumn("day", F.lit(bucket.start))
"""
SUMS = "SELECT $bucket_start AS day, zone, count(*) AS n, sum(x) AS x FROM events GROUP BY zone"


@pytest.fixture
def of_function(queried_lake: QueriedLakes, shop: Callable[..., Shop]) -> Callable[..., QueriedLake]:
    """A lake whose view is one of the functions."""

    def make(function: str, oracle: str | None = SUMS, **given: Any) -> QueriedLake:
        told = {} if oracle is None else {"v": oracle}
        declared = rolling(sql=None, python=f"shop.views:{function}", **given)
        return queried_lake(declared, code=shop(VIEWS).folder, oracle=told)

    return make


def test_118_a_function_is_called_for_buckets_that_are_not_stored(
    of_function: Callable[..., QueriedLake],
) -> None:
    made = of_function("sums")
    made.days(0, 1, 2)
    made.by_name(ALL, None)
    made.lake.converge()
    made.by_name(ALL, "v: 3 + 0")
    made.day(1, "late.parquet", seed=1)
    made.by_name(ALL, "v: 1 + 2")
    made.by_name("SELECT zone, sum(n) AS n FROM v WHERE day < '1970-01-04' GROUP BY zone", "v: 1 + 2")
    made.by_name(ALL, None, freshness=Freshness.OFF)
    stored = made.ask("SELECT day, x FROM v", Freshness.STORED)
    assert (stored.frame.columns, stored.frame.count() > 0) == (["day", "x"], True)


def test_118_columns_of_functions_are_put_together_by_name(of_function: Callable[..., QueriedLake]) -> None:
    made = of_function("in_an_order_of_its_own", SUMS.replace("zone, count", "count"))
    made.days(0, 1, 2)
    made.by_name("SELECT day, n, x FROM v", None)
    made.lake.converge()
    made.day(1, "late.parquet", seed=1)
    made.by_name("SELECT day, n, x FROM v", "v: 1 + 2")


@pytest.mark.parametrize("function", ["of_other_columns", "of_another_type"])
def test_118_buckets_of_other_columns_are_no_table(
    of_function: Callable[..., QueriedLake], function: str
) -> None:
    made = of_function(function, None)
    made.days(0, 1)
    with pytest.raises(OtherColumns):
        made.ask(ALL)
    made.lake.converge()
    if function == "of_other_columns":
        # Of what is stored, a column that some buckets lack is null there.
        assert made.ask(ALL).frame.count() > 0
        return
    with pytest.raises(MvError, match=r"other columns, or of other types|rewrite one of them"):
        made.ask(ALL)


def test_118_a_functions_temporary_view_is_not_another_buckets(
    of_function: Callable[..., QueriedLake],
) -> None:
    made = of_function("by_a_temporary_view")
    made.days(0, 1, 2)
    asked = "SELECT day, zone, n, x FROM v"
    if made.lake.engine.declared.remote is None:
        made.by_name(asked, None)
        return
    with pytest.raises(MvError, match=r"by_a_temporary_view makes a temporary view \(of_this_bucket\)"):
        made.ask(asked)
    made.by_name(f"{asked} WHERE day < '1970-01-02'", None)

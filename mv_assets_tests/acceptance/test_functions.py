"""Views that are functions, and functions that SQL calls, on a real Spark; case 113."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.config import Function, MaterializedView
from mv_assets.query.errors import QueryRefused
from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.support.queried_lake import QueriedLake, QueriedLakes
from mv_assets_tests.support.shop import Shop
from mv_assets_tests.support.spark_lake import SparkLake

pytestmark = pytest.mark.usefixtures("python_workers")

VIEWS = """\
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf, udf
from pyspark.sql.types import LongType, StringType

from shop.helpers import checked, named


@udf(StringType())
def name_of(x):
    return named(x)


@pandas_udf(LongType())
def squared(x: pd.Series) -> pd.Series:
    return x * x


@udf(LongType())
def sure(x):
    return checked(x)


def counted(events, bucket):
    return events.groupBy("x").agg(F.count("*").alias("n")).withColumn("day", F.lit(bucket.start))


def named_and_squared(events):
    return events.select("at", name_of("x").alias("name"), squared("x").alias("square"))


def raises(events, bucket):
    if bucket.key == "1970-01-02":
        checked(1)
    return events


def raises_on_a_worker(events):
    return events.select("at", sure("x").alias("x"))


def unresolved(events, bucket):
    wanted = "y" if bucket.key == "1970-01-02" else "x"
    return events.select("at", wanted).where("true")


def no_frame(events):
    return events.count()


def no_time(events):
    return events.groupBy("x").agg(F.count("*").alias("n"))


def in_another_order(events, bucket):
    rows = events.selectExpr("at", "x AS a", "x + 100 AS b")
    return rows.select("b", "at", "a") if bucket.key == "1970-01-02" else rows


def of_other_columns(events, bucket):
    return events.selectExpr("at", "x AS odd" if bucket.start.day % 2 else "x AS even")


def of_another_type(events, bucket):
    return events.selectExpr("at", "CAST(x AS STRING) AS x" if bucket.key == "1970-01-02" else "x")


def whatever_there_is(events):
    y = F.col("y") if "y" in events.columns else F.lit(None).cast("string").alias("y")
    return events.select("at", y, F.lit(",".join(events.columns)).alias("columns"))


def joined(payments, bucket, events, names):
    paid = payments.groupBy("x").agg(F.count("*").alias("paid"))
    rows = events.join(paid, "x", "left").join(names, "x")
    made = {"day": bucket.start, "ending": bucket.end, "key": bucket.key}
    return rows.select(*(F.lit(value).alias(name) for name, value in made.items()), "name", "paid")


def by_a_temporary_view(events):
    events.createOrReplaceTempView("of_this_bucket")
    return events.sparkSession.sql("SELECT min(at) AS at, sum(x) AS x FROM of_this_bucket")
"""
HELPERS = """\
def named(x):
    return f"<{x}>"


def checked(x):
    if x == 1:
        raise ValueError("one\\nis bad")
    return x
"""
SparkLakes = Callable[..., SparkLake]


@pytest.fixture
def lake(spark_lake: SparkLakes, shop: Callable[..., Shop]) -> SparkLakes:
    """Lakes of days 0 to 3, with a view that is one of the functions."""

    def make(function: str, oracle: str | None = None, **given: Any) -> SparkLake:
        options = {"further": given.pop("further", ()), "dimensions": given.get("dimensions", ())}
        code = shop(VIEWS, helpers=HELPERS).folder
        told = {} if oracle is None else {"v": oracle}
        made = spark_lake(of(function, **given), code=code, oracle=told, **options)
        made.days(*range(4))
        return made

    return make


def of(function: str, **given: Any) -> MaterializedView:
    """A daily view that is a function."""
    defaults = {"sql": None, "python": f"shop.views:{function}", "scope": "bucket", "time_column": "at"}
    return view(**{**defaults, **given})


def failed(lake: SparkLake, number: int) -> str:
    return lake.snapshot().attempts[number * 86_400_000].last_error or ""


def line(file: Path, text: str) -> int:
    """Where a text first is in a file."""
    return next(at for at, each in enumerate(file.read_text().splitlines(), 1) if text in each)


@pytest.mark.parametrize("function", ["raises", "raises_on_a_worker"])
def test_113_a_bucket_whose_function_raises_fails_with_the_line_and_others_commit(
    lake: SparkLakes, function: str
) -> None:
    made = lake(function)
    assert made.outcomes() == {0: "committed", 1: "failed", 2: "committed", 3: "committed"}
    assert (made.watermark(), made.states(0, 1, 2, 3)) == (1, "VSVV")
    code = (made.code or Path()) / "shop" / "helpers.py"
    what = "shop.views:raises" if function == "raises" else "a Python function"
    said = f"{what} ({code}:{line(code, 'raise')} in checked): ValueError: one"
    # Of a worker's trace the first line of the message is told.
    assert failed(made, 1) in (said, f"{said} is bad")


def test_113_what_spark_does_not_find_is_told_with_the_functions_line(lake: SparkLakes) -> None:
    made = lake("unresolved")
    assert made.outcomes() == {0: "committed", 1: "failed", 2: "committed", 3: "committed"}
    code = (made.code or Path()) / "shop" / "views.py"
    place = f"{code}:{line(code, 'wanted).where')} in unresolved"
    # A Connect server finds out when it is asked, which is not in that line.
    assert (
        failed(made, 1)
        .replace(f" ({place})", "")
        .startswith("shop.views:unresolved: AnalysisException: [UNRESOLVED_COLUMN")
    )
    assert (place in failed(made, 1)) == (made.engine.declared.remote is None)
    assert "org.apache" not in failed(made, 1)


def test_a_function_gets_its_bucket_and_is_computed_again_when_files_are_late(lake: SparkLakes) -> None:
    made = lake(
        "counted",
        "SELECT x, count(*) AS n, $bucket_start AS day FROM events GROUP BY x",
        time_column="day",
        base={"table": "events", "from": "1d"},
    )
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    made.check()
    made.write("late.parquet", [day(1)], 7)
    assert made.outcomes() == {1: "committed", 2: "committed"}
    made.check()


def test_udfs_of_both_kinds_run_on_workers_that_do_not_have_the_package(lake: SparkLakes) -> None:
    made = lake("named_and_squared", "SELECT \"at\", '<' || x || '>' AS name, x * x AS square FROM events")
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    made.check()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("no_frame", "shop.views:no_frame gives a int, not a DataFrame; return the bucket's rows"),
        (
            "no_time",
            "shop.views:no_time gives no column at, which is the view's time_column; it gives x, n",
        ),
    ],
)
def test_what_is_no_bucket_of_the_view_is_refused(lake: SparkLakes, function: str, said: str) -> None:
    made = lake(function)
    assert made.outcomes() == dict.fromkeys(range(4), "failed")
    assert failed(made, 2) == said


def test_columns_in_another_order_for_some_buckets_are_not_mixed_up(lake: SparkLakes) -> None:
    made = lake("in_another_order", 'SELECT "at", x AS a, x + 100 AS b FROM events')
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    made.check()


def test_buckets_of_other_columns_are_computed_apart(lake: SparkLakes) -> None:
    made = lake("of_other_columns")
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    found = made.stored().sort_by("at").select(["odd", "even"]).to_pylist()
    alone = [{"odd": 0}, {"even": 1}, {"odd": 2}, {"even": 3}]
    assert found == [{"odd": None, "even": None, **each} for each in alone for _ in range(2)]


def test_a_buckets_types_are_its_own_whatever_it_is_computed_with(lake: SparkLakes) -> None:
    made = lake("of_another_type")
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    types = {number: types_of(made, number)["x"] for number in range(4)}
    assert types == {0: pa.int64(), 1: pa.string(), 2: pa.int64(), 3: pa.int64()}


def types_of(lake: SparkLake, number: int) -> pa.Schema:
    """The columns of the file that a day's rows are in."""
    row = lake.row(number)
    assert row is not None
    assert row.generation is not None
    [file] = lake.store.files("v", [row.generation])[row.generation]
    with lake.warehouse.open(file.path) as opened:
        return {part.name: part.type for part in pq.read_schema(opened)}


def test_a_function_gets_the_columns_that_the_files_of_its_window_have_and_no_others(
    lake: SparkLakes,
) -> None:
    made = lake("whatever_there_is")
    more = {"at": pa.array(through(2), pa.timestamp("us", "UTC")), "x": [2, 2], "y": ["a", "b"]}
    pq.write_table(pa.table(more), made.folder / "events" / "day-2.parquet")
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    found = {(row["at"].day - 1, row["columns"], row["y"]) for row in made.stored().to_pylist()}
    alone = {(number, "at,x", None) for number in (0, 1, 3)}
    assert found == alone | {(2, "at,x,y", "a"), (2, "at,x,y", "b")}


def test_tables_and_dimensions_come_by_their_names(lake: SparkLakes) -> None:
    made = lake(
        "joined",
        "SELECT $bucket_start AS day, $bucket_end AS ending, strftime($bucket_start, '%Y-%m-%d') AS key, "
        "name, paid FROM events LEFT JOIN (SELECT x, count(*) AS paid FROM payments GROUP BY x) USING (x) "
        "JOIN names USING (x)",
        time_column="day",
        further=["payments"],
        dimensions=["names"],
        **{"with": [{"table": "payments", "to": "1d", "wait": False}]},
    )
    names = pa.table({"x": pa.array(range(6), pa.int64()), "name": [f"n{each}" for each in range(6)]})
    pq.write_table(names, made.folder / "names" / "names.parquet")
    made.days(0, 2, 3, table="payments")
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    made.check()


def test_a_function_that_makes_a_temporary_view_does_not_see_another_buckets_rows(lake: SparkLakes) -> None:
    """A Connect server looks names up when the job runs: the last bucket's rows would be everybody's."""
    made = lake("by_a_temporary_view", 'SELECT min("at") AS "at", sum(x) AS x FROM events')
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    made.check()
    with made.engine.session() as spark:
        assert not spark.catalog.tableExists("of_this_bucket")


FUNCTIONS = """\
from shop.helpers import named


def label_of(x):
    return named(x)
"""
LABELS = "SELECT date_trunc('day', at) AS day, label_of(x) AS label, count(*) AS n FROM events GROUP BY 1, 2"
DUCKDB = LABELS.replace("at)", '"at")').replace("label_of(x)", "'<' || coalesce(x::TEXT, 'None') || '>'")


@pytest.fixture
def labels(queried_lake: QueriedLakes, shop: Callable[..., Shop]) -> Callable[..., QueriedLake]:
    """Views whose SQL calls a function, over days 0 to 3."""

    def make(**given: Any) -> QueriedLake:
        code = shop(VIEWS, helpers=HELPERS, functions=FUNCTIONS).folder
        declared = Function(name="label_of", python="shop.functions:label_of", returns="string")
        calling = view(**{"sql": LABELS, "time_column": "day", **given})
        made = queried_lake(calling, code=code, functions=[declared], oracle={"v": DUCKDB})
        made.days(*range(4))
        return made

    return make


@pytest.mark.parametrize("scope", ["table", "bucket"])
def test_sql_calls_declared_functions_wherever_a_view_is_computed(
    labels: Callable[..., QueriedLake], scope: str
) -> None:
    made = labels(scope=scope)
    made.by_name("SELECT * FROM v", None)
    made.lake.converge()
    made.lake.check()
    # Over the table it is merged, by bucket computed again.
    made.day(1, "late.parquet", seed=1)
    made.by_name("SELECT * FROM v", "v: 3 + 1")
    assert made.lake.outcomes() == {1: "committed"}
    made.lake.check()
    with made.lake.engine.session() as spark:
        assert not spark.catalog.functionExists("label_of")
    with pytest.raises(
        QueryRefused, match="label_of is a function that the SQL of views may call, and no query"
    ):
        made.ask("SELECT label_of(x) AS label FROM events")


def test_changed_code_of_a_declared_function_is_a_new_definition(
    labels: Callable[..., QueriedLake], shop: Callable[..., Shop]
) -> None:
    made = labels()
    made.lake.converge()
    shop(VIEWS, helpers=HELPERS.replace("<{x}>", "[{x}]"), functions=FUNCTIONS)
    made.lake.declare(*made.lake.project.views)
    made.lake.oracle = {"v": DUCKDB.replace("'<'", "'['").replace("'>'", "']'")}
    made.lake.look()
    assert made.lake.states(0, 1, 2, 3) == "SSSS"
    made.lake.converge()
    made.lake.check()

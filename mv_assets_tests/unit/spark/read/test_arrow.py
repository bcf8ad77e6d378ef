"""Files as Arrow reads them have the rows that Spark reads of them, or it is said why they were not read."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from mv_assets.maintain.audit import audit
from mv_assets.maintain.recomputation import Finding
from mv_assets.spark.errors import Unreadable
from mv_assets.spark.read.arrow import by_arrow
from mv_assets.spark.read.readers import reader_of
from mv_assets.spark.session import Engine
from mv_assets.tables.listing import Listing
from mv_assets_tests.support.capabilities import reorders_structs
from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake

Make = Callable[..., UncheckedLake]
AT = pa.timestamp("us", "UTC")


def found(lake: UncheckedLake, name: str = "v") -> list[Finding]:
    return audit(lake.open(), lake.catalog.view(name), None)


@pytest.mark.parametrize("fields", ["pq", pytest.param("qp", marks=reorders_structs)])
def test_files_that_differ_are_the_same_to_arrow(unchecked_lake: Make, fields: str) -> None:
    """In their types, in what they have at all, and in what their folders' names give them."""
    columns = "at, i, f, st, m, few, zone, d"
    lake = unchecked_lake(view(sql=f"SELECT {columns} FROM events", time_column="at"))
    kinds = {"p": pa.int64(), "q": pa.string()}
    st, wide = pa.struct({"p": pa.int32()}), pa.struct({name: kinds[name] for name in fields})
    times = [[day(0)], [through(0)[1], None]]
    one = {
        "at": pa.array(times[0], pa.timestamp("ms", "UTC")),
        "i": pa.array([2**32 - 1], pa.uint32()),
        "f": pa.array([1 / 3], pa.float32()),
        "st": pa.array([{"p": 1}], st),
        "m": pa.array([[("a", {"p": 1})]], pa.map_(pa.string(), st)),
        "few": pa.array(["x"]).dictionary_encode(),
    }
    other = {
        "AT": pa.array(times[1], pa.timestamp("us", "UTC")),
        "i": pa.array([2**40, None]),
        "f": pa.array([float("nan"), -0.0]),
        "st": pa.array([{"p": 2**40, "q": "x"}, None], wide),
        "m": pa.array([None, [("b", None)]], pa.map_(pa.string(), wide)),
        "more": pa.array([1, 2]),
    }
    lake.put("zone=7/d=2024-02-29/one.parquet", pa.table(one))
    lake.put("zone=8/d=__HIVE_DEFAULT_PARTITION__/other.parquet", pa.table(other))
    lake.run()
    assert [(each.verdict, each.rows, each.reread, each.not_reread) for each in found(lake)] == [
        ("equal", 2, True, None)
    ]


OLD = {"org.apache.spark.version": "2.4.8"}
ONLY_SPARK: dict[str, tuple[pa.Table, dict[str, Any], str]] = {
    "int96": (
        pa.table({"x": pa.array([day(0).replace(tzinfo=None)], pa.timestamp("us"))}),
        {"use_deprecated_int96_timestamps": True},
        "is timestamp[ns] to Arrow",
    ),
    "calendar": (
        pa.table({"x": pa.array([date(1, 1, 1)])}, metadata=OLD),
        {},
        "its times are in Spark's old calendar",
    ),
    "spelling": (
        pa.table({"x": pa.array([{"Y": 1}], pa.struct({"Y": pa.int64()}))}),
        {},
        "column x is struct<Y: int64> to Arrow",
    ),
}


@pytest.mark.parametrize("kind", ONLY_SPARK)
def test_what_only_spark_reads_is_said_and_is_no_difference(unchecked_lake: Make, kind: str) -> None:
    """Of a field that files spell otherwise, Arrow would give nulls."""
    rows, options, why = ONLY_SPARK[kind]
    lake = unchecked_lake(view(sql="SELECT at, x FROM events", time_column="at"))
    times = pa.array([through(0)[1]], pa.timestamp("us", "UTC"))
    lake.put("a.parquet", rows.append_column("at", times), **options)
    if kind == "spelling":
        small = pa.array([{"y": 1}], pa.struct({"y": pa.int64()}))
        lake.put("A.parquet", pa.table({"x": small, "at": pa.array([day(0)], times.type)}))
    lake.run()
    [finding] = found(lake)
    assert (finding.verdict, finding.reread) == ("equal", False)
    assert why in str(finding.not_reread)
    assert "a.parquet" in str(finding.not_reread)


VOID = "CAST(NULL AS VOID)"
WRITTEN_BY_SPARK = {
    "INTERVAL '1' DAY": "column x is int64 to Arrow",
    "INTERVAL '3' MONTH": "Arrow has no such types",
    "array(parse_json('{\"a\": 1}'))": "variants are structs to Arrow",
    "map(named_struct('a', DATE '0001-01-01'), CAST('NaN' AS FLOAT))": None,
    "'A' COLLATE UTF8_LCASE": None,
    VOID: None,
    "TIMESTAMP_NTZ '0001-01-01 00:00:00'": None,
}


@pytest.mark.parametrize(("value", "why"), WRITTEN_BY_SPARK.items())
def test_values_that_spark_wrote(unchecked_lake: Make, engine: Engine, value: str, why: str | None) -> None:
    lake = unchecked_lake(view(sql="SELECT at, x FROM events", time_column="at"))
    with engine.session() as spark:
        rows = spark.sql(f"SELECT TIMESTAMP '1970-01-01 23:59:59.999' AS at, {value} AS x")
        try:
            rows.write.mode("overwrite").parquet(str(lake.folder / "events"))
        except AnalysisException as error:
            if value != VOID or error.getCondition() != "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE":
                raise
            pytest.skip("this Spark writes no columns without a type")
    lake.run()
    [finding] = found(lake)
    assert (finding.verdict, finding.reread) == ("equal", why is None)
    assert (why or "") in (finding.not_reread or "")


def test_what_a_connector_reads_is_left_to_it(unchecked_lake: Make, engine: Engine) -> None:
    lake = unchecked_lake(view(), table={"format": "delta", "reader": "spark"})
    table, listing = lake.tables["events"], Listing("events", "a@1", 0)
    with engine.session() as spark:
        reader = reader_of(spark, table, listing, ["at"])
        with pytest.raises(Unreadable, match="by its connector"):
            by_arrow(spark, table, listing, reader)


# What is added up in another order need not have a digit in common, and nobody reads anything wrong.
SUMS = [
    "sum(x) AS s",
    "stddev(x) AS s, var_pop(x) AS v, skewness(x) AS k",
    "CAST(round(sum(x), 2) AS DECIMAL(20, 2)) AS s, CAST(sum(x) AS STRING) AS t",
]


@pytest.mark.parametrize("sums", SUMS)
def test_floats_that_cancel_out_are_no_difference(unchecked_lake: Make, sums: str) -> None:
    sql = f"SELECT date_trunc('day', at) AS day, {sums} FROM events GROUP BY ALL"
    lake = unchecked_lake(view(sql=sql, time_column="day"))
    pick = random.Random(1)
    half = [1e9 + pick.uniform(-1e6, 1e6) for _ in range(10_000)]
    values = [*half, *(-x for x in half)]
    pick.shuffle(values)
    times = [day(0, 23 * n / len(values)) for n in range(len(values) - 1)]
    lake.put("a.parquet", pa.table({"at": pa.array([*times, through(0)[1]], AT), "x": values}))
    lake.run()
    [finding] = found(lake)
    assert (finding.verdict, finding.reread) == ("equal", True)


def test_arrays_and_maps_that_sql_makes_are_compared(unchecked_lake: Make) -> None:
    made = "sort_array(collect_list(x)) AS l, array(1, 2) AS a, map('a', 1) AS m, struct(1 AS k) AS s"
    sql = f"SELECT date_trunc('day', at) AS day, {made} FROM events GROUP BY ALL"
    lake = unchecked_lake(view(sql=sql, time_column="day"))
    lake.put("a.parquet", pa.table({"at": pa.array([day(0), through(0)[1]], AT), "x": [1, 2]}))
    lake.run()
    [finding] = found(lake)
    assert (finding.verdict, finding.reread) == ("equal", True)

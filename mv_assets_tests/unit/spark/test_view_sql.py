"""What the analysis says of SQL that it accepts, held against Spark."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from pyspark.sql import SparkSession

from mv_assets.spark.session import Engine
from mv_assets.spark_sql.scope import Source
from mv_assets.views.admission import Scope
from mv_assets_tests.support.capabilities import has_qualify
from mv_assets_tests.unit.spark_sql.analysed import RIDES, TRIPS, ZONES, view_of
from mv_assets_tests.unit.spark_sql.test_bucket_scope import ANY, LIMITED, STARS
from mv_assets_tests.unit.spark_sql.test_fuzz import BY_BUCKET
from mv_assets_tests.unit.spark_sql.test_tables import KEPT_APART

BY_SCOPE: dict[Scope, list[str]] = {
    "bucket": [*ANY, *LIMITED, *BY_BUCKET, *(sql for sql, _ in STARS)],
    "table": [sql for sql, _ in KEPT_APART],
}


def declare(spark: SparkSession, source: Source, only: Collection[str]) -> None:
    """Make an empty table with some of its columns."""
    columns = [f"{name} {kind}" for name, kind in (source.columns or {}).items() if name in only]
    spark.createDataFrame([], ", ".join(columns) or "nothing int").createOrReplaceTempView(source.name)


def test_spark_needs_no_other_columns_than_those_in_use_and_gives_those_that_are_told(engine: Engine) -> None:
    bucket = {"bucket_start": datetime(2024, 1, 1), "bucket_end": datetime(2024, 1, 2)}  # noqa: DTZ001 - as SQL has it
    told, given = {}, {}
    with engine.session() as spark:
        skipped = () if has_qualify(spark) else ("QUALIFY",)
        for scope, texts in BY_SCOPE.items():
            for sql in texts:
                if any(word in sql for word in skipped):
                    continue
                view = view_of(sql, scope=scope)
                for source in (TRIPS, RIDES, ZONES):
                    declare(spark, source, view.used.get(source.name, ()))
                told[sql] = view.columns
                given[sql] = tuple(spark.sql(view.bare, args=bucket if ":bucket" in sql else None).columns)
    assert told == given
    assert len(told) > 50

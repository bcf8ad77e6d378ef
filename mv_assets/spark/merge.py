"""Rows of the same buckets, made of different files, put together as one query would have made them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from mv_assets.spark.read.files import quoted
from mv_assets.spark_sql.aggregates import Kind
from mv_assets.spark_sql.merge import Merging


def mergeable(stored: StructType, further: StructType, merging: Merging, *, floats: bool) -> bool:
    """Whether rows of these types give what a query over all files gives; sums of `floats` if allowed."""
    kinds = _kinds(further)
    sums = [kinds[name] for name, partial in merging.aggregates.items() if partial.kind is Kind.SUM]
    allowed = ("bigint", "double") if floats else ("bigint",)
    adds_up = all(kind in allowed or kind.startswith("decimal") for kind in sums)
    return adds_up and _kinds(stored) == kinds


def merged(stored: DataFrame, further: DataFrame, merging: Merging) -> DataFrame:
    """All rows of both; groups that are in both become one."""
    kinds = _kinds(further.schema)
    both = stored.select(*map(quoted, kinds)).unionAll(further)
    if not merging.groups:
        return both
    keys = [quoted(name) for name in kinds if name not in merging.aggregates]
    wholes = [
        sql.expr(partial.merged(quoted(name), kinds[name])).alias(name)
        for name, partial in merging.aggregates.items()
    ]
    groups = both.groupBy(*keys).agg(*wholes) if wholes else both.distinct()
    return groups.select(*map(quoted, kinds))


def _kinds(schema: StructType) -> dict[str, str]:
    return {part.name: part.dataType.simpleString() for part in schema}

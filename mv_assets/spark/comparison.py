"""Whether two data frames hold the same rows, bucket by bucket, in whatever order.

Rows are matched by a hash of all that must be equal to the bit. What is left, columns of floating point, may
differ in its last digits: sums depend on the order in which Spark adds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType, VariantType

from mv_assets.spark.read.files import quoted
from mv_assets.state.model import BUCKET

_RELATIVE = 1e-9
# Sums that cancel out have no digits to compare.
_ABSOLUTE = 1e-9
_ROW, _SIDE = "_mv_row", "_mv_side"
_FLOATS = (FloatType, DoubleType)


@dataclass(frozen=True, slots=True)
class Compared:
    """How many rows a bucket has on each side, and how many of them have no match on the other."""

    stored: int
    computed: int
    differing: int


def compared(
    stored: DataFrame, computed: DataFrame, left_out: Collection[str] = frozenset()
) -> dict[int, Compared]:
    """Compare rows under the names and types of `computed`, in one job; buckets without rows are left out."""
    kinds = {
        part.name: part.dataType
        for part in computed.schema
        if part.name != BUCKET and part.name not in left_out
    }
    floats = [name for name, kind in kinds.items() if isinstance(kind, _FLOATS)]
    exact = {name: kind for name, kind in kinds.items() if name not in floats}
    both = _reduced(stored, exact, floats, stored=True).unionAll(
        _reduced(computed, exact, floats, stored=False)
    )
    here, there = sql.col(_SIDE), ~sql.col(_SIDE)
    values = [pair for at in range(len(floats)) for pair in _values(at, here, there)]
    rows = both.groupBy(BUCKET, _ROW).agg(
        sql.count_if(here).alias("here"), sql.count_if(there).alias("there"), *values
    )
    more, fewer = sql.col("here") - sql.col("there"), sql.col("there") - sql.col("here")
    # Where the counts differ, they tell how many rows do.
    apart = sql.when(
        more == 0, sql.greatest(sql.lit(0), sql.lit(0), *map(_apart, range(len(floats))))
    ).otherwise(0)
    # A changed row lacks on one side and is too many on the other, but it is one row.
    surplus = sql.sum(sql.greatest(more, sql.lit(0)) + apart)
    lacking = sql.sum(sql.greatest(fewer, sql.lit(0)) + apart)
    buckets = rows.groupBy(BUCKET).agg(sql.sum("here"), sql.sum("there"), sql.greatest(surplus, lacking))
    return {bucket: Compared(*counts) for bucket, *counts in buckets.collect()}


def _reduced(rows: DataFrame, exact: dict[str, DataType], floats: list[str], *, stored: bool) -> DataFrame:
    """A row as its hash and its floats."""
    hashed = sql.xxhash64(*(digest(sql.col(quoted(name)), kind) for name, kind in exact.items()))
    return rows.select(
        sql.col(BUCKET),
        sql.lit(stored).alias(_SIDE),
        (hashed if exact else sql.lit(0).cast("bigint")).alias(_ROW),
        *(sql.col(quoted(name)).cast("double").alias(f"_{at}") for at, name in enumerate(floats)),
    )


def _values(at: int, here: Column, there: Column) -> Iterator[Column]:
    """A float column of the rows of one hash, sorted on each side; nulls are the ones that lack."""
    value = sql.col(f"_{at}")
    yield sql.sort_array(sql.collect_list(sql.when(here, value))).alias(f"_{at}_here")
    yield sql.sort_array(sql.collect_list(sql.when(there, value))).alias(f"_{at}_there")


def _apart(at: int) -> Column:
    """How many values of a float column have no match; sorted, the n-th is the one nearest to the n-th."""
    near = sql.zip_with(sql.col(f"_{at}_here"), sql.col(f"_{at}_there"), _near)
    return sql.size(sql.filter(near, lambda same: ~sql.coalesce(same, sql.lit(False))))  # noqa: FBT003


def _near(one: Column, other: Column) -> Column:
    largest = sql.greatest(sql.abs(one), sql.abs(other))
    # Spark holds NaN equal to itself and greater than infinity.
    finite = largest < sql.lit(float("inf"))
    return (one == other) | (finite & (sql.abs(one - other) <= largest * _RELATIVE + _ABSOLUTE))


def digest(value: Column, kind: DataType) -> Column:
    """A hash of a value of any type.

    Spark's own passes over nulls and over where one array ends and the next begins, and takes no maps.
    """
    null = value.isNull()
    match kind:
        case ArrayType():
            element = kind.elementType
            inside = sql.transform(value, lambda each: digest(each, element))
            return sql.xxhash64(null, sql.size(value), inside)
        case MapType():
            key, item = kind.keyType, kind.valueType
            entries = sql.transform(
                sql.map_entries(value),
                lambda each: sql.xxhash64(digest(each["key"], key), digest(each["value"], item)),
            )
            return sql.xxhash64(null, sql.size(value), sql.array_sort(entries))
        case StructType():
            return sql.xxhash64(null, *(digest(value.getField(p.name), p.dataType) for p in kind))
        case DoubleType():
            return sql.xxhash64(null, value.cast("float"))
        case VariantType():
            return sql.xxhash64(null, value.cast("string"))
    return sql.xxhash64(null, value)

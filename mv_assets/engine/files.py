"""Parquet files as one data frame, read by their paths, whatever each of them calls and types its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mv_assets.engine.types import completed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

# What Spark takes for a pattern.
_PATTERN = re.compile(r"([\\*?\[\]{}])")
_FIELD_ID = "parquet.field.id"


@dataclass(frozen=True, slots=True)
class Held:
    """A column inside a file: under a name, or, where it has an id, under whatever name has that."""

    name: str
    kind: DataType
    field_id: int | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """A column that a file has not, but its table gives it the same value for all rows; as text."""

    value: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are read alike. Of the wanted columns, those without a source are null there."""

    paths: tuple[str, ...]
    sources: tuple[tuple[str, Held | Given], ...]


def frame(spark: SparkSession, parts: Sequence[Part], columns: StructType) -> DataFrame:
    """All rows of the files, under the wanted names and types."""
    frames = [_read(spark, part, columns) for part in parts]
    if not frames:
        return spark.createDataFrame([], columns)
    while len(frames) > 1:
        # In pairs: a chain of unions would be as deep as it is long.
        frames = [_union(frames[at : at + 2]) for at in range(0, len(frames), 2)]
    return frames[0]


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return frames[0] if len(frames) == 1 else frames[0].unionAll(frames[1])


def _read(spark: SparkSession, part: Part, columns: StructType) -> DataFrame:
    from pyspark.sql.types import StructType  # noqa: PLC0415 - Spark is loaded by those who use it

    sources = dict(part.sources)
    held = [
        _field(source, column) for column in columns if isinstance(source := sources.get(column.name), Held)
    ]
    rows = spark.read.schema(StructType(held)).parquet(*map(spark_path, part.paths))
    return rows.select(*(_column(sources.get(column.name), column) for column in columns))


def _field(source: Held, column: StructField) -> StructField:
    from pyspark.sql.types import StructField  # noqa: PLC0415

    metadata = {} if source.field_id is None else {_FIELD_ID: source.field_id}
    return StructField(source.name, completed(source.kind, column.dataType), metadata=metadata)


def _column(source: Held | Given | None, wanted: StructField) -> Column:
    from pyspark.sql import functions as sql  # noqa: PLC0415

    match source:
        case Held(name):
            inside = sql.col(quoted(name))
        case Given(value):
            inside = sql.lit(value)
        case None:
            inside = sql.lit(None)
    return inside.cast(wanted.dataType).alias(wanted.name)


def quoted(name: str) -> str:
    """A column's name, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"


def spark_path(path: str) -> str:
    """A path as Spark is told it: on this machine if it names no store, and never a pattern."""
    return _PATTERN.sub(r"\\\1", path if "://" in path or path.startswith("file:") else f"file:{path}")

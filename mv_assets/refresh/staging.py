"""Stage: one Spark job computes a range of buckets from exactly their files and writes one generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from mv_assets.engine.failures import spark_errors
from mv_assets.engine.files import quoted, spark_path
from mv_assets.engine.readers import Reader
from mv_assets.engine.windows import bucket_of, within
from mv_assets.errors import Unreadable
from mv_assets.state.model import BUCKET
from mv_assets.tables.times import TimeColumn
from mv_assets.views.view import View


@dataclass(frozen=True, slots=True)
class Base:
    """The table that is put in buckets: how it is read, and which files each bucket is computed from."""

    name: str
    time: TimeColumn
    reader: Reader
    files: Mapping[int, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A table that the SQL joins, whole."""

    name: str
    reader: Reader
    files: Sequence[str]


@dataclass(frozen=True, slots=True)
class Alike:
    """Buckets whose files have the same columns together, so that one job may compute them."""

    schema: StructType
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """Buckets by how they are computed: together, without reading anything, or not at all and why."""

    alike: tuple[Alike, ...] = ()
    empty: tuple[int, ...] = ()
    failing: Mapping[int, str] = field(default_factory=dict)


class Stage:
    """Computes buckets of one view in a session of its own."""

    def __init__(self, spark: SparkSession, view: View, base: Base, dimensions: Iterable[Dimension]) -> None:
        self._spark = spark
        self._view = view
        self._base = base
        self._dimensions = tuple(dimensions)

    def groups(self, buckets: Sequence[int]) -> Groups:
        """How to compute some buckets.

        A bucket's types follow from its own files, whatever it is computed together with.
        """
        base, empty, failing = self._base, list[int](), dict[int, str]()
        found, schemas = dict[tuple[str, ...], list[int]](), dict[tuple[str, ...], StructType]()
        with spark_errors():
            try:
                self._join()
            except Unreadable as error:
                return Groups(failing=dict.fromkeys(buckets, str(error)))
            base.reader.learn(sorted({name for bucket in buckets for name in base.files[bucket]}))
            for bucket in buckets:
                try:
                    if not base.reader.files(base.files[bucket]):
                        empty.append(bucket)
                        continue
                    schema = base.reader.schema(base.files[bucket])
                except Unreadable as error:
                    failing[bucket] = str(error)
                    continue
                key = tuple(f"{part.name} {part.dataType}" for part in schema)
                schemas[key] = schema
                found.setdefault(key, []).append(bucket)
        alike = tuple(Alike(schemas[key], tuple(starts)) for key, starts in found.items())
        return Groups(alike, tuple(empty), failing)

    def write(self, schema: StructType, buckets: Sequence[int], place: str) -> None:
        """Compute buckets and write them to a new folder.

        Raises:
            JobFailed: they can't be computed, at least not all of them together.
            EngineUnavailable: Spark is gone.

        """
        with spark_errors():
            rows = self.rows(schema, buckets)
            if not self._view.sql.aggregates:
                # As many files as the rows need, not as many as were read; aggregates are dealt out already.
                rows = rows.hint("rebalance", BUCKET)
            # Each bucket in one stretch of a file: readers skip the others.
            rows.sortWithinPartitions(BUCKET).write.parquet(spark_path(place))

    def rows(self, schema: StructType, buckets: Sequence[int]) -> DataFrame:
        """The view's rows in some buckets, each with the start of its bucket."""
        base, view = self._base, self._view
        names = sorted({name for bucket in buckets for name in base.files[bucket]})
        read = base.reader.frame(names, schema)
        read.where(self._windows(schema, buckets)).createOrReplaceTempView(base.name)
        rows = self._spark.sql(view.sql.bare)
        time = sql.col(quoted(view.declared.time_column))
        return rows.withColumn(BUCKET, bucket_of(time, view.buckets))

    def _join(self) -> None:
        """Have the dimensions at hand under their names."""
        for dimension in self._dimensions:
            dimension.reader.learn(dimension.files)
            schema = dimension.reader.schema(dimension.files)
            dimension.reader.frame(dimension.files, schema).createOrReplaceTempView(dimension.name)

    def _windows(self, schema: StructType, buckets: Sequence[int]) -> str:
        time = self._base.time
        found = [part for part in schema if part.name.lower() == time.name.lower()]
        if not found:
            raise Unreadable(
                f"the files of {self._base.name} have no column {time.name}, which is their time"
            )
        [part] = found
        column, view = quoted(part.name), self._view
        return " OR ".join(
            within(column, part.dataType, time.unit, stretch[0], view.buckets.next(stretch[-1]))
            for stretch in view.buckets.stretches(buckets)
        )

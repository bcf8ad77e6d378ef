"""How a view's buckets are computed: one Spark job over exactly their files, for a generation or an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from mv_assets.errors import JobFailed, Unreadable
from mv_assets.observe.additions import together
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.files import quoted, spark_path
from mv_assets.spark.merging import mergeable, merged
from mv_assets.spark.readers import Reader
from mv_assets.spark.sizing import size
from mv_assets.spark.stored import StoredReader
from mv_assets.spark.windows import bucket_of, within
from mv_assets.spark_sql.merging import Merging
from mv_assets.state.model import BUCKET
from mv_assets.tables.times import TimeColumn
from mv_assets.views.view import View


@dataclass(frozen=True, slots=True)
class Base:
    """The table that is put in buckets: how it is read, and which files each bucket is computed from.

    Where those are `added` to what is `stored` of a bucket, that and they are enough.
    """

    name: str
    time: TimeColumn
    reader: Reader
    files: Mapping[int, Sequence[str]]
    sizes: Mapping[str, int]
    added: Mapping[int, Sequence[str]] = field(default_factory=dict)
    stored: StoredReader | None = None


@dataclass(frozen=True, slots=True)
class Dimension:
    """A table that the SQL joins, whole."""

    name: str
    reader: Reader
    files: Sequence[str]
    size: int


@dataclass(frozen=True, slots=True)
class Alike:
    """Buckets whose files have the same columns together, so that one job may compute or merge them."""

    schema: StructType
    buckets: tuple[int, ...]
    merged: bool = False

    @property
    def recomputed(self) -> Alike:
        """The same buckets, from all their files."""
        return replace(self, merged=False)


@dataclass(frozen=True, slots=True)
class Groups:
    """Buckets by how they are computed: together, without reading anything, or not at all and why."""

    alike: tuple[Alike, ...] = ()
    empty: tuple[int, ...] = ()
    failing: Mapping[int, str] = field(default_factory=dict)


# What decides on how a bucket is computed: its columns, and whether it is merged.
_Way = tuple[tuple[str, ...], bool]


def _columns(schema: StructType) -> tuple[str, ...]:
    return tuple(f"{part.name} {part.dataType}" for part in schema)


class Computation:
    """Computes buckets of one view in a session of its own."""

    def __init__(self, spark: SparkSession, view: View, base: Base, dimensions: Iterable[Dimension]) -> None:
        self._spark = spark
        self._view = view
        self._base = base
        self._dimensions = tuple(dimensions)
        self._outputs: dict[tuple[str, ...], StructType | None] = {}

    def groups(self, buckets: Sequence[int]) -> Groups:
        """How to compute some buckets.

        A bucket's types follow from its own files, whatever it is computed together with.
        """
        base, empty, failing = self._base, list[int](), dict[int, str]()
        found, schemas = dict[_Way, list[int]](), dict[_Way, StructType]()
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
                way = (_columns(schema), self._merges(bucket, schema))
                schemas[way] = schema
                found.setdefault(way, []).append(bucket)
        alike = tuple(
            Alike(schemas[way], tuple(starts), merged)
            for way, chosen in found.items()
            for merged in (way[1],)
            for starts in (self._together(chosen) if merged else [chosen])
        )
        return Groups(alike, tuple(empty), failing)

    def write(self, alike: Alike, buckets: Sequence[int], place: str) -> None:
        """Compute buckets, some or all of those that are alike, and write them to a new folder.

        Raises:
            JobFailed: they can't be computed, at least not all of them together.
            EngineUnavailable: Spark is gone.

        """
        view, stored = self._view, self._base.stored
        with spark_errors():
            if alike.merged and view.merging is not None and stored is not None:
                rows = self._merged(alike.schema, buckets, stored, view.merging)
            else:
                rows = self.rows(alike.schema, buckets)
            if not view.sql.aggregates:
                # As many files as the rows need, not as many as were read; aggregates are dealt out already.
                rows = rows.hint("rebalance", BUCKET)
            if len(buckets) > 1:
                # Each bucket in one stretch of a file: readers skip the others.
                rows = rows.sortWithinPartitions(BUCKET)
            rows.write.parquet(spark_path(place))

    def rows(self, schema: StructType, buckets: Sequence[int]) -> DataFrame:
        """The view's rows in some buckets, each with the start of its bucket."""
        return self._rows(schema, buckets, self._base.files)

    def _rows(
        self, schema: StructType, buckets: Sequence[int], files: Mapping[int, Sequence[str]], stored: int = 0
    ) -> DataFrame:
        base, view = self._base, self._view
        names = sorted({name for bucket in buckets for name in files[bucket]})
        joined = sum(dimension.size for dimension in self._dimensions)
        size(self._spark, sum(base.sizes[name] for name in names) + joined + stored)
        read = base.reader.frame(names, schema)
        read.where(self._windows(schema, buckets)).createOrReplaceTempView(base.name)
        rows = self._spark.sql(view.sql.bare)
        time = sql.col(quoted(view.declared.time_column))
        return rows.withColumn(BUCKET, bucket_of(time, view.buckets))

    def _merged(
        self, schema: StructType, buckets: Sequence[int], stored: StoredReader, merging: Merging
    ) -> DataFrame:
        """The same rows, of what is stored and of what came since."""
        keys = [self._view.buckets.key(bucket) for bucket in buckets]
        before = stored.with_buckets(keys, stored.schema(keys))
        further = self._rows(schema, buckets, self._base.added, stored.size(keys))
        return merged(before, further, merging)

    def _merges(self, bucket: int, schema: StructType) -> bool:
        """Whether a bucket is merged: what came has the columns of what was there, which is still there."""
        view, base, added = self._view, self._base, self._base.added.get(bucket)
        stored, key = base.stored, view.buckets.key(bucket)
        if added is None or view.merging is None or stored is None or not stored.has(key):
            return False
        kept = sorted(set(base.files[bucket]) - set(added))
        try:
            before, parts = stored.schema([key]), [base.reader.schema(names) for names in (added, kept)]
        except Unreadable:
            return False
        after = self._output(bucket, schema)
        return (
            after is not None
            and all(_columns(part) == _columns(schema) for part in parts)
            and mergeable(before, after, view.merging, floats=view.declared.merge_floats)
        )

    def _output(self, bucket: int, schema: StructType) -> StructType | None:
        """The columns that files of a schema give; None where merging is not to be thought of."""
        way = _columns(schema)
        if way not in self._outputs:
            self._outputs[way] = None
            with suppress(JobFailed), spark_errors():
                # Without it, too large a sum is null, and a sum of nulls is another one.
                if str(self._spark.conf.get("spark.sql.ansi.enabled")).lower() == "true":
                    found = self._rows(schema, [bucket], self._base.added).schema
                    self._outputs[way] = StructType([part for part in found if part.name != BUCKET])
        return self._outputs[way]

    def _together(self, buckets: Sequence[int]) -> list[list[int]]:
        base = self._base
        added = {bucket: frozenset(base.added[bucket]) for bucket in buckets}
        return together(added, {bucket: frozenset(base.files[bucket]) for bucket in buckets})

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

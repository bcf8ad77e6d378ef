"""How a view's buckets are computed: one Spark job over exactly their files, for a generation or an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from mv_assets.buckets import Buckets
from mv_assets.config import Storage
from mv_assets.observe.additions import together
from mv_assets.run.body import rows_of_all, rows_of_bucket, rows_of_buckets
from mv_assets.spark.errors import JobFailed, Unreadable
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.job_size import size
from mv_assets.spark.merge import mergeable, merged
from mv_assets.spark.names import TemporaryNames
from mv_assets.spark.read.files import quoted
from mv_assets.spark.read.readers import Reader
from mv_assets.spark.read.stored import StoredReader
from mv_assets.spark.read.windows import disagreed_on, refuse_other_days, within
from mv_assets.spark.stores import options, spark_path
from mv_assets.spark_sql.grain import begins
from mv_assets.spark_sql.merge import Merging
from mv_assets.state.model import BUCKET
from mv_assets.tables.reach import all_within
from mv_assets.tables.times import TimeColumn
from mv_assets.views.view import View, Window

# What a task has written is moved to where it is read from when all are done, not when it is: of two attempts
# at one task, files of the one that was given up are then never there, whatever Spark is set to.
_WHOLE = {"mapreduce.fileoutputcommitter.algorithm.version": "1"}


@dataclass(frozen=True, slots=True)
class TimedTable:
    """A table of which a bucket reads a window: how it is read, and the files of each bucket's window."""

    window: Window
    time: TimeColumn
    reader: Reader
    files: Mapping[int, Sequence[str]]
    sizes: Mapping[str, int]
    # Where the rows of a file lie in time, end inclusive.
    spans: Mapping[str, tuple[int, int]]
    # What its times are truncated to, by the clocks of their zone.
    grain: str | None = None

    def size(self, buckets: Iterable[int]) -> int:
        """How many bytes the files of some buckets have, each counted once."""
        return sum(self.sizes[name] for name in {name for bucket in buckets for name in self.files[bucket]})

    def lie_in(self, names: Iterable[str], stretches: Sequence[tuple[int, int]]) -> bool:
        """Whether by the listing all that is read of some files, and has a time, lies in these stretches."""
        return self.reader.by_file and all_within(map(self.spans.__getitem__, names), stretches)


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of buckets, and the files that came to them since: together they are enough."""

    reader: StoredReader
    added: Mapping[int, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A table that the SQL joins, whole."""

    name: str
    reader: Reader
    files: Sequence[str]
    size: int


@dataclass(frozen=True, slots=True)
class Alike:
    """Buckets whose files have the same columns together, so that one job may compute or merge them.

    `schemas` are those columns, of each table with a time.
    """

    schemas: tuple[StructType, ...]
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


Schemas = Sequence[StructType]
# What decides on how a bucket is computed: its columns, and whether it is merged.
_Way = tuple[tuple[str, ...], bool]
# Files in a schema, of which the rows in some buckets are wanted.
_Asked = tuple[StructType, tuple[str, ...], tuple[int, ...]]


def _columns(*schemas: StructType) -> tuple[str, ...]:
    """What tells schemas apart: a function may go by the order of columns, too."""
    return tuple(f"{at} {part.name} {part.dataType}" for at, schema in enumerate(schemas) for part in schema)


class Computation:
    """Computes buckets of one view in a session of its own."""

    def __init__(
        self,
        spark: SparkSession,
        view: View,
        tables: Sequence[TimedTable],
        dimensions: Iterable[Dimension],
        names: TemporaryNames,
        stored: Stored | None = None,
        storage: Storage | None = None,
        *,
        apart: bool = False,
    ) -> None:
        self._spark = spark
        # Whether buckets are kept apart: no more than one file for each of them, if it is not large.
        self._apart = apart
        self._view = view
        self._tables = tuple(tables)
        self._dimensions = tuple(dimensions)
        self._names = names
        self._stored = stored
        # How that is reached which is written to.
        self._storage = storage
        self._joined: dict[str, DataFrame] = {}
        self._outputs: dict[tuple[str, ...], StructType | None] = {}
        # What was asked for last, and its rows.
        self._last: tuple[_Asked, DataFrame] | None = None

    def groups(self, buckets: Sequence[int]) -> Groups:
        """How to compute some buckets.

        A bucket's types follow from its own files, whatever it is computed together with.
        """
        empty, failing = list[int](), dict[int, str]()
        found, schemas = dict[_Way, list[int]](), dict[_Way, tuple[StructType, ...]]()
        with spark_errors():
            try:
                self._join()
            except Unreadable as error:
                return Groups(failing=dict.fromkeys(buckets, str(error)))
            for table in self._tables:
                table.reader.learn(sorted({name for bucket in buckets for name in table.files[bucket]}))
            failing |= self._by_other_clocks(buckets)
            for bucket in buckets:
                if bucket in failing:
                    continue
                try:
                    if not any(table.reader.files(table.files[bucket]) for table in self._tables):
                        empty.append(bucket)
                        continue
                    its = tuple(self._schema(table, bucket) for table in self._tables)
                except Unreadable as error:
                    failing[bucket] = str(error)
                    continue
                way = (_columns(*its), self._merges(bucket, its))
                schemas[way] = its
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
        view, stored = self._view, self._stored
        with spark_errors():
            if alike.merged and view.merging is not None and stored is not None:
                rows = self._merged(alike.schemas, buckets, stored, view.merging)
            else:
                rows = self.rows(alike.schemas, buckets)
            if view.by_bucket or not view.body.aggregates or (self._apart and len(buckets) > 1):
                # As many files as the rows need, not as many as were read; aggregates are dealt out already.
                rows = rows.hint("rebalance", BUCKET)
            if len(buckets) > 1:
                # Each bucket in one stretch of a file: readers skip the others.
                rows = rows.sortWithinPartitions(BUCKET)
            rows.write.options(**_WHOLE, **options([place], self._storage)).parquet(spark_path(place))

    def rows(self, schemas: Schemas, buckets: Sequence[int]) -> DataFrame:
        """The view's rows in some buckets, each with the start of its bucket."""
        if not self._view.by_bucket:
            return self._rows(schemas, buckets, self._tables[0].files)
        joined = sum(dimension.size for dimension in self._dimensions)
        read = sum(table.size([bucket]) for table in self._tables for bucket in buckets)
        size(self._spark, read // len(buckets) + joined)
        parts = [self._rows_of(schemas, bucket) for bucket in buckets]
        return rows_of_buckets(self._view, parts, self._names)

    def _rows_of(self, schemas: Schemas, bucket: int) -> DataFrame:
        """One bucket by itself: its rows depend on no other that is computed with it."""
        frames = {
            table.window.table: table.reader.frame(table.files[bucket], schema).where(
                _within(table, table.files[bucket], schema, self._view.buckets, [[bucket]])
            )
            for table, schema in zip(self._tables, schemas, strict=True)
        }
        return rows_of_bucket(self._spark, self._view, bucket, {**frames, **self._joined}, self._names)

    def _rows(
        self, schemas: Schemas, buckets: Sequence[int], files: Mapping[int, Sequence[str]], stored: int = 0
    ) -> DataFrame:
        """All buckets at once, where that is proved the same."""
        [table], [schema] = self._tables, schemas
        names = sorted({name for bucket in buckets for name in files[bucket]})
        joined = sum(dimension.size for dimension in self._dimensions)
        size(self._spark, sum(table.sizes[name] for name in names) + joined + stored)
        # What is merged is asked for its types and then for its rows. Only the last is kept: a Connect server
        # looks names up late, and would find the rows of whoever has them by then.
        last, asked = self._last, (schema, tuple(names), tuple(buckets))
        if last is None or last[0] != asked:
            self._last = None
            inside = _within(table, names, schema, self._view.buckets, self._view.buckets.stretches(buckets))
            read = table.reader.frame(names, schema).where(inside)
            rows = rows_of_all(self._spark, self._view, {table.window.table: read}, self._names)
            self._last = last = asked, rows
        return last[1]

    def _merged(
        self, schemas: Schemas, buckets: Sequence[int], stored: Stored, merging: Merging
    ) -> DataFrame:
        """The same rows, of what is stored and of what came since."""
        keys = [self._view.buckets.key(bucket) for bucket in buckets]
        before = stored.reader.with_buckets(keys, stored.reader.schema(keys))
        further = self._rows(schemas, buckets, stored.added, stored.reader.size(keys))
        return merged(before, further, merging)

    def _merges(self, bucket: int, schemas: Schemas) -> bool:
        """Whether a bucket is merged: what came has the columns of what was there, which is still there."""
        view, stored, key = self._view, self._stored, self._view.buckets.key(bucket)
        if stored is None or bucket not in stored.added or view.merging is None or not stored.reader.has(key):
            return False
        [table], added = self._tables, stored.added[bucket]
        kept = sorted(set(table.files[bucket]) - set(added))
        try:
            before = stored.reader.schema([key])
            parts = [table.reader.schema(names) for names in (added, kept)]
        except Unreadable:
            return False
        after = self._output(bucket, schemas, stored.added)
        return (
            after is not None
            and all(_columns(part) == _columns(*schemas) for part in parts)
            and mergeable(before, after, view.merging, floats=view.declared.merge_floats)
        )

    def _output(self, bucket: int, schemas: Schemas, added: Mapping[int, Sequence[str]]) -> StructType | None:
        """The columns that files of a schema give; None where merging is not to be thought of."""
        way = _columns(*schemas)
        if way not in self._outputs:
            self._outputs[way] = None
            with suppress(JobFailed), spark_errors():
                # Without it, too large a sum is null, and a sum of nulls is another one.
                if str(self._spark.conf.get("spark.sql.ansi.enabled")).lower() == "true":
                    found = self._rows(schemas, [bucket], added).schema
                    self._outputs[way] = StructType([part for part in found if part.name != BUCKET])
        return self._outputs[way]

    def _together(self, buckets: Sequence[int]) -> list[list[int]]:
        [table], added = self._tables, {} if self._stored is None else self._stored.added
        files = {bucket: frozenset(table.files[bucket]) for bucket in buckets}
        return together({bucket: frozenset(added[bucket]) for bucket in buckets}, files)

    def _schema(self, table: TimedTable, bucket: int) -> StructType:
        """The columns of a bucket's files; where it has none of a table, those that other files have."""
        files, name = table.files[bucket], table.window.table
        found = table.reader.schema(files)
        if not any(part.name.lower() == table.time.name.lower() for part in found):
            raise Unreadable(
                f"the files of {name} have no column {table.time.name}, which is their time"
                if files
                else f"{name} has no rows yet, so its columns are not known"
            )
        each = map(table.reader.schema, ([file] for file in files))
        refuse_other_days(name, table.time, self._view.buckets.zone, each)
        return found

    def _by_other_clocks(self, buckets: Sequence[int]) -> dict[int, str]:
        """Buckets that can't be told from their neighbours, and why."""
        view, base = self._view.buckets, self._tables[0]
        found = dict.fromkeys(
            disagreed_on(self._spark, view, buckets),
            f"Spark's Java and Python do not agree on when it begins or ends in {view.zone}: one of them has "
            "older rules of time zones; bring Java and Python's tzdata up to date",
        )
        # What is meant bucket by bucket takes the rows whose times lie there, whatever they were made of.
        if base.grain is not None and view.zone != base.time.zone and not self._view.by_bucket:
            cut = f"it begins or ends within a {base.grain} of {base.window.table}; start the view later"
            for bucket in buckets:
                edges = (bucket, view.next(bucket))
                if not all(begins(base.grain, base.time.zone, edge) for edge in edges):
                    found[bucket] = cut
        return found

    def _join(self) -> None:
        """Have the dimensions at hand under their names."""
        for dimension in self._dimensions:
            dimension.reader.learn(dimension.files)
            schema = dimension.reader.schema(dimension.files)
            frame = dimension.reader.frame(dimension.files, schema)
            self._joined[dimension.name] = frame
            self._names.call(frame, dimension.name)


def _within(
    table: TimedTable,
    names: Iterable[str],
    schema: StructType,
    buckets: Buckets,
    stretches: Sequence[Sequence[int]],
) -> str:
    """The condition that a row of some files lies in the window of some buckets.

    Where the listing says so of all, no bounds: with others in each job, Spark would compile each anew.
    """
    [part] = [part for part in schema if part.name.lower() == table.time.name.lower()]
    before, after = table.window.before, table.window.after
    spans = [
        (buckets.window(run[0], before, 0)[0], buckets.window(run[-1], 0, after)[1]) for run in stretches
    ]
    bounds: Sequence[tuple[int | None, int | None]] = [(None, None)] if table.lie_in(names, spans) else spans
    return " OR ".join(
        within(quoted(part.name), part.dataType, table.time.unit, start, end, table.time.zone)
        for start, end in bounds
    )

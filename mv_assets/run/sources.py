"""What a view is computed from, as Spark reads it: the base by its listed files, the dimensions whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from mv_assets.errors import EngineUnavailable, JobFailed
from mv_assets.observe.additions import Addition
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.run.compute import Base, Computation, Dimension
from mv_assets.run.warehouse import Warehouse
from mv_assets.spark.arrow import by_arrow as read_by_arrow
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.readers import Reader, reader_of
from mv_assets.spark.stored import StoredReader
from mv_assets.state.leases import Leases
from mv_assets.state.model import PartitionRow
from mv_assets.state.store import Store
from mv_assets.tables.listing import Listing, Table
from mv_assets.tables.times import TimeColumn
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View


@dataclass(frozen=True, slots=True)
class Sources:
    """Where tables and views are read from."""

    catalog: Catalog
    tables: Mapping[str, Table]
    store: Store
    warehouse: Warehouse

    def computation(
        self,
        held: ExitStack,
        spark: SparkSession,
        view_inputs: ViewInputs,
        seen: Mapping[int, BucketInputs],
        merging: Mapping[int, tuple[PartitionRow, Addition]] | None = None,
        *,
        by_arrow: bool = False,
    ) -> Computation:
        """How to compute some buckets that have files; what it reads stays there until `held` is closed.

        Those of `merging` have the rows they had when they were planned, to which files were added. What is
        read `by_arrow` is not read by Spark.

        Raises:
            Unreadable: it can't be read by Arrow.

        """
        view, names = view_inputs.view, view_inputs.base.names
        files = {bucket: [names[at] for at in each.members] for bucket, each in seen.items()}
        sizes = {names[at]: view_inputs.base.sizes[at] for each in seen.values() for at in each.members}
        time, reader = self._base(held, spark, view, view_inputs.base, list(seen), by_arrow=by_arrow)
        added = {bucket: [names[at] for at in each.added] for bucket, (_, each) in (merging or {}).items()}
        stored = self._merged(held, spark, view, [row for row, _ in merging.values()]) if merging else None
        base = Base(view_inputs.base.table, time, reader, files, sizes, added, stored)
        held.push(_Forgetting(spark, (base.name, *view_inputs.dimensions)).exit)
        return Computation(spark, view, base, self._dimensions(spark, view_inputs, by_arrow=by_arrow))

    def stored(
        self,
        spark: SparkSession,
        view: str,
        rows: Mapping[str, PartitionRow],
        wanted: Iterable[str],
        *,
        by_arrow: bool = False,
    ) -> StoredReader:
        """What rows of a view's map name, each by its key."""
        files = self.store.files(view, {row.generation for row in rows.values() if row.generation})
        root, open_file = self.warehouse.root, self.warehouse.open
        return StoredReader(spark, root, open_file, rows, files, wanted, by_arrow=by_arrow)

    def _table(self, spark: SparkSession, listing: Listing, view: View, *time: str, by_arrow: bool) -> Reader:
        name, sql = listing.table, view.sql
        wanted = [*sql.used.get(name, ()), *time]
        reader = reader_of(spark, self.tables[name], listing, wanted, sql.mentioned.get(name, ()))
        return read_by_arrow(spark, self.tables[name], listing, reader) if by_arrow else reader

    def _base(
        self,
        held: ExitStack,
        spark: SparkSession,
        view: View,
        listing: Listing,
        buckets: Sequence[int],
        *,
        by_arrow: bool,
    ) -> tuple[TimeColumn, Reader]:
        name = listing.table
        if name in self.catalog.tables:
            declared = self.catalog.tables[name]
            time = TimeColumn(declared.time_column or "", declared.time_unit)
            return time, self._table(spark, listing, view, time.name, by_arrow=by_arrow)
        upstream = self.catalog.views[name]
        time = TimeColumn(upstream.declared.time_column)
        wanted = [*view.sql.used.get(name, ()), *view.sql.mentioned.get(name, ()), time.name]
        start, end = upstream.buckets.floor(min(buckets)), view.buckets.next(max(buckets))
        rows = held.enter_context(Leases(self.store).pin(name, start, end)).snapshot.rows.values()
        content = dict(zip(listing.names, listing.crcs, strict=True))
        keyed = {upstream.buckets.key(row.bucket): row for row in rows}
        as_listed = {key: row for key, row in keyed.items() if row.content == content.get(key)}
        return time, self.stored(spark, name, as_listed, wanted, by_arrow=by_arrow)

    def _merged(
        self, held: ExitStack, spark: SparkSession, view: View, rows: Sequence[PartitionRow]
    ) -> StoredReader:
        """What is stored of the view's own buckets, as far as it is what those rows name."""
        starts = [row.bucket for row in rows]
        pinned = held.enter_context(
            Leases(self.store).pin(view.name, min(starts), view.buckets.next(max(starts)))
        ).snapshot.rows
        content = {row.bucket: row.content for row in rows}
        same = [row for bucket, row in pinned.items() if bucket in content and row.content == content[bucket]]
        keyed = {view.buckets.key(row.bucket): row for row in same}
        found = self.stored(spark, view.name, keyed, view.sql.columns)
        found.learn(list(keyed))
        return found

    def _dimensions(
        self, spark: SparkSession, view_inputs: ViewInputs, *, by_arrow: bool
    ) -> Iterator[Dimension]:
        for name, listing in view_inputs.dimensions.items():
            reader = self._table(spark, listing, view_inputs.view, by_arrow=by_arrow)
            yield Dimension(name, reader, listing.names, sum(listing.sizes))


@dataclass(frozen=True, slots=True)
class _Forgetting:
    """Takes the tables' names out of a session that others will use: theirs must not find these rows."""

    spark: SparkSession
    names: tuple[str, ...]

    def exit(self, kind: type[BaseException] | None, _error: object, _trace: object) -> None:
        # Where something went wrong Spark may be gone, and asking it would take long.
        if kind is None:
            with suppress(JobFailed, EngineUnavailable), spark_errors():
                for name in self.names:
                    self.spark.catalog.dropTempView(name)

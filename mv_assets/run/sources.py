"""What a view is computed from, as Spark reads it: the base by its listed files, the dimensions whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from mv_assets.observe.additions import Addition
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.run.body import prepared
from mv_assets.run.compute import Computation, Dimension, Stored, TimedTable
from mv_assets.run.warehouse import Warehouse
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.names import TemporaryNames
from mv_assets.spark.read.arrow import by_arrow as read_by_arrow
from mv_assets.spark.read.readers import Reader, reader_of
from mv_assets.spark.read.stored import StoredReader
from mv_assets.spark.session import in_zone
from mv_assets.spark.stores import see_reached
from mv_assets.state import rules
from mv_assets.state.leases import Leases, Pinned
from mv_assets.state.model import BUCKET, PartitionRow
from mv_assets.state.store import Store
from mv_assets.tables.listing import Listing, Table
from mv_assets.tables.times import TimeColumn
from mv_assets.tables.types import types_in
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View

# Buckets to merge: each with the row it had when it was planned, and the files that were added to that.
Merging = Mapping[int, tuple[PartitionRow, Addition]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where tables and views are read from."""

    catalog: Catalog
    tables: Mapping[str, Table]
    store: Store
    warehouse: Warehouse

    @contextmanager
    def computation(
        self,
        spark: SparkSession,
        view_inputs: ViewInputs,
        seen: Mapping[int, BucketInputs],
        merging: Merging | None = None,
        *,
        by_arrow: bool = False,
    ) -> Iterator[Computation]:
        """How to compute some buckets that have files; what is read stays there while the block runs.

        What is read `by_arrow` is not read by Spark.

        Raises:
            JobFailed: it can't be read by Spark, or by Arrow.
            StoreUnavailable: Spark can't reach the store that a table or the warehouse is in.

        """
        view = view_inputs.view
        if not by_arrow:
            self._see_reached(spark, view_inputs)
        with ExitStack() as held:
            pinned = [held.enter_context(each) for each in self._upstream(view_inputs, seen)]
            own = held.enter_context(self._own(view, merging))
            held.enter_context(in_zone(spark, view.buckets.zone))
            names = held.enter_context(TemporaryNames(spark))
            with spark_errors():
                held.enter_context(prepared(self.catalog, view, names))
                tables = [
                    self._timed(spark, view_inputs, place, seen, below, by_arrow=by_arrow)
                    for place, below in enumerate(pinned)
                ]
                stored = None if own is None else self._merged(spark, view_inputs, own, merging or {})
                dimensions = self._dimensions(spark, view_inputs, by_arrow=by_arrow)
                # A published file is copied whenever one of its buckets is replaced: each has few of them.
                apart = self.catalog.target(view.name) is not None
                computation = Computation(
                    spark, view, tables, dimensions, names, stored, self.warehouse.storage, apart=apart
                )
            yield computation

    def _see_reached(self, spark: SparkSession, view_inputs: ViewInputs) -> None:
        for listing in (*view_inputs.listings, *view_inputs.dimensions.values()):
            if listing.table in self.tables:
                storage = self.catalog.tables[listing.table].storage
                see_reached(spark, f"table {listing.table}", listing.details.root, storage)
        see_reached(spark, "the warehouse", self.warehouse.root, self.warehouse.storage)

    def stored(
        self,
        spark: SparkSession,
        view: str,
        rows: Mapping[str, PartitionRow],
        wanted: Iterable[str] | None,
        *,
        by_arrow: bool = False,
    ) -> StoredReader:
        """What rows of a view's map name, each by its key; None are all columns."""
        files = self.store.files(view, {row.generation for row in rows.values() if row.generation})
        root, open_file, storage = self.warehouse.root, self.warehouse.open, self.warehouse.storage
        unknown = partial(self._columns_of, view)
        return StoredReader(
            spark, root, open_file, rows, files, wanted, by_arrow=by_arrow, unknown=unknown, storage=storage
        )

    def _columns_of(self, view: str, _wanted: frozenset[str]) -> dict[str, str]:
        """The columns of a view, by its newest file; none if it never had a row."""
        snapshot = self.store.snapshot(view)
        for row in sorted(snapshot.rows.values(), key=lambda row: row.bucket, reverse=True):
            if row.generation is not None and row.rows and rules.has_current_data(row, snapshot.header):
                file = self.store.files(view, [row.generation])[row.generation][0]
                with self.warehouse.open(file.path) as opened:
                    kinds = types_in(pq.ParquetFile(opened))
                return {name: kind for name, kind in kinds.items() if name != BUCKET}
        return {}

    def _upstream(
        self, view_inputs: ViewInputs, seen: Mapping[int, BucketInputs]
    ) -> Iterator[AbstractContextManager[Pinned | None]]:
        """For each window, what is stored of the view that it is one of, if it is."""
        buckets = view_inputs.view.buckets
        for window in view_inputs.view.windows:
            upstream = self.catalog.views.get(window.table)
            if upstream is None:
                yield nullcontext()
                continue
            begin, _ = buckets.window(min(seen), window.before, window.after)
            _, end = buckets.window(max(seen), window.before, window.after)
            yield Leases(self.store).pin(upstream.name, upstream.buckets.floor(begin), end)

    def _own(self, view: View, merging: Merging | None) -> AbstractContextManager[Pinned | None]:
        """What is stored of the view's own buckets, if there are any to merge."""
        if not merging:
            return nullcontext()
        return Leases(self.store).pin(view.name, min(merging), view.buckets.next(max(merging)))

    def _table(self, spark: SparkSession, listing: Listing, view: View, *time: str, by_arrow: bool) -> Reader:
        name, body = listing.table, view.body
        wanted = None if body.reads_all else [*body.used.get(name, ()), *time]
        reader = reader_of(spark, self.tables[name], listing, wanted, body.mentioned.get(name, ()))
        return read_by_arrow(spark, self.tables[name], listing, reader) if by_arrow else reader

    def _timed(
        self,
        spark: SparkSession,
        view_inputs: ViewInputs,
        place: int,
        seen: Mapping[int, BucketInputs],
        upstream: Pinned | None,
        *,
        by_arrow: bool,
    ) -> TimedTable:
        """One of the tables with a time, by the place of its window."""
        view, listing = view_inputs.view, view_inputs.listings[place]
        time, reader = self._reader(spark, view, listing, upstream, by_arrow=by_arrow)
        reached = {bucket: each.reached[place] for bucket, each in seen.items()}
        files = {bucket: [listing.names[at] for at in places] for bucket, places in reached.items()}
        named = {listing.names[at]: at for places in reached.values() for at in places}
        sizes = {name: listing.sizes[at] for name, at in named.items()}
        spans = {name: (listing.starts[at], listing.ends[at]) for name, at in named.items()}
        below = self.catalog.views.get(listing.table)
        grain = None if below is None else below.body.grain
        return TimedTable(view.windows[place], time, reader, files, sizes, spans, grain)

    def _reader(
        self, spark: SparkSession, view: View, listing: Listing, upstream: Pinned | None, *, by_arrow: bool
    ) -> tuple[TimeColumn, Reader]:
        name = listing.table
        if upstream is None:
            declared = self.catalog.tables[name]
            time = TimeColumn(declared.time_column or "", declared.time_unit)
            return time, self._table(spark, listing, view, time.name, by_arrow=by_arrow)
        base = self.catalog.views[name]
        time = TimeColumn(base.declared.time_column, zone=base.buckets.zone)
        content = dict(zip(listing.names, listing.crcs, strict=True))
        keyed = {base.buckets.key(row.bucket): row for row in upstream.snapshot.rows.values()}
        as_listed = {key: row for key, row in keyed.items() if row.content == content.get(key)}
        wanted = [*view.body.used.get(name, ()), *view.body.mentioned.get(name, ()), time.name]
        columns = None if view.body.reads_all else wanted
        return time, self.stored(spark, name, as_listed, columns, by_arrow=by_arrow)

    def _merged(self, spark: SparkSession, view_inputs: ViewInputs, own: Pinned, merging: Merging) -> Stored:
        """The view's own buckets, as far as they are still what files were added to."""
        view, names = view_inputs.view, view_inputs.base.names
        content = {bucket: row.content for bucket, (row, _) in merging.items()}
        now = own.snapshot.rows.items()
        same = [row for bucket, row in now if bucket in content and row.content == content[bucket]]
        keyed = {view.buckets.key(row.bucket): row for row in same}
        found = self.stored(spark, view.name, keyed, view.body.columns)
        found.learn(list(keyed))
        return Stored(found, {b: [names[at] for at in each.added] for b, (_, each) in merging.items()})

    def _dimensions(
        self, spark: SparkSession, view_inputs: ViewInputs, *, by_arrow: bool
    ) -> Iterator[Dimension]:
        for name, listing in view_inputs.dimensions.items():
            reader = self._table(spark, listing, view_inputs.view, by_arrow=by_arrow)
            yield Dimension(name, reader, listing.names, sum(listing.sizes))

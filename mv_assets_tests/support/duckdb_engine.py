"""DuckDB where Spark would compute: all around the job is the real thing, and no test waits for a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sqlglot
from pyspark.sql.types import StructType

from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.run.compute import Alike, Groups
from mv_assets.run.opened import OpenProject
from mv_assets.run.sources import Sources
from mv_assets.run.warehouse import Warehouse
from mv_assets.spark.errors import JobFailed, Unreadable
from mv_assets.spark.read.deletes import deleted_in, deletes_of
from mv_assets.state.leases import Pinned
from mv_assets.state.model import BUCKET, PartitionRow
from mv_assets.tables.listing import Listing
from mv_assets.views.python import Bucket, ViewFunction
from mv_assets.views.view import View, Window
from mv_assets_tests.support.spark_lake import timestamp


@cache
def _duck() -> duckdb.DuckDBPyConnection:
    """One a process: to start one takes longer than what is asked of it."""
    return duckdb.connect(config={"threads": 1})


class DuckDbEngine:
    """Nothing has to be started."""

    def check(self) -> None:
        with self.session():
            pass

    @contextmanager
    def session(self) -> Iterator[None]:
        yield None


@dataclass(frozen=True)
class DuckDbTable:
    """A table of which a bucket reads a window: the files of each bucket, and one that tells its columns."""

    window: Window
    time_column: str
    files: Mapping[int, Sequence[str]]
    like: str | None
    # The places of deleted rows in a file.
    deleted: Callable[[str], Sequence[int]]

    def read(self, buckets: Sequence[int]) -> str:
        names = sorted({name for bucket in buckets for name in self.files[bucket]})
        if names or self.like is None:
            return _read(names, {name: gone for name in names if (gone := self.deleted(name))})
        return f"{_read([self.like])} WHERE false"


@dataclass(frozen=True)
class DuckDbView:
    """A view of which a bucket reads a window: the rows of its map that are still what was listed."""

    window: Window
    time_column: str
    # By bucket, the buckets that it reads of the view below.
    below: Mapping[int, Sequence[int]]
    rows: Mapping[int, PartitionRow]
    files: Mapping[str, Sequence[str]]
    # Those of another bucket, which tell the columns where there is no row.
    like: Sequence[str]

    def read(self, buckets: Sequence[int]) -> str:
        parts = []
        for start in sorted({start for bucket in buckets for start in self.below[bucket]}):
            if start not in self.rows:
                raise Unreadable(f"bucket {start} is no longer what it was when it was listed")
            generation = self.rows[start].generation
            if generation is not None:
                rows = _read(self.files[generation])
                parts.append(f"SELECT * EXCLUDE ({BUCKET}) FROM ({rows}) WHERE {BUCKET} = {start}")
        return (
            " UNION ALL BY NAME ".join(parts)
            or f"SELECT * EXCLUDE ({BUCKET}) FROM ({_read(self.like)}) LIMIT 0"
        )


@dataclass(frozen=True)
class DuckDbComputation:
    """Computes buckets of one view from the files that a look listed."""

    view: View
    tables: Sequence[DuckDbTable | DuckDbView]
    dimensions: Mapping[str, Sequence[str]]
    create: Callable[[str], Any]

    def groups(self, buckets: Sequence[int]) -> Groups:
        return Groups(alike=(Alike((StructType(),), tuple(buckets)),))

    def write(self, _alike: Alike, buckets: Sequence[int], place: str) -> None:
        try:
            alone = [[bucket] for bucket in buckets] if self.view.by_bucket else [buckets]
            rows = pa.concat_tables([self._rows(each) for each in alone], promote_options="permissive")
            with self.create(f"{place}/part-0.parquet") as out:
                pq.write_table(rows, out)
        except (duckdb.Error, OSError, Unreadable) as error:
            raise JobFailed(str(error)) from error

    def _rows(self, buckets: Sequence[int]) -> pa.Table:
        view, time = self.view, self.view.declared.time_column
        read = {table.window.table: self._source(table, buckets) for table in self.tables}
        read |= {name: _read(files) for name, files in self.dimensions.items()}
        with _duck().cursor() as connection:
            connection.execute(f"SET TimeZone = '{view.declared.timezone}'")
            if isinstance(view.body, ViewFunction):
                frames = {name: connection.sql(source).to_arrow_table() for name, source in read.items()}
                rows = view.body.function(**frames, bucket=_bucket(view, *buckets))
            else:
                for name, source in read.items():
                    connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {source}")
                made = f"SELECT * FROM ({self._sql(buckets)}) ORDER BY {time}"
                rows = connection.sql(made).to_arrow_table()
        times = rows[time].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
        starts = pa.array([view.buckets.floor(each) for each in times], pa.int64())
        rows = rows.append_column(BUCKET, starts)
        return rows.filter(pc.is_in(starts, pa.array(buckets, pa.int64())))

    def _source(self, table: DuckDbTable | DuckDbView, buckets: Sequence[int]) -> str:
        """What the SQL reads under a table's name; of a view that is meant bucket by bucket, a window."""
        if not self.view.by_bucket:
            return table.read(buckets)
        [bucket] = buckets
        begin, end = self.view.buckets.window(bucket, table.window.before, table.window.after)
        time = f'"{table.time_column}"'
        return (
            f"SELECT * FROM ({table.read(buckets)}) "
            f"WHERE {time} >= {timestamp(begin)} AND {time} < {timestamp(end)}"
        )

    def _sql(self, buckets: Sequence[int]) -> str:
        sql = sqlglot.transpile(self.view.select.bare, "spark", "duckdb")[0]
        end = self.view.buckets.next(buckets[0])
        return sql.replace("$bucket_start", timestamp(buckets[0])).replace("$bucket_end", timestamp(end))


def _bucket(view: View, start: int) -> Bucket:
    begin, end = (datetime.fromtimestamp(at / 1_000, UTC) for at in (start, view.buckets.next(start)))
    return Bucket(begin, end, view.buckets.key(start))


def _read(files: Sequence[str], gone: Mapping[str, Sequence[int]] = MappingProxyType({})) -> str:
    """The rows of files, without those at deleted places."""
    if not gone:
        return f"SELECT * FROM read_parquet({list(files)}, union_by_name = true)"
    deleted = " OR ".join(
        f"(filename = '{name}' AND file_row_number IN ({', '.join(map(str, places))}))"
        for name, places in gone.items()
    )
    listed = f"{list(files)}, union_by_name = true, filename = true, file_row_number = true"
    return f"SELECT * EXCLUDE (filename, file_row_number) FROM read_parquet({listed}) WHERE NOT ({deleted})"


class DuckDbSources(Sources):
    """Sources whose stages DuckDB carries out."""

    __slots__ = ()

    @contextmanager
    def computation(  # type: ignore[override]
        self,
        _spark: Any,
        view_inputs: ViewInputs,
        seen: Mapping[int, BucketInputs],
        _merging: object = None,
    ) -> Iterator[DuckDbComputation]:
        with ExitStack() as held:
            tables = [
                self._files(view_inputs, place, seen)
                if upstream is None
                else self._rows(view_inputs, place, seen, upstream)
                for place, upstream in enumerate(map(held.enter_context, self._upstream(view_inputs, seen)))
            ]
            dimensions = {
                name: [f"{self._root(listing)}/{each}" for each in listing.names]
                for name, listing in view_inputs.dimensions.items()
            }
            yield DuckDbComputation(view_inputs.view, tables, dimensions, self._create)

    def _rows(
        self, view_inputs: ViewInputs, place: int, seen: Mapping[int, BucketInputs], upstream: Pinned
    ) -> DuckDbView:
        listing, base = view_inputs.listings[place], self.catalog.view(view_inputs.listings[place].table)
        listed = dict(zip(listing.starts, listing.crcs, strict=True))
        rows = {
            start: row for start, row in upstream.snapshot.rows.items() if row.content == listed.get(start)
        }
        known = (*upstream.snapshot.rows.values(), *self.store.snapshot(base.name).rows.values())
        named = self.store.files(base.name, {row.generation for row in known if row.generation})
        files = {
            generation: [f"{self.warehouse.root}/{file.path}" for file in each]
            for generation, each in named.items()
        }
        like = next(iter(files.values()), [])
        below = {bucket: [listing.starts[at] for at in each.reached[place]] for bucket, each in seen.items()}
        time = base.declared.time_column
        return DuckDbView(view_inputs.view.windows[place], time, below, rows, files, like)

    def _files(self, view_inputs: ViewInputs, place: int, seen: Mapping[int, BucketInputs]) -> DuckDbTable:
        listing, window = view_inputs.listings[place], view_inputs.view.windows[place]
        paths = [f"{self._root(listing)}/{name}" for name in listing.names]
        names = dict(zip(paths, listing.names, strict=True))
        files = {bucket: [paths[at] for at in each.reached[place]] for bucket, each in seen.items()}
        whole = (path for path, name in zip(paths, listing.names, strict=True) if name not in listing.broken)
        time = self.catalog.tables[listing.table].time_column or ""
        return DuckDbTable(
            window, time, files, next(whole, None), lambda path: self._deleted(listing, names[path])
        )

    def _deleted(self, listing: Listing, name: str) -> list[int]:
        if not deletes_of(listing, [name]):
            return []
        table: Any = self.tables[listing.table]
        places: list[int] = deleted_in(table, listing)(name).to_pylist()
        return places

    def _root(self, listing: Listing) -> str:
        # A store of ours is this machine's disk.
        return (self.catalog.tables[listing.table].path or "").removeprefix("s3://lake")

    def _create(self, place: str) -> Any:
        return self.warehouse.create(place.removeprefix(f"{self.warehouse.root}/"))


class DuckDbProject(OpenProject):
    """A project without Spark."""

    __slots__ = ()

    @property
    def sources(self) -> Sources:
        return DuckDbSources(self.catalog, self.tables, self.store, Warehouse(self.warehouse.root))

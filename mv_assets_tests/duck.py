"""DuckDB where Spark would compute: all around the job is the real thing, and no test waits for a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sqlglot
from pyspark.sql.types import StructType

from mv_assets.errors import JobFailed
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.run.compute import Alike, Groups
from mv_assets.run.opened import OpenProject
from mv_assets.run.sources import Sources
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.model import BUCKET
from mv_assets.tables.listing import Listing
from mv_assets.views.view import View


@cache
def _duck() -> duckdb.DuckDBPyConnection:
    """One a process: to start one takes longer than what is asked of it."""
    return duckdb.connect(config={"threads": 1})


class DuckEngine:
    """Nothing has to be started."""

    def check(self) -> None:
        with self.session():
            pass

    @contextmanager
    def session(self) -> Iterator[None]:
        yield None


@dataclass(frozen=True)
class DuckComputation:
    """Computes buckets of one view from the files that a look listed."""

    view: View
    tables: Mapping[str, Sequence[str]]
    files: Mapping[int, Sequence[str]]
    create: Callable[[str], Any]

    def groups(self, buckets: Sequence[int]) -> Groups:
        return Groups(alike=(Alike(StructType(), tuple(buckets)),))

    def write(self, _alike: Alike, buckets: Sequence[int], place: str) -> None:
        names = sorted({name for bucket in buckets for name in self.files[bucket]})
        try:
            rows = self._rows({**self.tables, self.view.declared.base: names}, buckets)
            with self.create(f"{place}/part-0.parquet") as out:
                pq.write_table(rows, out)
        except (duckdb.Error, OSError) as error:
            raise JobFailed(str(error)) from error

    def _rows(self, tables: Mapping[str, Sequence[str]], buckets: Sequence[int]) -> pa.Table:
        view, time = self.view, self.view.declared.time_column
        with _duck().cursor() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name, files in tables.items():
                read = f"read_parquet({list(files)}, union_by_name = true)"
                connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM {read}")
            sql = sqlglot.transpile(view.declared.sql, "spark", "duckdb")[0]
            rows = connection.sql(f"SELECT * FROM ({sql}) ORDER BY {time}").to_arrow_table()
        times = rows[time].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
        starts = pa.array([view.buckets.floor(each) for each in times], pa.int64())
        rows = rows.append_column(BUCKET, starts)
        return rows.filter(pc.is_in(starts, pa.array(buckets, pa.int64())))


class DuckSources(Sources):
    """Sources whose stages DuckDB carries out."""

    __slots__ = ()

    def computation(  # type: ignore[override]
        self,
        _held: ExitStack,
        _spark: Any,
        view_inputs: ViewInputs,
        seen: Mapping[int, BucketInputs],
        _merging: object = None,
    ) -> DuckComputation:
        names, root = view_inputs.base.names, self._root(view_inputs.base)
        files = {bucket: [f"{root}/{names[at]}" for at in each.members] for bucket, each in seen.items()}
        dimensions = {
            name: [f"{self._root(listing)}/{each}" for each in listing.names]
            for name, listing in view_inputs.dimensions.items()
        }
        return DuckComputation(view_inputs.view, dimensions, files, self._create)

    def _root(self, listing: Listing) -> str:
        return self.catalog.tables[listing.table].path or ""

    def _create(self, place: str) -> Any:
        return self.warehouse.create(place.removeprefix(f"{self.warehouse.root}/"))


class DuckProject(OpenProject):
    """A project without Spark."""

    __slots__ = ()

    @property
    def sources(self) -> Sources:
        return DuckSources(self.catalog, self.tables, self.store, Warehouse(self.warehouse.root))

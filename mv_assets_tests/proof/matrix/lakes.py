"""The lakes of the matrix: of a table format with rows that were deleted by themselves, or published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from mv_assets_tests.proof.matrix.stores import STORE
from mv_assets_tests.support.published_lake import PublishedLake
from mv_assets_tests.support.warehouse_lake import DuckDbLake
from mv_assets_tests.unit.tables.delta import log as delta_log
from mv_assets_tests.unit.tables.delta.library import deleted_by_library
from mv_assets_tests.unit.tables.iceberg import log as iceberg_log

_SCHEMA = pa.schema({"at": pa.timestamp("us", "UTC"), "x": pa.int64()})


@dataclass
class LakehouseLake(DuckDbLake):
    """Its `events` are a Delta or an Iceberg table: each file that is written is one commit more."""

    def write(self, name: str, times: Iterable[datetime], value: int = 0, table: str = "events") -> Path:
        listed = list(times)
        if table != "events":
            return super().write(name, listed, value, table)
        self.append(pa.table({"at": listed, "x": [value] * len(listed)}, _SCHEMA))
        return self.root

    @property
    def root(self) -> Path:
        return self.folder / "events"

    def append(self, rows: pa.Table) -> None:
        raise NotImplementedError

    def held(self) -> pa.Table:
        """What the table holds, not by mv_assets."""
        raise NotImplementedError

    def delete_rows(self) -> None:
        """Take single rows out of two files, in each way that the format has."""
        raise NotImplementedError

    def compact(self, *_: Any, **__: Any) -> None:
        """Put the rows of all files into one, and have the table say so."""
        raise NotImplementedError

    def tell(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        if name == "events":
            connection.register(name, self.held())
        else:
            super().tell(connection, name)


@dataclass
class DeltaLake(LakehouseLake):
    def append(self, rows: pa.Table) -> None:
        write_deltalake(self.root, rows, mode="append")

    def held(self) -> pa.Table:
        gone, found = deleted_by_library(self.root), []
        for uri in DeltaTable(self.root).file_uris():
            name = uri.removeprefix(f"{self.root}/")
            rows = pq.read_table(self.root / name, partitioning=None)
            found.append(rows.take([at for at in range(len(rows)) if at not in gone.get(name, ())]))
        return pa.concat_tables(found)

    def delete_rows(self) -> None:
        _, second, third, _ = [each["path"] for each in delta_log.actions(self.root, "add")]
        [vector] = delta_log.vector_file(self.root, [0])
        delta_log.with_vector(self.root, vector, second)
        delta_log.with_vector(self.root, delta_log.deletion_vector(0), third)

    def compact(self, *_: Any, **__: Any) -> None:
        DeltaTable(self.root).optimize.compact()


@dataclass
class IcebergLake(LakehouseLake):
    @contextmanager
    def library(self) -> Iterator[SqlCatalog]:
        with closing(SqlCatalog("c", uri=f"sqlite:///{self.folder}/theirs.db")) as opened:
            opened.create_namespace_if_not_exists("db")
            yield opened

    def opened(self, catalog: SqlCatalog) -> Table:
        place = f"file://{self.root}"
        return catalog.create_table_if_not_exists("db.t", _SCHEMA, place, properties={"format-version": "2"})

    def append(self, rows: pa.Table) -> None:
        with self.library() as catalog:
            self.opened(catalog).append(rows)

    def held(self) -> pa.Table:
        with self.library() as catalog:
            return self.opened(catalog).scan().to_arrow()

    def delete_rows(self) -> None:
        second, third = sorted(self._files(), key=self._first)[1:3]
        deletes = iceberg_log.position_deletes(self.root / "data" / "deletes.parquet", (second, 0))
        bounds = iceberg_log.bounds(iceberg_log.FILE_PATH, third.encode(), third.encode())
        vector = iceberg_log.vectors(self.root / "data" / "vector.puffin", {third: [0]}, **bounds)
        self._by_hand(deletes, *vector)

    def compact(self, *_: Any, **__: Any) -> None:
        gone, path, rows = self._files(), self.root / "data" / "compacted.parquet", self.held().sort_by("at")
        pq.write_table(iceberg_log.with_ids(rows, {"at": 1, "x": 2}), path)
        times = [each.to_bytes(8, "little") for each in rows["at"].cast(pa.int64()).to_pylist()]
        size, bounds = path.stat().st_size, iceberg_log.bounds(1, times[0], times[-1])
        file = iceberg_log.data_file(f"file://{path}", len(rows), file_size_in_bytes=size, **bounds)
        self._by_hand(file, remove=gone, operation="replace")

    def _files(self) -> list[str]:
        with self.library() as catalog:
            return [task.file.file_path for task in self.opened(catalog).scan().plan_files()]

    def _first(self, path: str) -> Any:
        return pq.read_table(path.removeprefix("file://"))["at"][0].as_py()

    def _by_hand(self, *files: DataFile, **how: Any) -> None:
        """A commit that the library can't make, of which its catalog is told."""
        iceberg_log.commit(self.root, *files, **how)
        with self.library() as catalog:
            catalog.drop_table("db.t")
            catalog.register_table("db.t", f"file://{iceberg_log.newest(self.root)}")


@dataclass
class StoreLake(DuckDbLake):
    """Its `events` are in an object store, as Arrow reaches one."""

    def __post_init__(self) -> None:
        self.table = {"path": f"{STORE}{self.folder}/events"}
        super().__post_init__()


# By the format of the table that the views are based on, or that in which they are published; others are
# folders of Parquet.
LAKES: dict[str, Callable[..., DuckDbLake]] = {
    "store": StoreLake,
    "delta": partial(DeltaLake, table={"format": "delta"}),
    "iceberg": partial(IcebergLake, table={"format": "iceberg", "unsafe": True}),
    "published in delta": partial(PublishedLake, format="delta"),
    "published in iceberg": partial(PublishedLake, format="iceberg"),
}

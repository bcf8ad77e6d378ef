"""Lakes whose views are published, and readers that know nothing of us: pyiceberg, deltalake, DuckDB."""

from __future__ import annotations

import sqlite3
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import Catalog as IcebergCatalog
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable

from mv_assets.config import DeltaTarget, IcebergTarget, Target
from mv_assets.maintain.garbage import GcReport
from mv_assets.publish.contents import DIGEST, VERSION
from mv_assets.publish.open import open_target
from mv_assets.publish.publisher import PublishedView, Publisher
from mv_assets.state import rules
from mv_assets.state.model import BUCKET, Publication
from mv_assets.state.publications import Publications
from mv_assets.state.store import Store
from mv_assets_tests.support.warehouse_lake import DuckDbLake

KEEP = 86_400_000
Rows = list[tuple[Any, ...]]


def rows_of(table: pa.Table) -> Rows:
    """Rows in an order of their own, and by name whatever the order of columns."""
    names = sorted(table.column_names)
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True), key=repr)


class Reader(ABC):
    """Somebody who has a table's name, and a library."""

    @abstractmethod
    def rows(self, name: str = "v", snapshot: str | None = None) -> pa.Table:
        """A table, or one of its snapshots."""

    @abstractmethod
    def snapshots(self, name: str = "v") -> dict[str, int | None]:
        """All that can be read, with the map's version that each says it shows."""

    @abstractmethod
    def digests(self, name: str = "v") -> set[tuple[int, str]]:
        """The versions that can be read, each with the digest of its contents."""

    @abstractmethod
    def summary(self, name: str = "v") -> Mapping[str, Any]:
        """What the newest says of itself."""

    @abstractmethod
    def files(self, name: str = "v") -> list[str]:
        """The local paths of the newest's files."""

    @abstractmethod
    def held(self, name: str = "v") -> Callable[[], pa.Table]:
        """The newest as somebody reads it who has loaded the table now."""

    @abstractmethod
    def exists(self, name: str = "v") -> bool: ...

    @abstractmethod
    def scribble(self, name: str = "v") -> None:
        """Write rows into the table, as somebody who takes it for theirs."""

    def by_duckdb(self, name: str = "v") -> pa.Table:
        """The newest, by an engine of another make over its list of files."""
        columns = ", ".join(f'"{each}"' for each in self.rows(name).column_names)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            # A column that came later is null in the files before it.
            files = f"read_parquet({self.files(name)}, union_by_name = true)"
            return connection.sql(f"SELECT {columns} FROM {files}").to_arrow_table()


class IcebergReader(Reader):
    def __init__(self, properties: Mapping[str, str], namespace: str = "marts") -> None:
        self._properties = dict(properties)
        self._namespace = namespace

    @property
    def catalog(self) -> IcebergCatalog:
        catalog = load_catalog(None, **self._properties)
        if isinstance(catalog, SqlCatalog):
            # Tables hold it for as long as they like, and nobody says when that is over.
            weakref.finalize(catalog, catalog.engine.dispose)
        return catalog

    def table(self, name: str = "v") -> IcebergTable:
        return self.catalog.load_table(f"{self._namespace}.{name}")

    def rows(self, name: str = "v", snapshot: str | None = None) -> pa.Table:
        return self.table(name).scan(snapshot_id=None if snapshot is None else int(snapshot)).to_arrow()

    def snapshots(self, name: str = "v") -> dict[str, int | None]:
        found = self.table(name).metadata.snapshots
        versions = {str(each.snapshot_id): each.summary and each.summary.get(VERSION) for each in found}
        return {snapshot: int(version) if version else None for snapshot, version in versions.items()}

    def digests(self, name: str = "v") -> set[tuple[int, str]]:
        found = [each.summary for each in self.table(name).metadata.snapshots]
        return {(int(str(each[VERSION])), str(each[DIGEST])) for each in found if each and each.get(VERSION)}

    def summary(self, name: str = "v") -> Mapping[str, Any]:
        snapshot = self.table(name).current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        return snapshot.summary.additional_properties

    def files(self, name: str = "v") -> list[str]:
        tasks = self.table(name).scan().plan_files()
        return [task.file.file_path.removeprefix("file://") for task in tasks]

    def held(self, name: str = "v") -> Callable[[], pa.Table]:
        table = self.table(name)
        return lambda: table.scan().to_arrow()

    def exists(self, name: str = "v") -> bool:
        return self.catalog.table_exists(f"{self._namespace}.{name}")

    def scribble(self, name: str = "v") -> None:
        table = self.table(name)
        table.append(self.rows(name).slice(0, 1))


class DeltaReader(Reader):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def table(self, name: str = "v", version: int | None = None) -> DeltaTable:
        return DeltaTable(str(self._folder / name), version=version)

    def rows(self, name: str = "v", snapshot: str | None = None) -> pa.Table:
        return self.table(name, None if snapshot is None else int(snapshot)).to_pyarrow_table()

    def snapshots(self, name: str = "v") -> dict[str, int | None]:
        commits = self.table(name).history()
        return {str(each["version"]): int(each[VERSION]) if VERSION in each else None for each in commits}

    def digests(self, name: str = "v") -> set[tuple[int, str]]:
        commits = self.table(name).history()
        return {(int(each[VERSION]), each[DIGEST]) for each in commits if VERSION in each}

    def summary(self, name: str = "v") -> Mapping[str, Any]:
        return self.table(name).history(1)[0]

    def files(self, name: str = "v") -> list[str]:
        return self.table(name).file_uris()

    def held(self, name: str = "v") -> Callable[[], pa.Table]:
        return self.table(name).to_pyarrow_table

    def exists(self, name: str = "v") -> bool:
        return DeltaTable.is_deltatable(str(self._folder / name))

    def scribble(self, name: str = "v") -> None:
        write_deltalake(self.table(name), self.rows(name).slice(0, 1), mode="append")


def current_rows(store: Store, warehouse: Path, name: str) -> pa.Table:
    """The rows of a view's current definition, by its map, read without whom it was published by."""
    snapshot, tables = store.snapshot(name), []
    named: dict[str, list[int]] = {}
    for bucket, row in snapshot.rows.items():
        if row.generation is not None and rules.has_current_data(row, snapshot.header):
            named.setdefault(row.generation, []).append(bucket)
    for generation, files in store.files(name, named).items():
        for file in files:
            rows = pq.read_table(warehouse / file.path)
            kept = pc.is_in(rows[BUCKET], pa.array(named[generation], pa.int64()))
            tables.append(rows.filter(kept).drop_columns([BUCKET]))
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


@dataclass
class PublishedLake(DuckDbLake):
    """A lake without Spark whose views are published after every step that is taken through it."""

    format: str = "iceberg"
    keep: int = KEEP
    # What wraps a target: faults.
    wrap: Callable[[Any], Any] = field(default=lambda target: target)

    @property
    def target(self) -> Target:
        if self.format == "delta":
            return DeltaTarget.model_validate({"format": "delta", "keep": f"{self.keep}ms"})
        catalog = {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db"}
        return IcebergTarget.model_validate(
            {"catalog": catalog, "namespace": "marts", "keep": f"{self.keep}ms"}
        )

    @property
    def reader(self) -> Reader:
        if isinstance(self.target, IcebergTarget):
            return IcebergReader(self.target.catalog, self.target.namespace)
        return DeltaReader(self.folder / "warehouse")

    @property
    def publisher(self) -> Publisher:
        project = self.catalog.project.model_copy(update={"publish": self.target})
        opened: Any = lambda *given: self.wrap(open_target(*given))  # noqa: E731
        return Publisher(replace(self.catalog, project=project), self.store, self.manager, self.plain, opened)

    def publish(self, name: str = "v", *, look: bool = False) -> PublishedView:
        [found] = self.publisher.publish([name], look=look)
        return found

    def published(self, name: str = "v") -> Publication:
        """A publication without trouble."""
        found = self.publish(name)
        assert found.error is None, found.error
        assert found.publication is not None
        return found.publication

    def known(self, name: str = "v") -> Publication | None:
        return next(iter(Publications(self.store).of(name)), None)

    def current(self, name: str = "v") -> pa.Table:
        return current_rows(self.store, self.folder / "warehouse", name)

    def check_published(self, name: str = "v") -> Rows:
        """What strangers read is what the map says at the version that they are told."""
        reader, header = self.reader, self.store.snapshot(name).header
        assert int(reader.summary(name)[VERSION]) == header.version
        expected = rows_of(self.current(name))
        assert rows_of(reader.rows(name)) == expected
        if expected:
            assert rows_of(reader.by_duckdb(name)) == expected
        self.check_buckets(name)
        return expected

    def check_buckets(self, name: str = "v") -> None:
        snapshot = self.store.snapshot(name)
        found = self.reader.rows(f"{name}__buckets").to_pylist()
        shown = {int(each["start"].timestamp() * 1000): (each["state"], each["rows"]) for each in found}
        assert shown == {
            bucket: (
                rules.effective_state(row, snapshot.header).value,
                row.rows if rules.has_current_data(row, snapshot.header) else 0,
            )
            for bucket, row in snapshot.rows.items()
        }

    def backup(self) -> Callable[[], None]:
        """Copy the state; what sets it back to that, and starts anew."""
        state, copy = self.folder.parent / "state.db", self.folder.parent / "copy.db"

        def copied(source: Path, to: Path) -> None:
            with closing(sqlite3.connect(source)) as reading, closing(sqlite3.connect(to)) as writing:
                reading.backup(writing)

        def restore() -> None:
            copied(copy, state)
            self.declare(*self.project.views)

        copied(state, copy)
        return restore

    def collect(self, name: str = "v") -> GcReport:
        """What `mv-assets gc` does."""
        assert self.publisher.expire([name]) == []
        report = self.gc(name)
        self.published(name)
        return report


PublishedLakes = Callable[..., PublishedLake]

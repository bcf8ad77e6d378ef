"""Lakes with their warehouse's generations and garbage; the database's clock is the test's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq

from mv_assets.buckets import DAY
from mv_assets.config import MaterializedView
from mv_assets.maintain.garbage import Garbage, GcReport
from mv_assets.plan import planner
from mv_assets.run.opened import OpenProject
from mv_assets.run.warehouse import Warehouse, new_generation
from mv_assets.state.model import Attempt, Generation, PartitionRow
from mv_assets.state.store import Store
from mv_assets_tests.support.duckdb_engine import DuckDbEngine, DuckDbProject
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.spark_lake import SparkLake
from mv_assets_tests.unit.state.faults import Dump, dump

GRACE = 60_000
T = TypeVar("T", bound="WarehouseLake")


@dataclass
class WarehouseLake(SparkLake):
    """A lake whose generations are looked at, deleted and compacted."""

    @property
    def plain(self) -> Warehouse:
        return Warehouse(str(self.folder / "warehouse"))

    def garbage(self, warehouse: Warehouse | None = None) -> Garbage:
        return Garbage(self.store, self.manager, warehouse or self.plain)

    def gc(self, name: str = "v") -> GcReport:
        """A gc without trouble."""
        report = self.garbage().gc(name)
        assert report.errors == []
        return report

    def overwrite(self, *numbers: int) -> None:
        """A file of one more row a day, and a refresh of each of these days by itself."""
        for number in numbers:
            self.write(f"late-{number}-{self.store.summary('v').header.version}.parquet", [day(number)])
            self.run()

    def run_only(self, number: int) -> None:
        """Compute one day, whatever else is due, as a generation of its own."""
        observed = self.look(whole=True)
        for work in planner.plan(observed).work:
            planned = tuple(each for each in work.buckets if each.bucket == number * DAY)
            if planned:
                self.compute(observed, replace(work, buckets=planned))

    def later(self, milliseconds: int = GRACE) -> None:
        self.clock.now += milliseconds

    def named(self, name: str = "v") -> dict[int, str | None]:
        """The generation of each day."""
        rows = self.snapshot(name).rows.values()
        return {row.bucket // DAY: row.generation for row in rows}

    def data(self, number: int, name: str = "v") -> PartitionRow:
        row = self.row(number, name)
        assert row is not None
        return row

    def folders(self, name: str = "v") -> set[str]:
        """The generations that have a folder."""
        return {path.name for path in (self.folder / "warehouse" / name).glob("*")}

    def registered(self, name: str = "v") -> dict[str, Generation]:
        with self.store.read(name) as reader:
            return {generation.id: generation for generation in reader.generations()}

    def used(self) -> int:
        """Bytes of all data files in the warehouse."""
        return sum(path.stat().st_size for path in (self.folder / "warehouse").rglob("*.parquet"))

    def stage(self, name: str = "v") -> str:
        """An attempt that has written a file, and not committed it."""
        view, generation = self.catalog.view(name).declaration, new_generation()
        self.manager.register(view, Attempt(generation, self.snapshot(name).header.version, ()))
        self.late(generation, name)
        return generation

    def late(self, generation: str, name: str = "v") -> Path:
        """A file that an attempt writes, whatever the registry says of it."""
        path = self.folder / "warehouse" / name / generation / "late.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"late")
        return path

    @contextmanager
    def unmounted(self, *, mount_point: bool) -> Iterator[None]:
        """The warehouse's disk is away, and has left an empty folder, or none."""
        warehouse, away = self.folder / "warehouse", self.folder / "away"
        warehouse.rename(away)
        if mount_point:
            warehouse.mkdir()
        yield
        if mount_point:
            warehouse.rmdir()
        away.rename(warehouse)

    def everything(self) -> tuple[Dump, dict[str, bytes]]:
        """All rows of the state database and all files of the warehouse."""
        url = self.store.database._engine.url.render_as_string(hide_password=False)
        files = (path for path in (self.folder / "warehouse").rglob("*") if path.is_file())
        return dump(url), {str(path): path.read_bytes() for path in files}

    def files(self, number: int, name: str = "v") -> list[pq.ParquetFile]:
        """The files that hold a day."""
        generation = self.data(number, name).generation
        assert generation is not None
        listed = self.store.files(name, [generation])[generation]
        return [pq.ParquetFile(self.folder / "warehouse" / file.path) for file in listed]


@dataclass
class DuckDbLake(WarehouseLake):
    """The same without Spark: DuckDB computes the views, files are as real, and no test waits for a JVM."""

    def open(self) -> OpenProject:
        engine: Any = DuckDbEngine()
        return DuckDbProject(
            self.catalog, self.tables, self.store, self.manager, engine, self.warehouse, self.clock
        )


@contextmanager
def clocked_lakes(folder: Path, url: str, kind: type[T], **settings: Any) -> Iterator[Callable[..., T]]:
    """Lakes with a clock that moves when a test says so; what they call VALID is right at the end."""
    clock = Clock(time.time_ns() // 1_000_000 + 3_600_000)
    opened, made = Store(url, now=clock), list[T]()

    def make(*views: MaterializedView, **options: Any) -> T:
        made.append(kind(folder / "lake", opened, views or [view()], clock=clock, **settings, **options))
        return made[-1]

    yield make
    for each in made:
        each.watch().round(whole=True)
        each.check(complete=False)
    opened.close()

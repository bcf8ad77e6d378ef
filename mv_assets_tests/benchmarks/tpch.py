"""A lake of line items, a file a month, and views of what was sold."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from mv_assets.clock import clock
from mv_assets.config import DeclaredProject, MaterializedView, ParquetTable, Spark
from mv_assets.config.file import Draft
from mv_assets.run.opened import OpenProject, open_project
from mv_assets.run.refresher import Refresher
from mv_assets.spark.session import Engine
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets.views.catalog import prepare
from mv_assets.views.view import View
from mv_assets_tests.benchmarks.line_items import MADE, SF, line_items

AGGREGATES = """
       sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       sum(l_discount) AS sum_disc, count(l_quantity) AS qtys, count(l_extendedprice) AS prices,
       count(l_discount) AS discs, count(*) AS count_order
"""
PRICING = f"""
SELECT l_shipdate, l_returnflag, l_linestatus, {AGGREGATES}
FROM lineitem GROUP BY l_shipdate, l_returnflag, l_linestatus
"""
# Shipping ends on the first day of an 84th month, which therefore never is complete, and is left out.
MONTHS, DAYS, END = 83, 2_525, "1998-12-01"
# Files that were written a moment ago have settled by then.
_LATER = 3_600_000


@dataclass(frozen=True)
class Shop:
    """A lake of line items and one view of it, `pricing`."""

    lake: Path
    project: OpenProject

    @property
    def view(self) -> View:
        return self.project.catalog.view("pricing")

    def refresh(self, buckets: int) -> None:
        """What `mv-assets refresh` does, which is to compute that many buckets."""
        [report] = Refresher(self.project).run()
        assert report.error is None, report.error
        assert all(result.done for result in report.results.values()), report.results
        assert len(report.results) == buckets, len(report.results)

    def force(self, bucket: int) -> None:
        """Have a bucket computed from all its files, whatever its state."""
        self.project.manager.force(self.view.declaration, [bucket], "a benchmark")

    def files(self) -> list[str]:
        """The view's files, of the buckets that they are named for and perhaps of others."""
        rows = self.project.store.snapshot("pricing").rows.values()
        files = self.project.store.files("pricing", {row.generation for row in rows if row.generation})
        return [f"{self.project.warehouse.root}/{file.path}" for some in files.values() for file in some]


@contextmanager
def warm() -> Iterator[Engine]:
    """Spark in this process, as a project declares it."""
    engine = Engine(Spark(conf={"spark.driver.memory": "6g", "spark.ui.enabled": "false"}))
    try:
        yield engine
    finally:
        engine.stop()


@contextmanager
def shop(lake: Path, engine: Engine, bucket: str = "1mo", **declared: Any) -> Iterator[Shop]:
    """A shop with nothing computed yet, whose state and warehouse last as long as it does."""
    with folder() as own:
        store = Store(f"sqlite:///{own}/state.db")
        try:
            table = ParquetTable(name="lineitem", path=str(lake), time_column="l_shipdate")
            view = {
                "name": "pricing",
                "base": "lineitem",
                "sql": PRICING,
                "time_column": "l_shipdate",
                "bucket": bucket,
                "start": "1992-01-01",
                **declared,
            }
            project = DeclaredProject(
                tables=(table,),
                views=(MaterializedView.model_validate(view),),
                warehouse=str(own / "warehouse"),
            )
            catalog = prepare(Draft("benchmark", project), schemas=False)
            manager = PartitionManager(store, clock=_later)
            yield Shop(lake, open_project(catalog, store, manager, engine, _later))
        finally:
            store.close()


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def months() -> Iterator[Path]:
    """A lake of the line items, a file a month, or a few of a large one."""
    with folder() as lake:
        for file in sorted(_by_month().iterdir()):
            shutil.copy(file, lake)
        yield lake


def measured(work: Callable[[], object]) -> Callable[[], Callable[[], object]]:
    """A step that needs no preparation."""
    return lambda: work


def _by_month() -> Path:
    made = MADE / f"tpch-{SF}-months"
    if not made.exists():
        rows = (
            f"SELECT *, strftime(l_shipdate, '%Y-%m') AS m FROM read_parquet('{line_items()}') "
            f"WHERE l_shipdate < DATE '{END}'"
        )
        with folder() as parts, duckdb.connect() as connection:
            connection.execute(f"COPY ({rows}) TO '{parts}/m' (FORMAT parquet, PARTITION_BY (m))")
            new = Path(f"{made}.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            for part in sorted((parts / "m").glob("m=*/*.parquet")):
                shutil.move(part, new / f"{part.parent.name[2:]}-{part.name}")
        new.rename(made)
    return made


def _later() -> int:
    return clock() + _LATER

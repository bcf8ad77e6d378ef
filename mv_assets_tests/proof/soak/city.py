"""The demo's lake as those see it who check it: its files, its state and its warehouse."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from mv_assets.config import IcebergTarget, MaterializedView, Spark
from mv_assets.demo import Demo
from mv_assets.demo.feeder import advance, write_zones
from mv_assets.errors import MvError
from mv_assets.observe.maps import ImaginedMaps
from mv_assets.observe.watch import Watch
from mv_assets.plan import planner
from mv_assets.publish.publisher import Publisher
from mv_assets.spark.session import Engine
from mv_assets.state.model import DataFile, Snapshot
from mv_assets.state.store import Store
from mv_assets.tables.open import open_table
from mv_assets.views.catalog import load
from mv_assets.views.view import View
from mv_assets_tests.proof.soak import fares
from mv_assets_tests.support.published_lake import IcebergReader
from mv_assets_tests.support.spark_lake import SparkLake, timestamp

DAYS = 4
# Of each six hours what came in the day before; of each day two days of a view below, beside a third.
_WINDOWS = """
  - name: day_before
    base: {table: trips, from: 1d}
    scope: bucket
    sql: |
      SELECT :bucket_start AS at, count(*) AS trips, sum(passengers) AS passengers
      FROM trips WHERE pickup_at < :bucket_start
    time_column: at
    bucket: 6h
    start: START

  - name: two_days
    base: {table: trips_hourly, from: 1d}
    with: [{table: trips_daily, wait: false}]
    scope: bucket
    sql: |
      WITH whole AS (SELECT sum(trips) AS trips FROM trips_daily)
      SELECT :bucket_start AS day, h.borough, sum(h.trips) AS trips, max(whole.trips) AS of_all
      FROM trips_hourly h CROSS JOIN whole GROUP BY h.borough
    time_column: day
    bucket: 1d
    start: START
"""
# By a function; and of a table of which single rows are deleted.
_OTHERS = """
  - name: by_zone
    base: trips
    scope: bucket
    python: "by_function:by_zone"
    time_column: at
    bucket: 6h
    start: START

  - name: fares_hourly
    base: fares
    sql: SELECT date_trunc('hour', at) AS hour, count(*) AS n, sum(cents) AS cents FROM fares GROUP BY ALL
    time_column: hour
    bucket: 6h
    start: START
"""
_FARES = "tables:\n  - {{name: fares, format: delta, path: fares, time_column: at, settle: 2s}}\n"
_HERE = {
    "state: sqlite:///../state.db": "state: {state}",
    "master: local[*]": "master: local[2]",
    "tables:\n": _FARES,
}
# The view by a function, for DuckDB.
_BY_ZONE = "SELECT zone_id, min(pickup_at) AS at, count(*) AS trips FROM trips GROUP BY zone_id"


def build(demo: Demo, state: str, days: int = DAYS) -> None:
    """A demo of some days, with its state in a given database."""
    now = time.time()
    start = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start -= timedelta(days=days)
    write_zones(demo)
    advance(demo, int(start.timestamp() * 1_000), int(now * 1_000))
    demo.ensured(0)
    fares.create(fares_of(demo), np.random.default_rng(days), days)
    shutil.copy(Path(__file__).with_name("by_function.py"), demo.root)
    text = demo.project.read_text()
    for old, new in _HERE.items():
        assert old in text
        text = text.replace(old, new.format(state=state))
    further = f"{_WINDOWS}{_OTHERS}".replace("START", f"{start:%Y-%m-%d}")
    demo.project.write_text(f"{text.rstrip()}\n{further}")


def fares_of(demo: Demo) -> Path:
    """Where the table of fares is."""
    return demo.root / "fares"


@contextmanager
def city(demo: Demo) -> Iterator[City]:
    """The lake as it is now."""
    store = Store(load(demo.project, schemas=False).project.state.url)
    try:
        yield _city(demo.root, store, Engine(Spark()))
    finally:
        store.close()


def _city(folder: Path, store: Store, engine: Engine) -> City:
    oracle = {"by_zone": _BY_ZONE}
    return City(folder, store, views=(), engine=engine, storehouse="../warehouse", oracle=oracle)


@dataclass
class City(SparkLake):
    def declare(self, *_: MaterializedView) -> None:
        self.catalog = load(self.folder / "project.yaml", schemas=False)
        self.project = self.catalog.project
        self.tables = {
            name: open_table(table, self.store.database, self.clock, keep=False)
            for name, table in self.catalog.tables.items()
        }

    def tell(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        if name == "fares":
            connection.register(name, fares.rows(self.folder / name))
        else:
            super().tell(connection, name)

    def duckdb(self, view: View) -> str | None:
        """A view on top of one finds nothing in it from before its start, though trips came then."""
        sql = super().duckdb(view)
        if sql is None or view.by_bucket:
            return sql
        start = timestamp(view.declared.start or 0)
        return f'SELECT * FROM ({sql}) WHERE "{view.declared.time_column}" >= {start}'

    @property
    def root(self) -> Path:
        """Where the views' data is."""
        return self.folder.parent / "warehouse"

    def at_rest(self) -> bool:
        """Whether a look would find nothing to do, and nothing waits."""
        plans = [planner.plan(self.dry(name)) for name in self.catalog.views]
        if any(plan.work or plan.failing or plan.waiting for plan in plans):
            return False
        return not Publisher(self.catalog, self.store, self.manager, self.warehouse).behind()

    @property
    def reader(self) -> IcebergReader:
        """Somebody who knows the catalog alone."""
        target = self.project.publish
        assert isinstance(target, IcebergTarget)
        return IcebergReader(target.catalog, target.namespace)

    def as_looked_at(self) -> City:
        """The same with the maps that a look now would leave: what files have changed under is STALE."""
        watch = Watch(self.catalog, self.tables, imagined := ImaginedMaps(self.store, self.clock), self.clock)
        found = watch.round(whole=True)
        for observed in found.values():
            if isinstance(observed, MvError):
                raise observed
        maps = {name: imagined.snapshot(name) for name in found}
        looked = _city(self.folder, self.store, self.engine)
        looked.store = _Looked(self.store, maps)  # type: ignore[assignment]
        return looked


@dataclass(frozen=True)
class _Looked:
    """A store whose maps are those of a look."""

    store: Store
    maps: dict[str, Snapshot]

    def views(self) -> list[str]:
        return [name for name in self.maps if name in self.store.views()]

    def snapshot(self, name: str) -> Snapshot:
        return self.maps[name]

    def files(self, name: str, generations: Any) -> dict[str, tuple[DataFile, ...]]:
        return self.store.files(name, generations)

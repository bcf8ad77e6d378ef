"""What commands that compute share: Spark, stopped at their end, and all around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mv_assets.cli.session import clock
from mv_assets.engine.session import Engine
from mv_assets.project import Spark
from mv_assets.refresh.generations import Warehouse
from mv_assets.refresh.place import Place
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets.tables.opening import open_table
from mv_assets.views.catalog import Catalog


@contextmanager
def engine(declared: Spark) -> Iterator[Engine]:
    opened = Engine(declared)
    try:
        yield opened
    finally:
        opened.stop()


def place_of(catalog: Catalog, store: Store, manager: PartitionManager, spark: Engine) -> Place:
    """Where a project's work is carried out."""
    tables = {name: open_table(table, store.database, clock) for name, table in catalog.tables.items()}
    warehouse = Warehouse(catalog.project.warehouse)
    return Place(catalog, tables, store, manager, spark, warehouse, clock)

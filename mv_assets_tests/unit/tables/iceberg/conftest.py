from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType, LongType, NestedField, TimestamptzType

from mv_assets.state.store import Store
from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.unit.tables.iceberg.tables import NOW, TS, Create, Make


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[SqlCatalog]:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("db")
    yield catalog
    catalog.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "wh" / "db" / "t"


@pytest.fixture
def create(warehouse: SqlCatalog) -> Create:
    """Create the table; by default with a time column and a number."""

    def make(*fields: tuple[str, IcebergType], by: tuple[str, ...] = (), **properties: str) -> Table:
        given = fields or (("ts", TimestamptzType()), ("v", LongType()))
        schema = Schema(*(NestedField(at + 1, name, kind) for at, (name, kind) in enumerate(given)))
        parts = [
            PartitionField(schema.find_field(name).field_id, 1000 + at, IdentityTransform(), name)
            for at, name in enumerate(by)
        ]
        return warehouse.create_table(
            "db.t", schema, partition_spec=PartitionSpec(*parts), properties=properties
        )

    return make


@pytest.fixture
def table(root: Path, tmp_path: Path) -> Iterator[Make]:
    store = Store(f"sqlite:///{tmp_path}/state.db")

    def make(time: TimeColumn | None = TS, path: str | None = str(root), **options: Any) -> IcebergFiles:
        inventory = Inventory(store.database, "t")
        # The catalog that writes these tables leaves no hint beside them.
        given = {"unsafe": True, **options}
        return IcebergFiles("t", path, time, inventory, lambda: NOW, 1_000, **given)

    yield make
    store.close()

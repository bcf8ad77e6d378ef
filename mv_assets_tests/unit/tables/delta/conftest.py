from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mv_assets.state.store import Store
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.unit.tables.delta.rows import NOW, TS, Make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "a table"


@pytest.fixture
def table(root: Path, tmp_path: Path) -> Iterator[Make]:
    """Makes the table, with its inventory in a state database that all of its makes share."""
    store = Store(f"sqlite:///{tmp_path}/state.db")

    def make(
        time: TimeColumn | None = TS, *, keep: bool = True, name_of_inventory: str = "t", **options: Any
    ) -> DeltaFiles:
        inventory = Inventory(store.database, name_of_inventory, keep)
        return DeltaFiles("t", str(root), time, inventory, lambda: NOW, 1_000, **options)

    yield make
    store.close()

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mv_assets.spark.session import Engine
from mv_assets_tests.support.warehouse_lake import DuckDbLake, WarehouseLake, clocked_lakes

DuckDbLakes = Callable[..., DuckDbLake]


@pytest.fixture
def duckdb_lake(tmp_path: Path, state_url: str) -> Iterator[DuckDbLakes]:
    """Lakes that DuckDB computes, on each kind of state database."""
    with clocked_lakes(tmp_path, state_url, DuckDbLake) as make:
        yield make


@pytest.fixture
def duckdb_lake_on_sqlite(tmp_path: Path) -> Iterator[DuckDbLakes]:
    """For what has to do with files alone: on SQLite."""
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", DuckDbLake) as make:
        yield make


@pytest.fixture
def spark_warehouse_lake(tmp_path: Path, engine: Engine) -> Iterator[Callable[..., WarehouseLake]]:
    """Where it matters what Spark writes, and reads."""
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", WarehouseLake, engine=engine) as make:
        yield make

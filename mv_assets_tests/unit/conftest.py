from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mv_assets.config import MaterializedView
from mv_assets.spark.session import Engine
from mv_assets.state.store import Store
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.warehouse_lake import DuckDbLake, WarehouseLake

DuckDbLakes = Callable[..., DuckDbLake]
T = TypeVar("T", bound=WarehouseLake)


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

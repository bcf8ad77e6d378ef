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
from mv_assets_tests.harness import Clock
from mv_assets_tests.lake import view
from mv_assets_tests.refresh.yard import Yard

Make = Callable[..., Yard]
T = TypeVar("T", bound=Yard)


@contextmanager
def yards(folder: Path, url: str, kind: type[T], **settings: Any) -> Iterator[Callable[..., T]]:
    """Refineries with a clock that moves when a test says so; what they call VALID is right at the end."""
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
def yard(tmp_path: Path, state_url: str) -> Iterator[Make]:
    """On each kind of state database, without Spark."""
    with yards(tmp_path, state_url, Yard) as make:
        yield make


@pytest.fixture
def plain_yard(tmp_path: Path) -> Iterator[Make]:
    """For what has to do with files alone."""
    with yards(tmp_path, f"sqlite:///{tmp_path}/state.db", Yard) as make:
        yield make


@pytest.fixture
def spark_yard(tmp_path: Path, engine: Engine) -> Iterator[Make]:
    """Where it matters what Spark writes, and reads."""
    with yards(tmp_path, f"sqlite:///{tmp_path}/state.db", Yard, engine=engine, sparks=True) as make:
        yield make

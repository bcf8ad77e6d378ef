from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mv_assets.config import MaterializedView
from mv_assets.spark.session import Engine
from mv_assets.state.store import Store
from mv_assets_tests.support.lake import view
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake


@pytest.fixture
def unchecked_lake(tmp_path: Path, engine: Engine) -> Iterator[Callable[..., UncheckedLake]]:
    """Lakes whose rows the tests know themselves."""
    opened = Store(f"sqlite:///{tmp_path}/state.db")

    def make(*views: MaterializedView, **options: Any) -> UncheckedLake:
        return UncheckedLake(tmp_path / "lake", opened, views or [view()], **{"engine": engine, **options})

    yield make
    opened.close()

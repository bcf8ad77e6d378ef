from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mv_assets.config import MaterializedView
from mv_assets.spark.session import Engine
from mv_assets.state.store import Store
from mv_assets_tests.lake import view
from mv_assets_tests.spark.works import Works


@pytest.fixture
def works(tmp_path: Path, engine: Engine) -> Iterator[Callable[..., Works]]:
    """Lakes whose rows the tests know themselves."""
    opened = Store(f"sqlite:///{tmp_path}/state.db")

    def make(*views: MaterializedView, **options: Any) -> Works:
        return Works(tmp_path / "lake", opened, views or [view()], **{"engine": engine, **options})

    yield make
    opened.close()

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import dagster as dg
import pytest

from mv_assets.config import MaterializedView
from mv_assets_tests.defs.desk import Desk, desk
from mv_assets_tests.refinery import Refinery


@pytest.fixture
def office(refinery: Callable[..., Refinery]) -> Iterator[Callable[..., Desk]]:
    """Views in a Dagster of their own, over days 0 to 3."""
    with ExitStack() as closed:

        def make(
            *views: MaterializedView,
            days: tuple[int, ...] = (0, 1, 2, 3),
            extra: dg.Definitions | None = None,
            produced_by: Mapping[str, dg.AssetKey] | None = None,
            **options: Any,
        ) -> Desk:
            made = refinery(*views, **options)
            made.days(*days)
            return closed.enter_context(desk(made, extra, produced_by))

        yield make

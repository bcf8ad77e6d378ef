from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import dagster as dg
import pytest

from mv_assets.config import MaterializedView
from mv_assets.defs.names import Naming
from mv_assets_tests.support.spark_lake import SparkLake
from mv_assets_tests.unit.defs.in_process import InProcessDagster, in_process_dagster


@pytest.fixture
def dagster(spark_lake: Callable[..., SparkLake]) -> Iterator[Callable[..., InProcessDagster]]:
    """Views in a Dagster of their own, over days 0 to 3."""
    with ExitStack() as closed:

        def make(
            *views: MaterializedView,
            days: tuple[int, ...] = (0, 1, 2, 3),
            extra: dg.Definitions | None = None,
            produced_by: Mapping[str, dg.AssetKey] | None = None,
            naming: Naming | None = None,
            **options: Any,
        ) -> InProcessDagster:
            made = spark_lake(*views, **options)
            made.days(*days)
            return closed.enter_context(in_process_dagster(made, extra, produced_by, naming))

        yield make

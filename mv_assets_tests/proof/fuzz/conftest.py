from __future__ import annotations

import pytest

from mv_assets.spark.session import Engine


@pytest.fixture(scope="session")
def quick(engine: Engine) -> Engine:
    """The test process's Spark, in sessions of their own: tables by their names are left in them."""
    return Engine(engine.declared, lambda _: engine.shared())

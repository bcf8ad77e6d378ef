from __future__ import annotations

import pytest

from mv_assets.engine.session import Engine
from mv_assets.project import Spark

# Thousands of queries on a handful of rows: compiling them would take longer than computing them.
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.retainedExecutions": "1",
}


@pytest.fixture(scope="session")
def quick(engine: Engine) -> Engine:
    """The test process's Spark, in sessions that are set for small queries."""
    made = Engine(
        Spark(master=engine.declared.master, remote=engine.declared.remote, conf=engine.declared.conf | QUICK)
    )
    made.attach(engine.shared())
    return made

"""Views whose runs Dagster's own automation asks for, in real processes."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mv_assets_tests.benchmarks.cases.b12_commands import Shop
from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.processes import DagsterProcesses
from mv_assets_tests.e2e.site import days
from mv_assets_tests.e2e.wait import state_of_affairs, wait_until

pytestmark = pytest.mark.slow

_CODE = """
import dagster as dg
import mv_assets

# A process a run and not a step.
defs = dg.Definitions.merge(
    dg.Definitions(executor=dg.in_process_executor),
    mv_assets.build_definitions(
        tables=[mv_assets.ParquetTable(name="orders", path={orders!r}, time_column="at", settle="1s")],
        views=[
            mv_assets.MaterializedView(
                name="daily",
                base="orders",
                sql="SELECT date_trunc('day', at) AS day, sum(amount) AS amount FROM orders GROUP BY ALL",
                time_column="day",
                bucket="1d",
                start="2024-01-01",
            )
        ],
        state={state!r},
        warehouse={warehouse!r},
        interval_seconds=2,
        automation_condition=True,
    ),
)
"""


def test_what_is_due_and_what_is_stale_is_computed(tmp_path: Path, connect_server: str) -> None:
    shop = Shop(tmp_path)
    shop.write()
    file, state = tmp_path / "definitions.py", f"sqlite:///{tmp_path}/state.db"
    file.write_text(
        _CODE.format(orders=str(tmp_path / "orders"), state=state, warehouse=str(tmp_path / "warehouse"))
    )
    processes = DagsterProcesses(
        tmp_path / "dagster",
        {"MV_ASSETS_SPARK_REMOTE": connect_server},
        (sys.executable, "-m", "dagster", "dev", "-f", str(file)),
    )
    processes.start()
    try:
        dagster = Dagster.at(processes.address)

        def until_new(known: set[str], buckets: list[str]) -> None:
            wait_until(
                lambda: (
                    dagster.partitions("daily").materialized == days(1, 13)
                    and {run.id for run in dagster.runs()} - known
                    and not dagster.unfinished()
                    and not dagster.backfills_ahead()
                ),
                f"{buckets} to be computed",
                lambda: state_of_affairs(dagster, processes),
            )
            new = [run for run in dagster.runs() if run.id not in known]
            assert {run.sensor for run in new} <= {"compute_due", None}
            assert [bucket for run in new for bucket in days(1, 13) if run.covers("daily", bucket)] == buckets

        until_new(set(), days(1, 13))
        known = {run.id for run in dagster.runs()}
        shop.put(datetime(2024, 1, 3, tzinfo=UTC), 1)
        until_new(known, days(3, 3))
    finally:
        processes.stop()

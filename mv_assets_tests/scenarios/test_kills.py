"""Case 52: a process that is killed at any step leaves nothing torn, lost or double behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from mv_assets.state.registry import Registry
from mv_assets_tests.scenarios.killed_refresh import STEPS
from mv_assets_tests.support.lake import HOURLY, day, view
from mv_assets_tests.support.spark_lake import SparkLake

DAILY = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM v GROUP BY ALL"


def project(lake: SparkLake, server: str, folder: Path) -> Path:
    """The lake as a project of its own process."""
    file = folder / "project.yaml"
    kept = {"state": f"sqlite:///{folder}/state.db", "warehouse": str(lake.folder / "warehouse")}
    events = {"name": "events", "format": "parquet", "path": str(lake.folder / "events"), "time_column": "at"}
    views = [
        {"name": "v", "base": "events", "sql": HOURLY, "time_column": "hour"},
        {"name": "daily", "base": "v", "sql": DAILY, "time_column": "day"},
    ]
    declared = {
        **kept,
        "spark": {"remote": server},
        "tables": [{**events, "settle": "0s"}],
        "views": [{**each, "bucket": "1d", "start": "1970-01-01"} for each in views],
    }
    file.write_text(yaml.safe_dump(declared))
    return file


# Some of them by `make check`, the others by `make prove`.
_SOME = set(list(STEPS)[3::6])


@pytest.mark.parametrize(
    "step",
    [pytest.param(step, marks=pytest.mark.slow if step in _SOME else pytest.mark.deep) for step in STEPS],
)
def test_52_a_process_killed_at_any_step_leaves_nothing_torn_lost_or_double(
    spark_lake: Callable[..., SparkLake], connect_server: str, tmp_path: Path, step: str
) -> None:
    daily = view("daily", base="v", sql=DAILY, time_column="day")
    lake = spark_lake(view(), daily, table={"settle": "0s"})
    lake.days(0, 1, 2)
    lake.run("v")
    lake.write("late.parquet", [day(1)])
    lake.days(3)
    file = project(lake, connect_server, tmp_path)
    command = [sys.executable, "-m", "mv_assets_tests.scenarios.killed_refresh", str(file), step]
    died = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own module
    assert died.returncode == -signal.SIGKILL, died.stderr
    lake.check(complete=False)
    # As if its heartbeat had run out.
    for name in lake.store.views():
        Registry(lake.store, lifetime_ms=0).doom(name)
    lake.run()
    lake.check()
    assert (lake.watermark("v"), lake.watermark("daily")) == (4, 4)
    versions = [event.version for event in lake.store.events("v", most=1_000)]
    assert sorted(set(versions)) == list(range(1, lake.version("v") + 1))

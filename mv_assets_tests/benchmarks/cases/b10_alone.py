"""B10, a process that starts and looks: with no more in memory than what looks need, which is measured."""

from __future__ import annotations

import time
from pathlib import Path

from mv_assets.observe.observation import Observation
from mv_assets.plan import planner
from mv_assets_tests.benchmarks.cases import b4_look
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.benchmarks.own_process import peak_mb

# Of a process that lists a million files and has a hundred thousand buckets in mind.
_MOST_MB = 400.0


def whole(folder: Path, size: str) -> list[Figure]:
    """It has nothing in mind, and finds a late file."""
    lake = b4_look.opened(folder)
    begin = time.process_time()
    looked(lake)
    took = time.process_time() - begin
    lake.store.close()
    return [
        Figure(
            "B10", f"the same look and plan by a process that has just started, CPU time, {size}", took, "s"
        ),
        Figure("B10", f"peak memory of that process, {size}", peak_mb(), " MB", _MOST_MB),
    ]


def looked(lake: b4_look.Lake, name: str = "v") -> None:
    """A round that finds one bucket to compute."""
    observed = lake.rounds()[name]
    assert isinstance(observed, Observation)
    assert [len(work.buckets) for work in planner.plan(observed).work] == [1]

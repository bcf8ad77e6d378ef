"""Waiting for what Dagster does in its own time, and saying what it was doing when it did not come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.graphql_api.client import Refusal
from mv_assets_tests.e2e.processes import DagsterProcesses

T = TypeVar("T")
_PATIENCE_S = 600
_POLL_S = 0.5


def wait_until(condition: Callable[[], T], awaited: str, report: Callable[[], str]) -> T:
    """The first answer that is true."""
    deadline = time.monotonic() + _PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {_PATIENCE_S} s for {awaited}\n{report()}")
        time.sleep(_POLL_S)
    return answer


def state_of_affairs(dagster: Dagster, processes: DagsterProcesses) -> str:
    """Runs with their errors, ticks with theirs, and the end of the log."""
    try:
        return "\n".join([*_runs(dagster), *_ticks(dagster), processes.last_lines()])
    except (Refusal, OSError) as error:
        return f"Dagster does not answer: {error}\n{processes.last_lines()}"


def _runs(dagster: Dagster) -> list[str]:
    lines = []
    for run in dagster.runs()[-15:]:
        lines.append(f"run {run.id[:8]} {run.status} {run.job} {', '.join(run.assets)} {run.range}")
        if run.status == "FAILURE":
            lines.append(dagster.errors(run.id)[:2000])
    return lines


def _ticks(dagster: Dagster) -> list[str]:
    lines = []
    for name, status in dagster.sensors().items():
        lines.append(f"sensor {name} {status}")
        lines += [
            f"  tick {tick.status} {len(tick.runs)} runs {tick.skipped or ''} {tick.error or ''}"
            for tick in dagster.ticks(name, 5)
        ]
    return lines

"""A run that reads or waits for long says so, before a sensor takes it for dead."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace

import pytest

from mv_assets.defs.signs_of_life import SignsOfLife
from mv_assets.observe.observation import Limits
from mv_assets.plan.patience import Patience
from mv_assets.plan.planner import Waiting
from mv_assets_tests.unit.defs.in_process import InProcessDagster

Make = Callable[..., InProcessDagster]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a run slept, piece by piece."""
    pieces = list[float]()
    _sleeps(monkeypatch, pieces.append)
    return pieces


def _sleeps(monkeypatch: pytest.MonkeyPatch, sleep: Callable[[float], None]) -> None:
    """Only here: `time.sleep` itself is other threads' too, and they would set the clock as well."""
    monkeypatch.setattr("mv_assets.plan.patience.time", SimpleNamespace(sleep=sleep))


def test_whoever_waits_says_so_every_few_minutes(
    slept: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        patience = Patience(lambda: 0, SignsOfLife(logging.getLogger("test")))
        patience.allow(Limits(settle_at_most=600_000))
        assert patience.wait([Waiting(0, "its files are still arriving", 600_000)])
    assert slept == [240, 240, 120]
    assert [record.getMessage().split(" for ")[0] for record in caplog.records] == [
        "waits 10m",
        "waits 6m",
        "waits 2m",
    ]


def test_whoever_reads_says_so_every_few_minutes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = count(0, 50)
    monkeypatch.setattr("mv_assets.defs.signs_of_life.monotonic", lambda: float(next(seconds)))
    alive = SignsOfLife(logging.getLogger("test"))
    with caplog.at_level(logging.INFO):
        for files in range(12):
            alive.reading("events", files, 0, 12, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "events: 4 of 12 new files are read",
        "events: 9 of 12 new files are read",
    ]


@pytest.mark.parametrize("how", ["asset", "job"])
def test_a_run_that_waits_for_files_to_settle_is_heard(
    dagster: Make, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    made = dagster(table={"settle": "20m", "settle_at_most": "40m"})
    clock = made.lake.clock
    clock.now = time.time_ns() // 1_000_000

    def sleep(seconds: float) -> None:
        assert seconds <= 300
        clock.now += int(seconds * 1_000) + 1

    _sleeps(monkeypatch, sleep)
    machine = {"dagster/schedule_name": "nightly"}
    result = (
        made.materialize("v", "1970-01-01", "1970-01-04", tags=machine)
        if how == "asset"
        else made.job("refresh_view", view="v")
    )
    assert result.success
    assert made.lake.states(0, 1, 2, 3) == "VVVV"
    said = [entry.user_message for entry in made.instance.all_logs(result.run_id)]
    assert len([each for each in said if "files that are still arriving" in each]) >= 5

"""Ticks that come while a file is just arriving."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mv_assets.defs.tick import quiet
from mv_assets_tests.support.lake import through
from mv_assets_tests.support.warehouse_lake import DuckDbLake
from mv_assets_tests.unit.defs.in_process import InProcessDagster, in_process_dagster
from mv_assets_tests.unit.defs.test_requests import asked

Make = Callable[..., InProcessDagster]
SETTLE_MS = 1_000
_LATER_MS = 300


class Sleeper:
    """Sleeps by the lake's clock; something may happen meanwhile."""

    def __init__(self) -> None:
        self.slept = list[float]()
        self.clock: Any = None
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.now += round(seconds * 1_000)
        self.meanwhile()


@pytest.fixture
def sleeper(monkeypatch: pytest.MonkeyPatch) -> Sleeper:
    found = Sleeper()
    monkeypatch.setattr(quiet, "sleep", found)
    return found


@pytest.fixture
def made(duckdb_lake_on_sqlite: Callable[..., DuckDbLake], sleeper: Sleeper) -> Iterator[InProcessDagster]:
    """Four days that are computed, of a table whose files are quiet after a second."""
    with ExitStack() as closed:
        lake = duckdb_lake_on_sqlite(table={"settle": f"{SETTLE_MS}ms", "settle_at_most": "1m"})
        sleeper.clock = lake.clock
        lake.days(0, 1, 2, 3)
        lake.clock.now = time.time_ns() // 1_000_000 + SETTLE_MS
        lake.run()
        made = closed.enter_context(in_process_dagster(lake))
        made.tick()
        assert sleeper.slept == []
        yield made


def lands(made: InProcessDagster, name: str, number: int) -> None:
    """A file, and a tick that comes a little later."""
    path = made.lake.write(name, through(number))
    made.lake.clock.now = path.stat().st_ctime_ns // 1_000_000 + _LATER_MS


def test_a_tick_waits_for_a_file_that_is_quiet_in_a_moment(made: InProcessDagster, sleeper: Sleeper) -> None:
    lands(made, "late.parquet", 0)
    assert asked(made) == ["v 1970-01-01"]
    assert sleeper.slept == [0.7]


def test_it_waits_once_however_long_files_go_on_to_come(made: InProcessDagster, sleeper: Sleeper) -> None:
    sleeper.meanwhile = lambda: lands(made, "later.parquet", 0)
    lands(made, "late.parquet", 0)
    assert asked(made) == []
    assert sleeper.slept == [0.7]


def test_what_is_due_does_not_wait_for_what_is_not(made: InProcessDagster, sleeper: Sleeper) -> None:
    lands(made, "quiet.parquet", 0)
    time.sleep(SETTLE_MS / 1_000)
    lands(made, "late.parquet", 2)
    assert asked(made) == ["v 1970-01-01"]
    assert sleeper.slept == []


def test_one_tick_at_a_time_waits(made: InProcessDagster, sleeper: Sleeper) -> None:
    lands(made, "late.parquet", 0)
    with quiet._giving:
        assert asked(made) == []
    assert sleeper.slept == []
    assert asked(made) == ["v 1970-01-01"]

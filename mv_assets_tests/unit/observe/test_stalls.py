"""A silent stop: something is due, nothing failed, and nobody computes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets.plan import planner
from mv_assets.state import health
from mv_assets.state.model import Attempt
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.warehouse_lake import DuckDbLake

DuckDbLakes = Callable[..., DuckDbLake]
HOUR = 3_600_000


def stall(duckdb_lake: DuckDbLake, buffer: int = 0) -> str | None:
    """What a look finds and `status` says."""
    duckdb_lake.look()
    return health.stall(duckdb_lake.snapshot(), buffer, HOUR, duckdb_lake.clock())


def test_input_ahead_of_w_that_nobody_computes_is_a_stall(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0, 1)
    assert stall(made) is None
    made.later(HOUR)
    assert stall(made) is None
    made.later(1)
    said = stall(made)
    assert said is not None
    assert "1970-01-01 has been due for 1h" in said
    assert "mv-assets refresh v" in said
    made.run()
    assert stall(made) is None


def test_progress_is_no_stall_however_much_is_left(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake(view(max_buckets_per_run=1))
    made.days(0, 1, 2, 3)
    for number in range(3):
        assert stall(made) is None
        made.later(HOUR)
        made.run_only(number)
    assert stall(made) is None
    made.later(HOUR + 1)
    assert stall(made) is not None


def test_a_repair_that_nobody_makes_is_a_stall_too(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0, 1)
    made.run()
    made.later(DAY)
    assert stall(made) is None
    made.write("late.parquet", [day(1)])
    assert stall(made) is None
    made.later(HOUR + 1)
    said = stall(made)
    assert said is not None
    assert "1970-01-02" in said


def test_what_failed_says_so_itself_and_hides_no_stall_behind_it(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0, 1)
    observed = made.look()
    (work,) = planner.plan(observed).work
    failed = Attempt("g", observed.header.version, work.buckets[:1])
    made.manager.register(observed.view.declaration, failed)
    made.manager.fail(observed.view.declaration, failed, {0: "no memory"})
    made.look()
    made.later(HOUR + 1)
    said = stall(made)
    assert said is not None
    assert "1970-01-02" in said
    made.run_only(1)
    assert stall(made) is None
    made.later(DAY)
    assert stall(made) is None


@pytest.mark.parametrize("late", [0, 1])
def test_the_buffer_is_no_stall(duckdb_lake: DuckDbLakes, late: int) -> None:
    made = duckdb_lake(view(buffer="2d"))
    made.clock.now = 2 * DAY
    made.days(0)
    assert stall(made) is None
    made.clock.now = 3 * DAY + HOUR + late
    assert (stall(made, buffer=2 * DAY) is not None) == bool(late)


def test_frozen_buckets_wait_for_a_person_and_are_no_stall(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake(view(on_base_delete="freeze"))
    made.days(0, 1)
    made.run()
    made.remove("day-0.parquet")
    made.look()
    made.later(HOUR + 1)
    assert stall(made) is None


def test_a_stale_bucket_whose_files_go_is_frozen_and_no_stall(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake(view(on_base_delete="freeze"))
    made.days(0, 1)
    made.run()
    made.manager.force(made.catalog.view("v").declaration, [0], "again")
    made.remove("day-0.parquet")
    assert stall(made) is None
    row = made.row(0)
    assert row is not None
    assert (row.state, row.frozen) == ("STALE", True)
    version = made.version()
    made.look()
    assert made.version() == version
    made.later(HOUR + 1)
    assert stall(made) is None

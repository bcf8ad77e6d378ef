"""What the owner of a view may ask for: how often it is looked at, how many runs it has, where it begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mv_assets.config import MaterializedView
from mv_assets.plan import planner
from mv_assets.state.model import Attempt
from mv_assets_tests.support.lake import through, view
from mv_assets_tests.support.warehouse_lake import DuckDbLake
from mv_assets_tests.unit.defs.in_process import InProcessDagster, in_process_dagster
from mv_assets_tests.unit.defs.test_requests import asked, queue, today

Make = Callable[..., InProcessDagster]
MINUTE = 60_000


@pytest.fixture
def watched(duckdb_lake_on_sqlite: Callable[..., DuckDbLake]) -> Iterator[Make]:
    """Views whose ticks are Dagster's, and whose buckets DuckDB computes."""
    with ExitStack() as closed:

        def make(*views: MaterializedView, days: tuple[int, ...] = (0, 1, 2, 3)) -> InProcessDagster:
            options: dict[str, Any] = {"table": {"settle": "0s"}}
            lake = duckdb_lake_on_sqlite(*views, **options)
            lake.days(*days)
            return closed.enter_context(in_process_dagster(lake))

        yield make


def compute(made: InProcessDagster, number: int) -> None:
    """What a run that was asked for comes to: one day."""
    assert isinstance(made.lake, DuckDbLake)
    made.lake.run_only(number)


def test_a_view_has_as_many_runs_at_a_time_as_its_owner_allows(watched: Make) -> None:
    made = watched(view(max_buckets_per_run=1, max_runs=2), days=tuple(range(6)))
    today(made)
    requests = list(made.tick().run_requests or ())
    assert len(requests) == 2
    queue(made, requests[0])
    assert asked(made) == ["v 1970-01-02"]


def test_with_one_run_at_a_time_neither_repairs_nor_new_buckets_starve(watched: Make) -> None:
    made = watched(view(max_buckets_per_run=1, max_runs=1), days=(0, 1))
    made.lake.run()
    made.tick()
    made.lake.days(2, 3, 4)
    turns = list[int]()
    for number in range(4):
        # A repair is due each time.
        made.lake.write(f"late-{number}.parquet", through(0))
        (request,) = made.tick().run_requests or ()
        turns.append(int((request.partition_key or "")[-2:]) - 1)
        compute(made, turns[-1])
    assert turns == [0, 2, 0, 3]


def test_at_rest_tables_are_looked_at_as_often_as_the_view_wants(watched: Make) -> None:
    made = watched(view(every="5m"), view("w", every="1h"), days=(0,))
    made.lake.run()
    made.tick()
    assert made.tick().run_requests == []
    made.lake.days(1)
    made.lake.clock.now += 4 * MINUTE
    result = made.tick()
    assert result.run_requests == []
    assert "all is at rest; looks again at" in str(result.skip_reason)
    made.lake.clock.now += MINUTE
    assert asked(made) == ["v 1970-01-02", "w 1970-01-02"]


def test_what_is_left_to_be_done_is_gone_on_with_however_seldom_the_table_is_looked_at(watched: Make) -> None:
    made = watched(view(every="1h", max_buckets_per_run=1), days=tuple(range(6)))
    for number in range(6):
        assert "at rest" not in str(made.tick().skip_reason)
        compute(made, number)
    assert made.tick().run_requests == []
    assert "all is at rest" in str(made.tick().skip_reason)


def test_what_others_commit_is_told_to_dagster_at_the_next_tick(watched: Make) -> None:
    made = watched(view(every="1h"), days=(0, 1))
    made.lake.run()
    made.tick()
    made.tick()
    made.lake.write("late.parquet", through(0))
    made.lake.run()
    assert "v" in [event.asset_key.path[-1] for event in made.tick().asset_events]


def test_a_clock_that_is_set_back_keeps_nobody_from_looking(watched: Make) -> None:
    made = watched(view(every="1h"), days=(0,))
    made.lake.run()
    made.tick()
    made.tick()
    made.lake.days(1)
    made.lake.clock.now += -120 * MINUTE
    assert asked(made) == ["v 1970-01-02"]


def test_a_look_is_due_as_often_as_the_most_eager_view_wants_it(watched: Make) -> None:
    made = watched(view(every="2s"), view("w"))
    (sensor,) = [each for each in made.repository.sensor_defs if each.name == "watch_events"]
    assert sensor.minimum_interval_seconds == 2


def test_partitions_begin_with_the_data_though_nobody_has_looked_yet(watched: Make) -> None:
    made = watched(view(start="earliest"), days=(2, 3))
    found = made.repository.asset_graph.get(made.deployment.key_of("v")).partitions_def
    assert found is not None
    assert found.get_first_partition_key() == "1970-01-03"
    assert asked(made) == ["v 1970-01-03..1970-01-04"]


def test_data_before_the_partitions_that_were_loaded_is_said(watched: Make) -> None:
    made = watched(view(start="earliest"), days=(2, 3))
    made.lake.run()
    made.tick()
    made.lake.days(0)
    result = made.tick()
    assert "1970-01-01 to 1970-01-02 lies before the partitions that were loaded" in str(result.skip_reason)


def test_while_a_run_is_awaited_nothing_rests(watched: Make) -> None:
    made = watched(view(every="1h"), days=(0,))
    today(made)
    (request,) = made.tick().run_requests or ()
    queue(made, request)
    for _ in range(2):
        result = made.tick()
        assert result.run_requests == []
        assert "at rest" not in str(result.skip_reason)


def test_a_bucket_that_failed_is_tried_again_whatever_every_says(watched: Make) -> None:
    made = watched(view(every="1h"), days=(0, 1))
    made.lake.run()
    made.tick()
    made.lake.write("late.parquet", through(0))
    observed = made.lake.look()
    [work] = planner.plan(observed).work
    attempt = Attempt("g-dead", observed.header.version, work.buckets)
    made.lake.manager.register(observed.view.declaration, attempt)
    made.lake.manager.fail(observed.view.declaration, attempt, {0: "the cluster was away"})
    for _ in range(4):
        made.lake.clock.now += MINUTE // 12
        made.tick()
    made.lake.clock.now += 5 * MINUTE
    assert made.tick().run_requests

"""What the owner of a view may ask for: how often it is looked at, how many runs it has, where it begins."""

from __future__ import annotations

from collections.abc import Callable

from mv_assets_tests.support.lake import through, view
from mv_assets_tests.unit.defs.in_process import InProcessDagster
from mv_assets_tests.unit.defs.test_requests import asked, queue, today

Make = Callable[..., InProcessDagster]
MINUTE = 60_000


def test_a_view_has_as_many_runs_at_a_time_as_its_owner_allows(dagster: Make) -> None:
    made = dagster(view(max_buckets_per_run=1, max_runs=2), days=tuple(range(6)), table={"settle": "0s"})
    today(made)
    requests = list(made.tick().run_requests or ())
    assert len(requests) == 2
    queue(made, requests[0])
    assert asked(made) == ["v 1970-01-02"]


def test_with_one_run_at_a_time_neither_repairs_nor_new_buckets_starve(dagster: Make) -> None:
    made = dagster(view(max_buckets_per_run=1, max_runs=1), days=(0, 1), table={"settle": "0s"})
    made.settle()
    made.lake.days(2, 3, 4)
    turns = []
    for number in range(4):
        # A repair is due each time.
        made.lake.write(f"late-{number}.parquet", through(0))
        (request,) = made.tick().run_requests or ()
        turns.append((request.partition_key or "")[-2:])
        made.run(request)
    assert turns == ["01", "03", "01", "04"]


def test_at_rest_tables_are_looked_at_as_often_as_the_view_wants(dagster: Make) -> None:
    made = dagster(view(every="5m"), view("w", every="1h"), days=(0,), table={"settle": "0s"})
    made.settle()
    assert made.tick().run_requests == []
    made.lake.days(1)
    made.lake.clock.now += 4 * MINUTE
    result = made.tick()
    assert result.run_requests == []
    assert "all is at rest; looks again at" in str(result.skip_reason)
    made.lake.clock.now += MINUTE
    assert asked(made) == ["v 1970-01-02", "w 1970-01-02"]


def test_what_is_left_to_be_done_is_gone_on_with_however_seldom_the_table_is_looked_at(dagster: Make) -> None:
    made = dagster(view(every="1h", max_buckets_per_run=1), days=tuple(range(6)), table={"settle": "0s"})
    assert len(made.settle()) == 6
    assert made.tick().run_requests == []


def test_what_others_commit_is_told_to_dagster_at_the_next_tick(dagster: Make) -> None:
    made = dagster(view(every="1h"), days=(0, 1), table={"settle": "0s"})
    made.settle()
    made.tick()
    made.lake.write("late.parquet", through(0))
    made.lake.run()
    assert "v" in [event.asset_key.path[-1] for event in made.tick().asset_events]


def test_a_clock_that_is_set_back_keeps_nobody_from_looking(dagster: Make) -> None:
    made = dagster(view(every="1h"), days=(0,), table={"settle": "0s"})
    made.settle()
    made.tick()
    made.lake.days(1)
    made.lake.clock.now += -120 * MINUTE
    assert asked(made) == ["v 1970-01-02"]


def test_a_look_is_due_as_often_as_the_most_eager_view_wants_it(dagster: Make) -> None:
    made = dagster(view(every="2s"), view("w"))
    (sensor,) = [each for each in made.repository.sensor_defs if each.name == "watch_events"]
    assert sensor.minimum_interval_seconds == 2


def test_partitions_begin_with_the_data_though_nobody_has_looked_yet(dagster: Make) -> None:
    made = dagster(view(start="earliest"), days=(2, 3), table={"settle": "0s"})
    found = made.repository.asset_graph.get(made.deployment.key_of("v")).partitions_def
    assert found is not None
    assert found.get_first_partition_key() == "1970-01-03"
    assert made.settle() == ["v 1970-01-03..1970-01-04"]


def test_data_before_the_partitions_that_were_loaded_is_said(dagster: Make) -> None:
    made = dagster(view(start="earliest"), days=(2, 3), table={"settle": "0s"})
    made.settle()
    made.lake.days(0)
    result = made.tick()
    assert "1970-01-01 to 1970-01-02 lies before the partitions that were loaded" in str(result.skip_reason)

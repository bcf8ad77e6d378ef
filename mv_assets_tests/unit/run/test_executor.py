"""What goes wrong around work, and that it costs no more than it must."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.observe.observation import Observed
from mv_assets.plan import planner
from mv_assets.run.attempt import OpenAttempt
from mv_assets.run.errors import EngineLost, WarehouseUnusable
from mv_assets.spark.errors import EngineUnavailable
from mv_assets.state import rules
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import EMPTY, AttemptRecord, CurrentInputs, Inputs, State
from mv_assets.state.registry import Registry
from mv_assets.state.rules import RetryState
from mv_assets.tables.errors import TableUnreadable
from mv_assets_tests.support.lake import current_inputs_of, day, operations_of, view
from mv_assets_tests.support.spark_lake import SparkLake
from mv_assets_tests.support.warehouse_lake import DuckDbLake

SparkLakes = Callable[..., SparkLake]
DAILY = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM v GROUP BY ALL"


def test_a_commit_of_what_froze_meanwhile_is_refused_though_the_table_is_as_it_was_planned(
    spark_lake: SparkLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = spark_lake(view(on_base_delete="freeze"))
    lake.days(0, 1)
    lake.write("more.parquet", [day(0)], 5)
    peer = lake.look()
    [work] = planner.plan(peer).work
    seen, mine = current_inputs_of(peer), list[Observed]()

    def retention() -> dict[int, CurrentInputs]:
        if not mine:
            lake.remove("day-0.parquet")
            # The peer was suspended for so long that nobody takes it for alive.
            monkeypatch.setattr(Registry, "alive", lambda *_: frozenset())
            lake.clock.now += 70_000
            mine.append(lake.look(whole=True))
            monkeypatch.undo()
        return seen

    assert lake.compute(peer, work, retention) == {0: "committed", 1: "committed"}
    assert operations_of(planner.plan(mine[0])) == [("APPEND", [0]), ("APPEND", [1])]
    late = [lake.compute(mine[0], work) for work in planner.plan(mine[0]).work]
    assert late == [{0: "frozen"}, {1: "replay"}]
    row = lake.row(0)
    assert row is not None
    assert row.rows == 3


def test_a_revert_looks_once_more_before_it_calls_a_bucket_valid(spark_lake: SparkLakes) -> None:
    made = spark_lake()
    made.days(0, 1)
    made.refresh()
    content = made.remove("day-0.parquet")
    made.look()
    (made.folder / "events" / "day-0.parquet").write_bytes(content)
    observed = made.look()
    assert operations_of(planner.plan(observed)) == [("REVERT", [0])]
    made.write("late.parquet", [day(0)])
    assert made.carry_out(observed) == {}
    assert made.state(0) is State.STALE
    made.converge()
    made.check()


def test_one_upstream_bucket_that_changes_costs_its_neighbours_nothing(spark_lake: SparkLakes) -> None:
    lake = spark_lake(view(), view("daily", base="v", sql=DAILY, time_column="day"))
    lake.days(0, 1, 2, 3, 4)
    lake.run("v")
    observed = lake.look("daily")
    lake.write("late.parquet", [day(2)], 9)
    lake.run("v")
    expected = {0: "committed", 1: "committed", 2: "source changed", 3: "committed", 4: "committed"}
    assert lake.carry_out(observed) == expected
    assert lake.snapshot("daily").attempts == {}
    lake.converge()
    lake.check()


def test_an_upstream_bucket_that_is_stale_again_is_waited_for_and_fails_nobody(
    spark_lake: SparkLakes,
) -> None:
    lake = spark_lake(view(), view("daily", base="v", sql=DAILY, time_column="day"))
    lake.days(0, 1)
    lake.run("v")
    observed = lake.look("daily")
    lake.write("late.parquet", [day(1)], 9)
    lake.run("v")
    lake.write("later.parquet", [day(1)], 9)
    lake.look("v")
    assert lake.carry_out(observed) == {0: "committed", 1: "waiting"}
    assert lake.snapshot("daily").attempts == {}
    lake.converge()
    lake.check()


def test_a_file_that_lost_its_times_before_the_job_fails_no_bucket(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0)
    observed = lake.look()
    pq.write_table(pa.table({"x": [1]}), lake.folder / "events" / "day-0.parquet")
    assert lake.carry_out(observed) == {0: "source changed"}
    assert lake.snapshot().attempts == {}


def goes_away(times: int) -> Callable[[], None]:
    """Spark ends so many times when a job begins."""
    left = [EngineUnavailable("its process ended")] * times

    def end() -> None:
        if left:
            raise left.pop()

    return end


def test_spark_that_goes_away_costs_the_buckets_of_its_job_one_attempt(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake],
) -> None:
    made = duckdb_lake_on_sqlite(view(max_buckets_per_run=2))
    made.days(*range(6))
    made.before = goes_away(1)
    report = made.run()["v"]
    assert (report.error, made.states(*range(6))) == (None, "SSVVVV")
    assert ["Spark went away while this was computed" in each for each in report.wrong.failed.values()] == [
        True,
        True,
    ]
    assert [record.count for record in made.snapshot().attempts.values()] == [1, 1]


def test_spark_that_goes_away_time_and_again_is_given_up_for_all_views(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake],
) -> None:
    made = duckdb_lake_on_sqlite(view(max_buckets_per_run=1), view("w", max_buckets_per_run=1))
    made.days(*range(6))
    made.before = goes_away(100)
    reports = made.run()
    assert isinstance(reports["v"].error, EngineLost)
    assert reports["w"].error is reports["v"].error
    assert (len(made.snapshot().attempts), len(made.snapshot("w").attempts)) == (2, 2)
    made.before = None
    made.later(3_600_000)
    made.run()
    assert (made.states(*range(6)), made.states(*range(6), name="w")) == ("VVVVVV", "VVVVVV")


def test_a_table_that_vanishes_during_a_job_leaves_no_attempt_open(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0, 1, 2)
    events, away = lake.folder / "events", lake.folder / "away"

    def vanish() -> None:
        if events.exists():
            events.rename(away)

    lake.before = vanish
    assert isinstance(lake.run()["v"].error, TableUnreadable)
    assert lake.snapshot().attempts == {}
    lake.before = None
    away.rename(events)
    assert lake.outcomes() == dict.fromkeys(range(3), "committed")


def test_a_warehouse_that_can_t_be_written_fails_the_view_and_no_bucket(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0, 1, 2)
    (lake.folder / "warehouse").write_text("a file stands here")
    assert isinstance(lake.run()["v"].error, WarehouseUnusable)
    assert (lake.snapshot().rows, lake.snapshot().attempts) == ({}, {})
    (lake.folder / "warehouse").unlink()
    assert lake.outcomes() == dict.fromkeys(range(3), "committed")


def test_what_is_known_to_fail_is_one_attempt_and_one_write_after_the_work(spark_lake: SparkLakes) -> None:
    joined = """
        SELECT date_trunc('hour', e.at) AS hour, count(*) AS n
        FROM events e JOIN zones z ON e.x = z.x GROUP BY ALL
    """
    lake = spark_lake(view(sql=joined, dimensions=["zones"]), dimensions=["zones"])
    lake.write("zones.parquet", [day(0)], table="zones")
    (lake.folder / "zones" / "broken.parquet").write_bytes(b"PAR1 but not for long PAR1")
    lake.days(*range(20))
    assert set(lake.outcomes().values()) == {"failed"}
    assert (len(lake.snapshot().attempts), lake.version()) == (20, 3)


def test_the_heart_of_an_attempt_stops_though_it_is_interrupted_as_it_is_abandoned(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    made = duckdb_lake_on_sqlite()
    made.days(0)
    observed = made.look()
    [work] = planner.plan(observed).work
    attempt = OpenAttempt(made.open(), observed.view.declaration, observed.header.version, work.buckets)
    assert hearts() == 1
    monkeypatch.setattr(PartitionManager, "abandon", interrupted)
    with pytest.raises(KeyboardInterrupt), attempt:
        pass
    assert hearts() == 0


def hearts() -> int:
    return sum(thread.name == "mv-assets-heartbeat" for thread in threading.enumerate())


def test_what_was_cancelled_may_begin_again_at_once() -> None:
    inputs, now = Inputs(EMPTY, "d"), 1_000_000
    record = AttemptRecord(5, None, "an error", now - 1, inputs)
    begun = rules.attempt_begun(record, "g", inputs, now)
    cancelled = rules.attempt_abandoned(begun)
    assert cancelled is not None
    assert (cancelled.count, cancelled.last_error) == (5, "an error")
    assert rules.retry_state(cancelled, inputs, alive=False, now=now) is RetryState.ALONE

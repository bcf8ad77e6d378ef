"""Cases 39 to 51, 82 to 99 where they are about work in progress: real files, real Spark."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pyarrow.parquet as pq
import pytest

from mv_assets.plan import planner
from mv_assets.plan.scope import Scope
from mv_assets.run.refresher import Report
from mv_assets.run.warehouse import Contents
from mv_assets.state.errors import Fenced
from mv_assets.state.model import State
from mv_assets.state.registry import Registry
from mv_assets_tests.support.lake import HOURLY, day, through, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.spark_lake import Eventful, SparkLake

SparkLakes = Callable[..., SparkLake]
SUMS = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, sum(x) AS x FROM events GROUP BY ALL"


@pytest.fixture
def lake(spark_lake: SparkLakes) -> SparkLake:
    """Files of days 0 to 2, nothing computed yet."""
    made = spark_lake(view(sql=SUMS))
    made.days(0, 1, 2)
    return made


def once(event: Callable[[], object]) -> Callable[[], None]:
    """Something that happens the first time only."""
    left = [event]

    def happen() -> None:
        if left:
            left.pop()()

    return happen


def test_39_a_file_that_can_t_be_read_fails_its_bucket_alone_and_holds_w(lake: SparkLake) -> None:
    lake.spoil("day-1.parquet", "x")
    report = lake.run()["v"]
    outcomes = {bucket // DAY: result.outcome.value for bucket, result in report.results.items()}
    assert outcomes == {0: "committed", 1: "failed", 2: "committed"}
    assert (lake.states(0, 1, 2), lake.watermark()) == ("VSV", 1)
    errors = [record.last_error for record in lake.snapshot().attempts.values()]
    assert len(errors) == 1
    assert "day-1.parquet" in str(errors[0])


def test_39_a_file_that_vanished_from_the_listing_too_is_a_source_change_and_no_failure(
    lake: SparkLake,
) -> None:
    lake.before = once(lambda: lake.remove("day-1.parquet"))
    assert lake.outcomes() == {0: "committed", 1: "committed", 2: "committed"}
    row = lake.row(1)
    assert row is not None
    assert (row.rows, lake.snapshot().attempts) == (0, {})


def test_42_healing_moves_w_and_computes_nothing_else_again(lake: SparkLake) -> None:
    lake.spoil("day-1.parquet", "x")
    lake.run()
    kept = [lake.row(0), lake.row(2)]
    lake.write("day-1.parquet", through(1), value=7)
    assert lake.outcomes() == {1: "committed"}
    assert (lake.watermark(), [lake.row(0), lake.row(2)]) == (3, kept)
    lake.check()


def test_43_a_file_that_arrives_during_a_refresh_leaves_progress_that_is_not_valid(lake: SparkLake) -> None:
    observed = lake.look()
    lake.before = once(lambda: lake.write("late.parquet", [day(1)]))
    assert lake.carry_out(observed) == {0: "committed", 1: "committed as STALE", 2: "committed"}
    assert (lake.states(0, 1, 2), lake.watermark()) == ("VSV", 3)
    lake.converge()
    lake.check()


def test_43_a_file_rewritten_during_a_refresh_commits_nothing(lake: SparkLake) -> None:
    lake.run()
    lake.write("day-1.parquet", through(1), value=5)
    before, observed = lake.row(1), lake.look()
    lake.after = once(lambda: lake.write("day-1.parquet", through(1), value=6))
    assert lake.carry_out(observed) == {1: "source changed"}
    row = lake.row(1)
    assert before is not None
    assert row is not None
    assert (row.state, row.generation) == (State.STALE, before.generation)
    lake.converge()
    lake.check()


def test_44_and_50_a_lagging_deployment_finds_its_work_done_and_goes_on(
    lake: SparkLake, spark_lake: SparkLakes
) -> None:
    lagging = lake.look()
    peer = spark_lake(view(sql=SUMS))
    assert peer.outcomes() == dict.fromkeys(range(3), "committed")
    version = peer.version()
    assert lake.carry_out(lagging) == dict.fromkeys(range(3), "replay")
    assert (lake.version(), lake.outcomes()) == (version, {})
    lake.days(3)
    assert lake.outcomes() == {3: "committed"}


def test_46_an_old_bucket_is_repaired_below_w(lake: SparkLake) -> None:
    lake.run()
    lake.write("late.parquet", [day(0)])
    assert lake.outcomes() == {0: "committed"}
    assert lake.watermark() == 3
    lake.check()


def test_47_two_refreshers_at_once_commit_each_bucket_once(lake: SparkLake, spark_lake: SparkLakes) -> None:
    reports: list[Report] = []
    peer = spark_lake(view(sql=SUMS))
    threads = [Thread(target=lambda each=each: reports.append(each.run()["v"])) for each in (lake, peer)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes = [result.outcome.value for report in reports for result in report.results.values()]
    assert sorted(outcomes)[:3] == ["committed"] * 3
    assert set(outcomes[3:]) <= {"committed", "replay", "superseded"}
    assert outcomes.count("committed") == 3
    assert (lake.states(0, 1, 2), lake.watermark()) == ("VVV", 3)
    lake.check()


def test_51_a_cancelled_refresh_leaves_its_buckets_as_they_were(lake: SparkLake) -> None:
    def cancel() -> None:
        raise KeyboardInterrupt

    lake.after = cancel
    with pytest.raises(KeyboardInterrupt):
        lake.run()
    assert (lake.states(0, 1, 2), lake.watermark(), lake.snapshot().attempts) == ("---", 0, {})
    lake.after = None
    assert lake.outcomes() == dict.fromkeys(range(3), "committed")


def test_82_a_file_rewritten_and_restored_while_it_was_read_does_not_become_valid(lake: SparkLake) -> None:
    path = lake.folder / "events" / "day-1.parquet"
    original = path.read_bytes()
    lake.before = once(lambda: lake.write("day-1.parquet", through(1), value=1_000))
    lake.after = once(lambda: path.write_bytes(original))
    observed = lake.look()
    assert lake.carry_out(observed) == {0: "committed", 1: "source changed", 2: "committed"}
    lake.converge()
    lake.check()


def test_83_a_generation_of_which_one_bucket_committed_stays(lake: SparkLake) -> None:
    observed = lake.look()
    lake.after = once(lambda: lake.write("day-0.parquet", through(0), value=9))
    assert lake.carry_out(observed) == {0: "source changed", 1: "committed", 2: "committed"}
    assert Registry(lake.store, lifetime_ms=0).doom("v") == []
    lake.converge()
    lake.check()


def test_84_a_commit_of_what_gc_collected_is_refused_and_planned_again(lake: SparkLake) -> None:
    observed = lake.look()
    lake.after = once(lambda: Registry(lake.store, lifetime_ms=0).doom("v"))
    assert lake.carry_out(observed) == dict.fromkeys(range(3), "planned again")
    assert lake.states(0, 1, 2) == "---"
    lake.converge()
    lake.check()


def test_87_the_first_bucket_fails_later_ones_commit_and_when_it_heals_w_jumps(lake: SparkLake) -> None:
    lake.spoil("day-0.parquet", "x")
    assert lake.outcomes() == {0: "failed", 1: "committed", 2: "committed"}
    assert lake.watermark() == 0
    lake.write("day-0.parquet", through(0), value=1)
    assert lake.outcomes() == {0: "committed"}
    assert lake.watermark() == 3


def test_89_work_planned_before_a_person_forced_the_bucket_does_not_serve_that(lake: SparkLake) -> None:
    lake.run()
    lake.write("late.parquet", [day(1)])
    observed = lake.look()
    lake.after = once(lambda: lake.manager.force(observed.view.declaration, [DAY], "by hand"))
    assert lake.carry_out(observed) == {1: "planned again"}
    row = lake.row(1)
    assert row is not None
    assert (row.state, row.forced) == (State.STALE, True)
    lake.converge()
    lake.check()


def test_a_forced_refresh_of_unchanged_buckets_really_computes_them(lake: SparkLake) -> None:
    lake.run()
    before = lake.row(1)
    lake.manager.force(lake.catalog.view("v").declaration, [DAY], "by hand")
    assert lake.outcomes() == {1: "committed"}
    after = lake.row(1)
    assert before is not None
    assert after is not None
    assert (after.inputs, after.generation != before.generation) == (before.inputs, True)


def test_92_a_bucket_whose_files_never_rest_gets_data_and_w_moves(lake: SparkLake) -> None:
    count = iter(range(100))

    def arrive() -> None:
        lake.write(f"more-{next(count)}.parquet", [day(1)])

    lake.before = arrive
    outcomes = lake.outcomes()
    assert outcomes == {0: "committed", 1: "committed as STALE", 2: "committed"}
    assert (lake.watermark(), next(count)) == (3, 3)
    lake.before = None
    lake.converge()
    lake.check()


def test_93_a_bucket_whose_attempt_never_ended_runs_by_itself(
    lake: SparkLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[str] = []

    def die() -> None:
        raise SystemExit

    lake.before = die
    # As if the process had died, which ends no attempt.
    monkeypatch.setattr(lake.manager, "abandon", lambda *_: None)
    with pytest.raises(SystemExit):
        lake.run()
    monkeypatch.undo()
    lake.before = lambda: places.append("a job")
    lake.clock.now += 3_600_000
    Registry(lake.store, lifetime_ms=0).doom("v")
    assert lake.outcomes() == dict.fromkeys(range(3), "committed")
    assert len(places) == 3


def test_99_peers_that_commit_other_buckets_meanwhile_do_not_hold_mine_up(
    lake: SparkLake, spark_lake: SparkLakes
) -> None:
    peer = spark_lake(view(sql=SUMS))
    observed, theirs = lake.look(), Scope(2 * DAY, 3 * DAY)
    work = planner.plan(observed).work[0]
    mine = type(work)(work.operation, work.buckets[:2], work.bytes, work.reason)
    lake.after = once(lambda: peer.run(scope=theirs))
    assert lake.compute(observed, mine) == {0: "committed", 1: "committed"}
    assert lake.states(0, 1, 2) == "VVV"


def test_an_earlier_definition_is_fenced_in_the_middle_of_its_work(
    lake: SparkLake, spark_lake: SparkLakes
) -> None:
    observed = lake.look()
    newer = spark_lake(view(sql=HOURLY))
    lake.after = once(newer.look)
    with pytest.raises(Fenced):
        lake.carry_out(observed)
    assert lake.states(0, 1, 2) == "---"
    assert isinstance(lake.run()["v"].error, Fenced)
    assert newer.outcomes() == dict.fromkeys(range(3), "committed")
    newer.check()


def test_a_row_outside_of_the_computed_buckets_fails_the_attempt(lake: SparkLake) -> None:
    class Misplacing(Eventful):
        def contents(self, view: str, generation: str) -> Contents:
            found = Eventful.contents(self, view, generation)
            found.rows[9 * DAY] += 1
            return found

    lake.house = Misplacing
    assert lake.outcomes() == dict.fromkeys(range(3), "failed")
    assert lake.states(0, 1, 2) == "SSS"
    lake.house = Eventful
    lake.clock.now += 3_600_000
    lake.converge()
    lake.check()


def test_rows_bytes_segments_and_duration_are_recorded(lake: SparkLake) -> None:
    lake.run()
    row = lake.row(1)
    assert row is not None
    assert row.rows == 2
    assert row.bytes > 0
    assert [segment.name for segment in lake.store.recorded("v", [DAY])[DAY]] == ["day-1.parquet"]
    files = lake.store.files("v", [str(row.generation)])[str(row.generation)]
    assert len(files) == 1
    with lake.warehouse.open(files[0].path) as opened:
        assert (pq.read_table(opened).num_rows, files[0].rows) == (6, 6)


def test_zero_rows_are_valid_with_zero_rows(spark_lake: SparkLakes) -> None:
    lake = spark_lake(view(sql=SUMS.replace("GROUP", "WHERE x > 0 GROUP")))
    lake.days(0, 1)
    lake.write("day-3.parquet", through(3))
    assert lake.outcomes() == dict.fromkeys(range(4), "committed")
    assert [row.rows for row in lake.snapshot().rows.values()] == [0, 2, 0, 0]
    lake.check()


def test_an_error_that_lies_in_the_query_fails_all_buckets_at_once(spark_lake: SparkLakes) -> None:
    lake = spark_lake(
        view(sql="SELECT date_trunc('hour', at) AS hour, sum(nope) AS n FROM events GROUP BY ALL")
    )
    lake.days(0, 1, 2)
    report = lake.run()["v"]
    reasons = {result.reason for result in report.results.values()}
    assert len(reasons) == 1
    assert "nope" in str(reasons.pop())
    assert len(lake.snapshot().attempts) == 3


def test_a_refresh_reads_no_more_than_it_is_allowed_to(lake: SparkLake) -> None:
    size = (lake.folder / "events" / "day-0.parquet").stat().st_size
    report = lake.run(scope=Scope(max_bytes=2 * size + 5))["v"]
    assert [bucket // DAY for bucket in report.results] == [0, 1]
    assert [(each.bucket // DAY, "allowed" in each.reason) for each in report.waiting] == [(2, True)]


def test_a_refresh_of_a_range_leaves_the_others(lake: SparkLake) -> None:
    assert lake.outcomes(scope=Scope(DAY, 2 * DAY)) == {1: "committed"}
    assert (lake.states(0, 1, 2), lake.watermark()) == ("-V-", 0)


def test_a_young_file_is_waited_for(lake: SparkLake) -> None:
    lake.clock.now = (lake.folder / "events" / "day-2.parquet").stat().st_ctime_ns // 1_000_000 + 100
    assert lake.outcomes() == dict.fromkeys(range(3), "committed")
    lake.check()


def test_a_refresh_of_files_that_never_stop_arriving_ends(lake: SparkLake) -> None:
    lake.table = {"settle": "1s", "settle_at_most": "2s"}
    lake.declare(*lake.views)
    count = iter(range(1_000))

    def arrive() -> None:
        path = lake.write(f"more-{next(count)}.parquet", [day(1)])
        lake.clock.now = path.stat().st_ctime_ns // 1_000_000 + 20

    arrive()
    lake.before = lake.idle = arrive
    assert lake.outcomes()[1] == "committed as STALE"
    assert lake.watermark() == 3
    lake.before = lake.idle = None


@pytest.mark.parametrize("name", ["ware [house]", "100% {a,b}", "back\\slash*?", "ünï"])
def test_a_warehouse_may_be_called_anything(lake: SparkLake, name: str) -> None:
    lake.storehouse = name
    assert lake.outcomes() == dict.fromkeys(range(3), "committed")
    assert [path.name for path in lake.folder.iterdir() if path.is_dir()].count(name) == 1
    lake.write("late.parquet", [day(1)])
    assert lake.outcomes() == {1: "committed"}
    lake.check()

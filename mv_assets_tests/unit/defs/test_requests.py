"""What a sensor asks for: each bucket once, again after a while, and never what somebody else asked for."""

from __future__ import annotations

import time
from collections.abc import Callable

import dagster as dg
import pytest
from dagster import DagsterRunStatus
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.test_utils import create_run_for_test

from mv_assets.buckets import DAY, HOUR, MINUTE
from mv_assets.config.file import Draft
from mv_assets.observe.observation import Unchanged
from mv_assets.plan import planner
from mv_assets.state.model import Attempt
from mv_assets.tables.errors import TableUnreadable
from mv_assets.tables.open import open_table
from mv_assets.views.catalog import prepare
from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.unit.defs.in_process import InProcessDagster, failure_of, name_of

Make = Callable[..., InProcessDagster]


def asked(made: InProcessDagster) -> list[str]:
    return [name_of(request) for request in made.tick().run_requests or ()]


def queue(
    made: InProcessDagster, request: dg.RunRequest, status: DagsterRunStatus = DagsterRunStatus.NOT_STARTED
) -> str:
    """A run that was asked for and is not executed yet."""
    tags = dict(request.tags)
    if request.partition_key:
        tags["dagster/partition"] = request.partition_key
    run = create_run_for_test(
        made.instance,
        job_name="__ASSET_JOB",
        tags={**tags, "dagster/run_key": request.run_key or ""},
        asset_selection=frozenset(request.asset_selection or ()),
        status=status,
    )
    return str(run.run_id)


def today(made: InProcessDagster) -> None:
    """Let the project's clock be the one that Dagster stamps its runs with."""
    made.lake.clock.now = time.time_ns() // 1_000_000


def test_what_was_asked_for_is_not_asked_for_again(dagster: Make) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    (request,) = made.tick().run_requests or ()
    queue(made, request)
    assert asked(made) == []


def test_a_tick_whose_daemon_died_asks_for_the_same_by_the_same_key(dagster: Make) -> None:
    made = dagster()
    (first,) = made.tick(lost=True).run_requests or ()
    (second,) = made.tick().run_requests or ()
    assert first.run_key == second.run_key


def test_what_the_clock_closes_is_asked_for_though_nothing_has_changed(dagster: Make) -> None:
    # Yesterday's batch stopped before midnight, and is closed in a quarter of an hour.
    yesterday = time.time_ns() // 1_000_000 // DAY - 1
    closing = time.time_ns() // 1_000_000 + HOUR + 15 * MINUTE
    declared = view(start=f"{day(yesterday - 1):%Y-%m-%d}", closes=f"{closing - (yesterday + 1) * DAY}ms")
    made = dagster(declared, days=(yesterday - 1,))
    made.lake.write("batch.parquet", [day(yesterday, 0), day(yesterday, 23.99)])
    assert len(made.settle()) == 1
    assert (made.lake.states(yesterday), asked(made)) == ("-", [])
    # The shortcut of a tick that has nothing to look at.
    assert isinstance(made.lake.look(), Unchanged)
    made.lake.clock.now = closing - 1
    assert asked(made) == []
    made.lake.clock.now = closing
    assert made.settle() == [f"v {day(yesterday):%Y-%m-%d}"]
    assert (made.lake.states(yesterday), made.lake.watermark()) == ("V", yesterday + 1)
    made.lake.clock.now += HOUR
    assert asked(made) == []


def test_what_a_person_asked_for_is_left_to_them(dagster: Make) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    tags = {
        "dagster/asset_partition_range_start": "1970-01-02",
        "dagster/asset_partition_range_end": "1970-01-03",
    }
    queue(made, dg.RunRequest(asset_selection=[dg.AssetKey("v")], tags=tags), DagsterRunStatus.STARTED)
    assert asked(made) == ["v 1970-01-01", "v 1970-01-04"]


def test_what_a_backfill_will_come_to_is_left_to_it(dagster: Make) -> None:
    made = dagster()
    backfill = PartitionBackfill.from_asset_partitions(
        backfill_id="b",
        asset_graph=made.repository.asset_graph,
        partition_names=["1970-01-01", "1970-01-02", "1970-01-03"],
        asset_selection=[dg.AssetKey("v")],
        backfill_timestamp=made.lake.clock() / 1_000,
        tags={},
        dynamic_partitions_store=made.instance,
        all_partitions=False,
        title=None,
        description=None,
        run_config=None,
    )
    made.instance.add_backfill(backfill)
    assert asked(made) == ["v 1970-01-04"]
    made.instance.update_backfill(backfill.with_status(BulkActionStatus.COMPLETED))  # type: ignore[no-untyped-call]
    assert asked(made) == ["v 1970-01-01..1970-01-04"]


def test_runs_that_end_without_effect_are_asked_for_again_later_and_later(dagster: Make) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    keys = set()
    for attempt in range(3):
        (request,) = made.tick().run_requests or ()
        keys.add(request.run_key)
        queue(made, request, DagsterRunStatus.CANCELED)
        made.lake.clock.now = _ended(made) + (10_000 << attempt) - 1
        assert asked(made) == []
        made.lake.clock.now += 2
    assert len(keys) == 3


def _ended(made: InProcessDagster) -> int:
    (record,) = made.instance.get_run_records(limit=1)
    return int((record.end_time or record.update_timestamp.timestamp()) * 1_000)


def test_a_failed_bucket_backs_off_and_the_others_go_on(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.damage("day-1.parquet")
    (request,) = made.tick().run_requests or ()
    assert not made.run(request).success
    made.lake.write("late.parquet", [day(3)])
    assert asked(made) == ["v 1970-01-04"]
    made.lake.clock.now += 10_000
    assert "v 1970-01-02" in asked(made)


def test_no_more_runs_of_a_view_stand_ready_than_can_be_used(dagster: Make) -> None:
    made = dagster(view(max_buckets_per_run=1), table={"settle": "0s"})
    today(made)
    first = made.tick().run_requests or ()
    assert [name_of(request) for request in first] == ["v 1970-01-01", "v 1970-01-02", "v 1970-01-03"]
    queue(made, first[0])
    assert asked(made) == ["v 1970-01-02", "v 1970-01-03"]


@pytest.mark.parametrize("status", [DagsterRunStatus.STARTED, DagsterRunStatus.NOT_STARTED])
@pytest.mark.parametrize("by", ["the sensor", "a person"])
def test_a_run_that_died_without_a_word_is_ended_and_its_work_asked_for_again(
    dagster: Make, by: str, status: DagsterRunStatus
) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    (request,) = made.tick().run_requests or ()
    ranged = {key: value for key, value in request.tags.items() if key.startswith("dagster/")}
    asking = (
        request if by == "the sensor" else dg.RunRequest(asset_selection=request.asset_selection, tags=ranged)
    )
    run = queue(made, asking, status)
    made.lake.clock.now += 14 * MINUTE
    assert asked(made) == []
    made.lake.clock.now += 2 * MINUTE
    made.tick()
    assert made.instance.get_run_by_id(run).status is DagsterRunStatus.FAILURE  # type: ignore[union-attr]
    made.lake.clock.now += MINUTE
    assert asked(made) == ["v 1970-01-01..1970-01-04"]


def test_a_silent_run_of_others_is_left_alone_but_holds_nothing_for_ever(dagster: Make) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    (request,) = made.tick().run_requests or ()
    ranged = {key: value for key, value in request.tags.items() if key.startswith("dagster/")}
    mixed = dg.RunRequest(asset_selection=[dg.AssetKey("v"), dg.AssetKey("theirs")], tags=ranged)
    run = queue(made, mixed, DagsterRunStatus.STARTED)
    assert asked(made) == []
    made.lake.clock.now += 16 * MINUTE
    assert asked(made) == ["v 1970-01-01..1970-01-04"]
    assert made.instance.get_run_by_id(run).status is DagsterRunStatus.STARTED  # type: ignore[union-attr]


def test_a_silent_run_whose_attempt_is_alive_is_not_dead(dagster: Make) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    (request,) = made.tick().run_requests or ()
    run = queue(made, request, DagsterRunStatus.STARTED)
    made.lake.clock.now += 16 * MINUTE
    observed = made.lake.look()
    (work,) = planner.plan(observed).work
    attempt = Attempt("alive", observed.header.version, work.buckets)
    made.lake.manager.register(observed.view.declaration, attempt)
    made.tick()
    assert made.instance.get_run_by_id(run).status is DagsterRunStatus.STARTED  # type: ignore[union-attr]


@pytest.mark.parametrize("alive", [True, False])
def test_a_silent_run_over_views_of_two_tables_is_dead_only_if_none_is_worked_on(
    dagster: Make, *, alive: bool
) -> None:
    made = dagster(table={"settle": "0s"})
    also_rides(made)
    today(made)
    made.tick()
    both = [dg.AssetKey("v"), dg.AssetKey("r")]
    run = queue(
        made, dg.RunRequest(asset_selection=both, partition_key="1970-01-01"), DagsterRunStatus.STARTED
    )
    today(made)
    made.lake.clock.now += 16 * MINUTE
    if alive:
        observed = made.lake.look("r")
        attempt = Attempt("alive", observed.header.version, planner.plan(observed).work[0].buckets)
        made.lake.manager.register(observed.view.declaration, attempt)
    made.tick()
    expected = DagsterRunStatus.STARTED if alive else DagsterRunStatus.FAILURE
    assert made.instance.get_run_by_id(run).status is expected  # type: ignore[union-attr]


def also_rides(made: InProcessDagster) -> None:
    """A second base table, with a view of its own."""
    lake = made.lake
    lake.write("rides.parquet", through(0), table="rides")
    rides = lake.project.tables[0].model_copy(update={"name": "rides", "path": str(lake.folder / "rides")})
    sql = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM rides GROUP BY ALL"
    tables, views = (*lake.project.tables, rides), (*lake.project.views, view("r", base="rides", sql=sql))
    lake.project = lake.project.model_copy(update={"tables": tables, "views": views})
    lake.catalog = prepare(Draft("test", lake.project), schemas=False)
    lake.tables["rides"] = open_table(lake.catalog.tables["rides"], lake.store.database, lake.clock)
    made.load()


def test_a_broken_table_is_an_error_of_its_views_only(dagster: Make) -> None:
    made = dagster(dimensions=["zones"])
    made.lake.write("zones.parquet", through(0), table="zones")
    joined = view("w", dimensions=["zones"], sql=_JOINED)
    made.lake.declare(view(), joined)
    made.load()
    (made.lake.folder / "zones" / "zones.parquet").unlink()
    (made.lake.folder / "zones").rmdir()
    # One that is not there at all would be waited for; this one leads nowhere.
    (made.lake.folder / "zones").symlink_to("zones")
    assert asked(made) == ["v 1970-01-01..1970-01-04"]
    told = made.check("w", "no_failed_buckets")
    assert told is not None
    assert not told.passed
    assert "zones" in (told.description or "")


_JOINED = """
SELECT date_trunc('hour', e.at) AS hour, count(*) AS n FROM events e JOIN zones z ON e.x = z.x GROUP BY ALL
"""


def test_what_the_command_line_committed_is_told_to_dagster(dagster: Make) -> None:
    made = dagster()
    made.lake.run()
    found = made.tick()
    assert not found.run_requests
    told = made.materialized("v")
    assert sorted(told) == ["1970-01-01", "1970-01-02", "1970-01-03", "1970-01-04"]
    assert told["1970-01-01"].metadata["outcome"].value == "found in the map"
    again = made.tick()
    assert not again.asset_events


@pytest.mark.parametrize("meanwhile", [True, False])
def test_an_asset_that_was_wiped_is_told_again(dagster: Make, *, meanwhile: bool) -> None:
    made = dagster()
    made.settle()
    made.instance.wipe_assets([dg.AssetKey("v")])
    if meanwhile:
        made.materialize("v", "1970-01-02")
    made.tick()
    known = made.instance.get_materialized_partitions(dg.AssetKey("v"))
    assert known == {"1970-01-01", "1970-01-02", "1970-01-03", "1970-01-04"}
    made.tick()
    assert made.check("v", "no_failed_buckets") is not None
    assert made.tick().asset_events == []


def test_what_a_run_told_is_not_told_twice(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.cursors.clear()
    told = [event for event in made.tick().asset_events if isinstance(event, dg.AssetMaterialization)]
    assert told == []


def test_a_changed_bucket_is_observed_and_the_check_says_why(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.write("late.parquet", [day(1)])
    found = made.tick()
    observed = [event.partition for event in found.asset_events if isinstance(event, dg.AssetObservation)]
    assert observed == ["1970-01-02"]
    told = made.check("v", "no_stale_buckets")
    assert told is not None
    assert told.passed
    assert "late.parquet" in (told.description or "")
    made.lake.clock.now += 6 * MINUTE
    made.tick()
    told = made.check("v", "no_stale_buckets")
    assert told is not None
    assert not told.passed
    made.settle()
    healed = made.check("v", "no_stale_buckets")
    assert healed is not None
    assert healed.passed


@pytest.mark.parametrize(("width", "days"), [("15m", 1), ("6h", 3), ("1d", 3), ("1w", 15), ("1mo", 62)])
def test_buckets_of_every_width_are_partitions_with_the_same_keys(
    dagster: Make, width: str, days: int
) -> None:
    sql = "SELECT date_trunc('minute', at) AS hour, count(*) AS n FROM events GROUP BY ALL"
    kept = view(bucket=width, sql=sql, max_buckets_per_run=10_000, start="1970-01-02")
    made = dagster(kept, days=tuple(range(1, days + 1)))
    asked_for = made.settle(most=4)
    buckets, end = kept.buckets, (days + 1) * DAY
    due = [bucket for bucket in buckets.between(DAY, end) if buckets.next(bucket) <= end]
    first, last = buckets.key(due[0]), buckets.key(due[-1])
    assert asked_for == [f"v {first}" + (f"..{last}" if last != first else "")]
    assert set(made.materialized("v")) == set(map(buckets.key, due))


def test_a_bucket_that_dagster_has_no_partition_for_stops_no_other(dagster: Make) -> None:
    # Dagster 1.13 overlooks the very first quarter of an hour of 1970.
    sql = "SELECT date_trunc('minute', at) AS hour, count(*) AS n FROM events GROUP BY ALL"
    made = dagster(view(bucket="15m", sql=sql, max_buckets_per_run=1), view("w"), days=(0,))
    found = made.tick()
    assert [name_of(request) for request in found.run_requests or ()] == [
        "v 1970-01-01T00:15",
        "v 1970-01-01T00:30",
        "v 1970-01-01T00:45",
        "w 1970-01-01",
    ]


def test_a_frozen_bucket_fails_nobodys_run(dagster: Make) -> None:
    made = dagster(view(on_base_delete="freeze"))
    made.settle()
    made.lake.remove("day-1.parquet")
    assert made.settle() == []
    result = made.materialize("v", "1970-01-02")
    assert not result.success
    assert "frozen" in failure_of(result)


def test_many_buckets_are_told_tick_by_tick(dagster: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mv_assets.defs.tick.reporting._MOST", 3)
    made = dagster()
    made.lake.run()
    for told in (3, 4, 4):
        made.tick()
        assert len(made.materialized("v")) == told


def test_a_broken_file_that_no_bucket_needs_is_said_until_it_is_gone(dagster: Make) -> None:
    made = dagster(view(start="1970-01-03"))
    made.settle()
    made.lake.damage("day-0.parquet")
    for _ in range(3):
        made.tick()
        said = made.check("v", "no_failed_buckets")
        assert said is not None
        assert not said.passed
        assert "day-0.parquet" in (said.description or "")
    assert made.tick().asset_events == []
    made.lake.remove("day-0.parquet")
    made.tick()
    healed = made.check("v", "no_failed_buckets")
    assert healed is not None
    assert healed.passed


def test_a_source_that_stalls_makes_the_view_late_though_nothing_changes(dagster: Make) -> None:
    made = dagster(view(max_staleness="1d"), table={"settle": "0s"})
    made.lake.clock.now = 4 * DAY + 1
    made.settle()
    fresh = made.check("v", "fresh")
    assert fresh is not None
    assert fresh.passed
    made.lake.clock.now += DAY + 1
    made.tick()
    late = made.check("v", "fresh")
    assert late is not None
    assert not late.passed


@pytest.mark.parametrize("reading", [True, False])
def test_a_view_that_can_not_be_looked_at_grows_late(
    dagster: Make, monkeypatch: pytest.MonkeyPatch, *, reading: bool
) -> None:
    made = dagster(view(max_staleness="1d"), table={"settle": "0s"})
    made.lake.clock.now = 4 * DAY + 1
    made.settle()
    if reading:
        made.lake.days(4, 5, 6)
        monkeypatch.setattr("mv_assets.tables.parquet.table._BATCH", 1)
        monkeypatch.setattr("mv_assets.defs.tick.sensor._READING_S", -1.0)
    else:
        events = made.lake.folder / "events"
        events.rename(made.lake.folder / "away")
    made.lake.clock.now += DAY + 1
    made.tick()
    late = made.check("v", "fresh")
    assert late is not None
    assert not late.passed
    made.lake.clock.now += 1
    assert made.tick().asset_events == []
    if not reading:
        (made.lake.folder / "away").rename(events)


def test_the_same_error_with_another_request_id_is_not_written_again(
    dagster: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, ids = dagster(), iter(("4442587FB7D0", "77Aq=", "8c1e-17"))

    def refuse(_table: object) -> None:
        raise TableUnreadable("events", "s3://lake", f"access denied, request {next(ids)}")

    with monkeypatch.context() as refused:
        refused.setattr("mv_assets.tables.parquet.table.ParquetFiles.current", refuse)
        assert [len(made.tick().asset_events) for _ in range(3)] == [1, 0, 0]


def test_the_same_error_of_another_table_is_written(dagster: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made, tables = dagster(), iter(("events", "zones", "zones"))

    def refuse(_table: object) -> None:
        raise TableUnreadable(next(tables), "s3://lake", "access denied")

    with monkeypatch.context() as refused:
        refused.setattr("mv_assets.tables.parquet.table.ParquetFiles.current", refuse)
        assert [len(made.tick().asset_events) for _ in range(3)] == [1, 1, 0]


def test_the_same_work_is_asked_for_by_a_new_key_however_often_it_came_to_nothing(dagster: Make) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    keys = set()
    for _ in range(55):
        (request,) = made.tick().run_requests or ()
        keys.add(request.run_key)
        queue(made, request, DagsterRunStatus.CANCELED)
        made.lake.clock.now += 3_700_000
    assert len(keys) == 55


def test_neither_the_oldest_repair_nor_the_first_append_starves(dagster: Make) -> None:
    made = dagster(view(max_buckets_per_run=1), days=tuple(range(6)))
    made.settle()
    for number in range(6):
        made.lake.write(f"late-{number}.parquet", [day(number)])
    made.lake.days(6, 7)
    assert asked(made) == ["v 1970-01-01", "v 1970-01-07", "v 1970-01-06"]


def test_work_that_has_to_wait_holds_up_no_other(dagster: Make) -> None:
    made = dagster(view(max_buckets_per_run=1), table={"settle": "0s"})
    today(made)
    for request in made.tick().run_requests or ():
        queue(made, request, DagsterRunStatus.CANCELED)
    assert asked(made) == ["v 1970-01-04"]


def test_what_dagster_knows_is_not_asked_after_again_when_rows_move(dagster: Make) -> None:
    made = dagster()
    made.settle()
    kept = made.lake.remove("day-1.parquet")
    made.lake.look()
    (made.lake.folder / "events" / "day-1.parquet").write_bytes(kept)
    told = [event for event in made.tick().asset_events if isinstance(event, dg.AssetMaterialization)]
    told += [event for event in made.tick().asset_events if isinstance(event, dg.AssetMaterialization)]
    assert told == []


def test_buckets_before_the_loaded_partitions_are_said_to_need_a_reload(dagster: Make) -> None:
    made = dagster(view(start="1970-01-03"))
    made.settle()
    made.lake.manager.force(made.lake.catalog.view("v").declaration, [0, DAY], "by hand", extend=True)
    assert "reload the definitions" in str(made.tick().skip_reason)
    made.load()
    assert asked(made) == ["v 1970-01-01..1970-01-02"]


def test_a_cursor_of_another_state_is_not_believed(dagster: Make) -> None:
    made = dagster()
    made.cursors["events"] = '{"told": {"v": [5000, 0]}}'
    made.lake.run()
    made.tick()
    assert len(made.materialized("v")) == 4


def test_a_table_with_narrow_and_wide_views_is_observed_within_bounds(dagster: Make) -> None:
    sql = "SELECT date_trunc('minute', at) AS hour, count(*) AS n FROM events GROUP BY ALL"
    made = dagster(view("narrow", sql=sql, bucket="15m", max_buckets_per_run=1), view(), days=tuple(range(8)))
    observed = [event for event in made.tick().asset_events if isinstance(event, dg.AssetObservation)]
    assert 0 < len(observed) <= 400


@pytest.mark.parametrize("alive", [True, False])
def test_a_silent_job_of_the_launchpad_is_dead_only_if_no_view_at_all_is_worked_on(
    dagster: Make, *, alive: bool
) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    tags = dict(made.repository.get_job("refresh_view").tags)
    ours = create_run_for_test(
        made.instance, job_name="refresh_view", tags=tags, status=DagsterRunStatus.STARTED
    )
    theirs = create_run_for_test(made.instance, job_name="refresh_view", status=DagsterRunStatus.STARTED)
    made.lake.clock.now += 16 * MINUTE
    if alive:
        observed = made.lake.look()
        (work,) = planner.plan(observed).work
        attempt = Attempt("alive", observed.header.version, work.buckets)
        made.lake.manager.register(observed.view.declaration, attempt)
    made.tick()
    expected = DagsterRunStatus.STARTED if alive else DagsterRunStatus.FAILURE
    assert made.instance.get_run_by_id(ours.run_id).status is expected  # type: ignore[union-attr]
    assert made.instance.get_run_by_id(theirs.run_id).status is DagsterRunStatus.STARTED  # type: ignore[union-attr]


def test_reading_that_takes_too_long_goes_on_at_the_next_tick(
    dagster: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.tables.parquet.table._BATCH", 1)
    made = dagster()
    with monkeypatch.context() as short:
        short.setattr("mv_assets.defs.tick.sensor._READING_S", -1.0)
        for read in (1, 2, 3):
            found = made.tick()
            assert not found.run_requests
            assert f"1 of {5 - read} new files" in str(found.skip_reason)
    assert asked(made) == ["v 1970-01-01..1970-01-04"]


def test_a_stall_is_a_failing_check_and_a_line_in_the_log(
    dagster: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    made = dagster(table={"settle": "0s"})
    today(made)
    (request,) = made.tick().run_requests or ()
    queue(made, request)
    made.lake.clock.now += 59 * MINUTE
    made.tick()
    quiet = made.check("v", "fresh")
    made.lake.clock.now += 2 * MINUTE
    made.tick()
    stalled = made.check("v", "fresh")
    assert (quiet is not None, stalled is not None) == (True, True)
    assert (quiet.passed, stalled.passed) == (True, False)  # type: ignore[union-attr]
    assert "stalled: 1970-01-01 has been due for 1h" in str(stalled.description)  # type: ignore[union-attr]
    assert "see that Dagster's daemon runs" in capsys.readouterr().err

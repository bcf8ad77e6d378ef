"""What Dagster calls unsynced is what the map calls STALE."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.unit.defs.in_process import InProcessDagster, name_of

Make = Callable[..., InProcessDagster]


def unsynced(made: InProcessDagster, name: str = "v") -> list[str]:
    graph = made.repository.asset_graph
    resolver = CachingStaleStatusResolver(made.instance, graph, LoadingContextForTest(made.instance))
    key = dg.AssetKey(name)
    keys = sorted(made.materialized(name))
    return [each for each in keys if resolver.get_status(key, each) is StaleStatus.STALE]


def on_top() -> dict[str, object]:
    return {"base": "v", "sql": "SELECT hour, n FROM v", "bucket": "1d"}


def test_a_late_file_is_seen_on_its_bucket_until_it_is_computed(dagster: Make) -> None:
    made = dagster()
    made.settle()
    assert unsynced(made) == []
    made.lake.write("late.parquet", [day(1)])
    made.tick()
    assert unsynced(made) == ["1970-01-02"]
    made.settle()
    assert unsynced(made) == []


def test_all_stale_buckets_are_seen_though_only_some_are_asked_for(dagster: Make) -> None:
    made = dagster(view(max_buckets_per_run=1), days=tuple(range(6)))
    made.settle()
    for number in range(6):
        made.lake.write(f"late-{number}.parquet", [day(number)])
    made.tick()
    assert len(unsynced(made)) == 6


def test_what_the_command_line_computed_is_in_sync(dagster: Make) -> None:
    made = dagster(view(), view("w", **on_top()))
    made.lake.run()
    made.tick()
    assert len(made.materialized("w")) == 4
    assert unsynced(made) == unsynced(made, "w") == []


def test_what_the_launchpad_computed_is_in_sync(dagster: Make) -> None:
    made = dagster(view(), view("w", **on_top()))
    assert made.job("refresh_view", view="w").success
    assert unsynced(made) == unsynced(made, "w") == []


def test_a_false_alarm_is_taken_back(dagster: Make) -> None:
    made = dagster()
    made.settle()
    kept = made.lake.remove("day-1.parquet")
    made.tick()
    assert unsynced(made) == ["1970-01-02"]
    (made.lake.folder / "events" / "day-1.parquet").write_bytes(kept)
    made.tick()
    assert made.lake.states(0, 1, 2, 3) == "VVVV"
    assert unsynced(made) == []


def test_a_compaction_that_buckets_followed_is_no_news(dagster: Make) -> None:
    made = dagster(view(), view("w", **on_top()))
    made.settle()
    before = made.materialized("v"), made.materialized("w")
    made.lake.compact([f"day-{number}.parquet" for number in range(4)], "all.parquet")
    made.lake.look()
    assert made.settle() == []
    assert (made.materialized("v"), made.materialized("w")) == before
    assert unsynced(made) == unsynced(made, "w") == []


def test_a_dimension_that_changes_and_changes_back(dagster: Make) -> None:
    joined = """
        SELECT date_trunc('hour', e.at) AS hour, count(*) AS n
        FROM events e JOIN zones z ON e.x = z.x GROUP BY ALL"""
    made = dagster(view(dimensions=["zones"], sql=joined), dimensions=["zones"])
    made.lake.write("zones.parquet", through(0), table="zones")
    made.settle()
    assert unsynced(made) == []
    more = made.lake.write("more.parquet", through(1), 1, table="zones")
    made.tick()
    assert len(unsynced(made)) == 4
    more.unlink()
    made.tick()
    assert made.lake.states(0, 1, 2, 3) == "VVVV"
    assert unsynced(made) == []


def test_a_machine_that_finds_nothing_to_do_changes_nothing_for_those_above(dagster: Make) -> None:
    made = dagster(view(), view("w", **on_top()))
    made.settle()
    assert made.materialize(
        "v", "1970-01-01", "1970-01-04", tags={"dagster/schedule_name": "nightly"}
    ).success
    assert unsynced(made, "w") == []


def test_a_bucket_that_a_run_failed_on_and_whose_file_came_back_is_no_longer_shown_as_failed(
    dagster: Make,
) -> None:
    made = dagster(view(), view("w", **on_top()), table={"settle": "0s"})
    made.settle()
    path = made.lake.folder / "events" / "day-1.parquet"
    whole = path.read_bytes()
    made.lake.damage("day-1.parquet")
    (request,) = [each for each in made.tick().run_requests or () if name_of(each).startswith("v ")]
    assert not made.run(request).success
    assert list(failed(made)) == ["1970-01-02"]
    path.write_bytes(whole)
    made.tick()
    assert made.lake.states(1) == "V"
    made.tick()
    assert list(failed(made)) == []
    # Nothing is new to the view above, whose rows were computed from these.
    assert (made.lake.states(1, name="w"), unsynced(made, "w")) == ("V", [])
    assert made.tick().asset_events == []


def failed(made: InProcessDagster) -> Mapping[str, object]:
    """Partitions that the last run that set out to make them did not."""
    storage = made.instance.event_log_storage
    return storage.get_latest_asset_partition_materialization_attempts_without_materializations(
        dg.AssetKey("v")
    )

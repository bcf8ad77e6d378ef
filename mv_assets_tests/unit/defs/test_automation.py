"""Dagster's own automation asks for runs: a condition that is true for what is STALE or due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from mv_assets import ParquetTable, build_definitions
from mv_assets.config import MaterializedView
from mv_assets.config.errors import ProjectError
from mv_assets.defs.intent import Expected, expected_of
from mv_assets.defs.names import WORK_TAG
from mv_assets_tests.support.lake import through, view
from mv_assets_tests.support.warehouse_lake import DuckDbLake
from mv_assets_tests.unit.defs.in_process import InProcessDagster, in_process_dagster
from mv_assets_tests.unit.defs.test_requests import queue, today

Make = Callable[..., InProcessDagster]
SENSOR = "compute_due"


@pytest.fixture
def automated(duckdb_lake_on_sqlite: Callable[..., DuckDbLake]) -> Iterator[Make]:
    with ExitStack() as closed:

        def make(*views: MaterializedView, days: tuple[int, ...] = (0, 1, 2, 3)) -> InProcessDagster:
            options: dict[str, Any] = {"table": {"settle": "0s"}}
            lake = duckdb_lake_on_sqlite(*views, **options)
            lake.days(*days)
            made = closed.enter_context(in_process_dagster(lake, automated=True))
            today(made)
            return made

        yield make


def evaluate(made: InProcessDagster) -> list[dg.RunRequest]:
    """One tick of the sensor that evaluates conditions."""
    sensor = made.repository.get_sensor_def(SENSOR)
    context = dg.build_sensor_context(
        instance=made.instance, repository_def=made.repository, cursor=made.cursors.get(SENSOR)
    )
    found = sensor.evaluate_tick(context)
    made.cursors[SENSOR] = found.cursor
    return list(found.run_requests or ())


def asked(made: InProcessDagster) -> dict[str, list[str]]:
    """By view, the partitions that are asked for."""
    found: dict[str, list[str]] = {}
    for request in evaluate(made):
        if request.asset_graph_subset is None:
            [key] = request.asset_selection or ()
            found.setdefault(key.path[-1], []).append(request.partition_key or "")
        else:
            for each in request.asset_graph_subset.iterate_asset_partitions():
                found.setdefault(each.asset_key.path[-1], []).append(each.partition_key or "")
    return {name: sorted(keys) for name, keys in found.items()}


DAYS = ["1970-01-01", "1970-01-02", "1970-01-03", "1970-01-04"]


def test_the_condition_is_true_for_new_buckets_and_then_for_the_one_that_is_stale(automated: Make) -> None:
    made = automated()
    assert asked(made) == {"v": DAYS}
    made.lake.run()
    assert asked(made) == {}
    made.lake.write("late.parquet", through(1))
    assert asked(made) == {"v": ["1970-01-02"]}


def test_the_sensor_looks_and_tells_but_asks_for_nothing(automated: Make) -> None:
    made = automated()
    result = made.tick()
    assert result.run_requests == []
    assert "its automation condition asks for them" in str(result.skip_reason)
    made.lake.run()
    made.tick()
    assert sorted(made.materialized("v")) == DAYS


def test_views_on_one_table_are_looked_at_once(automated: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made, opened = automated(view(), view("w")), list[str]()
    before = type(made.deployment).open

    def counted(self: Any, *arguments: Any) -> Any:
        opened.append(arguments[0])
        return before(self, *arguments)

    monkeypatch.setattr(type(made.deployment), "open", counted)
    assert asked(made) == {"v": DAYS, "w": DAYS}
    assert len(opened) == 1
    made.lake.run()
    # Of the next evaluation nothing is kept.
    assert asked(made) == {}


def test_what_is_on_its_way_is_not_asked_for_again(automated: Make) -> None:
    made = automated(days=(0,))
    [request] = evaluate(made)
    run = queue(made, request)
    for _ in range(3):
        made.lake.clock.now += 3_600_000
        assert asked(made) == {}
    found = made.instance.get_run_by_id(run)
    assert found is not None
    assert expected_of(found, made.instance, force=None) is Expected.DUE


def test_nor_is_what_a_backfill_has_not_come_to(automated: Make) -> None:
    made = automated()
    [request] = evaluate(made)
    assert request.asset_graph_subset is not None
    made.instance.add_backfill(
        PartitionBackfill.from_asset_graph_subset(
            backfill_id="b",
            backfill_timestamp=0.0,
            asset_graph_subset=request.asset_graph_subset,
            tags=dict(request.tags),
            dynamic_partitions_store=made.instance,
            title=None,
            description=None,
            run_config=None,
        )
    )
    made.lake.clock.now += 3_600_000
    assert asked(made) == {}
    [backfill] = made.instance.get_backfills()
    canceled = backfill.with_status(BulkActionStatus.CANCELED)  # type: ignore[no-untyped-call]
    made.instance.update_backfill(canceled)
    assert asked(made) == {"v": DAYS}


@pytest.mark.parametrize("backfill", [True, False])
def test_a_backfill_hears_of_buckets_that_were_valid_before_it_came(
    automated: Make, *, backfill: bool
) -> None:
    """It waits for each of its partitions; another run of a machine's that came too late says nothing."""
    made = automated()
    made.lake.run()
    tags = {WORK_TAG: "automation condition"} | ({"dagster/backfill": "b"} if backfill else {})
    assert made.materialize("v", DAYS[0], DAYS[3], tags=tags).success
    assert sorted(made.materialized("v")) == (DAYS if backfill else [])


def test_what_was_asked_for_in_vain_is_asked_for_later_and_later(automated: Make) -> None:
    made, times = automated(days=(0,)), list[int]()
    for second in range(200):
        if asked(made):
            times.append(second)
        made.lake.clock.now += 1_000
    assert times == [0, 10, 30, 70, 150]
    made.lake.write("late.parquet", through(0))
    assert asked(made) == {"v": ["1970-01-01"]}


def test_a_view_has_as_many_runs_as_its_owner_allows(automated: Make) -> None:
    made = automated(view(max_buckets_per_run=1, max_runs=2))
    assert asked(made) == {"v": DAYS[:2]}
    assert asked(made) == {"v": DAYS[2:]}


def test_a_view_that_can_not_be_looked_at_costs_the_others_nothing(automated: Make) -> None:
    made = automated(days=(0,))
    events = made.lake.folder / "events"
    events.rename(made.lake.folder / "away")
    assert asked(made) == {}
    (made.lake.folder / "away").rename(events)
    assert asked(made) == {"v": ["1970-01-01"]}


def test_more_views_than_dagster_evaluates_are_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mv_assets.defs.build.MOST_AUTOMATED", 1)
    events = ParquetTable(name="events", path="events", time_column="at")
    with pytest.raises(ProjectError, match="at most in a sensor"):
        build_definitions(tables=[events], views=[view(), view("w")], automation_condition=True)


@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning")
def test_combined_with_another_it_is_true_at_once_when_that_is(automated: Make) -> None:
    """What could not be asked for meanwhile was not asked for in vain."""
    made, gate = automated(days=(0,)), Gate()

    def combined(spec: dg.AssetSpec) -> dg.AssetSpec:
        found = spec.automation_condition
        return spec if found is None else spec.replace_attributes(automation_condition=found & gate)

    made.repository = made.definitions.map_asset_specs(func=combined).get_repository_def()
    for _ in range(20):
        assert asked(made) == {}
        made.lake.clock.now += 1_000
    gate.open = True
    assert asked(made) == {"v": ["1970-01-01"]}


class Gate(dg.AutomationCondition[dg.AssetKey]):
    open = False

    def evaluate(self, context: dg.AutomationContext[dg.AssetKey]) -> dg.AutomationResult[dg.AssetKey]:
        subset = context.candidate_subset if self.open else context.get_empty_subset()
        return dg.AutomationResult(context, subset)

    @property
    def name(self) -> str:
        return "gate"

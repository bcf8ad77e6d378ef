"""What somebody asked for already: the buckets of runs and backfills that have not ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import dagster as dg
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RepositoryDefinition, RunRecord, RunsFilter
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus, PartitionBackfill

from mv_assets.defs.names import WORK_TAG
from mv_assets.defs.partitions import milliseconds
from mv_assets.errors import BucketError
from mv_assets.views.view import View

_UNFINISHED = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
_FIRST = "dagster/asset_partition_range_start"
_LAST = "dagster/asset_partition_range_end"
_ONE = "dagster/partition"

Window = tuple[int, int]


@dataclass(slots=True)
class Taken:
    """Windows of time, by view, and how many of the sensor's own runs they are."""

    windows: dict[str, list[Window]] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)

    def has(self, view: View, bucket: int) -> bool:
        end = view.buckets.next(bucket)
        return any(start < end and bucket < stop for start, stop in self.windows.get(view.name, ()))

    def add(self, view: View, window: Window) -> None:
        self.windows.setdefault(view.name, []).append(window)


def taken(
    instance: DagsterInstance,
    repository: RepositoryDefinition | None,
    views: Iterable[View],
    dead: Iterable[str] = (),
) -> Taken:
    """The buckets of some views that runs, but for `dead` ones, and backfills will come to."""
    found, named = Taken(), {dg.AssetKey(view.name): view for view in views}
    gone = set(dead)
    for record in unfinished(instance):
        run = record.dagster_run
        if run.run_id in gone:
            continue
        for key in _assets(run, repository) & named.keys():
            view, window = named[key], _window(named[key], run.tags)
            if window is not None:
                found.add(view, window)
                found.own[view.name] = found.own.get(view.name, 0) + (WORK_TAG in run.tags)
    if repository is not None:
        for backfill in instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])):
            for view, window in _left(backfill, repository, named):
                found.add(view, window)
    return found


def unfinished(instance: DagsterInstance) -> list[RunRecord]:
    return list(instance.get_run_records(RunsFilter(statuses=_UNFINISHED)))


def window_of(view: View, run: DagsterRun) -> Window | None:
    """The time that a run is about, if it is about one."""
    return _window(view, run.tags)


def _window(view: View, tags: Mapping[str, str]) -> Window | None:
    first, last = tags.get(_FIRST, tags.get(_ONE)), tags.get(_LAST, tags.get(_ONE))
    if first is None or last is None:
        return None
    try:
        return view.buckets.parse(first), view.buckets.next(view.buckets.parse(last))
    except BucketError:
        # Partitions of another asset in the same run, or of an earlier width.
        return None


def _assets(run: DagsterRun, repository: RepositoryDefinition | None) -> frozenset[dg.AssetKey]:
    if run.asset_selection is not None:
        return frozenset(run.asset_selection)
    if repository is None or not repository.has_job(run.job_name):
        return frozenset()
    return frozenset(repository.get_job(run.job_name).asset_layer.selected_asset_keys)


def _left(
    backfill: PartitionBackfill, repository: RepositoryDefinition, named: Mapping[dg.AssetKey, View]
) -> Iterator[tuple[View, Window]]:
    """What a backfill has not come to yet."""
    if not backfill.is_asset_backfill or not named.keys() & set(backfill.asset_selection or ()):
        return
    data = backfill.get_asset_backfill_data(repository.asset_graph)
    left = data.target_subset - data.materialized_subset - data.failed_and_downstream_subset
    for key in left.asset_keys & named.keys():
        subset = left.get_partitions_subset(key)
        for window in getattr(subset, "included_time_windows", ()):
            yield named[key], milliseconds(window)

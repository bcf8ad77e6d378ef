"""What somebody asked for already: the buckets of runs and backfills that have not ended."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RepositoryDefinition, RunRecord, RunsFilter

from mv_assets.dagster_internals import BulkActionsFilter, BulkActionStatus, PartitionBackfill
from mv_assets.defs.names import FIRST_TAG, LAST_TAG, PARTITION_TAG, WORK_TAG
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

Window = tuple[int, int]


@dataclass(slots=True)
class Claims:
    """Windows of time, by view, and how many of the sensor's own runs they are."""

    windows: dict[str, list[Window]] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    _starts: dict[str, list[int]] = field(default_factory=dict)
    _ends: dict[str, list[int]] = field(default_factory=dict)

    def has(self, view: View, bucket: int) -> bool:
        if view.name not in self.windows:
            return False
        if view.name not in self._starts:
            self._sort(view.name)
        # Of all windows that begin before the bucket's end, one ends after its start.
        at = bisect_right(self._starts[view.name], view.buckets.next(bucket) - 1)
        return at > 0 and self._ends[view.name][at - 1] > bucket

    def add(self, view: View, window: Window) -> None:
        self.windows.setdefault(view.name, []).append(window)

    def _sort(self, view: str) -> None:
        ordered, latest = sorted(self.windows[view]), list[int]()
        for _, end in ordered:
            latest.append(max(end, latest[-1]) if latest else end)
        self._starts[view], self._ends[view] = [start for start, _ in ordered], latest


def unfinished(instance: DagsterInstance) -> list[RunRecord]:
    return list(instance.get_run_records(RunsFilter(statuses=_UNFINISHED)))


def claims(
    instance: DagsterInstance,
    repository: RepositoryDefinition | None,
    graph: Any,
    named: Mapping[dg.AssetKey, View],
    runs: Iterable[RunRecord],
) -> Claims:
    """The buckets of some views, by their assets, that runs and backfills will come to.

    Of whole jobs only the `repository` knows which assets they have; of backfills the asset `graph`.
    """
    found = Claims()
    for record in runs:
        run = record.dagster_run
        for key in assets_of(run, repository) & named.keys():
            view, window = named[key], window_of(named[key], run.tags)
            if window is not None:
                found.add(view, window)
                found.own[view.name] = found.own.get(view.name, 0) + (WORK_TAG in run.tags)
    if graph is not None:
        for backfill in instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED])):
            for view, window in _left(backfill, graph, named):
                found.add(view, window)
                found.own[view.name] = found.own.get(view.name, 0) + (WORK_TAG in backfill.tags)
    return found


def window_of(view: View, tags: Mapping[str, str]) -> Window | None:
    """The time that a run is about, if it is about one."""
    first, last = tags.get(FIRST_TAG, tags.get(PARTITION_TAG)), tags.get(LAST_TAG, tags.get(PARTITION_TAG))
    if first is None or last is None:
        return None
    try:
        return view.buckets.parse(first), view.buckets.next(view.buckets.parse(last))
    except BucketError:
        # Partitions of another asset in the same run, or of an earlier width.
        return None


def assets_of(run: DagsterRun, repository: RepositoryDefinition | None) -> frozenset[dg.AssetKey]:
    """The assets that a run materializes."""
    if run.asset_selection is not None:
        return frozenset(run.asset_selection)
    if run.asset_check_selection or repository is None or not repository.has_job(run.job_name):
        return frozenset()
    return frozenset(repository.get_job(run.job_name).asset_layer.selected_asset_keys)


def _left(
    backfill: PartitionBackfill, graph: Any, named: Mapping[dg.AssetKey, View]
) -> Iterator[tuple[View, Window]]:
    """What a backfill has not come to yet."""
    if not backfill.is_asset_backfill or not named.keys() & set(backfill.asset_selection or ()):
        return
    data = backfill.get_asset_backfill_data(graph)
    left = data.target_subset - data.materialized_subset - data.failed_and_downstream_subset
    for key in left.asset_keys & named.keys():
        windows: Sequence[dg.TimeWindow] = getattr(
            left.get_partitions_subset(key), "included_time_windows", ()
        )
        for window in windows:
            yield named[key], milliseconds(window)

"""A plan as run requests: contiguous buckets as one ranged run, none twice, and none again too soon."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import dagster as dg
from dagster import DagsterInstance, RunRecord, RunsFilter

from mv_assets.defs.names import VIEW_TAG, WORK_TAG
from mv_assets.defs.taken import Taken
from mv_assets.refresh.planner import Plan
from mv_assets.state.model import Planned
from mv_assets.state.rules import Due, retry_delay
from mv_assets.views.view import View

# As many runs of a view wait or run at a time: one runs, and the next stands ready.
MOST_RUNS = 2
_HISTORY = 50


@dataclass(frozen=True, slots=True)
class Asking:
    """Buckets to ask for, and why."""

    view: View
    planned: tuple[Planned, ...]
    reason: str

    @property
    def buckets(self) -> list[int]:
        return [each.bucket for each in self.planned]

    @property
    def work(self) -> str:
        """Names what is to be done: the same buckets with the same rows and inputs are the same work."""
        named = repr((self.view.name, self.view.definition, self.planned))
        return hashlib.blake2b(named.encode(), digest_size=10).hexdigest()


def askings(view: View, plan: Plan, taken: Taken, start: int, now: int) -> list[Asking]:
    """What of a plan is to be asked for: nobody else's, and in Dagster's partitions."""
    due = [(work.buckets, work.reason) for work in plan.work if work.operation is not Due.REVERT]
    known = [((failing.planned,), failing.error) for failing in plan.failing]
    found = [
        asking
        for planned, reason in [*due, *_together(view, known)]
        for asking in _stretches(
            view, [p for p in planned if _is_free(view, p.bucket, taken, start, now)], reason
        )
    ]
    return found[: max(MOST_RUNS - taken.own.get(view.name, 0), 0)]


def _is_free(view: View, bucket: int, taken: Taken, start: int, now: int) -> bool:
    return start <= bucket and view.buckets.next(bucket) <= now and not taken.has(view, bucket)


def _stretches(view: View, planned: Iterable[Planned], reason: str) -> Iterator[Asking]:
    by_bucket = {each.bucket: each for each in planned}
    for stretch in view.buckets.stretches(by_bucket):
        yield Asking(view, tuple(by_bucket[bucket] for bucket in stretch), reason)


def _together(
    view: View, known: Sequence[tuple[tuple[Planned], str]]
) -> Iterator[tuple[tuple[Planned, ...], str]]:
    """Buckets that are known to fail, as many at a time as a run may have."""
    most = view.declared.max_buckets_per_run
    for at in range(0, len(known), most):
        some = known[at : at + most]
        yield tuple(planned for (planned,), _ in some), some[0][1]


def request(asking: Asking, attempt: int) -> dg.RunRequest:
    """The run; its key knows the attempt, as a key counts for ever, whatever became of its run."""
    view, key = asking.view, asking.view.buckets.key
    first, last = key(asking.buckets[0]), key(asking.buckets[-1])
    tags = {WORK_TAG: asking.work, VIEW_TAG: view.name, "mv_assets/reason": asking.reason[:200]}
    ranged = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    return dg.RunRequest(
        run_key=f"{view.name} {first}..{last} {asking.work} {attempt}",
        asset_selection=[dg.AssetKey(view.name)],
        asset_check_keys=[],
        partition_key=first if first == last else None,
        tags=tags if first == last else {**tags, **ranged},
    )


def attempt_of(history: Sequence[RunRecord], now: int) -> int | None:
    """The number of the next attempt at the same work; None while it is too early for one.

    A bucket that failed backs off by its record in the map. This is for runs that ended before they came
    so far: cancelled, crashed, or without Spark.
    """
    if not history:
        return 1
    latest = history[0]
    if not latest.dagster_run.is_finished:
        return None
    ended = int((latest.end_time or latest.update_timestamp.timestamp()) * 1_000)
    return None if now < ended + retry_delay(len(history)) else len(history) + 1


def history_of(instance: DagsterInstance) -> Callable[[Asking], Sequence[RunRecord]]:
    """The runs that were asked for the same work before, the newest first."""
    return lambda asking: instance.get_run_records(RunsFilter(tags={WORK_TAG: asking.work}), limit=_HISTORY)

"""A plan as run requests: contiguous buckets as one ranged run, none twice, and none again too soon."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import dagster as dg
from dagster import DagsterInstance, RunRecord, RunsFilter

from mv_assets.defs.names import FIRST_TAG, LAST_TAG, REASON_TAG, VIEW_TAG, WORK_TAG
from mv_assets.defs.tick.claims import Claims
from mv_assets.plan.planner import Failing, Plan, Work
from mv_assets.state.model import Planned
from mv_assets.state.rules import Due, retry_delay
from mv_assets.views.view import View


@dataclass(frozen=True, slots=True)
class Asking:
    """Buckets to ask for, and why."""

    view: View
    planned: tuple[Planned, ...]
    reason: str
    appends: bool = False

    @property
    def buckets(self) -> list[int]:
        return [each.bucket for each in self.planned]

    @property
    def work(self) -> str:
        """Names what is to be done: the same buckets with the same rows and inputs are the same work."""
        named = repr((self.view.name, self.view.definition, self.planned))
        return hashlib.blake2b(named.encode(), digest_size=10).hexdigest()


def free_of(view: View, start: int, now: int, claimed: Claims) -> Callable[[int], bool]:
    """Whether a bucket has a partition from `start` on, its time is over, and it is nobody's yet."""

    def is_free(bucket: int) -> bool:
        return start <= bucket and view.buckets.next(bucket) <= now and not claimed.has(view, bucket)

    return is_free


def askings(
    view: View, plan: Plan, is_free: Callable[[int], bool], *, appends_first: bool = False
) -> Iterator[Asking]:
    """What of a plan is to be asked for, first what must not starve: the oldest repair, the first append.

    Which of these two goes first is to change from time to time: there may be room for one only.
    """
    for planned, reason, appends in _in_turn(view, plan, appends_first=appends_first):
        by_bucket = {each.bucket: each for each in planned if is_free(each.bucket)}
        for stretch in view.buckets.stretches(by_bucket):
            yield Asking(view, tuple(by_bucket[bucket] for bucket in stretch), reason, appends)


# Buckets, why, and whether they are new.
_Turn = tuple[Sequence[Planned], str, bool]


def _in_turn(view: View, plan: Plan, *, appends_first: bool) -> Iterator[_Turn]:
    repairs = [work for work in plan.work if work.operation in (Due.OVERWRITE, Due.DELETE)]
    appends = [work for work in plan.work if work.operation is Due.APPEND]
    first = [*repairs[-1:], *appends[:1]]
    yield from map(_turn, reversed(first) if appends_first else first)
    yield from _together(plan.failing, view.declared.max_buckets_per_run)
    yield from map(_turn, (*repairs[:-1], *appends[1:]))


def _turn(work: Work) -> _Turn:
    return work.buckets, work.reason, work.operation is Due.APPEND


def _together(failing: Sequence[Failing], most: int) -> Iterator[_Turn]:
    """Buckets that are known to fail, as many at a time as a run may have."""
    for at in range(0, len(failing), most):
        some = failing[at : at + most]
        yield [each.planned for each in some], some[0].error, False


@dataclass(frozen=True, slots=True)
class History:
    """The runs that were asked for the same work before: how many, and the last of them."""

    count: int
    latest: RunRecord | None

    @classmethod
    def of(cls, instance: DagsterInstance, asking: Asking) -> History:
        same = RunsFilter(tags={WORK_TAG: asking.work})
        return cls(instance.get_runs_count(same), next(iter(instance.get_run_records(same, limit=1)), None))

    def is_over(self, now: int) -> bool:
        """Whether it may be asked for now.

        A bucket that failed backs off by its record in the map. This is for runs that ended before they
        came so far: cancelled, crashed, or without Spark.
        """
        if self.latest is None:
            return True
        if not self.latest.dagster_run.is_finished:
            return False
        ended = int((self.latest.end_time or self.latest.update_timestamp.timestamp()) * 1_000)
        return now >= ended + retry_delay(self.count)

    @property
    def attempt(self) -> str:
        """A name for the next attempt: a run's key counts for ever, whatever became of the run."""
        return "1" if self.latest is None else f"{self.count + 1} after {self.latest.dagster_run.run_id[:8]}"


def request(asset: dg.AssetKey, asking: Asking, history: History) -> dg.RunRequest:
    """The run that is asked for."""
    view, key = asking.view, asking.view.buckets.key
    first, last = key(asking.buckets[0]), key(asking.buckets[-1])
    tags = {WORK_TAG: asking.work, VIEW_TAG: view.name, REASON_TAG: asking.reason[:200]}
    ranged = {FIRST_TAG: first, LAST_TAG: last}
    return dg.RunRequest(
        run_key=f"{view.name} {first}..{last} {asking.work} {history.attempt}",
        asset_selection=[asset],
        asset_check_keys=[],
        partition_key=first if first == last else None,
        tags=tags if first == last else {**tags, **ranged},
    )


def chosen(
    candidates: Iterable[Asking], room: int, history_of: Callable[[Asking], History], now: int
) -> tuple[list[tuple[Asking, History]], list[Asking]]:
    """As many as there is room for, and those before them that have to wait."""
    asked, waiting = list[tuple[Asking, History]](), list[Asking]()
    for asking in candidates:
        if len(asked) >= room or len(waiting) > _MOST_WAITING:
            break
        history = history_of(asking)
        if history.is_over(now):
            asked.append((asking, history))
        else:
            waiting.append(asking)
    return asked, waiting


# A tick looks no further: what is behind them comes when they are done.
_MOST_WAITING = 50

"""What a refresh would do, why, and how much it would read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from mv_assets.errors import MvError
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.plan import planner
from mv_assets.plan.downstream import Follows
from mv_assets.plan.planner import Plan, Waiting, Work
from mv_assets.reports import show, wrong
from mv_assets.reports.shown import ByView, Line
from mv_assets.state.health import Wrong
from mv_assets.state.rules import Due
from mv_assets.views.view import View


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """What was observed of a view, what is to be done about it, and what will be after that."""

    view: View
    observed: Observed | MvError
    plan: Plan
    follows: Follows

    @classmethod
    def of(cls, view: View, observed: Observed | MvError, follows: Follows | None) -> ViewPlan:
        plan = Plan(0) if isinstance(observed, MvError) else planner.plan(observed)
        return cls(view, observed, plan, follows or Follows())

    @property
    def wrong(self) -> Wrong:
        return Wrong(self.observed) if isinstance(self.observed, MvError) else self.observed.wrong

    @property
    def waiting(self) -> list[Waiting]:
        """Buckets that are not computed now, those too that are known to fail."""
        failing = [Waiting(each.planned.bucket, each.error) for each in self.plan.failing]
        return sorted([*self.plan.waiting, *failing], key=lambda waiting: waiting.bucket)


@dataclass(frozen=True, slots=True, repr=False)
class Plans(ByView[ViewPlan]):
    """The plans of some views, and of those below them with which something is wrong."""

    views: tuple[ViewPlan, ...]

    def parts(self) -> dict[str, ViewPlan]:
        return {each.view.name: each for each in self.views}

    @property
    def is_wrong(self) -> bool:
        return any(each.wrong for each in self.views)

    def as_json(self) -> dict[str, Any]:
        return {"views": [_json(each) for each in self.views]}

    def lines(self, out: Console) -> Iterator[Line]:
        for each in self.views:
            yield from _lines(out, each)


def _errors(observed: Observed | MvError) -> list[dict[str, str | None]]:
    if isinstance(observed, MvError):
        return [{"file": None, "message": str(observed)}]
    if isinstance(observed, Unchanged):
        return []
    return [{"file": file.name, "message": line} for file, line in observed.view_inputs.unusable()]


def _json(each: ViewPlan) -> dict[str, Any]:
    view, key = each.view, each.view.buckets.key
    waiting = [] if isinstance(each.observed, MvError) else each.waiting
    return {
        "name": view.name,
        "work": [
            {
                "operation": work.operation.value,
                "buckets": [key(planned.bucket) for planned in work.buckets],
                "merged": [key(bucket) for bucket in work.additions],
                "bytes": work.bytes,
                "bytes_by_table": _by_table(each.observed, work),
                "bytes_spared": work.spared,
                "reason": work.reason,
            }
            for work in each.plan.work
        ],
        "waiting": [{"bucket": key(waits.bucket), "reason": waits.reason} for waits in waiting],
        "follows": [
            {
                "operation": work.operation.value,
                "buckets": [key(planned.bucket) for planned in work.buckets],
                "after": list(each.follows.after),
            }
            for work in each.follows.plan.work
        ],
        "errors": _errors(each.observed),
        **wrong.as_json(each.wrong, view.buckets),
    }


def _lines(out: Console, each: ViewPlan) -> Iterator[Line]:
    view, observed = each.view, each.observed
    yield f"[bold]{view.name}[/]"
    yield from wrong.lines(out, each.wrong, view.buckets, {waits.bucket for waits in each.waiting})
    if isinstance(observed, Observed):
        yield from _nulls(observed)
        yield from show.few([_work_line(observed, work) for work in each.plan.work])
        follows = [planned.bucket for work in each.follows.plan.work for planned in work.buckets]
        waiting = [waits for waits in each.waiting if waits.bucket not in set(follows)]
        yield from show.few(list(show.waiting(view.buckets, waiting)))
        yield from show.few(
            [_follow_line(view, run, each.follows.after) for run in view.buckets.stretches(follows)]
        )
        yield from _sum(observed, each.plan, nothing=not waiting and not follows)
    yield ""


def _nulls(observed: Observed) -> Iterator[str]:
    for listing in () if isinstance(observed, Unchanged) else observed.view_inputs.listings:
        nulls = listing.nulls
        if nulls:
            rows, files = show.count(sum(nulls.values()), "row"), show.count(len(nulls), "file")
            of = "" if len(observed.view.windows) == 1 else f" of {listing.table}"
            yield f"  {rows} in {files}{of} have no time and belong to no bucket"


def _by_table(observed: Observed | MvError, work: Work) -> dict[str, int]:
    """The bytes to read of each table with a time."""
    if not isinstance(observed, Observation) or work.operation not in (Due.APPEND, Due.OVERWRITE):
        return {}
    if work.additions:
        # Such a view has one table; what is stored of it is read as well.
        return {observed.view.declared.base.table: work.bytes}
    reached = {planned.bucket: observed.buckets[planned.bucket].reached for planned in work.buckets}
    return planner.sizes(observed.view_inputs, reached)


def _work_line(observed: Observed, work: Work) -> str:
    buckets = observed.view.buckets.span([planned.bucket for planned in work.buckets])
    amount = f"{show.count(len(work.buckets), 'bucket')}, {show.size(work.bytes)}{_merging(work)}"
    sizes = _by_table(observed, work)
    if len(sizes) > 1:
        amount += f" ({', '.join(f'{show.size(size)} of {table}' for table, size in sizes.items())})"
    operation = f"[cyan]{work.operation.value:<9}[/]"
    return f"{operation} {buckets}  [bright_black]{amount}[/]  {show.plain(work.reason)}"


def _merging(work: Work) -> str:
    if not work.additions:
        return ""
    which = "" if len(work.additions) == len(work.buckets) else f"{len(work.additions)} "
    return f", {which}merged with what is stored, {show.size(work.spared)} spared"


def _follow_line(view: View, run: Sequence[int], after: Sequence[str]) -> str:
    where, amount = view.buckets.span(run), show.count(len(run), "bucket")
    below, are = " and ".join(after), "is" if len(after) == 1 else "are"
    return f"[cyan]{'follows':<9}[/] {where}  [bright_black]{amount}[/]  once {below} {are} computed"


def _sum(observed: Observed, made: Plan, *, nothing: bool) -> Iterator[str]:
    if made.work:
        buckets = show.count(sum(len(work.buckets) for work in made.work), "bucket")
        yield f"  {buckets}, {show.size(sum(work.bytes for work in made.work))} to read"
    elif nothing:
        listings = () if isinstance(observed, Unchanged) else observed.view_inputs.listings
        empty = " and ".join(listing.table for listing in listings if not listing.listed())
        yield f"  nothing to do{f': {empty} is empty' if empty else ''}"

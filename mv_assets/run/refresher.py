"""Brings views up to date: look, plan and carry out, round after round, until there is nothing left to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from mv_assets.errors import MvError
from mv_assets.observe.observation import Observed, Unchanged
from mv_assets.plan import planner
from mv_assets.plan.patience import Patience
from mv_assets.plan.planner import Plan, Waiting, Work
from mv_assets.plan.scope import Scope
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.run.errors import EngineLost
from mv_assets.run.executor import carry_out
from mv_assets.run.opened import OpenProject
from mv_assets.run.result import Result
from mv_assets.spark.errors import EngineUnavailable
from mv_assets.state.health import Wrong
from mv_assets.state.model import Outcome, Planned
from mv_assets.state.rules import Due
from mv_assets.views.view import View

# A bucket whose files never rest would else be computed for ever.
_TRIES = 3
# Spark that goes away more often than this in one refresh is not started again.
_LOSSES = 3
_LEFT = "left for later: there is more to read than was allowed"


@dataclass(slots=True)
class Report:
    """What became of one view: each bucket's last result, what still waits, and an error that ended it."""

    view: View
    results: dict[int, Result] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    error: MvError | None = None
    # Buckets that a person asked for by name.
    named: frozenset[int] = frozenset()
    # What the last look found wrong, asked for or not.
    found: Wrong = field(default_factory=Wrong)

    @property
    def wrong(self) -> Wrong:
        """What a person should see to; also what was asked for by name and could not be computed."""
        failed = {each.bucket: str(each.reason) for each in self.results.values() if self._in_vain(each)}
        # One that backs off was not tried here, and is as wrong as if it had been.
        failed |= {each.bucket: each.reason for each in self.waiting if each.failed or self._denied(each)}
        failed |= {b: str(each.reason) for b, each in self.results.items() if each.outcome is Outcome.FAILED}
        return replace(self.found.met(self.error), failed={**self.found.failed, **failed})

    def _denied(self, waiting: Waiting) -> bool:
        # What there was no leave to read is as the person wanted it.
        return waiting.bucket in self.named and waiting.reason != _LEFT

    def _in_vain(self, result: Result) -> bool:
        return result.bucket in self.named and not result.done


class Refresher:
    """One refresh of some views. Each bucket is computed once, or a few times if it changes meanwhile."""

    def __init__(
        self,
        project: OpenProject,
        scope: Scope | None = None,
        *,
        progress: Progress = NO_PROGRESS,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._project = project
        self._scope = scope or Scope()
        self._progress = progress
        self._watch = project.watch(progress)
        self._reports: dict[str, Report] = {}
        self._tries: Counter[tuple[str, int]] = Counter()
        self._read = 0
        self._losses = 0
        self._patience = Patience(project.clock, progress, sleep)
        self._unavailable: EngineUnavailable | None = None

    def run(self, names: Iterable[str] | None = None) -> list[Report]:
        """Refresh views, and first those that they are based on."""
        asked = None if names is None else list(names)
        while True:
            found = self._watch.round(asked, named=self._scope.named)
            plans = [plan for plan in map(self._plan, found.items()) if plan is not None]
            works = [work for _, plan in plans for work in plan.work]
            self._progress.plans(sum(len(work.buckets) for work in works), sum(work.bytes for work in works))
            worked = [self._carry_out(observed, plan) for observed, plan in plans]
            if not any(worked) and not self._wait():
                return list(self._reports.values())

    def _plan(self, found: tuple[str, Observed | MvError]) -> tuple[Observed, Plan] | None:
        name, observed = found
        named = self._scope.named.get(name, frozenset())
        report = self._reports.setdefault(name, Report(self._project.catalog.view(name), named=named))
        if isinstance(observed, MvError):
            report.error = observed
            return None
        report.found = observed.wrong
        if report.error is not None:
            return None
        self._patience.allow(observed.limits)
        plan = self._narrowed(observed, planner.plan(observed))
        report.waiting = plan.waiting
        return observed, plan

    def _narrowed(self, observed: Observed, plan: Plan) -> Plan:
        """What of a plan was asked for and may still be done in this refresh."""
        view = observed.view
        asked = plan.narrowed(lambda bucket: self._scope.holds(view, bucket))
        possible = asked.narrowed(lambda bucket: self._may_try(view, bucket))
        kept, waiting = list[Work](), list(asked.waiting)
        for work in possible.work:
            allowed, left = self._allowed(observed, work)
            waiting += [Waiting(planned.bucket, _LEFT) for planned in left]
            if allowed.buckets:
                kept.append(allowed)
        return replace(possible, work=tuple(kept), waiting=tuple(waiting))

    def _allowed(self, observed: Observed, work: Work) -> tuple[Work, Sequence[Planned]]:
        """As many of the work's buckets as may be read, from the first on, and the others."""
        buckets, most = work.buckets, self._scope.max_bytes
        size, kept = self._size(observed, work, buckets), len(buckets)
        while most is not None and kept and self._read + size > most:
            kept -= 1
            size = self._size(observed, work, buckets[:kept])
        self._read += size
        return replace(work, buckets=buckets[:kept], bytes=size), buckets[kept:]

    def _size(self, observed: Observed, work: Work, buckets: Sequence[Planned]) -> int:
        if isinstance(observed, Unchanged) or work.operation in (Due.REVERT, Due.DELETE):
            return 0
        reached = {planned.bucket: observed.buckets[planned.bucket].reached for planned in buckets}
        return planner.to_read(observed.view_inputs, reached, work.additions)

    def _may_try(self, view: View, bucket: int) -> bool:
        return self._tries[view.name, bucket] < _TRIES

    def _carry_out(self, observed: Observed, plan: Plan) -> bool:
        """Do the work; whether there was any."""
        view, report = observed.view, self._reports[observed.view.name]
        if plan.work and self._unavailable is not None:
            report.error = self._unavailable
            return False
        try:
            for _, results in carry_out(self._project, observed, plan, self._progress):
                for result in results:
                    report.results[result.bucket] = result
                    self._tries[view.name, result.bucket] += result.tried
        except EngineLost as lost:
            self._losses += 1
            if self._losses > _LOSSES:
                report.error = self._unavailable = lost
        except EngineUnavailable as error:
            report.error = self._unavailable = error
        except MvError as error:
            # One view's trouble is not another's.
            report.error = error
        return bool(plan.work or plan.failing)

    def _wait(self) -> bool:
        return self._patience.wait(
            waiting
            for report in self._reports.values()
            for waiting in report.waiting
            if report.error is None and self._may_try(report.view, waiting.bucket)
        )

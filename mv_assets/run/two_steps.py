"""Chosen buckets of one view, brought up to date in two steps: one may stage them, another commit them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from mv_assets.errors import MvError
from mv_assets.observe.observation import Observation, Observed
from mv_assets.plan import planner
from mv_assets.plan.patience import Patience
from mv_assets.plan.planner import Plan, Waiting
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.run.executor import Execution
from mv_assets.run.opened import OpenProject
from mv_assets.run.result import Result
from mv_assets.state import rules
from mv_assets.state.model import Outcome, State
from mv_assets.state.rules import Due
from mv_assets.views.view import View


class TwoStepRefresh:
    """Looks, plans and stages when told to, and commits when told to; nothing is visible in between.

    What was staged but not committed when the block ends is abandoned. In Dagster there are two such blocks,
    the asset's and the IO manager's: the first to end does so.
    """

    def __init__(
        self,
        project: OpenProject,
        view: View,
        buckets: Iterable[int],
        sleep: Callable[[float], None] | None = None,
        *,
        named: bool = False,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self._project = project
        self._view = view
        self._buckets = sorted(buckets)
        # A person who names buckets means them, due or not.
        self._named = frozenset(self._buckets if named else ())
        self._sleep = sleep
        self._progress = progress
        self._execution = Execution(project, view, progress)
        self._results: dict[int, Result] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._execution.__exit__(kind, error, trace)

    @property
    def view(self) -> View:
        return self._view

    @property
    def buckets(self) -> Sequence[int]:
        return self._buckets

    @property
    def project(self) -> OpenProject:
        return self._project

    def force(self, reason: str, *, valid_too: bool) -> None:
        """Have buckets computed in spite of earlier failures, and VALID ones too if asked.

        One that was never computed needs no mark for that, and would be emptied where it has no files yet.
        """
        manager, view = self._project.manager, self._view.declaration
        header = manager.declare(view)
        snapshot = self._project.store.snapshot(view.view, self._buckets[0], self._end)
        states = {b: rules.effective_state(snapshot.rows.get(b), header) for b in self._buckets}
        # An attempt that killed its process has left a record, and perhaps no row.
        wanted = [
            b
            for b, state in states.items()
            if state is State.STALE or (valid_too and state is State.VALID) or b in snapshot.attempts
        ]
        if wanted:
            # What is forced is STALE until it is computed: see first that it can be.
            self._project.engine.check()
            manager.force(view, wanted, reason)

    def stage(self) -> bool:
        """Stage what is due of the buckets; whether there is anything to commit.

        Raises:
            EngineUnavailable: there is no Spark.
            MvError: the view, or a table that it reads, can't be used.

        """
        observed, plan = self._plan()
        due = {planned.bucket for work in plan.work for planned in work.buckets}
        self._note(self._nothing(observed, plan, bucket) for bucket in self._buckets if bucket not in due)
        self._progress.plans(len(due), sum(work.bytes for work in plan.work))
        for _, results in self._execution.stage(observed, plan):
            self._note(results)
        return self._execution.staged

    def commit(self) -> dict[int, Result]:
        """Commit what was staged; what became of each bucket."""
        self._note(self._execution.commit())
        self._execution.conclude()
        return self.results

    @property
    def results(self) -> dict[int, Result]:
        return dict(self._results)

    @property
    def _end(self) -> int:
        return self._view.buckets.next(self._buckets[-1])

    def _note(self, results: Iterable[Result]) -> None:
        self._results |= {result.bucket: result for result in results}

    def _plan(self) -> tuple[Observed, Plan]:
        """What is due, once the files of the buckets have settled, or never will."""
        name, asked, watch = self._view.name, set(self._buckets), self._project.watch(self._progress)
        patience = Patience(self._project.clock, self._progress, self._sleep)
        while True:
            observed = watch.round([name], named={name: self._named})[name]
            if isinstance(observed, MvError):
                raise observed
            plan = planner.plan(observed).narrowed(asked.__contains__)
            patience.allow(observed.limits)
            if not patience.wait(plan.waiting):
                return observed, plan

    def _nothing(self, observed: Observed, plan: Plan, bucket: int) -> Result:
        """What to say of a bucket that nothing is done about."""
        waits = {waiting.bucket: waiting for waiting in plan.waiting}
        if bucket in waits:
            return _waiting(waits[bucket])
        snapshot = observed.snapshot if isinstance(observed, Observation) else None
        if snapshot is None:
            snapshot = self._project.store.snapshot(self._view.name, bucket, self._view.buckets.next(bucket))
        if rules.effective_state(snapshot.rows.get(bucket), snapshot.header) is State.VALID:
            return Result(bucket, Due.NOTHING, Outcome.REPLAY, reason="it is VALID already")
        return Result(
            bucket, Due.WAIT, Outcome.WAITING, reason=f"not due: {planner.not_due(observed, bucket)}"
        )


def _waiting(waiting: Waiting) -> Result:
    outcome = Outcome.FAILED if waiting.failed else Outcome.WAITING
    return Result(waiting.bucket, Due.WAIT, outcome, reason=waiting.reason)

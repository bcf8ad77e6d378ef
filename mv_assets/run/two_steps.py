"""Chosen buckets of one view, brought up to date in two steps: one may stage them, another commit them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

from mv_assets.errors import EngineUnavailable, MvError
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.observe.watch import Observer
from mv_assets.plan import planner
from mv_assets.plan.patience import Patience
from mv_assets.plan.planner import Plan, Waiting
from mv_assets.run import executor
from mv_assets.run.opened import OpenProject
from mv_assets.run.result import Result, not_reached
from mv_assets.run.staging import Staging, Stops
from mv_assets.state import rules
from mv_assets.state.model import Doing, Outcome, State
from mv_assets.state.rules import Due
from mv_assets.tables.listing import unobserved
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
        sleep: Callable[[float], None] = time.sleep,
        *,
        named: bool = False,
        observer: Observer = lambda _table: unobserved,
    ) -> None:
        self._project = project
        self._view = view
        self._buckets = sorted(buckets)
        # A person who names buckets means them, due or not.
        self._named = frozenset(self._buckets if named else ())
        self._sleep = sleep
        self._observer = observer
        self._held = ExitStack()
        self._staged: list[Staging] = []
        self._results: dict[int, Result] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, trace)
        if isinstance(error, MvError):
            self._note_trouble(error)

    @property
    def view(self) -> View:
        return self._view

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
        if isinstance(observed, Unchanged):
            return False
        self._stage(observed, plan)
        at_once = replace(plan, work=plan.reverts.work)
        for _, results in executor.carry_out(self._project, observed, at_once):
            self._note(results)
        return bool(self._staged)

    def commit(self) -> dict[int, Result]:
        """Commit what was staged; what became of each bucket."""
        for staging in self._staged:
            self._note(staging.commit())
        if self._staged:
            self._note_trouble(next((staging.stopped for staging in self._staged if staging.stopped), None))
        return dict(self._results)

    @property
    def results(self) -> dict[int, Result]:
        return dict(self._results)

    @property
    def _end(self) -> int:
        return self._view.buckets.next(self._buckets[-1])

    def _note_trouble(self, error: MvError | None) -> None:
        self._project.troubles.note(Doing.WORK, {self._view.name: error})

    def _note(self, results: Iterable[Result]) -> None:
        self._results |= {result.bucket: result for result in results}

    def _plan(self) -> tuple[Observed, Plan]:
        """What is due, once the files of the buckets have settled, or never will."""
        name, asked, watch = self._view.name, set(self._buckets), self._project.watch(self._observer)
        patience = Patience(self._project.clock, self._sleep)
        while True:
            observed = watch.round([name], named={name: self._named})[name]
            if isinstance(observed, MvError):
                raise observed
            plan = planner.plan(observed).narrowed(asked.__contains__)
            patience.allow(observed.limits)
            if not patience.wait(plan.waiting):
                return observed, plan

    def _stage(self, observation: Observation, plan: Plan) -> None:
        """Stage work by work; what Spark did not get to, as it went away, says so."""
        project, looks = self._project, self._project.second_looks(observation.view_inputs)
        gone: MvError | None = None
        stops = Stops()
        for work in plan.work:
            if work.operation is Due.REVERT:
                continue
            if gone is None:
                staging = self._held.enter_context(Staging(project, observation, looks, plan.version, work))
                try:
                    staging.stage()
                except EngineUnavailable as error:
                    if not self._staged:
                        raise
                    gone = error
                else:
                    self._staged.append(staging)
                    if stops.the_rest(staging.stopped):
                        gone = staging.stopped
                    continue
            self._note(not_reached(planned.bucket, work.operation, gone) for planned in work.buckets)

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

"""A plan carried out, work by work, and what became of each bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mv_assets.errors import MvError
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.observe.second_look import SecondLooks
from mv_assets.plan.planner import Failing, Plan, Work
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.run.attempt import OpenAttempt
from mv_assets.run.errors import EngineLost
from mv_assets.run.opened import OpenProject
from mv_assets.run.result import Result, not_reached
from mv_assets.spark.errors import EngineUnavailable, OutOfSpace
from mv_assets.state.model import Doing, Outcome
from mv_assets.state.rules import Due
from mv_assets.views.view import View

if TYPE_CHECKING:
    from mv_assets.run.staging import Staging


def carry_out(
    project: OpenProject,
    observed: Observed,
    plan: Plan,
    progress: Progress = NO_PROGRESS,
) -> Iterator[tuple[Work, list[Result]]]:
    """Do what a plan asks for, one work after the other, each committed as soon as it is staged.

    Raises:
        EngineLost: Spark went away.
        OutOfSpace: in the end, if one had no room; at once if a second one has none.

    """
    with Execution(project, observed.view, progress) as execution:
        for work, results in execution.stage(observed, plan):
            yield work, [*results, *execution.commit()]
        execution.conclude()


class Execution:
    """Work on one view: staged in turn, and committed as soon or as late as whoever drives it says.

    What was staged but not committed when the block ends is abandoned, and an error of ours that ends the
    block is the view's trouble.
    """

    def __init__(self, project: OpenProject, view: View, progress: Progress = NO_PROGRESS) -> None:
        self._project = project
        self._view = view
        self._progress = progress
        self._held = ExitStack()
        self._staged: list[Staging] = []
        self._committed = False
        # What first stopped a work, and what keeps the rest from being tried.
        self._stopped: EngineLost | OutOfSpace | None = None
        self._gone: MvError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
        if isinstance(error, MvError):
            self._note(error)

    @property
    def staged(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self._staged)

    def stage(self, observed: Observed, plan: Plan) -> Iterator[tuple[Work, list[Result]]]:
        """Stage work by work; with each goes what is known of its buckets before any commit.

        What stops the rest is raised, unless something is still to be committed: then the rest says so.

        Raises:
            EngineUnavailable: there is no Spark, or it went away.
            OutOfSpace: in the end, if one had no room; at once if a second one has none.

        """
        if isinstance(observed, Unchanged):
            return
        looks = self._project.second_looks(observed.view_inputs)
        for work in plan.work:
            if self._gone is not None:
                yield work, _not_reached(work, self._gone)
                continue
            self._progress.begins(self._named(work))
            yield work, self._do(observed, looks, plan.version, work)
            self._raise_unless_staged(self._gone)
            self._progress.ends(len(work.buckets), work.bytes)
        for error in dict.fromkeys(failing.error for failing in plan.failing):
            yield self._fail(plan.version, [each for each in plan.failing if each.error == error])
        self._raise_unless_staged(self._stopped)

    def commit(self) -> list[Result]:
        """Commit what is staged; what became of its buckets."""
        results = [result for staging in self._staged for result in staging.commit()]
        self._committed |= self.staged
        self._staged.clear()
        self._held.close()
        return results

    def conclude(self) -> None:
        """Note what trouble the work had, or that it went well; nothing if there was none."""
        if self._committed:
            self._note(self._stopped)

    def _note(self, trouble: MvError | None) -> None:
        self._project.troubles.note(Doing.WORK, {self._view.name: trouble})

    def _raise_unless_staged(self, error: MvError | None) -> None:
        if error is not None and not self._staged:
            raise error

    def _named(self, work: Work) -> str:
        where = self._view.buckets.span([planned.bucket for planned in work.buckets])
        return f"{work.operation.value} {self._view.name} {where}"

    def _do(self, observation: Observation, looks: SecondLooks, version: int, work: Work) -> list[Result]:
        if work.operation is Due.REVERT:
            return self._revert(observation, looks, work)
        from mv_assets.run.staging import Staging  # noqa: PLC0415 - pyspark, where there is something to do

        staging = self._held.enter_context(Staging(self._project, observation, looks, version, work))
        try:
            staging.stage()
        except EngineUnavailable as error:
            self._raise_unless_staged(error)
            self._gone = error
            return _not_reached(work, error)
        self._staged.append(staging)
        if staging.stopped is not None:
            self._stop(staging.stopped)
        return []

    def _stop(self, stopped: EngineLost | OutOfSpace) -> None:
        """Spark that went away stops the rest, and so does the disk: the second time without room."""
        if isinstance(stopped, EngineLost) or self._stopped is not None:
            self._gone = stopped
        self._stopped = self._stopped or stopped

    def _revert(self, observation: Observation, looks: SecondLooks, work: Work) -> list[Result]:
        """Undo false alarms that still are: much may have arrived since they were planned."""
        second_look = looks.look({each.bucket: observation.buckets[each.bucket] for each in work.buckets})
        reverted = self._project.manager.revert(self._view.declaration, second_look.current_inputs)
        return [Result(bucket, work.operation, Outcome.REVERTED, reason=work.reason) for bucket in reverted]

    def _fail(self, version: int, failing: Sequence[Failing]) -> tuple[Work, list[Result]]:
        """Record what is known beforehand to fail, as an attempt like any other: it backs off."""
        planned, error = tuple(each.planned for each in failing), failing[0].error
        # Where that can't be written, its heart must not go on beating.
        with OpenAttempt(self._project, self._view.declaration, version, planned) as attempt:
            attempt.fail(error)
        operations = [Due.APPEND if each.token is None else Due.OVERWRITE for each in planned]
        results = [
            Result(each.bucket, operation, Outcome.FAILED, reason=error)
            for each, operation in zip(planned, operations, strict=True)
        ]
        return Work(operations[0], planned, 0, error), results


def _not_reached(work: Work, error: MvError) -> list[Result]:
    return [not_reached(planned.bucket, work.operation, error) for planned in work.buckets]

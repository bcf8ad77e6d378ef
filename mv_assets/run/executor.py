"""A plan carried out, work by work, and what became of each bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mv_assets.errors import MvError
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.observe.second_look import SecondLooks
from mv_assets.plan.planner import Failing, Plan, Work
from mv_assets.run.attempt import OpenAttempt
from mv_assets.run.opened import OpenProject
from mv_assets.run.result import Result
from mv_assets.run.staging import Staging, Stops
from mv_assets.state.model import Doing, Outcome
from mv_assets.state.rules import Due
from mv_assets.views.view import View


def carry_out(
    project: OpenProject,
    observed: Observed,
    plan: Plan,
    begins: Callable[[View, Work], None] = lambda _view, _work: None,
) -> Iterator[tuple[Work, list[Result]]]:
    """Do what a plan asks for, one work after the other.

    Raises:
        EngineLost: Spark went away.
        OutOfSpace: in the end, if one had no room; at once if a second one has none.

    """
    if isinstance(observed, Unchanged):
        return
    view = observed.view.name
    try:
        yield from _carried_out(project, observed.view, observed, plan, begins)
    except MvError as error:
        project.troubles.note(Doing.WORK, {view: error})
        raise
    if any(work.operation is not Due.REVERT for work in plan.work):
        project.troubles.note(Doing.WORK, {view: None})


def _carried_out(
    project: OpenProject,
    view: View,
    observation: Observation,
    plan: Plan,
    begins: Callable[[View, Work], None],
) -> Iterator[tuple[Work, list[Result]]]:
    stops = Stops()
    second_looks = project.second_looks(observation.view_inputs)
    for work in plan.work:
        begins(view, work)
        if work.operation is Due.REVERT:
            yield work, _revert(project, observation, second_looks, work)
        else:
            with Staging(project, observation, second_looks, plan.version, work) as staging:
                staging.stage()
                yield work, staging.commit()
                if staging.stopped is not None and stops.the_rest(staging.stopped):
                    raise staging.stopped
    for error in dict.fromkeys(failing.error for failing in plan.failing):
        yield _fail(project, view, plan.version, [each for each in plan.failing if each.error == error])
    if stops.full is not None:
        raise stops.full


def _revert(
    project: OpenProject, observation: Observation, second_looks: SecondLooks, work: Work
) -> list[Result]:
    """Undo false alarms that still are: much may have arrived since they were planned."""
    view, buckets = observation.view_inputs.view.declaration, [planned.bucket for planned in work.buckets]
    second_look = second_looks.look({bucket: observation.buckets[bucket] for bucket in buckets})
    reverted = project.manager.revert(view, second_look.current_inputs)
    return [Result(bucket, work.operation, Outcome.REVERTED, reason=work.reason) for bucket in reverted]


def _fail(
    project: OpenProject, view: View, version: int, failing: Sequence[Failing]
) -> tuple[Work, list[Result]]:
    """Record what is known beforehand to fail, as an attempt like any other: it backs off."""
    planned, error = tuple(each.planned for each in failing), failing[0].error
    attempt = OpenAttempt(project, view.declaration, version, planned)
    try:
        attempt.fail(error)
    finally:
        # Where that could not be written, its heart must not go on beating.
        attempt.abandon()
    results = [
        Result(
            each.bucket,
            Due.APPEND if each.token is None else Due.OVERWRITE,
            Outcome.FAILED,
            reason=error,
        )
        for each in planned
    ]
    return Work(results[0].operation, planned, 0, error), results

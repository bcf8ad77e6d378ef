"""Dagster's own automation in place of the sensors' requests: a condition that is true for what is due."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from threading import Lock

import dagster as dg
from pydantic import BaseModel, ValidationError

from mv_assets.defs.deployment import Deployment
from mv_assets.defs.names import WORK_TAG
from mv_assets.defs.signs_of_life import Deadline
from mv_assets.defs.tick.claims import claims, unfinished
from mv_assets.defs.tick.requests import Asking, askings, free_of
from mv_assets.errors import MvError
from mv_assets.observe.observation import Observation
from mv_assets.plan import planner
from mv_assets.state.rules import retry_delay
from mv_assets.views.view import View

# Of the 60 s that Dagster gives a tick; the sensors read on.
_READING_S = 35.0

# Dagster's own limit for a sensor whose conditions are evaluated where the code is.
MOST_AUTOMATED = 500

_Context = dg.AutomationContext[dg.AssetKey]


def automation_sensor(deployment: Deployment, interval_s: int) -> dg.AutomationConditionSensorDefinition:
    """Evaluates the conditions of all views, in the process that has their code."""
    return dg.AutomationConditionSensorDefinition(
        deployment.naming.of("compute_due"),
        target=dg.AssetSelection.assets(*deployment.by_key(deployment.catalog.views.values())),
        # Its runs are known by that as a machine's, and as some of those that a view may have so many of.
        run_tags={WORK_TAG: "automation condition"},
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        use_user_code_server=True,
        description="Asks for the partitions of views for which their automation conditions are true.",
    )


@dataclass(slots=True)
class DueWork:
    """What is due of all views, which are looked at once for all the conditions of one evaluation."""

    deployment: Deployment
    starts: Mapping[str, int]
    _at: dt.datetime | None = None
    # By view, with how many runs it may have besides those it has.
    _due: dict[str, tuple[int, list[Asking]]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, view: View, context: _Context) -> tuple[int, list[Asking]]:
        """How much may be asked for, and what, first what must not starve."""
        with self._lock:
            if self._at != context.evaluation_time:
                self._due, self._at = self._look(context), context.evaluation_time
            return self._due.get(view.name, (0, []))

    def _look(self, context: _Context) -> dict[str, tuple[int, list[Asking]]]:
        views, instance = self.deployment.catalog.views, context.asset_graph_view.instance
        named = self.deployment.by_key(views.values())
        claimed = claims(instance, None, context.asset_graph, named, unfinished(instance))
        with self.deployment.open("Dagster automation") as project:
            looks = project.watch(Deadline(_READING_S)).round(views)
        found, now = dict[str, tuple[int, list[Asking]]](), self.deployment.now()
        for name, view in views.items():
            observed = looks[name]
            # What is wrong with a view is said by the sensor of its table, which looks as well.
            if isinstance(observed, Observation):
                free = free_of(view, self.starts[name], now, claimed)
                room = view.declared.max_runs - claimed.own.get(name, 0)
                found[name] = room, list(askings(view, planner.plan(observed), free))
        return found


class _Tried(BaseModel):
    """How often work was asked for that is due still, or again, and when last."""

    times: int = 0
    at: int = 0
    # When the condition was last true for it. Whether it was asked for is known afterwards: the condition may
    # be a part of another.
    offered: int | None = None

    def known(self, *, requested: bool) -> _Tried:
        """The same, now that it is known whether it was asked for."""
        if self.offered is None or not requested:
            return _Tried(times=self.times, at=self.at)
        return _Tried(times=self.times + 1, at=self.offered)

    def is_over(self, now: int) -> bool:
        """Whether it may be asked for now; a clock that was set back does not keep anybody from it."""
        return not self.times or not self.at <= now < self.at + retry_delay(self.times)


class _Memory(BaseModel):
    tried: dict[str, _Tried] = {}

    @classmethod
    def of(cls, cursor: str | None) -> _Memory:
        try:
            return cls.model_validate_json(cursor or "{}")
        except ValidationError:
            return cls()


class IsDue(dg.AutomationCondition[dg.AssetKey]):
    """True for partitions of a view that are STALE or new, and due, and that nobody has been asked for.

    Of as many runs as the view may have at a time; what was asked for in vain is asked for again later and
    later.
    """

    def __init__(self, work: DueWork, view: View) -> None:
        self._work = work
        self._view = view

    @property
    def name(self) -> str:
        return "STALE or due"

    @property
    def requires_cursor(self) -> bool:
        return True

    def evaluate(self, context: _Context) -> dg.AutomationResult[dg.AssetKey]:
        """What the map and the tables say now."""
        try:
            room, due = self._work.of(self._view, context)
        except MvError as error:
            context.log.warning("%s: %s", self._view.name, error)
            return dg.AutomationResult(context, context.get_empty_subset(), context.cursor)
        now, tried = self._work.deployment.now(), _Memory.of(context.cursor).tried
        requested, keys, kept = self._requested(context), set[str](), dict[str, _Tried]()
        for asking in due:
            named = {self._view.buckets.key(bucket) for bucket in asking.buckets}
            state = tried.get(asking.work, _Tried()).known(requested=named <= requested)
            if room > 0 and state.is_over(now):
                room -= 1
                keys |= named
                state.offered = now
            if state.times or state.offered is not None:
                kept[asking.work] = state
        subset = context.candidate_subset.compute_intersection_with_partition_keys(keys)
        return dg.AutomationResult(context, subset, _Memory(tried=kept).model_dump_json())

    def _requested(self, context: _Context) -> AbstractSet[str]:
        """What was asked for after the last evaluation."""
        found = context.get_previous_requested_subset(context.key)
        return set() if found is None else found.expensively_compute_partition_keys()

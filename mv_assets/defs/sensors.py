"""The sensor of a base table: looks, marks, plans, and asks for what is due."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg

from mv_assets.defs import checks, events
from mv_assets.defs.base_tables import missing_observations, width_of
from mv_assets.defs.cursor import Memory
from mv_assets.defs.dead import living
from mv_assets.defs.deployment import Deployment
from mv_assets.defs.partitions import partitions_of
from mv_assets.defs.projection import BEGIN, Position, end_of, untold, wipes
from mv_assets.defs.requests import MOST_RUNS, Asking, History, askings, chosen, request
from mv_assets.defs.taken import Taken, taken, unfinished
from mv_assets.errors import MvError, StateError, StillReading
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.plan import planner
from mv_assets.plan.planner import Plan
from mv_assets.run.executor import carry_out
from mv_assets.run.opened import OpenProject
from mv_assets.state import health
from mv_assets.state.health import Wrong
from mv_assets.state.rules import Due
from mv_assets.tables.listing import Progress
from mv_assets.views.view import View

# Of the 60 s that Dagster gives a tick; a table with more to read is read on at the next one.
_READING_S = 35.0
# So many STALE buckets, the newest, are shown as out of date at a time.
_MOST_OBSERVED = 200
_MOST_LOGGED = 20


@dataclass(slots=True)
class _TickResult:
    """What one tick comes to."""

    memory: Memory
    runs: list[dg.RunRequest] = field(default_factory=list)
    events: list[dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation] = field(
        default_factory=list
    )
    notes: list[str] = field(default_factory=list)

    def result(self) -> dg.SensorResult:
        skip = None if self.runs else "; ".join(self.notes) or "up to date"
        return dg.SensorResult(
            run_requests=self.runs,
            skip_reason=skip,
            asset_events=self.events,
            cursor=self.memory.model_dump_json(),
        )


def table_sensor(
    deployment: Deployment, table: str, views: list[View], starts: dict[str, int], interval_s: int
) -> dg.SensorDefinition:
    """Watches a base table for all views that come from it, directly or through another view."""

    @dg.sensor(
        name=f"watch_{table}",
        asset_selection=dg.AssetSelection.assets(*(view.name for view in views)),
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Looks at the files of {table} and asks for buckets that are new or no longer match.",
    )
    def watch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with deployment.open(f"Dagster sensor watch_{table}") as project:
            return _Tick(context, deployment, project, views, starts).evaluate().result()

    return watch


class _Tick:
    """One tick. What goes wrong with one view is said of that view, and costs the others nothing."""

    def __init__(
        self,
        context: dg.SensorEvaluationContext,
        deployment: Deployment,
        project: OpenProject,
        views: Sequence[View],
        starts: Mapping[str, int],
    ) -> None:
        self._context = context
        self._instance = context.instance
        self._deployment = deployment
        self._project = project
        self._views = {view.name: view for view in views}
        self._starts = starts
        self._result = _TickResult(Memory.of(context.cursor))
        self._wipes = wipes(context.instance, self._views)

    def evaluate(self) -> _TickResult:
        project, repository, views = self._project, self._context.repository_def, list(self._views.values())
        found = project.watch(_within(_READING_S)).round(self._views)
        now = self._deployment.now()
        runs = living(self._instance, repository, project, unfinished(self._instance), now)
        claimed = taken(self._instance, repository, views, runs)
        for name, observed in found.items():
            view = self._views[name]
            if isinstance(observed, StillReading):
                self._report_reading(view, observed)
            elif isinstance(observed, MvError):
                self._report_error(view, observed)
            else:
                self._go_on(view, observed, claimed)
        return self._result

    def _go_on(self, view: View, observed: Observed, claimed: Taken) -> None:
        try:
            if isinstance(observed, Observation):
                plan = planner.plan(observed)
                touched = [*self._revert(observed, plan), *self._ask(view, plan, claimed)]
                self._observe(view, observed, touched)
            self._report_map(view, observed, claimed)
        except MvError as error:
            self._report_error(view, error)

    def _revert(self, observed: Observed, plan: Plan) -> list[int]:
        """Undo false alarms here and now."""
        done = carry_out(self._project, observed, plan.reverts)
        return [result.bucket for _, results in done for result in results]

    def _ask(self, view: View, plan: Plan, claimed: Taken) -> list[int]:
        """Ask for runs for what is due and nobody's yet."""
        now, start = self._deployment.now(), self._starts[view.name]

        def is_free(bucket: int) -> bool:
            return start <= bucket and view.buckets.next(bucket) <= now and not claimed.has(view, bucket)

        room = MOST_RUNS - claimed.own.get(view.name, 0)
        known = partitions_of(view.buckets, start)
        # Before they are chosen: what Dagster can't be asked for must not take the place of what it can.
        candidates = (each for each in askings(view, plan, is_free) if self._has_partitions(known, each))
        asked, waiting = chosen(candidates, room, lambda asking: History.of(self._instance, asking), now)
        self._result.runs += [request(asking, history) for asking, history in asked]
        for asking in waiting[:1]:
            self._note(view, f"{view.buckets.span(asking.buckets)} waits, as it was tried a moment ago")
        computed = [each for work in plan.work if work.operation is not Due.REVERT for each in work.buckets]
        wanted = [*computed, *(failing.planned for failing in plan.failing)]
        before = [planned.bucket for planned in wanted if planned.bucket < start]
        if before:
            span = view.buckets.span([min(before), max(before)])
            self._note(view, f"{span} lies before the partitions that were loaded; reload the definitions")
        return [bucket for asking, _ in asked for bucket in asking.buckets]

    def _has_partitions(self, known: dg.TimeWindowPartitionsDefinition, asking: Asking) -> bool:
        """Dagster refuses a whole tick for one key that it does not know."""
        key, ends = asking.view.buckets.key, (asking.buckets[0], asking.buckets[-1])
        if all(known.has_partition_key(key(bucket)) for bucket in ends):
            return True
        span = asking.view.buckets.span(asking.buckets)
        self._note(asking.view, f"{span} is no partition of Dagster's; use `mv-assets refresh`")
        return False

    def _observe(self, view: View, observation: Observation, touched: Sequence[int]) -> None:
        """Tell what the tables hold where that is new: Dagster then shows what is out of date."""
        for name, listing in observation.view_inputs.dimensions.items():
            told = events.observation(listing)
            version = (told.tags or {})[events.DATA_VERSION]
            if name not in self._deployment.produced_by and self._result.memory.observed.get(name) != version:
                self._result.memory.observed[name] = version
                self._result.events.append(told)
        base = view.declared.base
        width = width_of(self._deployment, base)
        if width is not None and base in self._project.tables and base not in self._deployment.produced_by:
            stale = list(health.stale(observation.snapshot))
            buckets = [*touched, *stale[-_MOST_OBSERVED:]]
            self._result.events += missing_observations(
                self._instance, observation.view_inputs.base, width, view, buckets
            )

    def _report_map(self, view: View, observed: Observed, claimed: Taken) -> None:
        """Tell Dagster what the map has and it does not know, and what the checks have to say."""
        memory, header, wrong = self._result.memory, observed.header, observed.wrong
        fresh = checks.fresh(view, header, self._project.clock(), wrong.stalled)
        self._note_wrong(view, wrong)
        # Dagster counts a check only if it is younger than the asset: once a run has ended it is made again.
        told = _digest(wrong.troubles, wrong.broken)
        occasion = f"{header.version} {view.name in claimed.windows} {fresh.passed} {told}"
        since, end = self._told(view), end_of(header.version)
        if since > end:
            # Another state database than the one that was told of.
            since = BEGIN
        if isinstance(observed, Unchanged) and since == end and memory.checked.get(view.name) == occasion:
            return
        snapshot = (
            self._project.store.snapshot(view.name) if isinstance(observed, Unchanged) else observed.snapshot
        )
        found, memory.told[view.name] = untold(
            self._instance, self._deployment, view, snapshot, since, claimed
        )
        self._result.events += found
        verdicts = [checks.no_failed_buckets(view, wrong), checks.no_stale_buckets(view, snapshot), fresh]
        if self._report_checks(view, verdicts, occasion):
            for line in wrong.sentences(view.name, view.buckets)[:_MOST_LOGGED]:
                self._context.log.error(line)

    def _note_wrong(self, view: View, wrong: Wrong) -> None:
        """A tick that asks for nothing must not say that all is well."""
        found = wrong.sentences(view.name, view.buckets)
        self._result.notes += found[:1]
        self._result.notes += [f"and {len(found) - 1} more of {view.name}"] if len(found) > 1 else []

    def _told(self, view: View) -> Position:
        """Up to where Dagster was told of a view, unless a person had it forget the asset since."""
        memory, wiped = self._result.memory, self._wipes.get(view.name)
        if wiped is None:
            return BEGIN
        if wiped != memory.wiped.get(view.name, 0.0):
            memory.wiped[view.name] = wiped
            memory.checked.pop(view.name, None)
            return BEGIN
        return memory.told.get(view.name, BEGIN)

    def _report_checks(self, view: View, verdicts: Iterable[checks.Verdict], occasion: str) -> bool:
        """Only on occasion: a check that says the same every tick is no longer read."""
        if self._result.memory.checked.get(view.name) == occasion:
            return False
        self._result.memory.checked[view.name] = occasion
        self._result.events += [verdict.evaluation(view) for verdict in verdicts]
        return True

    def _report_reading(self, view: View, reading: StillReading) -> None:
        self._note(view, str(reading))
        late = self._late(view)
        if late is not None:
            self._report_checks(view, [late], "late while its table is read")

    def _report_error(self, view: View, error: MvError) -> None:
        self._context.log.error("%s: %s", view.name, error)
        self._note(view, str(error))
        # A state that does not answer is not asked once more.
        late = None if isinstance(error, StateError) else self._late(view)
        unusable = checks.no_failed_buckets(view, Wrong(error))
        verdicts = [unusable] if late is None else [unusable, late]
        self._report_checks(view, verdicts, f"{_gist(error)} {late is not None}")

    def _late(self, view: View) -> checks.Verdict | None:
        """That a view which can't be looked at now is late meanwhile; that it is not can't be told."""
        try:
            pulse = self._project.store.pulses([view.name]).get(view.name)
            found = None if pulse is None else checks.fresh(view, pulse.header, self._project.clock(), None)
        except MvError:
            return None
        return None if found is None or found.passed else found

    def _note(self, view: View, what: str) -> None:
        self._result.notes.append(f"{view.name}: {what}")


def _gist(error: MvError) -> str:
    """An error without ids and times: else the same one, met again, would be news at every tick."""
    words = (word for word in str(error).split() if not any(map(str.isdigit, word)))
    return f"{type(error).__name__} {' '.join(words)}"


def _digest(*what: object) -> str:
    """Names it in few characters: it goes into a cursor, and thousands of files may be broken."""
    return hashlib.blake2b(repr(what).encode(), digest_size=8).hexdigest()


def _within(seconds: float, monotonic: Callable[[], float] = time.monotonic) -> Callable[[str], Progress]:
    """An observer that ends a look which takes too long; what it has read is in the inventory."""
    deadline = monotonic() + seconds

    def observer(table: str) -> Progress:
        def progress(files: int, _size: int, all_files: int, _whole: int) -> None:
            if files < all_files and monotonic() > deadline:
                raise StillReading(table, files, all_files)

        return progress

    return observer

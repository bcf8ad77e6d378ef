"""The sensor of a base table: looks, marks, plans, and asks for what is due."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg
from pydantic import BaseModel, Field, ValidationError

from mv_assets.buckets import iso
from mv_assets.defs import checks, events
from mv_assets.defs.base_tables import missing_observations, newest_partition, width_of
from mv_assets.defs.deployment import Deployment
from mv_assets.defs.partitions import partitions_of
from mv_assets.defs.signs_of_life import Deadline
from mv_assets.defs.tick.claims import Claims, claims, unfinished
from mv_assets.defs.tick.lost_runs import living
from mv_assets.defs.tick.quiet import look_when_quiet
from mv_assets.defs.tick.reporting import BEGIN, Position, end_of, unreported, wipes
from mv_assets.defs.tick.requests import Asking, History, askings, chosen, free_of, request
from mv_assets.errors import MvError, StateError, StillReading
from mv_assets.observe import rewrites
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.plan import planner
from mv_assets.plan.planner import Plan
from mv_assets.run.executor import carry_out
from mv_assets.run.opened import OpenProject
from mv_assets.state import health
from mv_assets.state.health import Wrong
from mv_assets.state.rules import Due
from mv_assets.tables.errors import TableUnreadable
from mv_assets.tables.listing import Listing
from mv_assets.views.view import View

# Of the 60 s that Dagster gives a tick; a table with more to read is read on at the next one.
_READING_S = 35.0
# So many STALE buckets, the newest, are shown as out of date at a time.
_MOST_OBSERVED = 200
_MOST_LOGGED = 20
_SECOND = 1_000


class Memory(BaseModel):
    """What a sensor remembers between ticks: only what it told Dagster, all else is in the map.

    By view: up to where in the map Dagster knows everything, when the checks were made, the last wipe,
    whether it was a repair that was asked for last. By table: the data version of a dimension, and which
    files are broken. And when there is something to look for again.
    """

    reported: dict[str, tuple[int, int]] = Field(default_factory=dict, alias="told")
    checked: dict[str, str] = {}
    observed: dict[str, str] = {}
    broken: dict[str, str] = {}
    wiped: dict[str, float] = {}
    repaired: dict[str, bool] = {}
    rests_until: int = 0

    @classmethod
    def of(cls, cursor: str | None) -> Memory:
        """A cursor of another version can't be read, perhaps: that costs only that things are told twice."""
        try:
            return cls.model_validate_json(cursor or "{}")
        except ValidationError:
            return cls()


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
            cursor=self.memory.model_dump_json(by_alias=True),
        )


def table_sensor(
    deployment: Deployment, table: str, views: list[View], starts: dict[str, int], interval_s: int
) -> dg.SensorDefinition:
    """Watches a base table for all views that come from it, directly or through another view.

    It looks as often as they want. While something is left to be done for one of them, or others have changed
    their maps, it goes on at the usual pace.
    """
    usual = interval_s * _SECOND
    period = min(view.declared.every or usual for view in views)
    rest = period if period > usual else 0

    @dg.sensor(
        name=deployment.naming.of(f"watch_{table}"),
        asset_selection=dg.AssetSelection.assets(*deployment.by_key(views)),
        minimum_interval_seconds=min(usual, period) // _SECOND,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Looks at the files of {table} and asks for buckets that are new or no longer match.",
    )
    def watch(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with deployment.open(f"Dagster sensor watch_{table}") as project:
            return _Tick(context, deployment, project, views, starts).evaluate(rest).result()

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
        self._named = deployment.by_key(views)
        self._wipes = wipes(context.instance, self._named)

    def evaluate(self, rest: int) -> _TickResult:
        """Look, unless all was at rest at a look that is not that long ago."""
        memory, now = self._result.memory, self._deployment.now()
        # A clock that has been set back does not keep anybody from looking.
        if now < memory.rests_until <= now + rest and not self._has_moved():
            self._result.notes.append(f"all is at rest; looks again at {iso(memory.rests_until)}")
            return self._result
        found = self._look()
        rests = all(
            # What failed is tried again sooner.
            not isinstance(each, MvError) and each.at_rest and not each.wrong.failed
            for each in found.values()
        )
        memory.rests_until = now + rest if rests and not self._result.runs else 0
        return self._result

    def _has_moved(self) -> bool:
        """Whether maps are others than those that Dagster was told of."""
        try:
            known = self._project.store.summaries(self._views)
        except MvError:
            return True
        told = self._result.memory.reported
        return any(told.get(name) != end_of(each.header.version) for name, each in known.items())

    def _look(self) -> dict[str, Observed | MvError]:
        project, repository = self._project, self._context.repository_def
        # Dagster knows nothing of a table that it was never told of, though nothing has changed.
        new = self._to_observe() - self._result.memory.broken.keys()
        found = look_when_quiet(project.watch(Deadline(_READING_S)), self._views, whole=bool(new))
        now = self._deployment.now()
        runs = living(self._instance, repository, self._deployment, project, unfinished(self._instance), now)
        graph = None if repository is None else repository.asset_graph
        claimed = claims(self._instance, repository, graph, self._named, runs)
        for name, view in self._views.items():
            # Views of other tables that these read were looked at too; their own sensors see to them.
            observed = found[name]
            if isinstance(observed, StillReading):
                self._report_reading(view, observed)
            elif isinstance(observed, MvError):
                self._report_error(view, observed)
            else:
                self._go_on(view, observed, claimed)
        # What can't be told now is another then; nobody has to look at all of it each time for that.
        self._result.memory.broken = dict.fromkeys(new, "") | self._result.memory.broken
        return {name: found[name] for name in self._views}

    def _go_on(self, view: View, observed: Observed, claimed: Claims) -> None:
        try:
            if isinstance(observed, Observation):
                plan = planner.plan(observed)
                touched = [*self._revert(observed, plan), *self._ask(view, plan, claimed)]
                stale = health.stale(observed.snapshot)
                self._observe(view, observed, [*touched, *list(stale)[-_MOST_OBSERVED:]])
            else:
                stale = None
            self._report_map(view, observed, claimed, stale)
        except MvError as error:
            self._report_error(view, error)

    def _revert(self, observed: Observed, plan: Plan) -> list[int]:
        """Undo false alarms here and now."""
        done = carry_out(self._project, observed, plan.reverts)
        return [result.bucket for _, results in done for result in results]

    def _ask(self, view: View, plan: Plan, claimed: Claims) -> list[int]:
        """Ask for runs for what is due and nobody's yet."""
        now, start = self._deployment.now(), self._starts[view.name]
        is_free = free_of(view, start, now, claimed)
        room, memory = view.declared.max_runs - claimed.own.get(view.name, 0), self._result.memory
        if self._deployment.automated:
            room = 0
            if plan.work or plan.failing:
                self._note(view, "buckets are due; its automation condition asks for them")
        known = partitions_of(view.buckets, start)
        # Before they are chosen: what Dagster can't be asked for must not take the place of what it can.
        turns = askings(view, plan, is_free, appends_first=memory.repaired.get(view.name, False))
        candidates = (each for each in turns if self._has_partitions(known, each))
        asked, waiting = chosen(candidates, room, lambda asking: History.of(self._instance, asking), now)
        self._result.runs += [
            request(self._deployment.key_of(view.name), asking, history) for asking, history in asked
        ]
        for asking, _ in asked[-1:]:
            memory.repaired[view.name] = not asking.appends
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

    def _to_observe(self) -> set[str]:
        """The tables that the views read, but for those that assets of the user's own tell of."""
        read = {name for view in self._views.values() for name in view.declared.reads}
        return (read & self._project.tables.keys()) - self._deployment.produced_by.keys()

    def _has_other_broken(self, table: str, listing: Listing) -> bool:
        """Whether other files are broken than those that Dagster was told of, or it was told of none yet."""
        known, now = self._result.memory.broken.get(table), _digest(sorted(listing.broken))
        self._result.memory.broken[table] = now
        return known != now

    def _observe(self, view: View, observation: Observation, buckets: Sequence[int]) -> None:
        """Tell what the tables hold of buckets, where that is new: Dagster then shows what is out of date."""
        to_observe = self._to_observe()
        for name, listing in observation.view_inputs.dimensions.items():
            if name in to_observe:
                self._observe_dimension(name, listing)
        for window, listing in zip(view.windows, observation.view_inputs.listings, strict=True):
            name, width = window.table, width_of(self._deployment, window.table)
            if width is not None and name in to_observe:
                spans = [view.buckets.window(bucket, window.before, window.after) for bucket in buckets]
                now = self._deployment.now()
                newest = newest_partition(self._deployment, name, listing, self._starts, now)
                self._result.events += missing_observations(
                    self._instance,
                    self._deployment.key_of(name),
                    listing,
                    width,
                    spans,
                    newest if self._has_other_broken(name, listing) else (),
                )

    def _observe_dimension(self, name: str, listing: Listing) -> None:
        seen = events.observation(self._deployment.key_of(name), listing)
        version = (seen.tags or {})[events.DATA_VERSION]
        known = self._result.memory.observed.get(name)
        self._result.memory.observed[name] = version
        # Rows that were only put into other files are, to Dagster, the same.
        same = known == version or known in {events.version_of(each) for each in rewrites.earlier(listing)}
        if self._has_other_broken(name, listing) or not same:
            self._result.events.append(seen)

    def _report_map(
        self, view: View, observed: Observed, claimed: Claims, stale: Mapping[int, str] | None
    ) -> None:
        """Tell Dagster what the map has and it does not know, and what the checks have to say.

        What is STALE is known of a map that was read.
        """
        memory, header, wrong = self._result.memory, observed.header, observed.wrong
        fresh = checks.fresh(view, header, self._project.clock(), wrong.stalled)
        self._note_wrong(view, wrong)
        # Dagster counts a check only if it is younger than the asset: once a run has ended it is made again.
        shown = _digest(wrong.troubles, wrong.broken)
        overdue = isinstance(observed, Observation) and checks.is_overdue(
            observed.snapshot, self._project.clock()
        )
        event_key = f"{header.version} {view.name in claimed.windows} {fresh.passed} {overdue} {shown}"
        since, end = self._reported_through(view), end_of(header.version)
        if since > end:
            # Another state database than the one that was told of.
            since = BEGIN
        if isinstance(observed, Unchanged) and since == end and memory.checked.get(view.name) == event_key:
            return
        snapshot = (
            self._project.store.snapshot(view.name) if isinstance(observed, Unchanged) else observed.snapshot
        )
        found, memory.reported[view.name] = unreported(
            self._instance, self._deployment, view, snapshot, since, claimed, self._project.store
        )
        self._result.events += found
        overdue = checks.is_overdue(snapshot, self._project.clock())
        known = health.stale(snapshot) if stale is None else stale
        none_stale = checks.no_stale_buckets(view, known, overdue=overdue)
        verdicts = [checks.no_failed_buckets(view, wrong), none_stale, fresh]
        if self._report_checks(view, verdicts, event_key):
            for line in wrong.sentences(view.name, view.buckets)[:_MOST_LOGGED]:
                self._context.log.error(line)

    def _note_wrong(self, view: View, wrong: Wrong) -> None:
        """A tick that asks for nothing must not say that all is well."""
        found = wrong.sentences(view.name, view.buckets)
        self._result.notes += found[:1]
        self._result.notes += [f"and {len(found) - 1} more of {view.name}"] if len(found) > 1 else []

    def _reported_through(self, view: View) -> Position:
        """Up to where Dagster was told of a view, unless a person had it forget the asset since."""
        memory, wiped = self._result.memory, self._wipes.get(view.name)
        if wiped is None:
            return BEGIN
        if wiped != memory.wiped.get(view.name, 0.0):
            memory.wiped[view.name] = wiped
            memory.checked.pop(view.name, None)
            return BEGIN
        return memory.reported.get(view.name, BEGIN)

    def _report_checks(self, view: View, verdicts: Iterable[checks.Verdict], event_key: str) -> bool:
        """Only once for one event key: a check that says the same every tick is no longer read."""
        if self._result.memory.checked.get(view.name) == event_key:
            return False
        self._result.memory.checked[view.name] = event_key
        self._result.events += [
            verdict.evaluation(self._deployment.key_of(view.name)) for verdict in verdicts
        ]
        return True

    def _report_reading(self, view: View, reading: StillReading) -> None:
        self._note(view, str(reading))
        late = self._late(view)
        if late is not None:
            self._report_checks(view, [late], "late while its table is read")

    def _report_error(self, view: View, error: MvError) -> None:
        if isinstance(error, TableUnreadable) and error.is_absent and self._is_new(view):
            self._note(view, f"waits for table {error.about}, which is not there yet")
            return
        self._context.log.error("%s: %s", view.name, error)
        self._note(view, str(error))
        # A state that does not answer is not asked once more.
        late = None if isinstance(error, StateError) else self._late(view)
        unusable = checks.no_failed_buckets(view, Wrong(error))
        verdicts = [unusable] if late is None else [unusable, late]
        self._report_checks(view, verdicts, f"{error.code} {error.about} {late is not None}")

    def _is_new(self, view: View) -> bool:
        """Whether nothing of it was computed yet: what was read once and is gone is no table to wait for."""
        known = self._project.store.summaries([view.name]).get(view.name)
        return known is None or not self._project.store.snapshot(view.name).rows

    def _late(self, view: View) -> checks.Verdict | None:
        """That a view which can't be looked at now is late meanwhile; that it is not can't be told."""
        try:
            summary = self._project.store.summaries([view.name]).get(view.name)
            found = (
                None if summary is None else checks.fresh(view, summary.header, self._project.clock(), None)
            )
        except MvError:
            return None
        return None if found is None or found.passed else found

    def _note(self, view: View, what: str) -> None:
        self._result.notes.append(f"{view.name}: {what}")


def _digest(*what: object) -> str:
    """Names it in few characters: it goes into a cursor, and thousands of files may be broken."""
    return hashlib.blake2b(repr(what).encode(), digest_size=8).hexdigest()

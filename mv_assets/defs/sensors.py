"""The sensor of a base table: looks, marks, plans, and asks for what is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import dagster as dg

from mv_assets.buckets import Buckets
from mv_assets.defs import checks, events
from mv_assets.defs.base_tables import width_of
from mv_assets.defs.cursor import Memory
from mv_assets.defs.dead import end_dead_runs
from mv_assets.defs.deployment import Deployment
from mv_assets.defs.partitions import partitions_of
from mv_assets.defs.projection import untold
from mv_assets.defs.requests import MOST_RUNS, Asking, askings, attempt_of, history_of, request
from mv_assets.defs.taken import Taken, taken
from mv_assets.errors import MvError, StillReading
from mv_assets.refresh.executor import carry_out
from mv_assets.refresh.maps import Recorded
from mv_assets.refresh.place import Place
from mv_assets.refresh.watch import Outlook, Watch
from mv_assets.state.rules import Due
from mv_assets.tables.listing import Progress
from mv_assets.views.view import View

# Of the 60 s that Dagster gives a tick; a table with more to read is read on at the next one.
_READING_S = 35.0


@dataclass(slots=True)
class Tick:
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
        with deployment.place(f"Dagster sensor watch_{table}") as place:
            return Watching(context, place, views, starts, _width(deployment, table)).tick().result()

    return watch


def _width(deployment: Deployment, table: str) -> Buckets:
    width = width_of(deployment, table)
    if width is None:
        raise ValueError(f"{table} is no base table")
    return width


class Watching:
    """One tick. What goes wrong with one view is said of that view, and costs the others nothing."""

    def __init__(
        self,
        context: dg.SensorEvaluationContext,
        place: Place,
        views: list[View],
        starts: dict[str, int],
        width: Buckets,
    ) -> None:
        self._context = context
        self._place = place
        self._views = {view.name: view for view in views}
        self._starts = starts
        self._width = width
        self._tick = Tick(Memory.of(context.cursor))

    def tick(self) -> Tick:
        place, instance = self._place, self._context.instance
        maps = Recorded(place.store, place.manager)
        watch = Watch(place.catalog, place.tables, maps, place.clock, _within(_READING_S))
        outlooks = watch.round(self._views)
        dead = end_dead_runs(instance, place, self._views.values())
        claimed = taken(instance, self._context.repository_def, self._views.values(), dead)
        for name, outlook in outlooks.items():
            view = self._views[name]
            if isinstance(outlook, StillReading):
                self._note(view, str(outlook))
            elif isinstance(outlook, MvError):
                self._say(view, outlook)
            else:
                self._go_on(view, outlook, claimed)
        return self._tick

    def _go_on(self, view: View, outlook: Outlook, claimed: Taken) -> None:
        try:
            self._ask(view, outlook, claimed)
            self._tell(view, outlook, claimed)
        except MvError as error:
            self._say(view, error)

    def _say(self, view: View, error: MvError) -> None:
        self._context.log.error("%s: %s", view.name, error)
        self._note(view, str(error))
        self._tell_checks(view, [checks.unusable(error)], str(error))

    def _ask(self, view: View, outlook: Outlook, claimed: Taken) -> None:
        """Undo false alarms here and now, and ask for runs for the rest."""
        news = outlook.news
        if news is None:
            return
        plan = outlook.plan(MOST_RUNS * 4)
        reverts = tuple(work for work in plan.work if work.operation is Due.REVERT)
        for _ in carry_out(self._place, outlook, replace(plan, work=reverts, failing=())):
            pass
        now, history, asked = self._place.clock(), history_of(self._context.instance), list[Asking]()
        for asking in askings(view, plan, claimed, self._starts[view.name], now):
            attempt, span = attempt_of(history(asking), now), view.buckets.span(asking.buckets)
            if not self._has_partitions(view, asking):
                self._note(view, f"{span} is no partition of Dagster's; use `mv-assets refresh`")
                continue
            if attempt is None:
                self._note(view, f"{span} waits, as the last run for it ended without effect")
                continue
            self._tick.runs.append(request(asking, attempt))
            asked.append(asking)
        self._observe(view, outlook, asked)

    def _has_partitions(self, view: View, asking: Asking) -> bool:
        """Dagster refuses a whole tick for one key that it does not know."""
        known = partitions_of(view.buckets, self._starts[view.name])
        ends = (asking.buckets[0], asking.buckets[-1])
        return all(known.has_partition_key(view.buckets.key(bucket)) for bucket in ends)

    def _note(self, view: View, what: str) -> None:
        self._tick.notes.append(f"{view.name}: {what}")

    def _observe(self, view: View, outlook: Outlook, asked: Iterable[Asking]) -> None:
        """Tell what the tables hold now where a run was asked for: Dagster then shows what is out of date."""
        news = outlook.news
        buckets = [bucket for asking in asked for bucket in asking.buckets]
        if news is None or not buckets:
            return
        for listing in news.sights.dimensions.values():
            told = events.observation(listing)
            if self._tick.memory.observed.get(listing.table) != told.tags["dagster/data_version"]:
                self._tick.memory.observed[listing.table] = told.tags["dagster/data_version"]
                self._tick.events.append(told)
        if view.declared.base in self._place.tables:
            parts = {
                part
                for stretch in view.buckets.stretches(buckets)
                for part in self._width.between(stretch[0], view.buckets.next(stretch[-1]))
            }
            self._tick.events += events.observations(news.sights.base, self._width, parts)

    def _tell(self, view: View, outlook: Outlook, claimed: Taken) -> None:
        """Tell Dagster what the map has and it does not know, and what the checks have to say."""
        memory, header = self._tick.memory, outlook.header
        fresh = checks.fresh(view, header, self._place.clock())
        # Dagster counts a check only if it is younger than the asset: once a run has ended it is made again.
        occasion = f"{header.version} {view.name in claimed.windows} {fresh.passed}"
        since, checked = memory.told.get(view.name, 0), memory.checked.get(view.name)
        if outlook.news is None and since >= header.version and checked == occasion:
            return
        snapshot = self._place.store.snapshot(view.name) if outlook.news is None else outlook.news.snapshot
        found, memory.told[view.name] = untold(self._context.instance, view, snapshot, since, claimed)
        self._tick.events += found
        verdicts = [checks.no_failed_buckets(view, snapshot), checks.no_stale_buckets(view, snapshot), fresh]
        self._tell_checks(view, verdicts, occasion)

    def _tell_checks(self, view: View, verdicts: Iterable[checks.Verdict], occasion: str) -> None:
        """Only on occasion: a check that says the same every tick is no longer read."""
        if self._tick.memory.checked.get(view.name) != occasion:
            self._tick.memory.checked[view.name] = occasion
            self._tick.events += [verdict.evaluation(view) for verdict in verdicts]


def _within(seconds: float, monotonic: Callable[[], float] = time.monotonic) -> Callable[[str], Progress]:
    """An observer that ends a look which takes too long; what it has read is in the inventory."""
    deadline = monotonic() + seconds

    def observer(table: str) -> Progress:
        def progress(files: int, _size: int, all_files: int, _whole: int) -> None:
            if files < all_files and monotonic() > deadline:
                raise StillReading(table, files, all_files)

        return progress

    return observer

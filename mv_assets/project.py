"""The facade: a project opened, with one method a command.

The command line, Dagster's jobs and checks, `mv_assets.sql` and notebooks call it. Only a tick of a sensor
and the two steps of a run in Dagster look and plan by themselves.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mv_assets.clock import clock
from mv_assets.config import read
from mv_assets.errors import MvError, Refused, StateError
from mv_assets.parts import Clock, Parts
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.state import health
from mv_assets.state.errors import NotInForce, UnknownView
from mv_assets.state.model import Doing, Snapshot
from mv_assets.state.publications import Publications
from mv_assets.state.registry import Registry
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store
from mv_assets.views.catalog import Catalog, prepare
from mv_assets.views.view import View

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mv_assets.publish.publisher import PublishedView
    from mv_assets.query.execute.answer import Answer
    from mv_assets.query.execute.served import Served
    from mv_assets.reports.advice import Advised
    from mv_assets.reports.audit import Audited
    from mv_assets.reports.explanation import Explanation
    from mv_assets.reports.metrics import Metrics
    from mv_assets.reports.plan import Plans
    from mv_assets.reports.publication import Forgotten, Published
    from mv_assets.reports.refresh import Refreshed
    from mv_assets.reports.status import Status, ViewStatus
    from mv_assets.reports.upkeep import Adopted, Dropped, GarbageCollected, Marked
    from mv_assets.run.opened import OpenProject
    from mv_assets.spark.session import Start

# One bucket, or the first and the last of a range, by their keys; None for the whole view.
Keys = str | tuple[str, str] | None


class Project:
    """A project file's tables and views, their state and their Spark.

    Everything is opened when it is first needed, and closed with the project:

        with Project.open("project.yaml") as project:
            print(project.plan())
            project.refresh("trips_hourly")
    """

    def __init__(
        self,
        catalog: Callable[..., Catalog],
        *,
        who: str,
        start: Start | None = None,
        own: Start | None = None,
        progress: Progress = NO_PROGRESS,
        machine: Clock = clock,
        shared: Callable[[Store], Clock] = SharedClock,
    ) -> None:
        """Use `open`, unless the views are declared in Python.

        Args:
            catalog: gives the catalog; with `schemas`, held against the tables that views of `only` read.
            who: who is named in the event log.
            start: gives a Spark that is somebody else's, in place of one that is started as declared.
            own: starts one, in place of how it is done by default.
            progress: is told what happens.
            machine: the clock by which files are dated.
            shared: makes the clock of the maps.

        """
        self._parts = Parts(
            catalog, who=who, start=start, own=own, progress=progress, machine=machine, shared=shared
        )
        self.progress = progress

    @classmethod
    def open(
        cls,
        file: str | os.PathLike[str] | None = None,
        *,
        spark: SparkSession | None = None,
        who: str | None = None,
        progress: Progress = NO_PROGRESS,
    ) -> Project:
        """The project that a file declares; by default the one that MV_ASSETS_PROJECT names.

        It is the file as it is now. Once it is edited, open it anew.

        Args:
            file: the project file.
            spark: a session to compute in, which stays open; by default Spark is started as declared.
            who: who is named in the event log; by default you.
            progress: is told what happens.

        Raises:
            Refused: no project is named.
            ProjectError: with every mistake in the file.

        """
        draft = read(file_named(file))

        def catalog(**how: Any) -> Catalog:
            # The file as it was then: what is declared must not change between two methods.
            return prepare(replace(draft, mistakes=list(draft.mistakes)), **how)

        project = cls(
            catalog,
            who=who or f"{user()} with Python",
            start=None if spark is None else _borrowed(spark),
            progress=progress,
        )
        # Mistakes are said at once, not by the first command.
        _ = project.catalog
        return project

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        *,
        who: str,
        start: Start | None = None,
        progress: Progress = NO_PROGRESS,
        machine: Clock = clock,
        shared: Callable[[Store], Clock] = SharedClock,
    ) -> Project:
        """The project that a catalog is of, already held against its tables or never to be."""
        return cls(
            lambda **_asked: catalog,
            who=who,
            start=start,
            progress=progress,
            machine=machine,
            shared=shared,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened, and stop Spark if it was started here. It can't be used after that."""
        self._parts.close()

    def close_state(self) -> None:
        """Close the connections to the state that nobody uses; a query that is under way keeps its own."""
        self._parts.close_state()

    @property
    def catalog(self) -> Catalog:
        """The tables as declared, and the views."""
        return self._parts.catalog

    @property
    def store(self) -> Store:
        """The state database, made if need be."""
        return self._parts.store

    @property
    def opened(self) -> OpenProject:
        """The project's tables, state, warehouse and Spark, for work that is done step by step."""
        return self._parts.opened

    @property
    def views(self) -> list[str]:
        """The names of the views, each after the one it is based on."""
        return list(self.catalog.views)

    def check_stores(self) -> None:
        """See that Spark reaches every object store of the project; without one, Spark is not started.

        Raises:
            StoreUnavailable: it can't reach one, with what to do.

        """
        from mv_assets.spark.stores import is_store, see_reached

        declared = self.catalog.project
        places = {f"table {table.name}": (table.path, table.storage) for table in declared.tables}
        places["the warehouse"] = (declared.warehouse.path, declared.warehouse.storage)
        if any(is_store(path) for path, _ in places.values()):
            with self._parts.spark(self.catalog).session() as spark:
                for what, (path, storage) in places.items():
                    see_reached(spark, what, path, storage)

    def status(self, *views: str) -> Status:
        """What of each view can be trusted, from the state alone."""
        from mv_assets.reports.status import Status

        asked = [self.catalog.view(name) for name in _names(views) or self.catalog.views]
        store, now = self._parts.existing_store, self._parts.now()
        return Status(tuple(self._status(store, view, now) for view in asked), now)

    def metrics(self, *views: str) -> Metrics:
        """What monitoring asks of the views, from the state alone; also of one that can't be read now."""
        from mv_assets.reports.metrics import Metrics

        asked = [self.catalog.view(name).name for name in _names(views) or self.catalog.views]
        try:
            status, store = self.status(*asked), self._parts.existing_store
            counters = {name: {} if store is None else store.counters(name) for name in asked}
        except StateError as error:
            return Metrics(None, error=error)
        return Metrics(status, counters)

    def coverage(self, *views: str) -> dict[str, int]:
        """Where each view begins, as a look would find it now; nothing is written."""
        watch = self._parts.imagining(self.catalog)
        observed = watch.round(_names(views))
        return {
            name: watch.map_of(name).header.start
            for name, each in observed.items()
            if not isinstance(each, MvError)
        }

    def plan(self, *views: str) -> Plans:
        """What a refresh would do, why, and how many bytes it would read. Nothing is written."""
        from mv_assets.plan.downstream import following
        from mv_assets.reports.plan import Plans, ViewPlan

        catalog = self._parts.checked(_names(views))
        asked = [catalog.view(name).name for name in views or catalog.views]
        watch = self._parts.imagining(catalog)
        observed = watch.round(asked, whole=True)
        follows = following(catalog, watch, observed)
        made = {
            name: ViewPlan.of(catalog.view(name), each, follows.get(name)) for name, each in observed.items()
        }
        # What is wrong with a view that others are based on is in their way as well.
        shown = [*asked, *(name for name in made if made[name].wrong and name not in asked)]
        return Plans(tuple(made[name] for name in shown))

    def explain(self, view: str, bucket: str) -> Explanation:
        """Why a bucket is what it is: its files then and now, its last events and errors."""
        from mv_assets.reports.explanation import explained

        catalog = self._parts.checked([view])
        start = catalog.view(view).buckets.parse(bucket)
        observed = self._parts.imagining(catalog).round([view], whole=True)
        return explained(self._parts.existing_store, view, start, observed)

    def query(
        self,
        sql: str,
        *,
        freshness: str = "strict",
        max_staleness: str | timedelta | None = None,
        session: SparkSession | None = None,
    ) -> Answer:
        """Answer a SELECT over the tables and views: the rows that the base tables give, as fresh as asked.

        Args:
            sql: one SELECT, in Spark SQL, over the tables and views by their plain names.
            freshness: strict, bounded, off or stored.
            max_staleness: for `bounded`, in place of what the views declare.
            session: where to compute it; by default a session of its own.

        """
        from mv_assets.query.execute.answer import Question

        return self._parts.answers.answer(Question.of(sql, freshness, max_staleness), session)

    def explain_query(
        self, sql: str, *, freshness: str = "strict", max_staleness: str | timedelta | None = None
    ) -> Served:
        """What the rows of a query would come from, and why."""
        from mv_assets.query.execute.answer import Question

        return self._parts.answers.explain(Question.of(sql, freshness, max_staleness))

    def advise(self, sql: str) -> Advised:
        """The view that would answer a query: the smallest change of one, or a new one, else why not."""
        from mv_assets.query.advise.advise import advise
        from mv_assets.reports.advice import Advised

        self._parts.refuse_closed()
        return Advised(advise(self.opened, sql))

    def refresh(
        self,
        *views: str,
        buckets: Keys = None,
        force: bool = False,
        extend: bool = False,
        max_bytes: int | None = None,
    ) -> Refreshed:
        """Compute what is missing or STALE: of all views, or of some and those they are based on.

        Args:
            views: the views; all by default.
            buckets: of one view, a bucket by its key, 2024-01-31 or 2024-01-31T15:00, due or not; or the
                first and the last of a range.
            force: compute again what is VALID, too.
            extend: let the view cover buckets before its start.
            max_bytes: read no more than that of the base tables.

        """
        from mv_assets.buckets import iso
        from mv_assets.plan.scope import Scope, named, prepare
        from mv_assets.reports.refresh import Refreshed
        from mv_assets.run.refresher import Refresher

        catalog = self._parts.checked(_names(views))
        names = [catalog.view(name).name for name in views or catalog.views]
        if max_bytes is not None and max_bytes < 0:
            raise Refused("max_bytes is how much may be read, 0 or more")
        if (buckets is not None or extend) and len(views) != 1:
            raise Refused("buckets, or more coverage, are asked for of one view: name it")
        now = self._parts.machine()
        asked = {name: named(catalog.view(name), buckets, now, extend=extend) for name in names}
        project = self._parts.open(catalog)
        if force:
            # What a person forces is STALE until it is computed: see first that it can be.
            project.engine.check()
        for name, wanted in asked.items():
            prepare(
                project.manager, project.store, catalog.view(name), wanted, now, force=force, extend=extend
            )
        scope = Scope.of(catalog.view(names[0]), asked[names[0]], max_bytes) if names else None
        reports = Refresher(project, scope, progress=self.progress).run(names)
        published = self._publish_after(report.view.name for report in reports)
        for report in reports:
            # As it was at the last look; what keeps it from being published now is said by itself.
            report.found = report.found.without(Doing.PUBLISH)
        known = project.store.summaries(catalog.views)
        watermarks = {name: iso(summary.header.watermark) for name, summary in known.items()}
        return Refreshed(tuple(reports), tuple(names), watermarks, published)

    def mark(
        self,
        view: str,
        *,
        buckets: Keys = None,
        extend: bool = False,
        reason: str = "marked by hand",
    ) -> Marked:
        """Mark a whole view, a range or one bucket STALE: it is computed again, changed or not."""
        from mv_assets.plan.scope import named, uncovered
        from mv_assets.reports.upkeep import Marked

        found, now = self.catalog.view(view), self._parts.machine()
        wanted = named(found, buckets, now, extend=extend)
        store, manager = self.store, self._parts.manager
        if view in store.views() and found.definition not in store.history(view):
            # A mark is no place to take over a view, and all its buckets, by the way.
            raise NotInForce(view, found.definition, store.summary(view).header.definition)
        before = uncovered(manager, found, wanted or (), now, extend=extend)
        marked = tuple(manager.force(found.declaration, wanted, reason, extend=bool(before)))
        return Marked(found, marked, self._publish_after([view]))

    def audit(self, view: str, *, sample: int | None = 10) -> Audited:
        """Compute stored buckets once more and compare; what is wrong is STALE afterwards.

        Args:
            view: the view.
            sample: how many buckets, the newest and others by chance; None for all.

        """
        from mv_assets.maintain.audit import audit
        from mv_assets.observe.observation import Observed
        from mv_assets.reports.audit import Audited

        if sample is not None and sample < 1:
            raise Refused("sample is how many buckets to audit, 1 or more; None for all")
        catalog = self._parts.checked([view])
        found, observed = catalog.view(view), list[Observed]()
        findings = audit(
            self._parts.open(catalog), found, sample, progress=self.progress, looked=observed.append
        )
        wrong = observed[-1].wrong.without(Doing.PUBLISH) if observed else health.Wrong()
        return Audited(found, tuple(findings), wrong, self._publish_after([view]))

    def gc(self, *views: str, dry_run: bool = False) -> GarbageCollected:
        """Delete view data that no bucket and no reader needs, and rewrite data that is mostly dead.

        Of the named views; by default of all, including those no longer in the project.
        """
        from mv_assets.reports.upkeep import GarbageCollected

        known = self._parts.known(*_names(views))
        asked = [name for name in known if not views or name in views]
        if not asked:
            # Where nothing is known, no state is made to say so.
            return GarbageCollected((), dry_run)
        if dry_run:
            return GarbageCollected(tuple(map(self._parts.garbage.would, asked)), dry_run)
        # What somebody did with a table is mended before what it should show no more is deleted. Of what
        # nobody declares any more, that is no longer ours to mend.
        looked = self._publish_after((name for name in asked if name in self.catalog.views), look=True)
        published = {each.view: each for each in looked}
        for each in self._expire(asked):
            published.setdefault(each.view, each)
        reports = tuple(map(self._parts.garbage.gc, asked))
        failed = {name for name, each in published.items() if each.error is not None}
        for each in self._publish_after(name for name in asked if name not in failed):
            is_new = each.is_new or (each.view in published and published[each.view].is_new)
            published[each.view] = replace(each, is_new=is_new)
        return GarbageCollected(reports, dry_run, tuple(published.values()))

    def drop(
        self,
        view: str,
        *,
        with_dependants: bool = False,
        reason: str = "dropped by hand",
        confirm: Callable[[Sequence[Snapshot]], None] = lambda _maps: None,
    ) -> Dropped:
        """Forget a view's buckets and delete its data; a refresh computes it all again.

        Args:
            view: the view, declared or only known to the state.
            with_dependants: drop the views that are based on it, too.
            reason: for the event log.
            confirm: is shown the maps that are about to go, and may raise.

        """
        from mv_assets.maintain.garbage import GcReport
        from mv_assets.plan.scope import to_drop
        from mv_assets.reports.upkeep import Dropped, DroppedView

        names = to_drop(self.catalog, view, with_dependants=with_dependants)
        known = self._parts.known(view)
        maps = {name: self.store.snapshot(name) for name in names if name in known}
        if maps:
            confirm(list(maps.values()))
            dropped, *dependants = maps
            self._parts.manager.drop(dropped, reason, dependants=dependants)
        withdrawn = {name: self._parts.publisher.withdraw(name) for name in maps}
        return Dropped(
            tuple(
                DroppedView(
                    name,
                    len(maps[name].rows),
                    self._parts.garbage.collect(name),
                    self._parts.garbage.held(name),
                    withdrawn[name],
                )
                if name in maps
                else DroppedView(name, 0, GcReport(name), GcReport(name))
                for name in names
            )
        )

    def adopt(self, view: str, definition: str | None = None) -> Adopted:
        """Put an earlier definition of a view in force again; by default the one this project declares."""
        from mv_assets.reports.upkeep import Adopted

        wanted = definition or self.catalog.view(view).definition
        if self._parts.existing_store is None:
            raise UnknownView(view)
        adopted = self._parts.manager.adopt(view, wanted).definition
        return Adopted(view, adopted, self._publish_after([view]))

    def publish(self, *views: str) -> Published:
        """Show views as tables to other tools: what is missing there, of all views or of some.

        What a target shows is looked at; what somebody else has written there is replaced.
        """
        from mv_assets.reports.publication import Published

        names = [self.catalog.view(name).name for name in _names(views) or self.catalog.views]
        nowhere = [name for name in names if self.catalog.target(name) is None]
        if views and nowhere:
            raise Refused(f"view {nowhere[0]} is published nowhere; say where with `publish:` in the project")
        if self._parts.existing_store is None or len(nowhere) == len(names):
            return Published(())
        return Published(tuple(self._parts.publisher.publish(names, look=True)))

    def forget_published(self, *views: str) -> Forgotten:
        """Give up what is kept for readers of tables that the project no longer names."""
        from mv_assets.reports.publication import Forgotten

        known = self._parts.known(*_names(views))
        asked = [name for name in _names(views) or known if name in known]
        return Forgotten({name: tuple(self._parts.publisher.forget(name)) for name in asked})

    def _status(self, store: Store | None, view: View, now: int) -> ViewStatus:
        from mv_assets.publish.names import name_of
        from mv_assets.reports.status import ViewStatus

        target = self.catalog.target(view.name)
        publishes = target is not None
        if store is None:
            return ViewStatus(view, publishes=publishes)
        try:
            # Before the map: an attempt that ends in between is then seen by what it committed.
            alive = Registry(store).alive(view.name)
            snapshot, found = view.kept_in(store, now)
        except UnknownView:
            return ViewStatus(view, publishes=publishes)
        named = None if target is None else name_of(target, view.name)
        known = Publications(store).of(view.name)
        published = tuple(each for each in known if each.target == named)
        left = tuple(each for each in known if each.target != named)
        computing = health.computing(snapshot, alive)
        return ViewStatus(view, snapshot, found, computing, publishes, published, left)

    def publish_behind(self, enough: Callable[[], bool] = lambda: False) -> list[PublishedView]:
        """Publish views whose maps have changed since they were, until it is `enough` for now."""
        if self._parts.existing_store is None:
            return []
        return self._parts.publisher.publish(self._parts.publisher.behind(), enough=enough)

    def _publish_after(self, views: Iterable[str], *, look: bool = False) -> tuple[PublishedView, ...]:
        """Show what a command has changed."""
        asked = [name for name in views if self.catalog.target(name) is not None]
        return tuple(self._parts.publisher.publish(asked, look=look)) if asked else ()

    def _expire(self, views: Iterable[str]) -> tuple[PublishedView, ...]:
        """Give up what no reader should still hold; where that failed, why."""
        known = {publication.view for publication in Publications(self.store).all()}
        asked = [name for name in views if name in known]
        return tuple(self._parts.publisher.expire(asked)) if asked else ()


def file_named(file: str | os.PathLike[str] | None) -> Path:
    """A project file, by its name or by MV_ASSETS_PROJECT.

    Raises:
        Refused: neither names one.

    """
    named = file if file is not None else os.environ.get("MV_ASSETS_PROJECT")
    if not named:
        raise Refused("no project was named; give its file, or set MV_ASSETS_PROJECT to it")
    return Path(named).absolute()


def _names(views: Sequence[str]) -> tuple[str, ...]:
    if not all(isinstance(name, str) for name in views):
        raise Refused("views are named one by one, as in refresh('a', 'b')")
    return tuple(views)


def user() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that nobody has given a name.
        return f"user {os.getuid()}"


def _borrowed(spark: SparkSession) -> Start:
    from mv_assets.spark.session import borrowed

    return borrowed(spark)

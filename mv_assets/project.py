"""The facade: a project opened, with one method a command.

The command line, Dagster's jobs and checks, `mv_assets.sql` and notebooks call it. Only a tick of a sensor
and the two steps of a run in Dagster look and plan by themselves.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mv_assets.clock import clock
from mv_assets.config import read
from mv_assets.errors import MvError, ProjectClosed, Refused, StateError
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.state import health
from mv_assets.state.errors import NoState, NotInForce, UnknownView
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Doing, Segment, Snapshot
from mv_assets.state.publications import Publications
from mv_assets.state.registry import Registry
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store, open_state
from mv_assets.views.catalog import Catalog, prepare
from mv_assets.views.errors import NotDeclared
from mv_assets.views.view import View

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mv_assets.config import Spark
    from mv_assets.maintain.garbage import Garbage
    from mv_assets.observe.difference import Difference
    from mv_assets.observe.observation import Observation
    from mv_assets.observe.watch import ImaginedWatch
    from mv_assets.publish.publisher import PublishedView, Publisher
    from mv_assets.query.execute.answer import Answer, Answers
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
    from mv_assets.spark.session import Engine, Start

_MOST_EVENTS = 10
Clock = Callable[[], int]
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
        self._load = catalog
        self._who = who
        self._start = start
        self._own = own
        self.progress = progress
        self._machine = machine
        self._shared = shared
        self._closed = False
        # Queries may be asked from several threads, and the first of them opens.
        self._opening = RLock()
        self._catalog: Catalog | None = None
        self._store: Store | None = None
        self._engine: Engine | None = None
        self._opened: OpenProject | None = None
        self._kept_answers: Answers | None = None

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
        project._catalog = project._load(schemas=False)
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
        self._closed = True
        try:
            if self._engine is not None:
                self._engine.stop() if self._start is None else self._engine.close()
        finally:
            self.close_state()

    def close_state(self) -> None:
        """Close the connections to the state that nobody uses; a query that is under way keeps its own."""
        if self._store is not None:
            self._store.close()

    @property
    def catalog(self) -> Catalog:
        """The tables as declared, and the views."""
        self._refuse_closed()
        if self._catalog is None:
            self._catalog = self._load(schemas=False)
        return self._catalog

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
            with self._spark(self.catalog).session() as spark:
                for what, (path, storage) in places.items():
                    see_reached(spark, what, path, storage)

    def status(self, *views: str) -> Status:
        """What of each view can be trusted, from the state alone."""
        from mv_assets.reports.status import Status

        asked = [self.catalog.view(name) for name in _names(views) or self.catalog.views]
        store = self._existing_store()
        now = (self._machine if store is None else self._shared(store))()
        return Status(tuple(self._status(store, view, now) for view in asked), now)

    def metrics(self, *views: str) -> Metrics:
        """What monitoring asks of the views, from the state alone; also of one that can't be read now."""
        from mv_assets.reports.metrics import Metrics

        asked = [self.catalog.view(name).name for name in _names(views) or self.catalog.views]
        try:
            status, store = self.status(*asked), self._existing_store()
            counters = {name: {} if store is None else store.counters(name) for name in asked}
        except StateError as error:
            return Metrics(None, error=error)
        return Metrics(status, counters)

    def coverage(self, *views: str) -> dict[str, int]:
        """Where each view begins, as a look would find it now; nothing is written."""
        watch = self._imagining(self.catalog)
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

        catalog = self._checked(views)
        asked = [catalog.view(name).name for name in views or catalog.views]
        watch = self._imagining(catalog)
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
        from mv_assets.observe.difference import difference
        from mv_assets.observe.observation import Observation
        from mv_assets.plan import planner
        from mv_assets.reports.explanation import Explanation

        catalog = self._checked([view])
        start = catalog.view(view).buckets.parse(bucket)
        looked_at = self._imagining(catalog).round([view], whole=True)
        observed = looked_at.pop(view)
        if isinstance(observed, MvError):
            raise observed
        if not isinstance(observed, Observation):
            raise AssertionError("a whole look looks at everything")  # noqa: TRY004 - none of the caller's
        store = self._existing_store()
        known = store if store is not None and view in store.views() else None
        recorded = () if known is None else known.recorded(view, [start]).get(start, ())
        followed = observed.view_inputs.follow(observed.buckets, {start: recorded}).get(start)
        there = recorded if followed is None else followed.segments
        changes = [] if known is None else known.events(view, start, 1, only_changes=True)
        return Explanation(
            observed.view,
            observed.snapshot,
            start,
            recorded,
            difference(recorded, there),
            _change(observed, start, there),
            () if known is None else tuple(known.events(view, start, _MOST_EVENTS)),
            changes[0].at if changes else None,
            planner.plan(observed),
            planner.not_due(observed, start),
            "segment" if looked_at else "file",
            observed.wrong,
            tuple(
                line
                for each in looked_at.values()
                if not isinstance(each, MvError)
                for line in each.wrong.sentences(each.view.name, each.view.buckets)
            ),
        )

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

        return self._answers.answer(Question.of(sql, freshness, max_staleness), session)

    def explain_query(
        self, sql: str, *, freshness: str = "strict", max_staleness: str | timedelta | None = None
    ) -> Served:
        """What the rows of a query would come from, and why."""
        from mv_assets.query.execute.answer import Question

        return self._answers.explain(Question.of(sql, freshness, max_staleness))

    def advise(self, sql: str) -> Advised:
        """The view that would answer a query: the smallest change of one, or a new one, else why not."""
        from mv_assets.query.advise.advise import advise
        from mv_assets.reports.advice import Advised

        self._refuse_closed()
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

        catalog = self._checked(views)
        names = [catalog.view(name).name for name in views or catalog.views]
        if max_bytes is not None and max_bytes < 0:
            raise Refused("max_bytes is how much may be read, 0 or more")
        if (buckets is not None or extend) and len(views) != 1:
            raise Refused("buckets, or more coverage, are asked for of one view: name it")
        now = self._machine()
        asked = {name: named(catalog.view(name), buckets, now, extend=extend) for name in names}
        project = self._open(catalog)
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

        found, now = self.catalog.view(view), self._machine()
        wanted = named(found, buckets, now, extend=extend)
        store, manager = self.store, self._manager
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
        catalog = self._checked([view])
        found, observed = catalog.view(view), list[Observed]()
        findings = audit(self._open(catalog), found, sample, progress=self.progress, looked=observed.append)
        wrong = observed[-1].wrong.without(Doing.PUBLISH) if observed else health.Wrong()
        return Audited(found, tuple(findings), wrong, self._publish_after([view]))

    def gc(self, *views: str, dry_run: bool = False) -> GarbageCollected:
        """Delete view data that no bucket and no reader needs, and rewrite data that is mostly dead.

        Of the named views; by default of all, including those no longer in the project.
        """
        from mv_assets.reports.upkeep import GarbageCollected

        known = self._known(*_names(views))
        asked = [name for name in known if not views or name in views]
        if not asked:
            # Where nothing is known, no state is made to say so.
            return GarbageCollected((), dry_run)
        if dry_run:
            return GarbageCollected(tuple(map(self._garbage.would, asked)), dry_run)
        expired = self._expire(asked)
        reports = tuple(map(self._garbage.gc, asked))
        failed = {each.view for each in expired}
        fine = [name for name in asked if name not in failed]
        # Of what nobody declares any more, what somebody did with its table is no longer ours to mend.
        looked = self._publish_after((name for name in fine if name in self.catalog.views), look=True)
        others = self._publish_after(name for name in fine if name not in self.catalog.views)
        return GarbageCollected(reports, dry_run, (*expired, *looked, *others))

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
        known = self._known(view)
        maps = {name: self.store.snapshot(name) for name in names if name in known}
        if maps:
            confirm(list(maps.values()))
            dropped, *dependants = maps
            self._manager.drop(dropped, reason, dependants=dependants)
        withdrawn = {name: self._publisher.withdraw(name) for name in maps}
        return Dropped(
            tuple(
                DroppedView(
                    name,
                    len(maps[name].rows),
                    self._garbage.collect(name),
                    self._garbage.held(name),
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
        if self._existing_store() is None:
            raise UnknownView(view)
        adopted = self._manager.adopt(view, wanted).definition
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
        if self._existing_store() is None or len(nowhere) == len(names):
            return Published(())
        return Published(tuple(self._publisher.publish(names, look=True)))

    def forget_published(self, *views: str) -> Forgotten:
        """Give up what is kept for readers of tables that the project no longer names."""
        from mv_assets.reports.publication import Forgotten

        known = self._known(*_names(views))
        asked = [name for name in _names(views) or known if name in known]
        return Forgotten({name: tuple(self._publisher.forget(name)) for name in asked})

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

    @property
    def store(self) -> Store:
        """The state database, made if need be."""
        with self._opening:
            if self._store is None:
                self._store = open_state(self.catalog.project.state)
            return self._store

    @property
    def opened(self) -> OpenProject:
        """The project's tables, state, warehouse and Spark, for work that is done step by step."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open(self.catalog)
            return self._opened

    def _existing_store(self) -> Store | None:
        """The state database as it is; None if nobody has used it yet."""
        with self._opening, suppress(NoState):
            if self._store is None:
                self._store = open_state(self.catalog.project.state, create=False)
        return self._store

    def _known(self, *views: str) -> list[str]:
        """The views that the state knows, in the project or not.

        Raises:
            NotDeclared: of some views, one that neither of them knows.

        """
        store = self._existing_store()
        known = [] if store is None else store.views()
        everywhere = {*known, *self.catalog.views}
        for name in views:
            if name not in everywhere:
                raise NotDeclared(name, sorted(everywhere))
        return known

    def _checked(self, views: Sequence[str]) -> Catalog:
        """The catalog, held against the tables that views read."""
        self._refuse_closed()
        found = self._load(schemas=True, only=_names(views))
        self._catalog = self._catalog or found
        return found

    def _open(self, catalog: Catalog) -> OpenProject:
        from mv_assets.run.opened import open_project

        return open_project(catalog, self.store, self._manager, self._spark(catalog), self._machine)

    def _spark(self, catalog: Catalog) -> Engine:
        from mv_assets.spark.session import Engine
        from mv_assets.spark.startup import start

        with self._opening:
            if self._engine is None:
                begin = self._start or self._own or start
                self._engine = Engine(catalog.project.spark, lambda declared: self._started(begin, declared))
            return self._engine

    def _started(self, start: Start, declared: Spark) -> SparkSession:
        """Spark, once it has started: others wait meanwhile, and should know what for."""
        self.progress.starting("starting Spark" if declared.remote is None else "connecting to Spark")
        try:
            return start(declared)
        finally:
            self.progress.started()

    @property
    def _manager(self) -> PartitionManager:
        return PartitionManager(self.store, clock=self._shared(self.store), who=self._who)

    @property
    def _garbage(self) -> Garbage:
        from mv_assets.maintain.garbage import Garbage
        from mv_assets.run.warehouse import Warehouse

        return Garbage(self.store, self._manager, Warehouse.of(self.catalog.project.warehouse))

    def publish_behind(self, enough: Callable[[], bool] = lambda: False) -> list[PublishedView]:
        """Publish views whose maps have changed since they were, until it is `enough` for now."""
        if self._existing_store() is None:
            return []
        return self._publisher.publish(self._publisher.behind(), enough=enough)

    @property
    def _publisher(self) -> Publisher:
        from mv_assets.publish.publisher import Publisher
        from mv_assets.run.warehouse import Warehouse

        return Publisher(
            self.catalog, self.store, self._manager, Warehouse.of(self.catalog.project.warehouse)
        )

    def _publish_after(self, views: Iterable[str], *, look: bool = False) -> tuple[PublishedView, ...]:
        """Show what a command has changed."""
        asked = [name for name in views if self.catalog.target(name) is not None]
        return tuple(self._publisher.publish(asked, look=look)) if asked else ()

    def _expire(self, views: Iterable[str]) -> tuple[PublishedView, ...]:
        """Give up what no reader should still hold; where that failed, why."""
        known = {publication.view for publication in Publications(self.store).all()}
        asked = [name for name in views if name in known]
        return tuple(self._publisher.expire(asked)) if asked else ()

    @property
    def _answers(self) -> Answers:
        from mv_assets.query.execute.answer import Answers

        self._refuse_closed()
        with self._opening:
            if self._kept_answers is None:
                self._kept_answers = Answers(self.opened)
            return self._kept_answers

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ProjectClosed

    def _imagining(self, catalog: Catalog) -> ImaginedWatch:
        """Looks on copies of the maps."""
        from mv_assets.observe.watch import ImaginedWatch
        from mv_assets.tables.open import open_table

        store = self._existing_store()
        database = None if store is None else store.database
        tables = {
            name: open_table(table, database, self._machine, keep=False)
            for name, table in catalog.tables.items()
        }
        now = self._machine if store is None else self._shared(store)
        return ImaginedWatch(catalog, tables, store, now, self.progress)


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


def _change(observation: Observation, bucket: int, recorded: Sequence[Segment]) -> Difference:
    """What changed of a bucket's files since it was computed."""
    from mv_assets.observe.difference import Difference, difference

    seen = observation.buckets.get(bucket)
    if seen is not None and seen.current.inputs is None:
        # What it waits for is not there to be compared.
        return Difference()
    return difference(recorded, [] if seen is None else observation.view_inputs.segments(seen))


def _borrowed(spark: SparkSession) -> Start:
    from mv_assets.spark.session import borrowed

    return borrowed(spark)

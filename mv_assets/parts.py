"""What a project is worked with: its catalog, state and Spark, each opened when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING

from mv_assets.clock import clock
from mv_assets.errors import ProjectClosed
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.state.errors import NoState
from mv_assets.state.manager import PartitionManager
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store, open_state
from mv_assets.views.catalog import Catalog
from mv_assets.views.errors import NotDeclared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mv_assets.config import Spark
    from mv_assets.maintain.garbage import Garbage
    from mv_assets.observe.watch import ImaginedWatch
    from mv_assets.publish.publisher import Publisher
    from mv_assets.query.execute.answer import Answers
    from mv_assets.run.opened import OpenProject
    from mv_assets.spark.session import Engine, Start

Clock = Callable[[], int]


class Parts:
    """The parts of one project. What is opened stays open until all is closed."""

    def __init__(
        self,
        load: Callable[..., Catalog],
        *,
        who: str,
        start: Start | None = None,
        own: Start | None = None,
        progress: Progress = NO_PROGRESS,
        machine: Clock = clock,
        shared: Callable[[Store], Clock] = SharedClock,
    ) -> None:
        """See `Project`, which is given the same."""
        self._load = load
        self._who = who
        self._start = start
        self._own = own
        self._progress = progress
        self.machine = machine
        self._shared = shared
        self._closed = False
        # Queries may be asked from several threads, and the first of them opens.
        self._opening = RLock()
        self._catalog: Catalog | None = None
        self._store: Store | None = None
        self._engine: Engine | None = None
        self._opened: OpenProject | None = None
        self._answers: Answers | None = None

    def close(self) -> None:
        """Close what was opened, and stop Spark if it was started here."""
        self._closed = True
        try:
            if self._engine is not None:
                self._engine.stop() if self._start is None else self._engine.close()
        finally:
            self.close_state()

    def close_state(self) -> None:
        if self._store is not None:
            self._store.close()

    def refuse_closed(self) -> None:
        if self._closed:
            raise ProjectClosed

    @property
    def catalog(self) -> Catalog:
        """The tables as declared, and the views."""
        self.refuse_closed()
        if self._catalog is None:
            self._catalog = self._load(schemas=False)
        return self._catalog

    def checked(self, views: Sequence[str]) -> Catalog:
        """The catalog, held against the tables that views read."""
        self.refuse_closed()
        found = self._load(schemas=True, only=tuple(views))
        self._catalog = self._catalog or found
        return found

    @property
    def store(self) -> Store:
        """The state database, made if need be."""
        with self._opening:
            if self._store is None:
                self._store = open_state(self.catalog.project.state)
            return self._store

    @property
    def existing_store(self) -> Store | None:
        """The state database as it is; None if nobody has used it yet."""
        with self._opening, suppress(NoState):
            if self._store is None:
                self._store = open_state(self.catalog.project.state, create=False)
        return self._store

    @property
    def now(self) -> Clock:
        """The clock of the maps: the database's, once there is one."""
        store = self.existing_store
        return self.machine if store is None else self._shared(store)

    def known(self, *views: str) -> list[str]:
        """The views that the state knows, in the project or not.

        Raises:
            NotDeclared: of some views, one that neither of them knows.

        """
        self.refuse_closed()
        store = self.existing_store
        known = [] if store is None else store.views()
        everywhere = {*known, *self.catalog.views}
        for name in views:
            if name not in everywhere:
                raise NotDeclared(name, sorted(everywhere))
        return known

    @property
    def manager(self) -> PartitionManager:
        return PartitionManager(self.store, clock=self._shared(self.store), who=self._who)

    def spark(self, catalog: Catalog) -> Engine:
        from mv_assets.spark.session import Engine
        from mv_assets.spark.startup import start

        with self._opening:
            if self._engine is None:
                begin = self._start or self._own or start
                self._engine = Engine(catalog.project.spark, lambda declared: self._started(begin, declared))
            return self._engine

    def _started(self, start: Start, declared: Spark) -> SparkSession:
        """Spark, once it has started: others wait meanwhile, and should know what for."""
        self._progress.starting("starting Spark" if declared.remote is None else "connecting to Spark")
        try:
            return start(declared)
        finally:
            self._progress.started()

    @property
    def opened(self) -> OpenProject:
        """All of it, for work that is done step by step."""
        with self._opening:
            if self._opened is None:
                self._opened = self.open(self.catalog)
            return self._opened

    def open(self, catalog: Catalog) -> OpenProject:
        from mv_assets.run.opened import open_project

        return open_project(catalog, self.store, self.manager, self.spark(catalog), self.machine)

    @property
    def answers(self) -> Answers:
        from mv_assets.query.execute.answer import Answers

        self.refuse_closed()
        with self._opening:
            if self._answers is None:
                self._answers = Answers(self.opened)
            return self._answers

    @property
    def garbage(self) -> Garbage:
        from mv_assets.maintain.garbage import Garbage
        from mv_assets.run.warehouse import Warehouse

        return Garbage(self.store, self.manager, Warehouse.of(self.catalog.project.warehouse))

    @property
    def publisher(self) -> Publisher:
        from mv_assets.publish.publisher import Publisher
        from mv_assets.run.warehouse import Warehouse

        return Publisher(self.catalog, self.store, self.manager, Warehouse.of(self.catalog.project.warehouse))

    def imagining(self, catalog: Catalog) -> ImaginedWatch:
        """Looks on copies of the maps."""
        from mv_assets.observe.watch import ImaginedWatch
        from mv_assets.tables.open import open_table

        store = self.existing_store
        database = None if store is None else store.database
        tables = {
            name: open_table(table, database, self.machine, keep=False)
            for name, table in catalog.tables.items()
        }
        return ImaginedWatch(catalog, tables, store, self.now, self._progress)

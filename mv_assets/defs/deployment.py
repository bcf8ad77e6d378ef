"""The project as a Dagster process works on it: opened for a tick, a run or a check, and closed after it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster_pyspark import LazyPySparkResource, PySparkResource
from pyspark.sql import SparkSession

from mv_assets.clock import clock
from mv_assets.config import DeclaredProject
from mv_assets.defs.names import Naming
from mv_assets.defs.signs_of_life import Deadline
from mv_assets.errors import MvError
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.project import Project
from mv_assets.run.opened import OpenProject
from mv_assets.run.turns import take_turn
from mv_assets.spark.startup import start, starts_here
from mv_assets.state.model import MapSummary
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store
from mv_assets.state.store.retry import Profile, Retry
from mv_assets.state_url import shown, state_url
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View

# So long the loading of definitions may look for the first data of a table.
_LOADING_S = 20.0
# So often the state is asked while definitions are loaded.
_FEW = Profile(3, 0.050, 0.200)

SparkResource = LazyPySparkResource | PySparkResource


@dataclass(frozen=True, slots=True)
class Deployment:
    """A project's catalog, and how to get at all that belongs to it."""

    catalog: Catalog
    # The machine's clock, by which files and Dagster's runs are dated.
    now: Callable[[], int] = clock
    # Tables that assets of the user's own write, by the keys of those.
    produced_by: Mapping[str, dg.AssetKey] = field(default_factory=dict)
    # The clock of the maps.
    shared: Callable[[Store], Callable[[], int]] = SharedClock
    naming: Naming = field(default_factory=Naming)
    # Automation conditions of Dagster's ask for runs, not the sensors.
    automated: bool = False

    def key_of(self, name: str) -> dg.AssetKey:
        """The asset of a table or view."""
        if name in self.produced_by:
            return self.produced_by[name]
        view = self.catalog.views.get(name)
        return self.naming.key(name, None if view is None else view.declared.key_prefix)

    def by_key(self, views: Iterable[View]) -> dict[dg.AssetKey, View]:
        """Views by their assets."""
        return {self.key_of(view.name): view for view in views}

    def project(
        self, who: str, spark: SparkResource | None = None, progress: Progress = NO_PROGRESS
    ) -> Project:
        """The project for whoever runs; Spark is the resource's, which starts when it is first needed."""
        return Project.of(
            self.catalog,
            who=who,
            start=None if spark is None else lambda _declared: _session_of(spark),
            progress=progress,
            machine=self.now,
            shared=self.shared,
        )

    @contextmanager
    def open(self, who: str, spark: SparkResource | None = None) -> Iterator[OpenProject]:
        """The same, for work that is done step by step."""
        with self.project(who, spark) as project:
            yield project.opened

    def starts(self) -> dict[str, int]:
        """By view, where its coverage begins: as declared, or before that if it was extended by a person.

        A state that can't be read now is no reason not to load; the sensor will say what is wrong with it.
        """
        views, summaries = self.catalog.views.values(), self._summaries()
        with_data = [v.name for v in views if v.declared.start is None and v.name not in summaries]
        found = self._found(with_data) if with_data else {}
        starts = {}
        for view in views:
            declared, known = view.declared.start, summaries.get(view.name)
            start = found.get(view.name, self.now()) if declared is None else declared
            if known is not None and (declared is None or known.header.width == view.buckets.text):
                start = known.header.start if declared is None else min(declared, known.header.start)
            starts[view.name] = view.buckets.floor(start)
        return starts

    def _found(self, views: list[str]) -> dict[str, int]:
        """Where the data of views begins that nobody has looked at yet; not of those that take too long."""
        try:
            with self.project("Dagster", progress=Deadline(_LOADING_S)) as project:
                return project.coverage(*views)
        except MvError:
            return {}

    def _summaries(self) -> dict[str, MapSummary]:
        """What the state has of the views; nothing if it does not answer: a load must not wait for long."""
        try:
            store = Store(self.catalog.project.state.url, retry=Retry(_FEW), create=False)
        except MvError:
            return {}
        try:
            return store.summaries(self.catalog.views)
        except MvError:
            return {}
        finally:
            store.close()


def identity(project: DeclaredProject) -> str:
    """Names a project among others that one Dagster may have, without giving away where its state is."""
    named = f"{shown(state_url(project.state.url))} {project.warehouse.path}"
    return hashlib.blake2b(named.encode(), digest_size=8).hexdigest()


def _session_of(spark: SparkResource) -> SparkSession:
    session: SparkSession = spark.spark_session
    return session


def spark_resource(project: DeclaredProject) -> dg.ConfigurableResource[Any]:
    """Spark as the project declares it. Its settings, which may hold secrets, are not shown in the UI."""
    declared = project.spark

    class ProjectSpark(dg.ConfigurableResource[Any]):
        """The project's Spark: started, or attached to, when it is first used."""

        @property
        def spark_session(self) -> SparkSession:
            if starts_here(declared):
                # Nothing says that Dagster's instance has a limit of the pool.
                take_turn(identity(project), dg.get_dagster_logger().info)
            # Not kept: one that has died is started again.
            return start(declared)

    return ProjectSpark()


@contextmanager
def as_failures() -> Iterator[None]:
    """Our own errors say what to do; Dagster shows them without a trace, and does not try again by itself."""
    try:
        yield
    except MvError as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error

"""B8, the sensor: what a tick costs where there are many files and buckets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from mv_assets.config import Draft, StateDatabase, WarehouseFolder
from mv_assets.defs import Deployment, definitions_of
from mv_assets.defs.tick.reporting import end_of
from mv_assets.defs.tick.sensor import Memory
from mv_assets.views.catalog import prepare
from mv_assets_tests.benchmarks.cases import b4_look
from mv_assets_tests.benchmarks.figure import Figure

# Dagster ends a tick after 60 s.
_MOST_S = 30.0


@dataclass(slots=True)
class Ticks:
    """The ticks of a sensor, and what it remembers; `tell_all` is what its daemon does."""

    lake: b4_look.Lake
    instance: dg.DagsterInstance
    repository: dg.RepositoryDefinition
    cursor: str | None = None
    events: Sequence[dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation] = ()

    def tick(self) -> int:
        """One more: how many runs it asked for."""
        sensor = self.repository.get_sensor_def("watch_events")
        context = dg.build_sensor_context(
            instance=self.instance, repository_def=self.repository, cursor=self.cursor
        )
        found = sensor.evaluate_tick(context)
        self.cursor = found.cursor
        self.events = found.asset_events
        return len(found.run_requests or ())

    def ask(self, runs: int) -> None:
        """A tick that asks for so many runs."""
        assert self.tick() == runs

    def tell_all(self) -> None:
        """Tell Dagster what the last tick said, and have it believe that it was told of the whole map.

        That is so after some hundred ticks.
        """
        for event in self.events:
            self.instance.report_runless_asset_event(event)
        memory = Memory.of(self.cursor)
        for name, known in self.lake.store.summaries(self.lake.catalog.views).items():
            memory.reported[name] = end_of(known.header.version)
        self.cursor = memory.model_dump_json(by_alias=True)


def run(files: int = 100_000, name: str = "B8") -> Sequence[Figure]:
    with ticking(files) as ticks:
        return list(_figures(name, files, ticks))


@contextmanager
def ticking(files: int, names: Sequence[str] = ("v",)) -> Iterator[Ticks]:
    """The ticks of a lake's sensor."""
    with b4_look.lake_of(files, names) as lake, dg.instance_for_test() as instance:
        project = lake.catalog.project.model_copy(
            update={
                "state": StateDatabase(url=f"sqlite:///{lake.root.parent}/state.db"),
                "warehouse": WarehouseFolder(path=str(lake.root.parent / "w")),
            }
        )
        deployment = Deployment(prepare(Draft("B8", project), schemas=False), b4_look.now)
        yield Ticks(lake, instance, definitions_of(deployment).get_repository_def())


def _figures(name: str, files: int, ticks: Ticks) -> Iterator[Figure]:
    size = f"{files:,} files, {min(files, b4_look.BUCKETS):,} buckets"
    yield _timed(name, f"first tick, of a map that Dagster knows nothing of, {size}", ticks, 0)
    ticks.tell_all()
    ticks.tick()
    yield _timed(name, f"tick that finds nothing, {size}", ticks, 0)
    b4_look.late(ticks.lake.root)
    yield _timed(name, f"tick that finds one late file, {size}", ticks, 1)


def _timed(name: str, what: str, ticks: Ticks, runs: int) -> Figure:
    begin = time.perf_counter()
    asked = ticks.tick()
    took = time.perf_counter() - begin
    assert asked == runs
    return Figure(name, what, took, "s", _MOST_S, "of the 60 s that Dagster gives a tick")

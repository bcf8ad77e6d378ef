"""B8, the sensor: what a tick costs where there are many files and buckets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.config import Draft, StateDatabase, WarehouseFolder
from mv_assets.defs import Deployment, definitions_of
from mv_assets.views.catalog import prepare
from mv_assets_tests.benchmarks.cases import b4_look
from mv_assets_tests.benchmarks.figure import Figure

# Dagster ends a tick after 60 s.
_MOST_S = 30.0


Tick = Callable[[], dg.SensorResult]


def run(files: int = 100_000, name: str = "B8") -> Sequence[Figure]:
    with ticking(files) as (lake, tick):
        return list(_figures(name, files, lake, tick))


@contextmanager
def ticking(files: int) -> Iterator[tuple[b4_look.Lake, Tick]]:
    """A lake, and the ticks of its sensor."""
    with b4_look.lake_of(files) as lake, dg.instance_for_test() as instance:
        project = lake.catalog.project.model_copy(
            update={
                "state": StateDatabase(url=f"sqlite:///{lake.root.parent}/state.db"),
                "warehouse": WarehouseFolder(path=str(lake.root.parent / "w")),
            }
        )
        deployment = Deployment(prepare(Draft("B8", project), schemas=False), b4_look.now)
        repository = definitions_of(deployment).get_repository_def()
        sensor, cursor = repository.get_sensor_def("watch_events"), None

        def tick() -> dg.SensorResult:
            nonlocal cursor
            context = dg.build_sensor_context(instance=instance, repository_def=repository, cursor=cursor)
            found = sensor.evaluate_tick(context)
            cursor = found.cursor
            return dg.SensorResult(run_requests=found.run_requests, asset_events=found.asset_events)

        yield lake, tick


def _figures(name: str, files: int, lake: b4_look.Lake, tick: Tick) -> Iterator[Figure]:
    size = f"{files:,} files, {min(files, b4_look.BUCKETS):,} buckets"
    yield _timed(name, f"first tick, of a map that Dagster knows nothing of, {size}", tick, 0)
    yield _timed(name, f"tick that finds nothing, {size}", tick, 0)
    times = pa.array([1_262_304_000_000_000], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": times}), lake.root / "late.parquet")
    yield _timed(name, f"tick that finds one late file, {size}", tick, 1)


def _timed(name: str, what: str, tick: Tick, runs: int) -> Figure:
    begin = time.perf_counter()
    found = tick()
    took = time.perf_counter() - begin
    assert len(found.run_requests or ()) == runs
    return Figure(name, what, took, "s", _MOST_S, "of the 60 s that Dagster gives a tick")

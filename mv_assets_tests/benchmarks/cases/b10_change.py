"""B10: a look, and a whole tick of the sensor, that find one late file cost like those that find none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.observe.observation import Observation, Unchanged
from mv_assets.plan import planner
from mv_assets.state.manager import PartitionManager
from mv_assets_tests.benchmarks.cases import b4_look, b8_ticks
from mv_assets_tests.benchmarks.figure import Figure, ratio
from mv_assets_tests.benchmarks.own_process import alone, peak_mb

FILES = (100_000, 1_000_000)
_ROUNDS = 5
_MOST = 1.5
# Of a process that lists a million files and has a hundred thousand buckets in mind.
_MOST_MB = 400.0


def run() -> Iterator[Figure]:
    for files in FILES:
        yield from alone(partial(looks, files))
    yield from alone(above)
    yield from alone(ticks)


def looks(files: int) -> list[Figure]:
    """Looks in turns, by CPU time, as machines are busy; beside them one that remembers nothing."""
    size = f"{files:,} files, {b4_look.BUCKETS:,} buckets"
    samples: dict[str, list[float]] = {"idle": [], "late": []}
    with b4_look.lake_of(files) as lake:
        for hour in range(_ROUNDS):
            assert isinstance(lake.round(), Unchanged)
            samples["idle"].append(_cpu(lake.round))
            late(lake.root, hour)
            samples["late"].append(_cpu(partial(_looked, lake, 1)))
            b4_look.fill(lake)
        late(lake.root, _ROUNDS)
        memory = alone(partial(whole, lake.root.parent, size))
    return [
        ratio(
            "B10", f"look that finds a late file, plan / idle look, {size}", samples, "late", "idle", _MOST
        ),
        *memory,
    ]


def whole(folder: Path, size: str) -> list[Figure]:
    """A process that starts and looks: it has nothing in mind."""
    lake = b4_look.opened(folder)
    took = _cpu(partial(_looked, lake, 1))
    lake.store.close()
    return [
        Figure("B10", f"the same look and plan by a process that has just started, {size}", took, "s"),
        Figure("B10", f"peak memory of that process, {size}", peak_mb(), " MB", _MOST_MB),
    ]


def above() -> list[Figure]:
    """A round that finds one bucket of a view computed again, for the view on top of it."""
    files, samples = FILES[0], dict[str, list[float]](idle=[], late=[])
    with b4_look.lake_of(files, above=["up"]) as lake:
        manager = PartitionManager(lake.store, clock=b4_look.now)
        for hour in range(_ROUNDS):
            samples["idle"].append(_cpu(lake.rounds))
            late(lake.root, hour)
            b4_look.commit(manager, lake.round())
            samples["late"].append(_cpu(partial(_looked, lake, 1, "up")))
            b4_look.fill(lake)
    what = "look at a view and one on it that finds a bucket of the former computed again, plan / idle look"
    size = f"{files:,} files, {b4_look.BUCKETS:,} buckets of each"
    return [ratio("B10", f"{what}, {size}", samples, "late", "idle", _MOST)]


def ticks() -> list[Figure]:
    """Ticks of a sensor of which Dagster knows the map; each late file makes one more run to be asked for."""
    files, samples = FILES[0], dict[str, list[float]](idle=[], late=[])
    with b8_ticks.ticking(files) as ticks:
        ticks.tick()
        for hour in range(_ROUNDS):
            ticks.tell_all()
            ticks.tick()
            samples["idle"].append(_cpu(ticks.tick))
            late(ticks.lake.root, hour)
            samples["late"].append(_cpu(ticks.tick))
            b4_look.fill(ticks.lake)
    size = f"{files:,} files, {b4_look.BUCKETS:,} buckets"
    what = f"tick that finds a late file / tick that finds nothing, {size}"
    return [ratio("B10", what, samples, "late", "idle", _MOST)]


def late(root: Path, hour: int) -> None:
    at = datetime(2010, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
    pq.write_table(pa.table({"at": pa.array([at], pa.timestamp("us", "UTC"))}), root / f"late-{hour}.parquet")


def _looked(lake: b4_look.Lake, works: int = 0, name: str = "v") -> None:
    observed = lake.rounds()[name]
    if works:
        assert isinstance(observed, Observation)
        assert [len(work.buckets) for work in planner.plan(observed).work] == [works]


def _cpu(step: Callable[[], object]) -> float:
    begin = time.process_time()
    step()
    return time.process_time() - begin

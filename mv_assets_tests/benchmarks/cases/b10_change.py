"""B10: a look, and a whole tick of the sensor, that find one late file cost like those that find none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from mv_assets.observe.observation import Unchanged
from mv_assets.state.manager import PartitionManager
from mv_assets_tests.benchmarks.cases import b4_look, b8_ticks
from mv_assets_tests.benchmarks.cases.b10_alone import looked, whole
from mv_assets_tests.benchmarks.figure import Figure, Step, interleaved, ratio
from mv_assets_tests.benchmarks.own_process import alone

FILES = (100_000, 1_000_000)
_WARM_UP, _ROUNDS = 1, 5
_MOST = 1.5


def run() -> Iterator[Figure]:
    for files in FILES:
        yield from alone(partial(looks, files))
    yield from alone(above)
    yield from alone(ticks)


def looks(files: int) -> list[Figure]:
    """Looks in turns; beside them one that remembers nothing."""
    with b4_look.lake_of(files) as lake:

        def idle() -> Callable[[], object]:
            b4_look.fill(lake)
            assert isinstance(lake.round(), Unchanged)
            return lake.round

        def late(hour: int) -> Callable[[], object]:
            b4_look.fill(lake)
            b4_look.late(lake.root, hour)
            return partial(looked, lake)

        figure = _figure("look that finds a late file, plan / idle look", _size(files), idle, late)
        b4_look.fill(lake)
        b4_look.late(lake.root, _ROUNDS)
        return [figure, *alone(partial(whole, lake.root.parent, _size(files)))]


def above() -> list[Figure]:
    """A round that finds one bucket of a view computed again, for the view on top of it."""
    files = FILES[0]
    with b4_look.lake_of(files, above=["up"]) as lake:
        manager = PartitionManager(lake.store, clock=b4_look.now)

        def idle() -> Callable[[], object]:
            b4_look.fill(lake)
            return lake.rounds

        def late(hour: int) -> Callable[[], object]:
            b4_look.fill(lake)
            b4_look.late(lake.root, hour)
            b4_look.commit(manager, lake.round())
            return partial(looked, lake, "up")

        what = (
            "look at a view and one on it that finds a bucket of the former computed again, plan / idle look"
        )
        return [_figure(what, f"{_size(files)} of each", idle, late)]


def ticks() -> list[Figure]:
    """Ticks of a sensor of which Dagster knows the map; each late file makes one more run to be asked for."""
    files = FILES[0]
    with b8_ticks.ticking(files) as ticks:
        ticks.tick()

        def at_rest() -> None:
            b4_look.fill(ticks.lake)
            ticks.tell_all()
            ticks.tick()

        def idle() -> Callable[[], object]:
            at_rest()
            return partial(ticks.ask, 0)

        def late(hour: int) -> Callable[[], object]:
            at_rest()
            b4_look.late(ticks.lake.root, hour)
            return partial(ticks.ask, 1)

        return [_figure("tick that finds a late file / tick that finds nothing", _size(files), idle, late)]


def _figure(what: str, size: str, idle: Step, late: Callable[[int], Callable[[], object]]) -> Figure:
    """In turns, each late file in another hour; by CPU time, as machines are busy."""
    hours = iter(range(_WARM_UP + _ROUNDS))
    steps = {"idle": idle, "late": lambda: late(next(hours))}
    interleaved(_WARM_UP, steps)
    samples = interleaved(_ROUNDS, steps, time.process_time)
    return ratio("B10", f"{what}, CPU time, {size}", samples, "late", "idle", _MOST)


def _size(files: int) -> str:
    return f"{files:,} files, {b4_look.BUCKETS:,} buckets"

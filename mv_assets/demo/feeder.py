"""Trips as they come in: most of the last moments, now and then some that are hours or days late."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from mv_assets.buckets import HOUR, MINUTE
from mv_assets.demo.city import trips, zones
from mv_assets.demo.files import files_in, path_for, write
from mv_assets.demo.place import Demo

PAUSE_S = 5.0
# Files of whole stretches hold this much; the last one ends now.
SLOT = 6 * HOUR
_SECOND = 1_000
_SEED = 20
_LIVE_ROWS = 4
_ONE_IN = 12
_LATEST_LATE_H = 72
_LATE = 20 * MINUTE


def write_zones(demo: Demo) -> None:
    write(zones(), demo.zones / "zones.parquet")


def advance(demo: Demo, since: int, until: int) -> list[Path]:
    """Write the trips of `[since, until)`, in whole seconds, a file for each quarter of a day."""
    written = []
    at, until = since, until - until % _SECOND
    while at < until:
        end = min(at - at % SLOT + SLOT, until)
        path = path_for(demo.trips, "trips", at, end)
        # The same stretch has the same trips, whenever it is written.
        write(trips(np.random.default_rng([_SEED, at // _SECOND]), at, end, _LIVE_ROWS), path)
        written.append(path)
        at = end
    return written


def reached(demo: Demo) -> int | None:
    """How far the trips that came in time go."""
    return max((file.end for file in files_in(demo.trips) if not file.late), default=None)


def late_file(demo: Demo, start: int, chance: np.random.Generator, rows: int) -> Path:
    """A file with trips of a few minutes in the past."""
    path = path_for(demo.trips, "late", start, start + _LATE)
    write(trips(chance, start, start + _LATE, rows), path)
    return path


def feed(
    demo: Demo,
    *,
    clock: Callable[[], int],
    wait: Callable[[float], bool],
    chance: np.random.Generator,
    failed: Callable[[Exception], None],
) -> None:
    """Add a file every few seconds, until `wait` says that it is time to stop.

    A stretch in which nobody fed, as while the machine slept, is caught up with first.
    """
    since: int | None = None
    while True:
        try:
            since = reached(demo) if since is None else since
            since = _step(demo, clock(), since, chance)
        except Exception as error:  # noqa: BLE001 - whatever it is, the demo must not stop without a word
            failed(error)
        if wait(PAUSE_S):
            return


def _step(demo: Demo, now: int, since: int | None, chance: np.random.Generator) -> int:
    start = now - int(PAUSE_S * _SECOND) if since is None else since
    start -= start % _SECOND
    advance(demo, start, now)
    if chance.integers(_ONE_IN) == 0:
        hour = now - now % HOUR - int(chance.integers(2, _LATEST_LATE_H)) * HOUR
        late_file(demo, hour + int(chance.integers(3)) * _LATE, chance, int(chance.integers(5, 40)))
    return max(start, now - now % _SECOND)

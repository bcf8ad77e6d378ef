"""A look that gives files which are just arriving a moment: at the next tick they would be quiet for long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from time import sleep

from mv_assets.errors import MvError
from mv_assets.observe.observation import Observation, Observed
from mv_assets.observe.watch import Watch
from mv_assets.plan import planner

_MOMENT_MS = 2_000
# One tick at a time: Dagster has few threads for all sensors.
_giving = Lock()


def look_when_quiet(
    watch: Watch, views: Iterable[str], *, whole: bool = False
) -> dict[str, Observed | MvError]:
    """Look at views; and once more where nothing is due yet, and something is in a moment."""
    names = list(views)
    found = watch.round(names, whole=whole)
    left = _left(found)
    if left is None or not _giving.acquire(blocking=False):
        return found
    try:
        sleep(left / 1_000)
    finally:
        _giving.release()
    return watch.round(names, whole=whole)


def _left(found: Mapping[str, Observed | MvError]) -> int | None:
    """How long until the first files are quiet; None if there is work now, or nothing to wait for."""
    plans = [(each.now, planner.plan(each)) for each in found.values() if isinstance(each, Observation)]
    if any(plan.work or plan.failing for _, plan in plans):
        return None
    left = (until - now for now, plan in plans for until in _times(plan))
    return min((each for each in left if 0 < each <= _MOMENT_MS), default=None)


def _times(plan: planner.Plan) -> Iterator[int]:
    return (each.until for each in plan.waiting if each.until is not None)

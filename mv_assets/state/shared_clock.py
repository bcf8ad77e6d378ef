"""The clock that all deployments share: the database's, asked now and then and carried on in between."""

from __future__ import annotations

import time
from collections.abc import Callable

from mv_assets.state.store import Store

_ASKED_EVERY_S = 1.0


def _elapsed() -> float:
    """Seconds, also those that a machine sleeps through."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SharedClock:
    """Now, in milliseconds, whatever this machine's clock says or is set to.

    What one deployment writes into a map (when to try again, when it was looked at, how far its source
    reaches) another compares with its own now: two clocks would stop it for as long as they differ,
    or let it trust what is too old.
    """

    def __init__(self, store: Store, elapsed: Callable[[], float] = _elapsed) -> None:
        self._store = store
        self._elapsed = elapsed
        self._known: tuple[int, float] | None = None

    def __call__(self) -> int:
        known, here = self._known, self._elapsed()
        # Inside a write others wait: one that knows the time carries on.
        if known is None or (here - known[1] >= _ASKED_EVERY_S and not self._store.in_write):
            known = self._known = self._store.now(), self._elapsed()
        return known[0] + int((self._elapsed() - known[1]) * 1_000)

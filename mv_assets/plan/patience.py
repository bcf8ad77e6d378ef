"""How long a refresh waits for files that are still arriving."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from mv_assets.observe.observation import Limits
from mv_assets.plan.planner import Waiting
from mv_assets.progress import NO_PROGRESS, Progress

# So long it sleeps at once: whoever watches should see that it lives.
_AT_ONCE_MS = 240_000


class Patience:
    """Gives files the little time they need to settle; those that have not by then never will."""

    def __init__(
        self,
        clock: Callable[[], int],
        progress: Progress = NO_PROGRESS,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._clock = clock
        self._sleep = sleep or time.sleep
        self._progress = progress
        self._most = 0
        self._since: int | None = None

    def allow(self, limits: Limits) -> None:
        """Be as patient as the views' tables may take."""
        self._most = max(self._most, 2 * limits.settle_at_most)

    def wait(self, waiting: Iterable[Waiting]) -> bool:
        """Sleep until the first of them may go on; whether that was worth it."""
        until = [each.until for each in waiting if each.until is not None]
        now = self._clock()
        self._since = now if self._since is None else self._since
        if not until or now - self._since > self._most:
            return False
        # Not longer, however far the clock was set back meanwhile.
        left = min(max(min(until) - now, 0), self._most)
        while left > 0:
            self._progress.waits(left)
            part = min(left, _AT_ONCE_MS)
            self._sleep(part / 1_000)
            left -= part
        return True

"""Work that takes long: a run that is silent for a quarter of an hour is dead, a look has a deadline."""

from __future__ import annotations

from collections.abc import Callable
from logging import Logger
from time import monotonic

from mv_assets.buckets import duration
from mv_assets.errors import StillReading
from mv_assets.progress import Progress

_EVERY_S = 240.0


class SignsOfLife(Progress):
    """Says every few minutes what a run is at, in the log that the sensors look for."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._said = monotonic()

    def reading(self, table: str, files: int, size: int, all_files: int, whole: int) -> None:  # noqa: ARG002
        """Log how far the reading of a table is."""
        if (now := monotonic()) - self._said >= _EVERY_S:
            self._said = now
            self._log.info("%s: %s of %s new files are read", table, files, all_files)

    def waits(self, milliseconds: int) -> None:
        """Log what is waited for."""
        self._log.info("waits %s for files that are still arriving", duration(milliseconds))


class Deadline(Progress):
    """Ends a look that takes too long; what it has read is in the inventory."""

    def __init__(self, seconds: float, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._ends = now() + seconds

    def reading(self, table: str, files: int, size: int, all_files: int, whole: int) -> None:  # noqa: ARG002
        """End the look once its time is over and files are left."""
        if files < all_files and self._now() > self._ends:
            raise StillReading(table, files, all_files)

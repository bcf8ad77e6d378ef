"""Signs of life of a run that reads or waits: one that is silent for a quarter of an hour counts as dead."""

from __future__ import annotations

from logging import Logger
from time import monotonic, sleep

from mv_assets.buckets import duration
from mv_assets.observe.watch import Observer
from mv_assets.tables.listing import Progress

_EVERY_S = 240.0


class SignsOfLife:
    """Says every few minutes what a run is at, in the log that the sensors look for."""

    def __init__(self, log: Logger) -> None:
        self._log = log

    def sleep(self, seconds: float) -> None:
        """Sleep, and say so."""
        left = seconds
        while left > 0:
            self._log.info("waits %s for files that are still arriving", duration(int(left * 1_000)))
            sleep(min(left, _EVERY_S))
            left -= _EVERY_S

    @property
    def observer(self) -> Observer:
        """Watches the reading of tables."""
        said = monotonic()

        def observe(table: str) -> Progress:
            def progress(files: int, _size: int, all_files: int, _whole: int) -> None:
                nonlocal said
                if (now := monotonic()) - said >= _EVERY_S:
                    said = now
                    self._log.info("%s: %s of %s new files are read", table, files, all_files)

            return progress

        return observe

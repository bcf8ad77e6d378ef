"""A thread that says, every few seconds, that the work it stands for is still going on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from mv_assets.errors import MvError, StateError


class Heartbeat:
    """Calls `beat`, which should try once, until the block ends or there is nothing left to keep alive.

    A beat that the database could not take is repeated at the next turn: its clock decides what expired.
    """

    def __init__(self, every_s: float, beat: Callable[[], object]) -> None:
        self._every_s = every_s
        self._beat = beat
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mv-assets-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self._beat()
            except StateError:
                continue
            except MvError:
                return

"""A child that is kept running: if it dies it is started again, each time after a longer pause."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mv_assets.cli.dev.children import Child

_LONGEST_PAUSE_S = 30.0
# Who dies sooner than this after it came up has not recovered.
_PROVEN_S = 60.0


def _nothing() -> None:
    pass


@dataclass(slots=True)
class Kept:
    """The child; `answers` tells whether it is up, and `before` is done before each start."""

    child: Child
    answers: Callable[[], bool]
    say: Callable[[str], None]
    before: Callable[[], None] = _nothing
    ready: bool = False
    _was_ready: bool = False
    _deaths: int = 0
    _again_at: float | None = None
    _up_at: float = 0.0

    def start(self) -> None:
        self._again_at = None
        self.before()
        self.child.start()

    def check(self) -> int | None:
        """See how it is doing, and start it again if it is time to; its exit code if it never came up."""
        if self._again_at is not None:
            if time.monotonic() >= self._again_at:
                self._start_again()
        elif (code := self.child.exit_code()) is not None:
            if not self._was_ready:
                return code
            self.restart(f"ended by itself (exit code {code})")
        elif not self.ready and self.answers():
            if self._was_ready:
                self.say(f"{self.child.name} is back")
            self.ready = self._was_ready = True
            self._up_at = time.monotonic()
        elif self.ready and time.monotonic() - self._up_at > _PROVEN_S:
            self._deaths = 0
        return None

    def _start_again(self) -> None:
        try:
            self.start()
        except Exception as error:  # noqa: BLE001 - whatever it is, it may be gone at the next try: a full disk
            self.restart(f"can't be started ({error})")

    def restart(self, why: str) -> None:
        """End what is left of it, and start it again soon."""
        self.child.stop()
        pause = 0.0 if self._deaths == 0 else min(2.0**self._deaths, _LONGEST_PAUSE_S)
        when = f" in {pause:.0f} s" if pause else ""
        self.say(f"[yellow]{self.child.name} {why}[/]; starting it again{when}")
        self.ready = False
        self._deaths += 1
        self._again_at = time.monotonic() + pause

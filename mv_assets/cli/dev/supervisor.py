"""Everything `mv-assets dev` starts, watched until a signal or a death, and then stopped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from types import FrameType

import numpy as np
from rich.markup import escape

from mv_assets.cli.dev.children import Child
from mv_assets.cli.dev.dagster import Loaded, loaded_by
from mv_assets.cli.dev.kept import Kept
from mv_assets.cli.dev.lock import Lock
from mv_assets.cli.dev.ports import listens
from mv_assets.cli.dev.spark import WarmSpark
from mv_assets.clock import clock
from mv_assets.demo import Demo

_POLL_S = 0.25
_LOOK_S = 3.0
# Some deaths Dagster mends by itself, within this time.
_LOST_S = 12.0
# And while it starts, what is not there yet is not lost.
_NEVER_CAME_S = 60.0
# Twice what a slow machine takes.
_SILENT_S = 120.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class Signals:
    """How often we were asked to stop. A handler only counts: what it interrupts may hold any lock."""

    count: int = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        # Started with nohup, a terminal that closes is none of our business.
        heard = [number for number in _SIGNALS if number != signal.SIGHUP or not _ignored(number)]
        before = {number: signal.signal(number, self._count) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def asked(self) -> bool:
        return self.count > 0

    def hurry(self) -> bool:
        return self.count > 1

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


def _ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


@dataclass(slots=True)
class Supervisor:
    """Dagster, and Spark if it is ours. `up` is called once, when both answer."""

    dagster: Kept
    ui_port: int
    spark: WarmSpark | None
    up: Callable[[Loaded], None]
    signals: Signals = field(default_factory=Signals)
    _lost_since: float | None = None
    _look_at: float = 0.0
    _silent_until: float | None = None

    def run(self, lock: Lock) -> int:
        """Start all, and stop all when that is over; the exit code."""
        with ExitStack() as stopped:
            if self.spark is not None:
                stopped.callback(self.spark.kept.child.stop, self.signals.hurry)
                self.spark.kept.start()
            stopped.callback(self.dagster.child.stop, self.signals.hurry)
            self.dagster.start()
            code = self._watch(lock)
            asked = self.signals.asked()
            self.dagster.say("stopping ... (once more: at once)" if asked else "stopping the rest ...")
        return code

    def _watch(self, lock: Lock) -> int:
        announced, child = False, self.dagster.child
        self._silent_until = time.monotonic() + _SILENT_S
        while not self.signals.asked():
            if self.spark is not None:
                self.spark.check()
            lock.note(os.getpid(), child.pid, None if self.spark is None else self.spark.kept.child.pid)
            if (code := self.dagster.check()) is not None:
                self._show_end(child, f"[bold red]Dagster ended by itself (exit code {code})[/]")
                if listens(self.ui_port):
                    self.dagster.say(f"port {self.ui_port} is another process's; name another with --port")
                return 1
            how = self._look_at_code()
            ready = self.dagster.ready and (self.spark is None or self.spark.kept.ready)
            if ready and not announced and how is not None:
                self.up(how)
                announced = True
            if not announced:
                self._tell_silence()
            time.sleep(_POLL_S)
        return 0

    def _tell_silence(self) -> None:
        """Once: what should have come up by now, and where to see why it has not."""
        if self._silent_until is None or time.monotonic() < self._silent_until:
            return
        self._silent_until = None
        for kept in [self.dagster, *([] if self.spark is None else [self.spark.kept])]:
            if not kept.ready:
                self._show_end(
                    kept.child,
                    f"[yellow]{kept.child.name} is not up after {_SILENT_S:.0f} s[/], still waiting",
                )

    def _show_end(self, child: Child, what: str) -> None:
        self.dagster.say(f"{what}; the end of {child.log}:")
        self.dagster.say(escape("\n".join(f"  {line}" for line in child.last_lines())))

    def _look_at_code(self) -> Loaded | None:
        """Every few seconds: what Dagster says of the code. It does not start its process again by itself."""
        now = time.monotonic()
        if now < self._look_at:
            return None
        self._look_at = now + _LOOK_S
        how = loaded_by(self.dagster.child, self.ui_port)
        if how is None or not how.lost:
            self._lost_since = None
        elif self._lost_since is None:
            self._lost_since = now
        elif now - self._lost_since > (_LOST_S if self.dagster.ready else _NEVER_CAME_S):
            self._lost_since = None
            self.dagster.restart("has lost the process that runs the code")
        return how


@contextmanager
def feeding(demo: Demo, say: Callable[[str], None]) -> Iterator[None]:
    """New files for the demo, from a thread, while the block lasts."""
    from mv_assets.demo.feeder import feed  # noqa: PLC0415 - a project of one's own needs no Arrow here

    over, said = Event(), set[str]()

    def failed(error: Exception) -> None:
        what = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        if what not in said:
            said.add(what)
            say(f"[yellow]the demo's feeder can't write ({escape(what)})[/]; it goes on trying")

    options = {"clock": clock, "wait": over.wait, "chance": np.random.default_rng(), "failed": failed}
    thread = Thread(target=feed, args=(demo,), kwargs=options, name="feeder", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

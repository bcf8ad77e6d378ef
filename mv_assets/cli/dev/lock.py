"""One `mv-assets dev` a home: two daemons on one database would fight over its runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mv_assets.cli.dev.home import writing
from mv_assets.cli.errors import HomeInUse
from mv_assets.cli.warm_spark import LOCK


@dataclass(slots=True)
class Lock:
    """A lock that is held. Who inherits `descriptor` holds it too, should this process be killed."""

    descriptor: int
    _noted: tuple[int | None, ...] = ()

    def note(self, *pids: int | None) -> None:
        """Who holds it, for the message that others get."""
        if pids != self._noted:
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, " ".join(str(pid) for pid in pids if pid is not None).encode(), 0)
            self._noted = pids


@contextmanager
def locked(home: Path) -> Iterator[Lock]:
    """Hold the home.

    Raises:
        HomeInUse: somebody else does.
        HomeUnwritable: it can't be made.

    """
    path = home / LOCK
    with writing(home):
        home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeInUse(str(home), _holders(path)) from None
        lock = Lock(descriptor)
        lock.note(os.getpid())
        yield lock
    finally:
        os.close(descriptor)


def _holders(path: Path) -> list[int]:
    """Whom to stop: the first that was noted, or if that was killed, what it has left running."""
    with suppress(OSError, ValueError):
        first, *others = map(int, path.read_text().split())
        return [first] if _lives(first) else [pid for pid in others if _lives(pid)]
    return []


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

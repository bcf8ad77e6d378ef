"""One `mv-assets dev` a home: two daemons on one database would fight over its runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mv_assets.errors import HomeInUse


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that is held. Who inherits `descriptor` holds it too."""

    descriptor: int

    def note(self, *pids: int | None) -> None:
        """Who holds it, for the message that others get."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, " ".join(str(pid) for pid in pids if pid is not None).encode(), 0)


@contextmanager
def locked(home: Path) -> Iterator[Lock]:
    """Hold the home.

    Raises:
        HomeInUse: somebody else does.

    """
    home.mkdir(parents=True, exist_ok=True)
    path = home / "dev.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeInUse(str(home), _holder(path)) from None
        lock = Lock(descriptor)
        lock.note(os.getpid())
        yield lock
    finally:
        os.close(descriptor)


def _holder(path: Path) -> int | None:
    """The first of those noted that lives: if the first was killed, what it started may not have been."""
    with suppress(OSError, ValueError):
        for pid in map(int, path.read_text().split()):
            if _lives(pid):
                return pid
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

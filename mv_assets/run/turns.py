"""A local Spark takes the machine for itself: processes of one project have theirs one after the other."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mv_assets.spark.errors import EngineUnavailable

# Whoever waits says so from time to time: a run that is silent counts as dead.
_SAYS_EVERY_S = 60.0
_PATIENCE_S = 3_600.0
_ASKS_EVERY_S = 0.5
# By project, the descriptors of this process. The kernel gives a lock back when its process ends, however.
_held: dict[str, int] = {}


def take_turn(
    project: str,
    say: Callable[[str], None],
    *,
    patience_s: float = _PATIENCE_S,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until no other process here has a local Spark for the project; then keep others waiting.

    This process has its turn until it ends, as its Spark does.

    Raises:
        EngineUnavailable: one other has had it for all the time that anybody waits.

    """
    if project in _held:
        return
    path = _file(project)
    descriptor = _opened(path)
    begun, says_at, whose = monotonic(), 0.0, _whose(path)
    while not _locked(descriptor):
        now = monotonic()
        if project in _held:
            # Another thread of this process was sooner.
            os.close(descriptor)
            return
        if (holder := _whose(path)) != whose:
            # One after the other is no hang.
            begun, says_at, whose = now, 0.0, holder
        if now - begun > patience_s:
            os.close(descriptor)
            raise EngineUnavailable(
                f"{whose} has had this project's local Spark for {patience_s / 60:.0f} minutes; end "
                "it if it hangs, or compute on a Connect server or a cluster, which many can use at once"
            )
        if now - begun >= says_at:
            says_at += _SAYS_EVERY_S
            say(f"waits for {whose}, which has this project's local Spark: there is one at a time")
        sleep(_ASKS_EVERY_S)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    _held[project] = descriptor


def _file(project: str) -> Path:
    return Path(tempfile.gettempdir()) / f"mv_assets-spark-{os.getuid()}-{project}.lock"


def _opened(path: Path) -> int:
    """The lock's file, which is one of ours: others may write into that folder too."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EngineUnavailable(f"the lock {path} can't be opened ({error.strerror}); remove it") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        os.close(descriptor)
        raise EngineUnavailable(
            f"the lock {path} is somebody else's; remove it, or set TMPDIR to a folder of yours"
        )
    return descriptor


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _whose(path: Path) -> str:
    with suppress(OSError, ValueError):
        return f"process {int(path.read_text())}"
    return "another process"

"""A process of ours with all that it starts: one group, one log, ended as a whole."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from mv_assets.cli.dev.home import writing
from mv_assets.cli.dev.ports import listens, sockets
from mv_assets.text import printable

_POLL_S = 0.1
_DEAD_WITHIN_S = 5.0
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(slots=True)
class Child:
    """How to start it, and the process while it runs. `wishes` end it: signals, and how long each has.

    It inherits the file descriptors in `keep`.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    wishes: Sequence[tuple[signal.Signals, float]]
    keep: Sequence[int] = ()
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _begun: bool = False

    def start(self) -> None:
        """Start it, in a group of its own so that a Ctrl-C at the terminal is ours alone.

        Raises:
            HomeUnwritable: its log can't be written.

        """
        with self._opened() as log:
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                self.command,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self.keep,
            )
        self._begun = True

    def _opened(self) -> BinaryIO:
        with writing(self.log.parent):
            self.log.parent.mkdir(parents=True, exist_ok=True)
            return self.log.open("ab" if self._begun else "wb")

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self._process is None else self._process.poll()

    def listens(self, port: int) -> bool:
        """Whether it, or what it started, listens there; or anybody, where the system does not say who."""
        if self._process is None:
            return False
        found = sockets(port)
        if found is None:
            return listens(port)
        return bool(found) and any(found & _held(pid) for pid in _living(self._process.pid))

    def last_lines(self, count: int = 12) -> list[str]:
        """The end of its log."""
        with suppress(OSError):
            lines = _COLOUR.sub("", self.log.read_text(errors="replace")).splitlines()
            return [printable(line.expandtabs()) for line in lines if line.strip()][-count:]
        return []

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """End the whole group, gently at first; at once if there is a hurry."""
        if self._process is None:
            return
        for wish, patience in self.wishes:
            self._send(wish)
            if self._gone_within(patience, hurry):
                break
        self._send(signal.SIGKILL)
        self._gone_within(_DEAD_WITHIN_S, lambda: False)
        self._process.wait()
        self._process = None

    def _send(self, wish: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, wish)

    def _gone_within(self, seconds: float, hurry: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + seconds
        while self._members():
            if time.monotonic() > deadline or hurry():
                return False
            time.sleep(_POLL_S)
        return True

    def _members(self) -> bool:
        """Whether anybody of the group is left."""
        if self._process is None:
            return False
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return _anybody(self._process.pid)


def _anybody(group: int) -> bool:
    # Elsewhere than on Linux there is nothing to read.
    return bool(_living(group)) or not Path("/proc/self/stat").exists()


def _living(group: int) -> list[int]:
    """Who is left of it but for zombies: in a container without an init nobody takes those away."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            state, _parent, its_group = stat.read_text().rpartition(") ")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def _held(pid: int) -> set[str]:
    """What its descriptors stand for."""
    found = set[str]()
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(str(each.readlink()))
    return found

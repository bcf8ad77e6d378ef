"""The warm process as the launcher has it, and its end of the line to a run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dagster._core.instance.ref import InstanceRef
from dagster._serdes import serialize_value

# To import all, and to analyse ten thousand views.
_READY_WITHIN_S = 180.0
_FORKED_WITHIN_S = 10.0
# What a run says first of all.
READY, OUTDATED = b"ready", b"outdated"


class Unforked(Exception):
    """Why a run was not forked; nothing of it was begun."""


@dataclass(frozen=True, slots=True)
class Line:
    """To the process of one run, which ends when this is closed, and which is there while its end is open."""

    pid: int
    socket: socket.socket = field(repr=False)

    def begin(self, what: str) -> None:
        """Have the run begin; if its process has just died, whoever looks after it will find that."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(what.encode() + b"\n")

    def is_alive(self) -> bool:
        try:
            return self.socket.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        self.socket.close()


@dataclass(slots=True)
class WarmProcess:
    """The process that has loaded a repository and forks runs of it; there is none before the first."""

    repository: str
    _process: subprocess.Popen[bytes] | None = None
    _requests: socket.socket | None = None
    # The code that it was loaded from, and the code that can't be.
    _server: str | None = None
    _refused: str | None = None

    def forked(self, server: str, instance: InstanceRef) -> Line:
        """A process for a run, which waits to be told which; of the code that `server` has loaded.

        Raises:
            Unforked: there is none, and the process that there might have been does not begin with anything.

        """
        if server == self._refused:
            raise Unforked("the warm process could not load the code, as its log says")
        if self._process is not None and self._process.poll() is None and server == self._server:
            line = self._asked(_FORKED_WITHIN_S)
            if line is not None:
                return line
        # Never there, dead, of earlier code, or it does not answer.
        self.close()
        try:
            self._start(server, instance)
        except OSError as error:
            raise Unforked(f"the warm process can't be started ({error})") from error
        line = self._asked(_READY_WITHIN_S)
        if line is None:
            self.close()
            self._refused = server
            raise Unforked("the warm process does not start")
        return line

    def _start(self, server: str, instance: InstanceRef) -> None:
        ours, its = socket.socketpair()
        with its:
            command = [sys.executable, "-m", "mv_assets.launcher.process", str(its.fileno())]
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                [*command, self.repository, serialize_value(instance)],
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )
        self._requests, self._server = ours, server

    def _asked(self, within_s: float) -> Line | None:
        """A fork that has come in time; one that comes later finds its line closed, and ends."""
        if self._requests is None:
            return None
        ours, its = socket.socketpair()
        try:
            with its:
                socket.send_fds(self._requests, [b"f"], [its.fileno()])
            ours.settimeout(within_s)
            word, _, pid = ours.recv(64).partition(b" ")
        except OSError:
            ours.close()
            return None
        if word != READY:
            ours.close()
            return None
        ours.settimeout(None)
        return Line(int(pid), ours)

    def close(self) -> None:
        """Have it end; its runs go on."""
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
        self._process = self._requests = self._server = None


def started(pid: int) -> int | None:
    """When a process was started, in the kernel's own measure: a number that is given again is another's.

    None where the system does not say, or there is none.
    """
    with suppress(OSError, ValueError):
        state, *fields = Path(f"/proc/{os.fspath(str(pid))}/stat").read_text().rpartition(") ")[2].split()
        return None if state in "ZX" else int(fields[18])
    return None

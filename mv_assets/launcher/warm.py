"""The warm process as the launcher has it, and its end of the line to a run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mv_assets.dagster_internals import InstanceRef, serialize_value

_FORKED_WITHIN_S = 10.0
_MOST = 1 << 16
# What could not be loaded may have been the disk's fault, or another's that is gone.
_LOADED_AGAIN_AFTER_S = 600.0
# What the warm process says once it has loaded all, and what a run says first of all.
LOADED, READY, OUTDATED = b"loaded", b"ready", b"outdated"


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
    # Whose environment variables are to be set.
    location: str
    instance: InstanceRef
    _process: subprocess.Popen[bytes] | None = None
    _requests: socket.socket | None = None
    # The code that it is loaded from, since when, and whether that is done.
    _server: str | None = None
    _since: float = 0.0
    _loaded: bool = False

    def forked(self, server: str) -> Line:
        """A process for a run, which waits to be told which; of the code that `server` has loaded.

        Raises:
            Unforked: there is none, and the process that there might have been does not begin with anything.
                Nobody waits until code is loaded.

        """
        requests = self._requests if server == self._server else None
        if requests is None:
            requests = self._start(server)
        self._see_that_it_is_loaded(requests, server)
        try:
            return _asked(requests)
        except Unforked:
            # Dead, of code that was edited, or it does not answer.
            self._start(server)
            raise

    def _start(self, server: str) -> socket.socket:
        self.close()
        # Each message is received as one.
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "mv_assets.launcher.process", str(its.fileno())]
        # Not among the arguments, which all users of the machine see.
        what = [self.repository, self.location, serialize_value(self.instance), time.time_ns()]
        try:
            with its:
                ours.sendall(json.dumps(what).encode())
                self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                    command, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()]
                )
        except OSError as error:
            ours.close()
            raise Unforked(f"the warm process can't be started ({error})") from error
        self._requests, self._server, self._since = ours, server, time.monotonic()
        return ours

    def _see_that_it_is_loaded(self, requests: socket.socket, server: str) -> None:
        if self._loaded:
            return
        why = "the warm process could not load the code, as its log says"
        try:
            self._loaded = requests.recv(64, socket.MSG_DONTWAIT) == LOADED
        except BlockingIOError:
            why = "the warm process is loading the code"
        except OSError:
            pass
        if not self._loaded:
            if time.monotonic() - self._since > _LOADED_AGAIN_AFTER_S:
                self._start(server)
            raise Unforked(why)

    def close(self) -> None:
        """Have it end; its runs go on."""
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(1)
            except subprocess.TimeoutExpired:
                # Stopped, or in a library that does not come back.
                self._process.kill()
                self._process.wait()
        self._process = self._requests = self._server = None
        self._loaded = False


def _asked(requests: socket.socket) -> Line:
    """A fork that has come in time; one that comes later finds its line closed, and ends."""
    ours, its = socket.socketpair()
    try:
        with its:
            socket.send_fds(requests, [b"f"], [its.fileno()])
        ours.settimeout(_FORKED_WITHIN_S)
        word, _, what = ours.recv(_MOST).partition(b" ")
    except OSError:
        word = what = b""
    if word == READY:
        ours.settimeout(None)
        return Line(int(what), ours)
    ours.close()
    if word == OUTDATED:
        raise Unforked(f"the warm process loads the code anew, as {os.fsdecode(what)} has changed")
    raise Unforked("the warm process did not answer, and another one loads the code")


def started(pid: int) -> int | None:
    """When a process was started, in the kernel's own measure: a number that is given again is another's.

    None where the system does not say, or there is none.
    """
    with suppress(OSError, ValueError):
        state, *fields = Path(f"/proc/{os.fspath(str(pid))}/stat").read_text().rpartition(") ")[2].split()
        return None if state in "ZX" else int(fields[18])
    return None

"""Processes watched until they have ended: how, what they said, and that they did so soon after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

# A hang is for ever: these only tell it from a machine with much to do.
_SILENT_S = 120.0
_ENDS_WITHIN_S = 20.0
_POLL_S = 0.05


@dataclass
class Watched:
    """A process with all that it starts."""

    process: subprocess.Popen[bytes]
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    # When it last said something.
    last: float = field(default_factory=time.monotonic)
    # Whether nobody listens any more.
    left: bool = False
    readers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        for pipe, said in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            assert pipe is not None
            self.readers.append(threading.Thread(target=self._read, args=(pipe, said), daemon=True))
            self.readers[-1].start()

    def _read(self, pipe: IO[bytes], said: bytearray) -> None:
        with pipe:
            while (some := os.read(pipe.fileno(), 65_536)) and not self.left:
                said += some
                self.last = time.monotonic()

    def interrupt(self, times: int = 1) -> None:
        """Press Ctrl-C: everything that was started in the terminal hears it."""
        for _ in range(times):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGINT)
            time.sleep(0.2)
        self.last = time.monotonic()

    def programs(self) -> set[str]:
        """What runs in its terminal."""
        listed = ["ps", "-o", "comm=", "-g", str(self.process.pid)]
        return set(subprocess.run(listed, capture_output=True, text=True, check=False).stdout.split())  # noqa: S603

    def ended(self) -> tuple[int, str, str]:
        """Its exit code, and what it said on stdout and stderr, once it and what it started are gone."""
        while self.process.poll() is None and time.monotonic() - self.last < _SILENT_S:
            time.sleep(_POLL_S)
        took = time.monotonic() - self.last
        if self.process.poll() is None:
            # Says where it is.
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(_ENDS_WITHIN_S)
        for reader in self.readers:
            reader.join(_ENDS_WITHIN_S)
        alive = any(reader.is_alive() for reader in self.readers)
        out, err = self.out.decode(), self.err.decode()
        assert took < _ENDS_WITHIN_S, f"still there {took:.0f} s after its last word\n{out}\n{err}"
        assert not alive, f"what it started is still there {_ENDS_WITHIN_S:.0f} s after it\n{out}\n{err}"
        return self.process.returncode, out, err


@contextmanager
def watched(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Watched]:
    """A process in a terminal of its own, of which nothing is left after the block."""
    started = subprocess.Popen(  # noqa: S603 - our own source
        command,
        env={**os.environ, **environment, "PYTHONFAULTHANDLER": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    process = Watched(started)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        for reader in process.readers:
            reader.join()


def script(source: str) -> list[str]:
    """A command that runs some Python."""
    return [sys.executable, "-c", source]


COMMAND = script("from mv_assets.cli import main; main()")

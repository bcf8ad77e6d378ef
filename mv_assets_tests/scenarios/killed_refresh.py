"""`mv-assets refresh` in a process that kills itself at one step of its work.

python -m mv_assets_tests.scenarios.killed_refresh PROJECT STEP
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from mv_assets.cli import main
from mv_assets.observe import second_look
from mv_assets.run import compute as computing
from mv_assets.run import warehouse
from mv_assets.spark import session
from mv_assets.state import manager
from mv_assets.state.store import map_writer

# Where a process may die: the class, its method, and whether that is still carried out.
STEPS: dict[str, tuple[type, str, bool]] = {
    "before the attempt is registered": (manager.PartitionManager, "register", False),
    "after the attempt is registered": (manager.PartitionManager, "register", True),
    "before Spark is asked": (session.Engine, "session", False),
    "before the job": (computing.Computation, "write", False),
    "after the job": (computing.Computation, "write", True),
    "before the files are read back": (warehouse.Warehouse, "contents", False),
    "before the second look": (second_look.SecondLooks, "look", False),
    "after the second look": (second_look.SecondLooks, "look", True),
    "inside the commit, before the rows": (map_writer.MapWriter, "put_rows", False),
    "inside the commit, after the rows": (map_writer.MapWriter, "put_rows", True),
    "inside the commit, after the header": (map_writer.MapWriter, "put_header", True),
    "after the commit": (manager.PartitionManager, "commit_once", True),
}


def die_at(step: str) -> None:
    """Have the process killed when it comes to a step."""
    owner, name, carried_out = STEPS[step]
    method: Callable[..., Any] = getattr(owner, name)

    def last(*given: Any, **named: Any) -> None:
        if carried_out:
            method(*given, **named)
        if not name.startswith("put_") or _is_commit():
            os.kill(os.getpid(), signal.SIGKILL)
        if not carried_out:
            method(*given, **named)

    setattr(owner, name, last)


def _is_commit() -> bool:
    """Whether a write to the map is a commit's; looks write too."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "commit_once":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


if __name__ == "__main__":
    project, step = sys.argv[1:]
    die_at(step)
    main(["--project", project, "refresh"])

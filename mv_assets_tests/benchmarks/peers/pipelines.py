"""Spark declarative pipelines: a materialized view, and `spark-pipelines run` on a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import yaml

from mv_assets_tests.benchmarks.peers.environment import Environment
from mv_assets_tests.benchmarks.trace import View

NEEDS = (
    "nobody: each run computes the whole view again, whatever changed, and truncates it first: readers "
    "find it empty or half written meanwhile"
)


class Pipelines:
    """Aggregates are a materialized view here; streaming tables are for rows that are only ever added."""

    def __init__(self, folder: Path, base: Path) -> None:
        self._environment, self._base = Environment("pipelines", folder), base

    def deploy(self, view: View) -> None:
        folder = self._environment.folder
        spec = {
            "name": "trace",
            "storage": (folder / "storage").as_uri(),
            "libraries": [{"glob": {"include": "transformations/**"}}],
        }
        (folder / "spark-pipeline.yml").write_text(yaml.safe_dump(spec))
        transformations = folder / "transformations"
        transformations.mkdir(exist_ok=True)
        sql = view.sql(f"parquet.`{self._base}`")
        (transformations / "pricing.sql").write_text(f"CREATE MATERIALIZED VIEW pricing AS {sql};\n")

    def refresh(self, today: date) -> None:  # noqa: ARG002 - it has no notion of time
        self._environment.call("spark-pipelines", "run")

    def mend(self, first: date, last: date, today: date) -> None:  # noqa: ARG002 - it computes all
        self.refresh(today)

    def kept(self) -> Sequence[Path]:
        return sorted((self._environment.warehouse / "pricing").rglob("*.parquet"))

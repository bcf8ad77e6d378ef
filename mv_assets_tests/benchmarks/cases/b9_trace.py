"""B9: a view that nobody looks after, compared with DuckDB's answer after every day."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from mv_assets_tests.benchmarks.by_command import MvAssets
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.benchmarks.line_items import SF, line_items
from mv_assets_tests.benchmarks.trace import SPARK, Base, play
from mv_assets_tests.support.engines import connect_server


def run() -> Sequence[Figure]:
    with tempfile.TemporaryDirectory() as name, connect_server(SPARK) as spark:
        folder = Path(name)
        base = Base(folder / "lineitem", line_items())
        keeper = MvAssets(folder / "project", base.folder, {"MV_ASSETS_SPARK_REMOTE": spark})
        outcomes = list(play(keeper, base))
    wrong = sum(each.wrong for each in outcomes)
    checked = sum(each.buckets for each in outcomes)
    detail = f"of {checked:,} compared, after each of {len(outcomes)} steps, SF {SF}"
    seconds = sum(each.seconds for each in outcomes)
    longest = max(outcomes, key=lambda each: each.seconds)
    took = f"a process each, warm Spark; the longest {longest.seconds:.1f} s: {longest.what}"
    return [
        Figure("B9", "wrong buckets in an unattended trace", wrong, "", 0, detail),
        Figure("B9", "seconds of its refreshes, in all", seconds, "s", None, took),
    ]

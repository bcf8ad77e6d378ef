"""B7: eight processes commit to one view on PostgreSQL; none of it may be lost."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence

from mv_assets_tests.benchmarks import databases
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.unit.state.race_result import Result, derived_watermark, set_up
from mv_assets_tests.unit.state.racer import Race, run_race

RACERS, COMMITS = 8, 200


def run() -> Sequence[Figure]:
    with databases.postgresql(["race"]) as (url,), tempfile.TemporaryDirectory() as folder:
        race = Race(url, folder, RACERS, COMMITS, shared=4, own=4, changes="files")
        set_up(race)
        start = time.perf_counter()
        reports = run_race(race)
        seconds = time.perf_counter() - start
        result = Result.of(race, reports)
    commits = RACERS * COMMITS
    # Each commit is of two buckets, and is answered for each.
    answered = sum(len(report.decisions) for report in reports) // 2
    written, retries = sum(r.writes for r in reports), sum(r.retries for r in reports)
    wrong_watermark = result.snapshot.header.watermark != derived_watermark(result.snapshot)
    gaps = len(result.missing_versions) + len(result.shared_versions)
    size = f"{RACERS} processes x {COMMITS} commits"
    return [
        Figure("B7", f"{size}: lost updates", len(result.lost_updates), "", 0, f"{written} wrote the map"),
        Figure("B7", f"{size}: failed commits", commits - answered, "", 0, f"{retries} retries"),
        Figure("B7", f"{size}: versions missing or twice", gaps, "", 0),
        Figure("B7", f"{size}: repeated commits", len(result.repeated), "", 0),
        Figure("B7", f"{size}: watermark not as derived", int(wrong_watermark), "", 0),
        Figure("B7", f"{size}: time, with the start of the processes", seconds, "s"),
        Figure("B7", f"{size}: commits per second", commits / seconds, "/s"),
    ]

"""Load: many views on one database, many processes at once, many files under one sensor; and memory."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from mv_assets.state.leases import Leases
from mv_assets.state.store import Store
from mv_assets_tests.benchmarks import databases
from mv_assets_tests.benchmarks.cases import b4_look, b8_ticks
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.benchmarks.own_process import alone, peak_mb
from mv_assets_tests.unit.state.race_result import Result, derived_watermark, set_up
from mv_assets_tests.unit.state.racer import Race, run_race

VIEWS, BUCKETS = 100, 1_000
REFRESHERS, READERS, COMMITS = 8, 8, 200
FILES = 1_000_000


def run() -> Sequence[Figure]:
    with databases.postgresql(["views"]) as (url,):
        many = [*alone(partial(_views, "SQLite", None)), *alone(partial(_views, "PostgreSQL", url))]
    return [*many, *_readers_and_refreshers(), *alone(_sensor)]


def _views(database: str, url: str | None) -> list[Figure]:
    names = ["v", *(f"v{number}" for number in range(1, VIEWS))]
    size = f"{VIEWS} views x {BUCKETS:,} buckets on {database}"
    begin = time.perf_counter()
    with b4_look.lake_of(BUCKETS, names, url) as lake:
        filled = time.perf_counter() - begin
        rounds = [_seconds(lake.rounds) for _ in range(5)]
        figures = [
            Figure("load", f"{size}: filling them, {VIEWS * BUCKETS:,} buckets committed", filled, "s"),
            Figure("load", f"{size}: a round of idle looks", statistics.median(rounds), "s", 30.0),
            _memory(f"{size}: memory of all this"),
        ]
        if url is None:
            figures += _status(lake, names, size)
    return figures


def _status(lake: b4_look.Lake, names: Sequence[str], size: str) -> list[Figure]:
    table = {"name": "events", "format": "parquet", "path": str(lake.root), "time_column": "at"}
    views = [b4_look.declaration(name) for name in names]
    project = {"state": f"sqlite:///{lake.root.parent}/state.db", "tables": [table], "views": views}
    file = lake.root.parent / "project.yaml"
    file.write_text(json.dumps(project))
    command = [str(Path(sys.executable).with_name("mv-assets")), "--project", str(file), "status", "--json"]
    took = _seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))  # noqa: S603
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return [
        Figure("load", f"{size}: `mv-assets status --json` of all", took, "s", 30.0),
        Figure("load", f"{size}: memory of that command", peak, " MB", 1_000.0),
    ]


def _readers_and_refreshers() -> list[Figure]:
    """Refreshers in processes, readers in threads of this one, all on one view."""
    with databases.postgresql(["load"]) as (url,), tempfile.TemporaryDirectory() as folder:
        race = Race(url, folder, REFRESHERS, COMMITS, shared=4, own=4, changes="files")
        set_up(race)
        over = threading.Event()
        with ThreadPoolExecutor(READERS) as pool:
            readers = [pool.submit(_read, url, over) for _ in range(READERS)]
            begin = time.perf_counter()
            reports = run_race(race)
            seconds = time.perf_counter() - begin
            over.set()
            reads = sum(reader.result() for reader in readers)
        result = Result.of(race, reports)
    size = f"{REFRESHERS} refreshers and {READERS} readers of one view on PostgreSQL"
    answered = sum(len(report.decisions) for report in reports) // 2
    wrong = len(result.lost_updates) + len(result.missing_versions) + len(result.shared_versions)
    wrong += result.snapshot.header.watermark != derived_watermark(result.snapshot)
    return [
        Figure("load", f"{size}: lost updates, gaps, wrong W", wrong, "", 0),
        Figure("load", f"{size}: failed commits", REFRESHERS * COMMITS - answered, "", 0),
        Figure("load", f"{size}: commits per second", REFRESHERS * COMMITS / seconds, "/s"),
        Figure("load", f"{size}: leased reads of the map per second", reads / seconds, "/s"),
    ]


def _read(url: str, over: threading.Event) -> int:
    """Pin the map again and again; each time it is of one version."""
    store, reads = Store(url), 0
    while not over.is_set():
        with Leases(store).pin("v") as pinned:
            newest = max((row.token for row in pinned.snapshot.rows.values()), default=0)
            if newest > pinned.snapshot.header.version:
                raise AssertionError("rows of a later version than the header's")
        reads += 1
    store.close()
    return reads


def _sensor() -> list[Figure]:
    figures = list(b8_ticks.run(FILES, "load"))
    return [*figures, _memory(f"memory of a sensor over {FILES:,} files", 2_000.0)]


def _memory(what: str, at_most: float | None = None) -> Figure:
    return Figure("load", what, peak_mb(), " MB", at_most)


def _seconds(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin

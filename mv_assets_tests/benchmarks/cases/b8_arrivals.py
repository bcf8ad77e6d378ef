"""B8, at once: from a file's arrival until its bucket is VALID, in `mv-assets dev` as it is."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from mv_assets.state.model import Snapshot, State
from mv_assets.state.rules import effective_state
from mv_assets.state.store import Store
from mv_assets_tests.benchmarks.cases.b8_dagster import VIEW, some_rows, write_project
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.support.dev import UP, Dev, dev

_ROUNDS = 20
_MEDIAN_S, _WORST_S = 6.0, 10.0


def run(rounds: int = _ROUNDS) -> Sequence[Figure]:
    folder = Path(tempfile.mkdtemp())
    try:
        write_project(folder)
        with dev(folder) as running:
            running.until(lambda: UP in running.said())
            return _figures(_arrivals(folder, running, rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _figures(took: Sequence[float]) -> Sequence[Figure]:
    detail = f"of {len(took)}; a file settles for 1 s; load {os.getloadavg()[1]:.1f}"
    return [
        Figure(
            "B8", "file landed -> its bucket VALID, median", statistics.median(took), "s", _MEDIAN_S, detail
        ),
        Figure("B8", "the same, the longest", max(took), "s", _WORST_S, detail),
    ]


def _arrivals(folder: Path, running: Dev, rounds: int) -> Sequence[float]:
    """Seconds each, of files that land at any moment between two ticks."""
    month = (pc.field("l_shipdate") >= date(1995, 3, 1)) & (pc.field("l_shipdate") < date(1995, 4, 1))
    few, took = some_rows(folder).filter(month), list[float]()
    # The view's first run, and what Dagster does about it.
    running.until((folder / "state.db").exists)
    store = Store(f"sqlite:///{folder}/state.db")
    try:
        running.until(lambda: _is_whole(store))
        time.sleep(30)
        for number in range(rounds):
            time.sleep(3 + 1.7 * number % 5)
            before = store.summary(VIEW).header.version
            draft = folder / f".late-{number}.parquet"
            pq.write_table(few, draft)
            draft.rename(folder / "lineitem" / f"late-{number}.parquet")
            begin = time.perf_counter()
            while not _is_done(store.snapshot(VIEW), before):
                assert time.perf_counter() - begin < 300, running.said()
                time.sleep(0.05)
            took.append(time.perf_counter() - begin)
    finally:
        store.close()
    return took


def _is_whole(store: Store) -> bool:
    return VIEW in store.views() and _is_valid(store.snapshot(VIEW))


def _is_valid(snapshot: Snapshot) -> bool:
    states = {effective_state(row, snapshot.header) for row in snapshot.rows.values()}
    return states == {State.VALID}


def _is_done(snapshot: Snapshot, before: int) -> bool:
    fresh = any(row.content is not None and row.content > before for row in snapshot.rows.values())
    return fresh and _is_valid(snapshot)

"""B11: a look at a Delta or Iceberg table after one commit costs what was committed, however large it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from mv_assets.config import DeclaredProject, MaterializedView
from mv_assets.config.file import Draft
from mv_assets.observe.observation import Observation
from mv_assets.plan import planner
from mv_assets.state.store import Store
from mv_assets.tables.open import open_table
from mv_assets.views.catalog import prepare
from mv_assets_tests.benchmarks.cases import b4_look
from mv_assets_tests.benchmarks.figure import Figure, ratio
from mv_assets_tests.benchmarks.large_tables import LargeDelta, LargeIceberg, LargeTable
from mv_assets_tests.benchmarks.own_process import alone, peak_mb
from mv_assets_tests.benchmarks.tpch import folder

SMALL, LARGE = 1_000, 1_000_000
# Buckets of the view, whatever the number of files.
HOURS = 1_000
_ROUNDS = 7
_KINDS: dict[str, Callable[[Path, int, int], LargeTable]] = {"Delta": LargeDelta, "Iceberg": LargeIceberg}


def run() -> Iterator[Figure]:
    for kind in _KINDS:
        yield from alone(partial(looks, kind, LARGE))


def looks(kind: str, large: int) -> list[Figure]:
    """Looks in turns, each after a commit of one file, by CPU time, as machines are busy."""
    samples: dict[str, list[float]] = {"small": [], "large": [], "library": []}
    with folder() as place:
        sizes = {"small": SMALL, "large": large}
        tables = {name: _KINDS[kind](place / name, size, HOURS) for name, size in sizes.items()}
        lakes = {name: opened(table, place / f"{name}.db") for name, table in tables.items()}
        for lake in lakes.values():
            b4_look.fill(lake)
        library = tables["large"].reader()
        for _ in range(_ROUNDS):
            for name, lake in lakes.items():
                tables[name].commit()
                samples[name].append(_cpu(partial(_looked, lake)))
            samples["library"].append(_cpu(library))
            for lake in lakes.values():
                b4_look.fill(lake)
        for lake in lakes.values():
            lake.store.close()
    what = (
        f"{kind}: look that finds one commit and its late file, and plan, {large:,} files, {HOURS:,} buckets"
    )
    return [
        ratio("B11", f"{what} / the library reading that commit", samples, "large", "library", 3.0),
        ratio("B11", f"{what} / the same at {SMALL:,} files", samples, "large", "small", 2.0),
        Figure("B11", f"{kind}: memory of that process, {large:,} files", peak_mb(), " MB"),
    ]


def opened(table: LargeTable, state: Path) -> b4_look.Lake:
    """A view on the table, of which nothing is computed yet."""
    declared = table.declared
    view = MaterializedView.model_validate({**b4_look.declaration(), "start": table.start})
    catalog = prepare(Draft("B11", DeclaredProject(tables=(declared,), views=(view,))), schemas=False)
    store = Store(f"sqlite:///{state}")
    return b4_look.Lake(table.place, store, catalog, open_table(declared, store.database, b4_look.now))


def _looked(lake: b4_look.Lake) -> None:
    observed = lake.round()
    assert isinstance(observed, Observation)
    assert [len(work.buckets) for work in planner.plan(observed).work] == [1]


def _cpu(step: Callable[[], object]) -> float:
    begin = time.process_time()
    step()
    return time.process_time() - begin

"""B11: a look at a Delta or Iceberg table after one commit costs what was committed, however large it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from mv_assets.config import DeclaredProject, MaterializedView
from mv_assets.config.file import Draft
from mv_assets.state.store import Store
from mv_assets.tables.open import open_table
from mv_assets.views.catalog import prepare
from mv_assets_tests.benchmarks.cases import b4_look
from mv_assets_tests.benchmarks.cases.b10_alone import looked
from mv_assets_tests.benchmarks.figure import Figure, Step, interleaved, ratio
from mv_assets_tests.benchmarks.large_tables import LargeDelta, LargeIceberg, LargeTable
from mv_assets_tests.benchmarks.own_process import alone, peak_mb
from mv_assets_tests.benchmarks.tpch import folder

SMALL, LARGE = 1_000, 1_000_000
# Files of an hour, however many there are: a bucket that is computed again has as many.
A_BUCKET = 1_000
_WARM_UP, _ROUNDS = 1, 7
_KINDS: dict[str, Callable[[Path, int, int], LargeTable]] = {"Delta": LargeDelta, "Iceberg": LargeIceberg}


def run() -> Iterator[Figure]:
    for kind in _KINDS:
        yield from alone(partial(looks, kind, LARGE))


def looks(kind: str, large: int) -> list[Figure]:
    """Looks in turns, each after a commit of one file, by CPU time, as machines are busy."""
    with folder() as place:
        sizes = {"small": SMALL, "large": large}
        tables = {name: _KINDS[kind](place / name, size, size // A_BUCKET) for name, size in sizes.items()}
        lakes = {name: opened(table, place / f"{name}.db") for name, table in tables.items()}
        library = tables["large"].reader()

        def look(name: str) -> Callable[[], object]:
            b4_look.fill(lakes[name])
            tables[name].commit()
            return partial(looked, lakes[name])

        def read() -> Callable[[], object]:
            library()
            tables["large"].commit()
            return library

        steps: dict[str, Step] = {name: partial(look, name) for name in lakes}
        steps["library"] = read
        interleaved(_WARM_UP, steps)
        samples = interleaved(_ROUNDS, steps, time.process_time)
        for lake in lakes.values():
            lake.store.close()
    size = f"{large:,} files, {large // A_BUCKET:,} buckets, CPU time"
    what = f"{kind}: look that finds one commit and its late file, and plan, {size}"
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

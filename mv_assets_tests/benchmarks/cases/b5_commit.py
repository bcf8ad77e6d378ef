"""B5: the commit of one bucket into a small and a large map, and beside a bare version-checked UPDATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from mv_assets_tests.benchmarks import databases
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.benchmarks.filled_view import FilledView

SMALL, LARGE = 100, 100_000
WARM_UP, ROUNDS = 20, 300
BETWEEN_SIZES, OVER_BARE = 1.1, 2.5

Databases = Callable[[list[str]], AbstractContextManager[list[str]]]
KINDS: dict[str, Databases] = {"SQLite": databases.sqlite, "PostgreSQL": databases.postgresql}


def run() -> Sequence[Figure]:
    return [figure for kind, make in KINDS.items() for figure in measure(kind, make)]


def measure(kind: str, make: Databases) -> list[Figure]:
    with make(["small", "large"]) as (small_url, large_url):
        small, large = FilledView(small_url, SMALL), FilledView(large_url, LARGE)
        steps = {
            f"{operation.__name__} {name}": operation
            for name, view in (("small", small), ("large", large))
            for operation in (view.bare, view.overwrite, view.append)
        }
        interleaved(WARM_UP, steps)
        samples = interleaved(ROUNDS, steps)
        small.close()
        large.close()
    figures = []
    for operation in ("overwrite", "append"):
        name = f"{kind}, {operation.upper()}"
        what = f"{name}: {LARGE:,} rows / {SMALL} rows"
        figures.append(ratio("B5", what, samples, f"{operation} large", f"{operation} small", BETWEEN_SIZES))
        for size, rows in (("small", SMALL), ("large", LARGE)):
            what = f"{name}, {rows:,} rows: commit / bare UPDATE"
            figures.append(ratio("B5", what, samples, f"{operation} {size}", f"bare {size}", OVER_BARE))
    return figures

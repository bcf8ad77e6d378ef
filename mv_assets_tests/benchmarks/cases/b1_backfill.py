"""B1: seven years computed for the first time, against the same SQL written by hand, and written nowhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from mv_assets_tests.benchmarks.by_hand import ByHand
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.benchmarks.line_items import SF
from mv_assets_tests.benchmarks.tpch import MONTHS, folder, measured, months, shop, warm

_ROUNDS = 5


def run() -> Sequence[Figure]:
    with ExitStack() as held:
        lake, engine = held.enter_context(months()), held.enter_context(warm())
        job = ByHand(engine.shared(), str(lake), str(held.enter_context(folder())))

        def backfill(most: int) -> Callable[[], object]:
            cold = held.enter_context(shop(lake, engine, max_buckets_per_run=most))
            return partial(cold.refresh, MONTHS)

        steps: dict[str, Callable[[], Callable[[], object]]] = {
            "backfill": partial(backfill, MONTHS),
            "in two": partial(backfill, 64),
            "by hand": measured(job.everything),
            "nowhere": measured(job.nowhere),
        }
        interleaved(1, steps)
        samples = interleaved(_ROUNDS, steps)
    what = f"cold backfill, {MONTHS} months in a ranged run, SF {SF}"
    return [
        ratio("B1", f"{what} / partitionBy by hand", samples, "backfill", "by hand", 0.8),
        ratio("B1", f"{what} / the same SQL to noop", samples, "backfill", "nowhere", 1.1),
        ratio("B1", "in two runs, as by default / in one", samples, "in two", "backfill"),
    ]

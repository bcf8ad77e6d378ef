"""B2: one late file for one month of seven years, from the look to the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

import duckdb

from mv_assets_tests.benchmarks.by_hand import ByHand
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.benchmarks.line_items import SF
from mv_assets_tests.benchmarks.tpch import MONTHS, folder, measured, months, shop, warm

_WARM_UP, _ROUNDS = 3, 9


def run() -> Sequence[Figure]:
    with ExitStack() as held:
        lake, engine = held.enter_context(months()), held.enter_context(warm())
        made = held.enter_context(shop(lake, engine))
        made.refresh(MONTHS)
        job = ByHand(engine.shared(), str(lake), str(held.enter_context(folder())))
        # The same files for both, each round in another month.
        refreshed, rewritten = count(), count()

        def late() -> Callable[[], object]:
            arrived(lake, next(refreshed))
            return partial(made.refresh, 1)

        def by_hand() -> Callable[[], object]:
            return partial(job.month, arrived(lake, next(rewritten)))

        steps = {"late": late, "one by hand": by_hand, "all by hand": measured(job.everything)}
        interleaved(_WARM_UP, steps)
        samples = interleaved(_ROUNDS, steps)
    what = f"a late file in 1 of {MONTHS} months, SF {SF}"
    return [
        ratio("B2", f"{what} / all months by hand", samples, "late", "all by hand", 0.1),
        ratio("B2", f"{what} / that month by hand", samples, "late", "one by hand", 1.15),
    ]


def arrived(lake: Path, number: int) -> str:
    """The month for which a late file, with a hundredth of that month's rows, has arrived by now."""
    month = f"{1992 + number // 12}-{1 + number % 12:02}"
    late = lake / f"{month}-late.parquet"
    if not late.exists():
        rows = f"SELECT * FROM read_parquet('{lake}/{month}-*.parquet') WHERE l_orderkey % 100 = 1"
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({rows}) TO '{late}' (FORMAT parquet)")
    return month

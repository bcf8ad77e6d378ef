"""B2 for any keeper: one late file into 1 of 84 months."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import duckdb

from mv_assets_tests.benchmarks.trace import Base, Keeper, View, compared

ROUNDS = 3
_VIEW = View("month", date(1992, 1, 1))
_FIRST, _LAST = date(1995, 3, 1), date(1995, 3, 31)


@dataclass(frozen=True, slots=True)
class Late:
    """Medians: the scheduled run, the months that were wrong after it, and what a person then had to run."""

    seconds: float
    wrong: int
    mended: float | None


def write_months(folder: Path, source: Path) -> None:
    """TPC-H's line items, a file a month."""
    months = folder.with_name("by_month")
    with duckdb.connect() as connection:
        rows = f"SELECT *, strftime(l_shipdate, '%Y-%m') AS m FROM '{source}'"
        connection.execute(f"COPY ({rows}) TO '{months}' (FORMAT parquet, PARTITION_BY (m))")
        # The data ends on the first of its last month; with this it is complete.
        end = f"SELECT * REPLACE (DATE '1998-12-31' AS l_shipdate) FROM '{source}' LIMIT 1"
        folder.mkdir()
        connection.execute(f"COPY ({end}) TO '{folder}/end.parquet' (FORMAT parquet)")
    for part in months.glob("m=*/*.parquet"):
        part.rename(folder / f"{part.parent.name[2:]}-{part.name}")
    shutil.rmtree(months)


def measure(keeper: Keeper, base: Base) -> Late:
    """A late file a round, each followed by the scheduled run of a new month."""
    keeper.deploy(_VIEW)
    keeper.refresh(date(1999, 1, 15))
    wrong, months = compared(keeper, base, _VIEW)
    if wrong or months != 84:
        raise RuntimeError(f"{len(wrong)} of {months} months were wrong before anything was late")
    runs, mends, most = [], [], 0
    for number in range(ROUNDS):
        today = date(1999, 2 + number, 15)
        march = f"l_shipdate BETWEEN DATE '{_FIRST}' AND DATE '{_LAST}'"
        base.arrive(f"late-{number}", f"{march} AND l_orderkey % 64 = {number}")
        runs.append(_seconds(partial(keeper.refresh, today)))
        wrong, _ = compared(keeper, base, _VIEW)
        most = max(most, len(wrong))
        if wrong:
            mends.append(_seconds(partial(keeper.mend, _FIRST, _LAST, today)))
            wrong, _ = compared(keeper, base, _VIEW)
            if wrong:
                raise RuntimeError(f"{', '.join(map(str, wrong))} is still wrong after it was run again")
    return Late(statistics.median(runs), most, statistics.median(mends) if mends else None)


def _seconds(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin

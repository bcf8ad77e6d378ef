"""`python -m mv_assets_tests.benchmarks [B5 ...]`: all that have targets, or the named ones."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mv_assets_tests.benchmarks import machine
from mv_assets_tests.benchmarks.cases import (
    b1_backfill,
    b2_late_file,
    b3_merge,
    b4_look,
    b5_commit,
    b6_queries,
    b7_race,
    b8_arrivals,
    b8_dagster,
    b8_ticks,
    b9_trace,
    b10_change,
    b11_lakehouse,
    b12_commands,
    b13_deletes,
    b14_publishing,
    b15_windows,
    b16_folders,
    growth,
    load,
    start,
    streamed,
    views,
)
from mv_assets_tests.benchmarks.figure import Benchmark, Figure

BENCHMARKS: dict[str, Benchmark] = {
    "B1": b1_backfill.run,
    "B2": b2_late_file.run,
    "B3": b3_merge.run,
    "B4": b4_look.run,
    "B5": b5_commit.run,
    "B6": b6_queries.run,
    "B7": b7_race.run,
    "B8": lambda: [*b8_ticks.run(), *b8_dagster.run(), *b8_arrivals.run()],
    "B9": b9_trace.run,
    "B10": b10_change.run,
    "B11": b11_lakehouse.run,
    "B12": b12_commands.run,
    "B13": b13_deletes.run,
    "B14": b14_publishing.run,
    "B15": b15_windows.run,
    "B16": b16_folders.run,
    "start": start.run,
    "views": views.run,
    "streamed": streamed.run,
    "load": load.run,
    "growth": growth.run,
}
# Curves without targets, which take as long as all others together: by name only.
_BY_NAME = ("load", "growth")
RESULTS = Path("benchmarks.json")


def main(names: Sequence[str]) -> int:
    console = Console()
    if not console.is_terminal:
        console.width = 160
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        console.print(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    figures, failures, on = list[Figure](), list[str](), machine.describe()
    seconds: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as lakes:
        os.environ[b4_look.KEPT] = lakes
        for name in names or [name for name in BENCHMARKS if name not in _BY_NAME]:
            console.print(f"{name} ...")
            begin = time.monotonic()
            try:
                for figure in BENCHMARKS[name]():
                    # A long one that fails in the end has said what it found.
                    console.print(f"  {figure.what}: {figure.value:g}{figure.unit}", highlight=False)
                    figures.append(figure)
            except Exception:  # noqa: BLE001 - the others are measured all the same
                failures.append(f"{name} failed: {traceback.format_exc()}")
            seconds[name] = round(time.monotonic() - begin)
            console.print(f"  {seconds[name]} s", highlight=False)
    on["load at the end"] = machine.load()
    console.print(table(figures))
    for failure in failures:
        console.print(failure, style="bold red", highlight=False, markup=False)
    console.print(f"in all: {sum(seconds.values()) / 60:.0f} minutes", highlight=False)
    for key, value in on.items():
        console.print(f"{key}: {value}", highlight=False)
    lines = [{**asdict(figure), "met": figure.met} for figure in figures]
    found = {"on": on, "figures": lines, "failures": failures, "seconds": seconds}
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    return 1 if failures or not all(figure.met for figure in figures) else 0


def table(figures: Sequence[Figure]) -> Table:
    made = Table()
    for heading in ("", "what", "figure", "target", "from"):
        made.add_column(heading, justify="right" if heading in ("figure", "target") else "left")
    for figure in figures:
        target = "" if figure.at_most is None else f"<= {figure.at_most:g}{figure.unit}"
        number = f"{figure.value:.2f}" if figure.unit else f"{figure.value:g}"
        style = "" if figure.met else "bold red"
        made.add_row(
            figure.benchmark, figure.what, f"{number}{figure.unit}", target, figure.detail, style=style
        )
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

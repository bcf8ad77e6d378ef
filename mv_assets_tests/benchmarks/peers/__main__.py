"""`python -m mv_assets_tests.benchmarks.peers [KEEPER ...]`: all keepers of views side by side, or some."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mv_assets_tests.benchmarks import machine
from mv_assets_tests.benchmarks.by_command import MvAssets
from mv_assets_tests.benchmarks.line_items import SF, line_items
from mv_assets_tests.benchmarks.peers import dbt, late_file, lookback, pipelines, sqlmesh
from mv_assets_tests.benchmarks.peers.environment import PEERS, REQUIREMENTS
from mv_assets_tests.benchmarks.peers.late_file import Late
from mv_assets_tests.benchmarks.trace import Base, Keeper, Outcome, play

_KEEPERS: Mapping[str, tuple[Callable[[Path, Path], Keeper], str]] = {
    "mv_assets": (MvAssets, "nobody"),
    "by hand, 30 days": (lookback.Lookback, lookback.NEEDS),
    "SQLMesh": (sqlmesh.SqlMesh, sqlmesh.NEEDS),
    "dbt": (dbt.Dbt, dbt.NEEDS),
    "pipelines": (pipelines.Pipelines, pipelines.NEEDS),
}


@dataclass(slots=True)
class Result:
    """How far a keeper came, and how well."""

    outcomes: list[Outcome] = field(default_factory=list)
    late: Late | None = None
    failures: list[str] = field(default_factory=list)


def main(names: Sequence[str]) -> int:
    console = Console(width=None if sys.stdout.isatty() else 160)
    unknown = [name for name in names if name not in _KEEPERS]
    if unknown:
        console.print(f"no keeper {', '.join(unknown)}; there are {', '.join(_KEEPERS)}")
        return 2
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        source = line_items()
        late_file.write_months(folder / "months", source)
        results = {name: _result(name, folder, source, console) for name in names or _KEEPERS}
    on = machine.describe() | {name: ", ".join(pins) for name, pins in REQUIREMENTS.items()}
    console.print(table(results))
    for name, result in results.items():
        console.print(f"{name} needs a person for: {_KEEPERS[name][1]}", highlight=False)
        for failure in result.failures:
            console.print(f"{name} failed: {failure}", style="bold red", highlight=False, markup=False)
    for key, value in on.items():
        console.print(f"{key}: {value}", highlight=False, markup=False)
    PEERS.mkdir(exist_ok=True)
    kept = {name: asdict(result) for name, result in results.items()}
    (PEERS / "results.json").write_text(json.dumps({"on": on, "results": kept}, indent=2) + "\n")
    return 1 if any(result.failures for result in results.values()) else 0


def _result(name: str, folder: Path, source: Path, console: Console) -> Result:
    """Whatever goes wrong with a keeper is its result, not the others'."""
    result, make = Result(), _KEEPERS[name][0]

    def trace() -> None:
        base = Base(folder / name / "lineitem", source)
        for outcome in play(make(folder / name / "trace", base.folder), base):
            result.outcomes.append(outcome)
            console.print(f"{name}: {outcome.what}, {outcome.wrong} wrong, {outcome.seconds:.1f} s")

    def late() -> None:
        base = Base(folder / name / "months", source)
        for file in (folder / "months").iterdir():
            (base.folder / file.name).hardlink_to(file)
        result.late = late_file.measure(make(folder / name / "late", base.folder), base)
        console.print(f"{name}: {result.late}")

    for part in (trace, late):
        try:
            part()
        except Exception as error:  # noqa: BLE001 - a peer may fail in any way
            result.failures.append(f"{part.__name__}: {error}")
    shutil.rmtree(folder / name, ignore_errors=True)
    return result


def table(results: Mapping[str, Result]) -> Table:
    """A line a step: wrong buckets and seconds of each keeper."""
    made = Table(title=f"wrong buckets and seconds after each step, nobody at hand; SF {SF}")
    made.add_column("")
    for name in results:
        made.add_column(name, justify="right")
    steps = max((result.outcomes for result in results.values()), key=len)
    for number, step in enumerate(steps):
        cells = (_cell(result.outcomes[number : number + 1]) for result in results.values())
        made.add_row(f"{step.what} ({step.buckets} buckets)", *cells)
    made.add_section()
    whole = (result.outcomes if len(result.outcomes) == len(steps) else [] for result in results.values())
    made.add_row("in all", *map(_cell, whole))
    made.add_section()
    late = [result.late for result in results.values()]
    made.add_row(
        f"B2: a file into 1 of 84 months, median of {late_file.ROUNDS}",
        *("failed" if each is None else f"{each.wrong} wrong {each.seconds:8.1f} s" for each in late),
    )
    made.add_row("B2: then, told the month by a person", *map(_mended, late))
    return made


def _cell(outcomes: Iterable[Outcome]) -> str:
    listed = list(outcomes)
    if not listed:
        return "failed"
    wrong, seconds = sum(each.wrong for each in listed), sum(each.seconds for each in listed)
    return f"{wrong} wrong {seconds:8.1f} s"


def _mended(late: Late | None) -> str:
    if late is None:
        return "failed"
    return "not needed" if late.mended is None else f"{late.mended:.1f} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

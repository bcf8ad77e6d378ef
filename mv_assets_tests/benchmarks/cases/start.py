"""How soon commands answer: their start, against Python's own and that of a library they can't do without."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from mv_assets_tests.benchmarks.cases import b4_look
from mv_assets_tests.benchmarks.figure import Figure, Samples, ratio
from mv_assets_tests.benchmarks.own_process import alone

_ROUNDS = 9
_FILES, _MANY = 14, 100_000
_MOST_MB = 150.0
_COMMAND = str(Path(sys.executable).with_name("mv-assets"))


def run() -> Iterator[Figure]:
    with b4_look.lake_of(_FILES) as lake:
        samples = _samples(_project(lake))
    # On a quiet machine Python starts in 15 ms, and SQLAlchemy in 160 ms.
    yield _ratio("import mv_assets", samples, "python -c pass", 2.0)
    yield _ratio("mv-assets --help", samples, "import sqlalchemy", 1.5)
    yield _ratio("mv-assets status", samples, "import sqlalchemy", 3.75)
    yield from alone(partial(_memory, _MANY))


def _ratio(what: str, samples: Samples, against: str, at_most: float) -> Figure:
    return ratio("start", f"{what} / {against}, CPU time", samples, what, against, at_most)


def _samples(project: Path) -> Samples:
    """CPU time in turns, with a warm file cache."""
    commands: Mapping[str, list[str]] = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import sqlalchemy": [sys.executable, "-c", "import sqlalchemy"],
        "import mv_assets": [sys.executable, "-c", "import mv_assets"],
        "mv-assets --help": [_COMMAND, "--help"],
        "mv-assets status": [_COMMAND, "--project", str(project), "status"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for round_ in range(_ROUNDS + 1):
        for name, command in commands.items():
            seconds = _cpu(command)
            # The first round has the files read.
            if round_:
                taken[name].append(seconds)
    return taken


def _memory(buckets: int) -> list[Figure]:
    """The most that a command takes of a view with very many buckets."""
    with b4_look.lake_of(buckets) as lake:
        return alone(partial(_status, _project(lake), buckets))


def _status(project: Path, buckets: int) -> list[Figure]:
    _cpu([_COMMAND, "--project", str(project), "status"])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    what = f"peak memory of `mv-assets status`, {buckets:,} buckets"
    return [Figure("start", what, peak, " MB", _MOST_MB)]


def _project(lake: b4_look.Lake) -> Path:
    table = {"name": "events", "format": "parquet", "path": str(lake.root), "time_column": "at"}
    state = f"sqlite:///{lake.root.parent}/state.db"
    file = lake.root.parent / "project.yaml"
    file.write_text(json.dumps({"state": state, "tables": [table], "views": [b4_look.declaration()]}))
    return file


def _cpu(command: list[str]) -> float:
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system

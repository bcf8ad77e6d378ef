"""Many views in one project: loading it, looks, a tick of the sensor and `status`, each of them linear."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from mv_assets.project import Project
from mv_assets.views.admission.analysis import ANALYSED
from mv_assets_tests.benchmarks.cases import b4_look, b8_ticks
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.benchmarks.own_process import alone

FEW, MANY = 100, 1_000
_FILES, _ROUNDS = 10, 5
# What one of many views may cost, against one of a few.
_MOST = 1.5


def run() -> Iterator[Figure]:
    few, many = (alone(partial(views, count)) for count in (FEW, MANY))
    for less, more in zip(few, many, strict=True):
        yield more
        share = more.value / MANY / (less.value / FEW)
        detail = f"{less.value:.3g} s with {FEW}; linear growth is 1"
        yield Figure("views", f"a view's share of it, {MANY:,} views / {FEW}", share, "x", _MOST, detail)


def views(count: int) -> list[Figure]:
    """By CPU time, as machines are busy, in turns."""
    names = ["v", *(f"v{number}" for number in range(1, count))]
    with b8_ticks.ticking(_FILES, names) as ticks:
        ticks.tick()
        ticks.tell_all()
        ticks.tick()
        file = _project(ticks.lake, names)
        with Project.open(file) as project:
            steps: Mapping[str, Callable[[], object]] = {
                "loading a project and analysing its SQL": partial(_loaded, file),
                "round of looks that find nothing": ticks.lake.rounds,
                "tick of the sensor that finds nothing": partial(ticks.ask, 0),
                "status of all": lambda: str(project.status()),
            }
            taken = [_round(steps) for _ in range(_ROUNDS + 1)][1:]
    detail = f"CPU time, median of {_ROUNDS}"
    return [
        Figure(
            "views",
            f"{what}, {count:,} views",
            statistics.median(each[what] for each in taken),
            "s",
            None,
            detail,
        )
        for what in steps
    ]


def _round(steps: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    taken = {}
    for what, step in steps.items():
        # What others did to the maps, by another clock, is seen before.
        step()
        begin = time.process_time()
        step()
        taken[what] = time.process_time() - begin
    return taken


def _loaded(file: Path) -> None:
    ANALYSED.clear()
    with Project.open(file) as project:
        assert project.views


def _project(lake: b4_look.Lake, names: Sequence[str]) -> Path:
    table = {"name": "events", "format": "parquet", "path": str(lake.root), "time_column": "at"}
    views = [b4_look.declaration(name) for name in names]
    state = f"sqlite:///{lake.root.parent}/state.db"
    file = lake.root.parent / "project.yaml"
    file.write_text(json.dumps({"state": state, "tables": [table], "views": views}))
    return file

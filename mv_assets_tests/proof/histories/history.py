"""A lake with views, to whose files things happen by a seed, while it is refreshed, asked and cleaned up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

from mv_assets.config import MaterializedView
from mv_assets.maintain.garbage import Garbage
from mv_assets.plan import planner
from mv_assets.plan.planner import Plan
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.run import executor
from mv_assets.run.warehouse import Warehouse
from mv_assets.spark.session import Engine
from mv_assets.state.model import Outcome
from mv_assets.state.store import Store
from mv_assets_tests.proof.histories.changes import Changes
from mv_assets_tests.proof.histories.files import Files, Version
from mv_assets_tests.proof.histories.judge import Judge
from mv_assets_tests.proof.histories.oracle import Calendar
from mv_assets_tests.proof.histories.views import DECLARED, declared
from mv_assets_tests.support.queried_lake import rows_of
from mv_assets_tests.support.spark_lake import SparkLake

# The first days of the views: New York's clocks change on the sixth day, back or forth.
STARTS = (date(2024, 10, 29), date(2024, 3, 5))
_LATER = (1_000, 60_000, 7_200_000)


class History:
    """Everything follows from the seed."""

    def __init__(self, seed: int, folder: Path, engine: Engine) -> None:
        self._seed, self._random = seed, random.Random(seed)
        self._start = STARTS[seed % len(STARTS)]
        self._turns = dict.fromkeys(DECLARED, 0)
        self._store = Store(f"sqlite:///{folder}/state.db")
        views, place = self._declared(), folder / "lake"
        self._lake = SparkLake(place, self._store, views, ["names"], ["payments"], engine=engine)
        self._files, self.story = Files(place), list[str]()
        self._changes = Changes(self._random, self._start, self._files, self.story)
        self.judge = Judge(self._lake, self._files)
        self.judge.note()

    def close(self) -> None:
        self.judge.close()
        self._store.close()

    def play(self, steps: int) -> None:
        """A history, with a refresh at its beginning and at its end."""
        try:
            self.refresh()
            for _ in range(steps):
                self.step()
            self.refresh()
            self.ask()
        except Exception as error:
            error.add_note(f"seed {self._seed}: " + "; ".join(self.story))
            raise

    def step(self) -> None:
        """Some files change, and something is done about it."""
        for _ in range(self._random.choice((1, 1, 2, 3))):
            self.change()
        done: dict[Callable[[], None], int] = {
            self.refresh: 4, self.refresh_one: 4, self.refresh_meanwhile: 6, self.redefine: 1, self.ask: 2,
            self.collect: 1, self.force: 2, self.wait: 1,
        }  # fmt: skip
        [act] = self._random.choices(list(done), list(done.values()))
        act()

    def change(self) -> None:
        """Something happens to the files."""
        self._changes.happen()
        self.judge.note()

    def refresh(self, *names: str) -> None:
        self._say(f"refresh {' '.join(names)}")
        reports = self._lake.run(*names)
        self._check()
        for name, report in reports.items():
            assert not report.wrong, f"{name}: {report.wrong}"
            self.judge.current(name)

    def refresh_one(self) -> None:
        self.refresh(self._one())

    def refresh_meanwhile(self) -> None:
        """A round of one view; while it is computed, files change, some for a moment only."""
        name = self._one()
        observed = self._lake.look(name)
        plan, calendar = planner.plan(observed), Calendar(observed.view.declared)
        meanwhile = self._random.choice(("before", "after", "for a moment"))
        self._say(f"round of {name}, {meanwhile}:")
        if meanwhile == "for a moment":
            self._lake.before = partial(self._swap, self._read(calendar, plan))
        else:
            setattr(self._lake, meanwhile, partial(self._once, meanwhile))
        done = executor.carry_out(self._lake.open(), observed, plan)
        results = [result for _, some in done for result in some]
        self._lake.before = self._lake.after = None
        self._say(f"{name} done")
        self._check()
        # What a commit calls VALID is so by the files as they are now: nothing has happened since.
        self.judge.current(name, [each.bucket for each in results if each.outcome is Outcome.COMMITTED])

    def _once(self, when: str) -> None:
        setattr(self._lake, when, None)
        self.change()

    def _read(self, calendar: Calendar, plan: Plan) -> list[Version]:
        """The files that a plan reads."""
        days = [calendar.day(planned.bucket) for work in plan.work for planned in work.buckets]
        reached = [calendar.reached(day, self._files) for day in days]
        return sorted({each for contents in reached for some in contents.values() for each in some}, key=repr)

    def _swap(self, files: list[Version]) -> None:
        """A file has other rows while it is read, and is then as it was."""
        self._lake.before = None
        if files:
            version = self._random.choice(files)
            self._changes.swap(version)
            self._lake.after = partial(self._swap_back, version)

    def _swap_back(self, version: Version) -> None:
        self._lake.after = None
        self._changes.swap_back(version)

    def force(self) -> None:
        name = self._one()
        rows = sorted(self._lake.snapshot(name).rows)
        if rows:
            view = self._lake.catalog.view(name)
            self._lake.manager.force(view.declaration, [self._random.choice(rows)], "a person")
            self._say(f"{name} forced")

    def redefine(self) -> None:
        """A window is added, changed or taken away; what was there before is adopted again."""
        name = self._random.choice([name for name, turns in DECLARED.items() if len(turns) > 1])
        self._turns[name] += 1
        self._lake.declare(*self._declared())
        definition = self._lake.catalog.view(name).definition
        if definition in self._store.history(name):
            self._lake.manager.adopt(name, definition)
        self.judge.note()
        self._say(f"{name} declared anew")

    def collect(self) -> None:
        garbage = Garbage(self._store, self._lake.manager, Warehouse(self._lake.warehouse.root))
        for name in DECLARED:
            assert not garbage.gc(name).errors
        self._say("gc")
        self._check()

    def ask(self) -> None:
        """A view by its name, strictly."""
        name = self._one()
        text = f"SELECT {', '.join(self.judge.columns(name))} FROM {name}"
        answer = Answers(self._lake.open()).answer(Question(text))
        self.judge.asked(name, Counter(rows_of(answer)))
        self._say(f"{name} asked")

    def wait(self) -> None:
        self._lake.clock.now += self._random.choice(_LATER)

    def _check(self) -> None:
        for name in DECLARED:
            self.judge.stored(name)

    def _declared(self) -> list[MaterializedView]:
        return [declared(name, self._start, self._turns[name]) for name in DECLARED]

    def _one(self) -> str:
        return self._random.choice(list(DECLARED))

    def _say(self, what: str) -> None:
        self.story.append(what)

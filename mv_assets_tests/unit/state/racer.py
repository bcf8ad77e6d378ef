"""Real processes racing on one view: `run_race` starts them, this module run by itself is one of them.

The base table is a folder, one small file a day, so that all processes see the same changes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self

from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Mark, SecondLook
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store
from mv_assets.state.store.retry import Retry
from mv_assets_tests.support.harness import Clock, Deployment, Work
from mv_assets_tests.support.memory_table import DAY, BaseTable, File


@dataclass(frozen=True, slots=True)
class Race:
    """What every process of a race does: days `0..shared` are wanted by all, `own` days by each alone."""

    url: str
    folder: str
    racers: int
    commits: int
    shared: int
    own: int
    # "none": files stay; "files": the own file changes before each commit, at times a shared one;
    # "all": files, marks and forced marks at random.
    changes: str = "all"

    @property
    def days(self) -> int:
        return self.shared + self.racers * self.own

    def days_of(self, racer: int) -> range:
        first = self.shared + racer * self.own
        return range(first, first + self.own)


@dataclass
class Report:
    """What one process was told: every commit decision, and how many of its calls wrote the map."""

    who: str
    # Day, content read, outcome, and the version it was written at.
    decisions: list[tuple[int, int, str, int | None]] = field(default_factory=list)
    writes: int = 0
    retries: int = 0


class SharedTable(BaseTable):
    """A base table that others write too: `relist` is the listing."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def relist(self) -> None:
        for path in sorted(self._folder.glob("day-*")):
            day, content = int(path.name.removeprefix("day-")), int(path.read_text())
            # Contents never repeat, so the content tells whether it is still the same object.
            self.files[path.name] = File(content, day * DAY, (day + 1) * DAY - 1, content)

    def rewrite(self, day: int, content: int) -> None:
        half = self._folder / f"half-{content}"
        half.write_text(str(content))
        half.rename(self._folder / f"day-{day}")


class Racer(Deployment):
    """A deployment that really waits between attempts and whose generations have names of their own."""

    def __post_init__(self) -> None:
        self.looks = 0
        self.retry = Retry()
        self.manager = PartitionManager(self.store, clock=self.clock, who=self.who, retry=self.retry)
        self.registry = Registry(self.store, retry=self.retry)
        self.leases = Leases(self.store, retry=self.retry)

    @property
    def shared(self) -> SharedTable:
        assert isinstance(self.table, SharedTable)
        return self.table

    def plan(self, *days: int) -> Work:
        self.shared.relist()
        work = super().plan(*days)
        return replace(
            work, attempt=replace(work.attempt, generation=f"{self.who}-{work.attempt.generation}")
        )

    def look_again(self, work: Work) -> SecondLook:
        self.looks += 1
        self.shared.relist()
        return super().look_again(work)


def run(race: Race, racer: int, store: Store) -> Report:
    """The part of one process: rewrite, mark, force and refresh days until the commits are made."""
    chance = random.Random(racer)
    report = Report(f"racer-{racer}")
    table = SharedTable(Path(race.folder))
    me = Racer(store, table, Clock(), who=report.who)
    own = race.days_of(racer)
    for commit in range(race.commits):
        wanted, mine = chance.randrange(race.shared), own[commit % len(own)]
        days, content = [wanted, mine], 1 + racer + race.racers * commit
        if race.changes == "files":
            table.rewrite(mine if commit % 10 else wanted, content)
        elif race.changes == "all":
            stir(me, race, report, chance, content)
        work = me.begin(*days)
        decided = me.manager.commit(me.declaration, work.attempt, work.staged, partial(me.look_again, work))
        for bucket, decision in decided.items():
            read = work.listed[f"day-{bucket // DAY}"].crc
            token = None if decision.row is None else decision.row.token
            report.decisions.append((bucket // DAY, read, decision.outcome.value, token))
        report.writes += any(decision.outcome.wrote for decision in decided.values())
    report.retries = me.looks - race.commits
    return report


def stir(me: Racer, race: Race, report: Report, chance: random.Random, content: int) -> None:
    """Change a file, mark a bucket that no longer matches, or force one."""
    day = chance.choice([*range(race.shared), *race.days_of(int(report.who.removeprefix("racer-")))])
    what = chance.choice(["rewrite", "rewrite and mark", "mark", "force"])
    if "rewrite" in what:
        me.shared.rewrite(day, content)
    me.shared.relist()
    if "mark" in what:
        marks = {day * DAY: Mark("the file changed", me.current(day * DAY))}
        report.writes += bool(me.manager.mark_stale(me.declaration, marks))
    if what == "force":
        report.writes += bool(me.manager.force(me.declaration, [day * DAY], "a person asked"))


def run_race(race: Race) -> list[Report]:
    """Run a race and return what each process reports; they start together, once all are ready."""
    with processes([["run", json.dumps(asdict(race)), str(n)] for n in range(race.racers)]) as started:
        for process in started:
            process.say("go")
        return [Report(**json.loads(process.hear())) for process in started]


@dataclass
class Child:
    """A process that answers each line with a line."""

    arguments: Sequence[str]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
            [sys.executable, "-m", "mv_assets_tests.unit.state.racer", *self.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        return self

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"{self.arguments} ended without an answer; its own output says why"
        return line.strip()

    def __exit__(self, *_: object) -> None:
        # The end of its input ends it; one that hangs in a failed test is not waited for.
        self._process.kill()
        self._process.communicate()


@contextmanager
def processes(arguments: Sequence[Sequence[str]]) -> Iterator[list[Child]]:
    with ExitStack() as stack:
        children = [stack.enter_context(Child(each)) for each in arguments]
        for child in children:
            assert child.hear() == "ready"
        yield children


def main(mode: str, *arguments: str) -> None:
    if mode == "run":
        race, racer = Race(**json.loads(arguments[0])), int(arguments[1])
        store = Store(race.url)
        print("ready", flush=True)  # noqa: T201 - the parent listens
        sys.stdin.readline()
        print(json.dumps(asdict(run(race, racer, store))), flush=True)  # noqa: T201
        store.close()
        return
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin:
        print(first_use(line.strip()), flush=True)  # noqa: T201


def first_use(url: str) -> str:
    """Open a database that may still be empty and declare the view; the version it then has."""
    try:
        store = Store(url)
        version = Deployment(store, BaseTable(), Clock()).declare().version
        store.close()
    except Exception as error:  # noqa: BLE001 - whatever it is, the test wants to read it
        return f"{type(error).__name__}: {error}"
    return str(version)


if __name__ == "__main__":
    main(*sys.argv[1:])

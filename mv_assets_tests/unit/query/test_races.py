"""Whatever happens around a question, its answer is that of the base at some moment while it was asked."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mv_assets.buckets import DAY
from mv_assets.errors import MvError
from mv_assets.maintain.garbage import Garbage
from mv_assets.query.errors import SourceMoving
from mv_assets.query.route.eligibility import Freshness
from mv_assets.query.route.pinned import Pinned
from mv_assets.run.warehouse import Warehouse
from mv_assets.spark.session import Engine
from mv_assets.state.errors import LeaseExpired
from mv_assets.state.store import Store
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import EPOCH, day, view
from mv_assets_tests.support.queried_lake import QueriedLake, once, rows_of
from mv_assets_tests.support.spark_lake import SparkLake, plainly

pytestmark = pytest.mark.slow
SQL = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, sum(x) AS s FROM events GROUP BY ALL"
ON_BASE = "SELECT date_trunc('day', at) AS d, count(*) AS n, sum(x) AS s FROM events GROUP BY d"
ON_ROWS = "SELECT date_trunc('day', at) AS d, count(x) AS n, sum(x + 0) AS s FROM events GROUP BY d"
BY_NAME = "SELECT date_trunc('day', hour) AS d, sum(n) AS n, sum(s) AS s FROM v GROUP BY d"
QUESTIONS = (ON_BASE, ON_ROWS, BY_NAME)
GRACE = 60_000

Said = frozenset[tuple[Any, ...]]
Rows = dict[str, list[tuple[datetime, int]]]


@dataclass
class Writer:
    """Changes files one at a time. Its log has what is there, and before each change what comes after it."""

    queried_lake: QueriedLake
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    rows: Rows = field(default_factory=dict)
    log: list[Said] = field(default_factory=lambda: [frozenset()])
    done: int = 0
    turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def paced(self) -> None:
        """A change when it is its turn, at any moment."""
        if self.turns.acquire(timeout=0.05):
            time.sleep(self.chance.random() / 2)
            self.change()

    def write(self, file: str, number: int, count: int = 6) -> None:
        times = [day(number, self.chance.random() * 24) for _ in range(count - 1)]
        times.append(day(number + 1, 0) - timedelta(milliseconds=1))
        made = [(each, self.chance.randrange(1_000)) for each in times]
        with self._change(self.rows | {file: made}):
            self.queried_lake.put(file, at=[at for at, _ in made], x=[x for _, x in made])

    def delete(self, file: str) -> None:
        with self._change({name: rows for name, rows in self.rows.items() if name != file}):
            (self.queried_lake.lake.folder / "events" / file).unlink()

    def change(self) -> None:
        """Something: a late file, a replaced one, one that is gone, two made one."""
        number = self.chance.randrange(5)
        late = [name for name in self.rows if name.startswith("late")]
        match self.chance.randrange(4):
            case 0 if late:
                self.delete(self.chance.choice(late))
            case 1:
                self.write(f"day-{number}.parquet", number)
            case 2 if late:
                self.write(self.chance.choice(late), number)
            case _:
                self.write(f"late-{len(self.log)}.parquet", number, 2)

    @contextmanager
    def _change(self, after: Rows) -> Iterator[None]:
        self.log.append(said(after))
        yield
        self.rows = after
        self.done = len(self.log) - 1


def said(rows: Rows) -> Said:
    """The answer that the rows give."""
    days: dict[int, list[int]] = {}
    for at, x in (row for each in rows.values() for row in each):
        days.setdefault((at - EPOCH).days, []).append(x)
    return frozenset((plainly(day(number, 0)), len(xs), sum(xs)) for number, xs in days.items())


@dataclass
class Course:
    """A lake on which questions race with everything else. The database's clock is the test's."""

    queried_lake: QueriedLake
    writer: Writer
    clock: Clock

    @property
    def lake(self) -> SparkLake:
        return self.queried_lake.lake

    @property
    def now(self) -> Said:
        return self.writer.log[-1]

    def ask(self, text: str = ON_BASE, freshness: Freshness = Freshness.STRICT) -> Said:
        found = rows_of(self.queried_lake.ask(text, freshness))
        assert len(set(found)) == len(found)
        return frozenset(found)

    def gc(self) -> None:
        """Everything that nobody holds is old enough to go."""
        self.clock.now += GRACE
        warehouse = Warehouse(str(self.lake.folder / "warehouse"))
        for name in self.lake.catalog.views:
            Garbage(self.lake.store, self.lake.manager, warehouse).gc(name)

    def refresh(self) -> None:
        self.lake.refresh()

    def drop(self, name: str = "v") -> None:
        self.lake.manager.drop(name)

    def mark(self) -> None:
        for each in self.lake.catalog.views.values():
            self.lake.manager.force(each.declaration, [self.writer.chance.randrange(5) * DAY], "doubted")


@contextmanager
def courses(folder: Path, url: str, engine: Engine, lease_ms: int) -> Iterator[Course]:
    clock = Clock(time.time_ns() // 1_000_000 + 3_600_000)
    store = Store(url, now=clock)
    views = [view(sql=SQL), view("w", sql="SELECT at AS hour, x FROM events")]
    lake = SparkLake(folder / "lake", store, views, engine=engine, clock=clock)
    queried_lake = QueriedLake(lake, lease_ms=lease_ms)
    writer = Writer(queried_lake)
    for number in range(5):
        writer.write(f"day-{number}.parquet", number)
    lake.converge()
    yield Course(queried_lake, writer, clock)
    # Whatever happened, it comes to rest and is right.
    clock.now += DAY
    for each in lake.catalog.views:
        lake.look(each, whole=True)
    lake.check(complete=False)
    store.close()


@pytest.fixture
def course(tmp_path: Path, engine: Engine) -> Iterator[Course]:
    with courses(tmp_path, f"sqlite:///{tmp_path}/state.db", engine, 10 * GRACE) as made:
        yield made


@pytest.mark.parametrize(("kind", "questions"), [("sqlite", 6), ("postgresql", 6)])
def test_every_answer_is_that_of_some_moment_while_it_was_asked(
    tmp_path: Path, engine: Engine, request: pytest.FixtureRequest, kind: str, questions: int
) -> None:
    url = f"sqlite:///{tmp_path}/state.db" if kind == "sqlite" else request.getfixturevalue("empty_postgres")
    with courses(tmp_path, url, engine, 100 * GRACE) as course:
        keeper = (
            course.refresh,
            course.gc,
            course.mark,
            course.refresh,
            course.drop,
            course.refresh,
            course.gc,
        )
        with _running(course.writer.paced) as writing, _running(*keeper) as keeping:
            asked = [_asked(course, QUESTIONS[number % 3]) for number in range(questions)]
        assert writing + keeping == []
        assert [each for each in asked if each.wrong] == []
        assert sum(each.error is not None for each in asked) < questions / 3, asked
        assert any(each.views for each in asked)
        assert course.writer.done > questions / 3


@dataclass(frozen=True)
class Asked:
    """What became of a question."""

    text: str
    found: Said | None = None
    possible: tuple[Said, ...] = ()
    views: tuple[Any, ...] = ()
    error: MvError | None = None

    @property
    def wrong(self) -> bool:
        return self.error is None and self.found not in self.possible


def _asked(course: Course, text: str) -> Asked:
    # No more changes than there are tries.
    for _ in range(course.writer.chance.randrange(3)):
        course.writer.turns.release()
    first = course.writer.done
    try:
        answer = course.queried_lake.ask(text)
        return Asked(text, frozenset(rows_of(answer)), tuple(course.writer.log[first:]), answer.served.views)
    except MvError as error:
        return Asked(text, error=error)


@contextmanager
def _running(*steps: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Steps over and over in another thread while the block runs; what is not a typed error is handed out."""
    over, trouble = threading.Event(), list[BaseException]()

    def repeat() -> None:
        try:
            while not over.is_set():
                for step in steps:
                    with suppress(MvError):
                        step()
                    # Those who ask have to get a turn as well.
                    over.wait(0.2)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            trouble.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield trouble
    finally:
        over.set()
        thread.join()


def _swap(course: Course) -> None:
    one, other = (course.lake.folder / "events" / name for name in ("day-1.parquet", "late.parquet"))
    spare = one.with_name("spare~")
    one.rename(spare)
    other.rename(one)
    spare.rename(other)


EVENTS: dict[str, Callable[[Course], object]] = {
    "a file is replaced": lambda course: course.writer.write("day-1.parquet", 1),
    "a file is gone": lambda course: course.writer.delete("late.parquet"),
    "a file is new": lambda course: course.writer.write("late.parquet", 1),
    "a file is of another day": lambda course: course.writer.write("late.parquet", 3),
    "two files swap": _swap,
}


@pytest.mark.parametrize("when", ["listed", "planned", "read"])
def test_what_happens_to_files_under_a_question_makes_no_wrong_answer(
    course: Course, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    course.writer.write("late.parquet", 1)
    for number, (event, happen) in enumerate(EVENTS.items()):
        for text in (QUESTIONS[number % 3], BY_NAME) if number % 3 != 2 else (BY_NAME,):
            if event == "a file is gone" and "late.parquet" not in course.writer.rows:
                course.writer.write("late.parquet", 1)
            first = course.writer.done
            if when == "listed":
                course.queried_lake.listed[:] = [partial(happen, course)]
            else:
                once(monkeypatch, partial(happen, course), after=when == "read")
            assert course.ask(text) in course.writer.log[first:], (event, text)
            monkeypatch.undo()
            assert course.queried_lake.listed == []
        assert course.ask(ON_BASE) == course.now


def test_a_file_that_was_another_one_only_while_it_was_read_is_noticed(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.writer.write("late.parquet", 1)
    path, expected = course.lake.folder / "events" / "late.parquet", course.now
    own = path.read_bytes()
    once(monkeypatch, lambda: course.queried_lake.put("late.parquet", at=[day(1)], x=[5]))
    happened = _after(monkeypatch, lambda: path.write_bytes(own))
    assert course.ask() == expected
    assert happened


def _after(monkeypatch: pytest.MonkeyPatch, happening: Callable[[], object]) -> list[bool]:
    """Have something happen between the reading of an answer and the look that follows it."""
    look, happened = Pinned.changed, list[bool]()

    def changed(pinned: Pinned) -> Any:
        if not happened:
            happened.append(True)
            happening()
        return look(pinned)

    monkeypatch.setattr(Pinned, "changed", changed)
    return happened


def test_a_file_that_never_rests_is_named(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    course.writer.write("late.parquet", 1)
    once(monkeypatch, *[lambda: course.writer.write("late.parquet", 1)] * 20)
    for freshness in (Freshness.STRICT, Freshness.OFF):
        with pytest.raises(SourceMoving, match=r"late\.parquet of table events changed.*3 times"):
            course.ask(ON_BASE, freshness)
    with pytest.raises(SourceMoving, match=r"late\.parquet"):
        course.ask(BY_NAME)


def test_what_happens_elsewhere_disturbs_nobody(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = course.now
    once(monkeypatch, *[lambda: course.writer.write("day-3.parquet", 3)] * 20)
    asked = ON_BASE.replace("GROUP BY", "WHERE at < '1970-01-03 00:00:00' GROUP BY")
    wanted = {row for row in expected if row[0] < plainly(day(2, 0))}
    assert course.ask(asked) == wanted
    assert course.ask(asked, Freshness.OFF) == wanted


def test_a_lease_that_runs_out_is_taken_anew(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    def outlive() -> None:
        course.clock.now += 20 * GRACE

    once(monkeypatch, outlive)
    assert course.ask() == course.now
    once(monkeypatch, outlive, after=True)
    assert course.ask() == course.now
    monkeypatch.undo()
    once(monkeypatch, *[outlive] * 20)
    with pytest.raises(LeaseExpired, match="run it again"):
        course.ask()


def test_gc_takes_nothing_from_under_a_question(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    def overtake() -> None:
        for number in range(5):
            course.writer.write(f"day-{number}.parquet", number)
        course.lake.converge()
        course.gc()

    for text in QUESTIONS:
        expected = course.now
        once(monkeypatch, overtake)
        assert course.ask(text) in (expected, course.now)
        monkeypatch.undo()


@pytest.mark.parametrize("text", QUESTIONS)
def test_what_gc_took_after_a_lease_ran_out_is_read_anew(
    course: Course, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    expected = course.now

    def overtake() -> None:
        course.clock.now += 20 * GRACE
        for each in course.lake.catalog.views:
            course.drop(each)
        course.gc()
        assert not list((course.lake.folder / "warehouse").rglob("*.parquet"))

    once(monkeypatch, overtake)
    assert course.ask(text) == expected


def test_a_view_that_is_dropped_before_its_map_is_read_is_not_used(course: Course) -> None:
    def drop() -> None:
        for name in course.lake.catalog.views:
            course.drop(name)

    course.queried_lake.listed[:] = [drop]
    course.writer.write("late.parquet", 1)
    assert course.ask(BY_NAME) == course.now
    assert course.ask(ON_BASE) == course.now


def test_compaction_under_a_question_changes_nothing(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (0, 1, 2):
        course.writer.write(f"day-{number}.parquet", number)
        course.lake.converge()
    once(monkeypatch, course.gc)
    assert course.ask(ON_BASE) == course.now
    assert course.ask(BY_NAME) == course.now

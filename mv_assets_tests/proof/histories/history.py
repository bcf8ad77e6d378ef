"""Things happen to a lake, by a seed; what each view says is held against what its files really hold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mv_assets.config import MaterializedView
from mv_assets.maintain.garbage import Garbage
from mv_assets.plan import planner
from mv_assets.plan.planner import Plan
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.run import executor
from mv_assets.run.warehouse import Warehouse
from mv_assets.spark.session import Engine
from mv_assets.state import rules
from mv_assets.state.model import BUCKET, Outcome, PartitionRow, Segment, Snapshot, State
from mv_assets.state.store import Store
from mv_assets.tables.fingerprint import fingerprint, fingerprint_of
from mv_assets_tests.proof.histories.files import Contents, Files, Version, concatenated
from mv_assets_tests.proof.histories.oracle import SCHEMA, Calendar, Oracle, Rows
from mv_assets_tests.proof.histories.views import DECLARED, declared
from mv_assets_tests.support.queried_lake import rows_of
from mv_assets_tests.support.spark_lake import SparkLake, plainly

# The first days of the views: New York's clocks change on the sixth day, back or forth.
STARTS = (date(2024, 10, 29), date(2024, 3, 5))
_BEFORE, _FIRST_DAYS = 2, 8
_TABLES = ("events", "payments")
# Where days and windows begin and end, here and in New York, and what the clocks there show twice.
_HOURS = (0, 0, 4, 4, 5, 5, 5.5, 6.5, 12, 16, 17, 23.5)
_WITHIN = (0, 0, 0, -1, -1_000, 1, 999, 1_000, 60_000_000)


class History:
    """Everything follows from the seed."""

    def __init__(self, seed: int, folder: Path, engine: Engine) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.start = STARTS[seed % len(STARTS)]
        self.story: list[str] = []
        self._turns = dict.fromkeys(DECLARED, 0)
        self._store = Store(f"sqlite:///{folder}/state.db")
        self.lake = SparkLake(
            folder / "lake",
            self._store,
            self._declared(),
            engine=engine,
            further=["payments"],
            dimensions=["names"],
        )
        self.files, self.oracle = Files(self.lake.folder), Oracle()
        # Views by their definitions, and the last day that ever was due.
        self._views: dict[str, MaterializedView] = {}
        self._farthest: dict[str, date] = {}
        self._numbers = iter(range(10_000))
        self._newest = dict.fromkeys(_TABLES, -_BEFORE - 1)
        self.rename()
        for table in _TABLES:
            for _ in range(_BEFORE + _FIRST_DAYS):
                self.arrive(table)
        self._known()

    def close(self) -> None:
        self.oracle.close()
        self._store.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Have what fails say what happened before."""
        try:
            yield
        except Exception as error:
            error.add_note(f"seed {self.seed}: " + "; ".join(self.story))
            raise

    def play(self, steps: int) -> None:
        """A history, with a refresh at its beginning and at its end."""
        with self.told():
            self.refresh()
            for _ in range(steps):
                self.step()
            self.refresh()
            self.ask()

    def step(self) -> None:
        """Some files change, and something is done about it."""
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self.change()
        done: dict[Callable[[], None], int] = {
            self.refresh: 4, self.refresh_one: 4, self.refresh_meanwhile: 6, self.redefine: 1, self.ask: 2,
            self.collect: 1, self.force: 2,
        }  # fmt: skip
        [act] = self.random.choices(list(done), list(done.values()))
        act()

    def change(self) -> None:
        """Something happens to the files of a table."""
        table, event = self.random.choice(_TABLES), self._event()
        event(table)
        self._known()

    def _event(self) -> Callable[[str], None]:
        happens: dict[Callable[[str], None], int] = {
            self.arrive: 5, self.late: 6, self.overwrite: 4, self.delete: 2, self.retire: 1, self.touch: 1,
            self.pack: 2, self.rename: 1, self.wait: 1,
        }  # fmt: skip
        [event] = self.random.choices(list(happens), list(happens.values()))
        return event

    def arrive(self, table: str) -> None:
        """The next day, to its last millisecond."""
        self._newest[table] += 1
        day, last = self._newest[table], self._time(self._newest[table] + 1) - timedelta(milliseconds=1)
        self._put(table, f"day-{day:02}.parquet", [day], last)

    def late(self, table: str) -> None:
        first = self.random.randint(-_BEFORE, self._newest[table])
        days = range(first, min(first + self.random.choice((1, 1, 1, 2, 5)), self._newest[table] + 1))
        self._put(table, f"late-{next(self._numbers)}.parquet", list(days))

    def overwrite(self, table: str) -> None:
        version = self.random.choice(self.files.of(table))
        self._put(table, version.name, [self.random.randint(-_BEFORE, self._newest[table])])

    def delete(self, table: str) -> None:
        self._remove(self.random.choice(self.files.of(table)))

    def retire(self, table: str) -> None:
        """What is older than some day goes."""
        limit = plainly(self._time(self.random.randint(-1, 4)))
        for version in self.files.of(table):
            if version.span is not None and version.span[1] < limit:
                self._remove(version)

    def touch(self, table: str) -> None:
        """A file becomes another object with the same content."""
        version = self.random.choice(self.files.of(table))
        self.files.restore(version)
        self._say(f"{table}/{version.name} touched")

    def pack(self, table: str) -> None:
        """Several files become one."""
        some = self.random.sample(self.files.of(table), min(3, len(self.files.of(table))))
        self.files.put(table, f"packed-{next(self._numbers)}.parquet", concatenated(some, SCHEMA))
        for version in some:
            self.files.remove(version)
        self._say(f"{table}: {', '.join(version.name for version in some)} packed")

    def rename(self, _table: str = "") -> None:
        """The dimension changes."""
        names = pa.table({"x": [1, 2, 3, 4], "name": [self.random.choice("ABCD") for _ in range(4)]})
        self.files.put("names", "names.parquet", names)
        self._say("names changed")

    def wait(self, _table: str) -> None:
        self.lake.clock.now += self.random.choice((1_000, 60_000, 7_200_000))

    def _put(self, table: str, name: str, days: list[int], *times: datetime) -> None:
        given: list[datetime | None] = [*times]
        given += [self._somewhere(self.random.choice(days)) for _ in range(self.random.randint(1, 8))]
        if self.random.random() < 0.1:
            given.append(None)
        rows = {
            "at": given,
            "id": [next(self._numbers) for _ in given],
            "x": [self.random.choice((None, 1, 1, 2, 3, 5)) for _ in given],
        }
        self.files.put(table, name, pa.table(rows, schema=SCHEMA))
        self._say(f"{table}/{name} with days {days[0]} to {days[-1]}")

    def _remove(self, version: Version) -> None:
        # Of a table without any file nobody knows the columns.
        if sum(each.span is not None for each in self.files.of(version.table)) > 1:
            self.files.remove(version)
            self._say(f"{version.table}/{version.name} deleted")

    def _somewhere(self, day: int) -> datetime:
        hour = self.random.choice((*_HOURS, self.random.random() * 24))
        return self._time(day, hour) + timedelta(microseconds=self.random.choice(_WITHIN))

    def _time(self, day: int, hour: float = 0) -> datetime:
        first = datetime(self.start.year, self.start.month, self.start.day, tzinfo=UTC)
        return first + timedelta(days=day, hours=hour)

    def _say(self, what: str) -> None:
        self.story.append(what)

    def refresh(self, *names: str) -> None:
        self._say(f"refresh {' '.join(names)}")
        reports = self.lake.run(*names)
        self.check()
        for name, report in reports.items():
            assert not report.wrong, f"{name}: {report.wrong}"
            self.check_current(name)

    def refresh_one(self) -> None:
        self.refresh(self._one())

    def refresh_meanwhile(self) -> None:
        """A round of one view; while it is computed, its files change, some for a moment only."""
        name = self._one()
        observed = self.lake.look(name)
        plan = planner.plan(observed)
        meanwhile = self.random.choice(("before", "after", "for a moment"))
        if meanwhile == "for a moment":
            self.lake.before = partial(self._swap, self._read(Calendar(observed.view.declared), plan))
        else:
            setattr(self.lake, meanwhile, self._once(meanwhile))
        self._say(f"round of {name}, {meanwhile}:")
        done = executor.carry_out(self.lake.open(), observed, plan)
        results = [result for _, some in done for result in some]
        self.lake.before = self.lake.after = None
        self._say(f"{name} done")
        # What a commit calls VALID is so by the files as they are now: nothing has happened since.
        self.check_current(name, {r.bucket for r in results if r.outcome is Outcome.COMMITTED})
        self.check()

    def _once(self, when: str) -> Callable[[], None]:
        def happen() -> None:
            setattr(self.lake, when, None)
            self.change()

        return happen

    def _read(self, calendar: Calendar, plan: Plan) -> list[Version]:
        """The files that a plan reads."""
        days = [calendar.day(planned.bucket) for work in plan.work for planned in work.buckets]
        reached = [calendar.reached(day, self.files) for day in days]
        return sorted({each for contents in reached for some in contents.values() for each in some}, key=str)

    def _swap(self, files: list[Version]) -> None:
        """A file has other rows while it is read, and is then as it was."""
        self.lake.before = None
        if files:
            version = self.random.choice(files)
            others = version.rows.set_column(1, "id", pc.add(version.rows["id"], 1_000_000))
            self.files.put(version.table, version.name, others)
            self._say(f"{version.table}/{version.name} swapped")
            self.lake.after = partial(self._swap_back, version)

    def _swap_back(self, version: Version) -> None:
        self.lake.after = None
        self.files.restore(version)
        self._say(f"{version.table}/{version.name} is back")

    def force(self) -> None:
        name = self._one()
        rows = sorted(self.lake.snapshot(name).rows)
        if rows:
            view = self.lake.catalog.view(name)
            self.lake.manager.force(view.declaration, [self.random.choice(rows)], "a person")
            self._say(f"{name} forced")

    def redefine(self) -> None:
        """A window is added, changed or taken away; what was there before is adopted again."""
        name = self.random.choice([name for name, turns in DECLARED.items() if len(turns) > 1])
        self._turns[name] += 1
        self.lake.declare(*self._declared())
        definition = self.lake.catalog.view(name).definition
        if definition in self._store.history(name):
            self.lake.manager.adopt(name, definition)
        self._known()
        self._say(f"{name} declared anew")

    def collect(self) -> None:
        garbage = Garbage(self._store, self.lake.manager, Warehouse(self.lake.warehouse.root))
        for name in DECLARED:
            assert not garbage.gc(name).errors
        self._say("gc")
        self.check()

    def ask(self) -> None:
        """A view by its name, strictly: all that its SQL gives on the files as they are now."""
        name = self._one()
        view = self.lake.catalog.view(name)
        calendar, expected = Calendar(view.declared), Counter[tuple[object, ...]]()
        day, last = self.start, self.files.end("events")
        while calendar.start(day) <= last:
            expected += self._rows_of(view.definition, day, self._reached(calendar, day))
            day += timedelta(1)
        answer = Answers(self.lake.open()).answer(
            Question(f"SELECT {', '.join(self._columns(name))} FROM {name}")
        )
        found = Counter(rows_of(answer))
        assert found == expected, f"{name} by its name: {_unlike(expected, found)}"
        self._say(f"{name} asked")

    def check(self) -> None:
        """Every VALID bucket of every view has the rows of the files that it records."""
        for name in DECLARED:
            if name in self._store.views():
                self._check(self.lake.snapshot(name))

    def _check(self, snapshot: Snapshot) -> None:
        name, calendar = snapshot.header.view, Calendar(self._views[snapshot.header.definition])
        valid = _valid(snapshot)
        recorded, found = self._store.recorded(name, list(valid)), self._stored(snapshot, valid)
        for bucket, row in valid.items():
            day, segments = calendar.day(bucket), recorded.get(bucket, ())
            rows = self._rows_of(snapshot.header.definition, day, self._recorded(calendar, row, segments))
            here = found.get(bucket, Counter())
            assert here == rows, f"{name} {day} is not what it records: {_unlike(rows, here)}"
            assert here.total() == row.rows, f"{name} {day} has {here.total()} rows and records {row.rows}"

    def check_current(self, name: str, buckets: set[int] | None = None) -> None:
        """Every bucket, or some, is VALID and records what is there now; all that is due has a row."""
        snapshot = self.lake.snapshot(name)
        definition = snapshot.header.definition
        calendar, valid = Calendar(self._views[definition]), _valid(snapshot)
        wanted = set(valid if buckets is None else buckets)
        assert wanted <= valid.keys(), (
            f"{name}: {sorted(wanted - valid.keys())} was committed and is not VALID"
        )
        recorded = self._store.recorded(name, sorted(wanted))
        for bucket in sorted(wanted):
            day = calendar.day(bucket)
            before = self._recorded(calendar, valid[bucket], recorded.get(bucket, ()))
            now = self._reached(calendar, day)
            assert before == now, f"{name} {day} is VALID, of {_names(before)}, and there is {_names(now)}"
        if buckets is None:
            due = {calendar.start(day) for day in calendar.complete(self.files)}
            held = (*snapshot.rows, *due)
            late = sorted(calendar.day(bucket) for bucket in held if bucket not in valid)
            assert not late, f"{name}: {late} not VALID"
            early = [day for day in map(calendar.day, valid) if day > self._farthest[definition]]
            assert not early, f"{name}: {early} was never due"

    def _recorded(self, calendar: Calendar, row: PartitionRow, segments: tuple[Segment, ...]) -> Contents:
        """The files that a row says it was made of, which its inputs must say too."""
        view = calendar.view
        assert row.inputs is not None
        by_table: dict[str, list[Segment]] = {table: [] for table in view.timed}
        for segment in segments:
            by_table[segment.source or view.base.table].append(segment)
        said = (row.inputs.base, *(found for _, found in row.inputs.further))
        assert said == tuple(map(fingerprint, by_table.values())), f"{view.name}: inputs of other segments"
        joined = dict(row.inputs.dimensions)
        dimensions = {
            name: frozenset(
                each
                for each in self.files.ever(name)
                if fingerprint_of([(each.name, each.crc)]) == joined[name]
            )
            for name in view.dimensions
        }
        once = {
            table: frozenset(self.files.once(table, each.name, each.crc) for each in some)
            for table, some in by_table.items()
        }
        return {**once, **dimensions}

    def _reached(self, calendar: Calendar, day: date) -> Contents:
        dimensions = {name: frozenset(self.files.of(name)) for name in calendar.view.dimensions}
        return {**calendar.reached(day, self.files), **dimensions}

    def _rows_of(self, definition: str, day: date, contents: Contents) -> Rows:
        view = self._views[definition]
        return self.oracle.rows(view, self._columns(view.name), day, contents)

    def _stored(self, snapshot: Snapshot, valid: dict[int, PartitionRow]) -> dict[int, Rows]:
        """The rows of a view as its map names them, read without Spark."""
        found: dict[int, Rows] = {}
        name, columns = snapshot.header.view, self._columns(snapshot.header.view)
        generations = {row.generation for row in valid.values() if row.generation is not None}
        for generation, files in self._store.files(name, generations).items():
            for file in files:
                with self.lake.warehouse.open(file.path) as opened:
                    rows = pq.read_table(opened)
                for row in rows.to_pylist():
                    owner = valid.get(row[BUCKET])
                    if owner is not None and owner.generation == generation:
                        values = tuple(plainly(row[column]) for column in columns)
                        found.setdefault(owner.bucket, Counter())[values] += 1
        return found

    def _known(self) -> None:
        """Note what is declared now, and how far it could be computed."""
        for view in self.lake.catalog.views.values():
            self._views[view.definition] = view.declared
            last = max([self.start - timedelta(1), *Calendar(view.declared).complete(self.files)])
            self._farthest[view.definition] = max(last, self._farthest.get(view.definition, last))

    def _declared(self) -> list[MaterializedView]:
        return [declared(name, self.start, self._turns[name]) for name in DECLARED]

    def _columns(self, name: str) -> tuple[str, ...]:
        return tuple(self.lake.catalog.view(name).select.columns)

    def _one(self) -> str:
        return self.random.choice(list(DECLARED))


def _valid(snapshot: Snapshot) -> dict[int, PartitionRow]:
    rows, header = snapshot.rows.items(), snapshot.header
    return {bucket: row for bucket, row in rows if rules.effective_state(row, header) is State.VALID}


def _unlike(expected: Rows, found: Rows) -> str:
    return f"missing {dict(expected - found)}, too many {dict(found - expected)}"


def _names(contents: Contents) -> list[str]:
    return sorted(f"{table}/{each.name}@{each.crc}" for table, some in contents.items() for each in some)

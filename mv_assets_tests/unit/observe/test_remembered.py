"""A look that remembers what earlier ones found leaves nothing to find for one that compares everything."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from mv_assets.config import MaterializedView
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.observe.remembered import REMEMBERED
from mv_assets.plan import planner
from mv_assets.state.model import Attempt, Inputs, Mark, Planned
from mv_assets.state.store import Store, schema
from mv_assets.tables.errors import TableUnreadable
from mv_assets_tests.proof.simulation.mutants import MUTANTS
from mv_assets_tests.support import process_memory
from mv_assets_tests.support.lake import Lake, observation_of, operations_of, through, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.process_memory import process_of_its_own

DAYS = 12
ROLLING = "SELECT date_trunc('day', at) AS day, count(*) AS n FROM events GROUP BY ALL"
JOINED = """
    SELECT date_trunc('hour', e.at) AS hour, count(*) AS n
    FROM events e JOIN z ON e.x = z.x GROUP BY ALL
"""
PAIRED = """
    SELECT date_trunc('hour', e.at) AS hour, count(*) AS n
    FROM events e LEFT JOIN others o ON e.x = o.x GROUP BY ALL
"""
BESIDE: dict[str, Any] = {"with": [{"table": "others", "from": "2d", "wait": False}]}
KINDS: dict[str, list[MaterializedView]] = {
    "a day": [view()],
    "a dimension": [view(dimensions=["z"], sql=JOINED)],
    "windows": [view(base={"table": "events", "from": "2d"}, scope="bucket", sql=ROLLING, time_column="day")],
    "frozen": [view(on_base_delete="freeze")],
    "a view on a view": [view(), view("up", base="v", sql="SELECT hour, n FROM v")],
    "the clock closes": [view(closes="2d"), view("up", base="v", sql="SELECT hour, n FROM v", closes="1d")],
    "days of a zone": [
        view(
            base={"table": "events", "from": "1d", "to": "36h"},
            scope="bucket",
            **BESIDE,
            sql=PAIRED,
            timezone="America/New_York",
        )
    ],
    "its data begins it": [view(start="earliest")],
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(f"sqlite:///{tmp_path}/state.db")
    yield opened
    opened.close()


@dataclass(frozen=True)
class Happenings:
    """What may happen between two looks."""

    lake: Lake
    chance: random.Random

    @property
    def all(self) -> Sequence[Callable[[], object]]:
        lake = self.lake
        return [
            lambda: lake.days(self.chance.randrange(DAYS)),
            lambda: lake.write(self._file(), through(self.chance.randrange(DAYS))),
            self._goes,
            self._goes,
            self._long,
            self._forced,
            self._dimension,
            self._elsewhere,
            self._other if lake.further else self._goes,
            self._damaged,
            self._restored,
            lambda: lake.manager.drop("v", dependants=[name for name in lake.catalog.views if name != "v"]),
            self._redefined,
            self._moved,
            self._ticked,
            *[lake.refresh] * 3,
        ]

    def _file(self) -> str:
        return f"day-{self.chance.randrange(DAYS)}.parquet"

    def _goes(self) -> None:
        (self.lake.folder / "events" / self._file()).unlink(missing_ok=True)

    def _long(self) -> None:
        first = self.chance.randrange(DAYS)
        times = through(first, first + self.chance.randrange(4))
        self.lake.write(f"long-{self.chance.randrange(3)}.parquet", times)

    def _forced(self) -> None:
        held = self.lake.store.snapshot("v").rows
        some = self.chance.sample(range(DAYS), self.chance.randint(1, 3))
        buckets = [day * DAY for day in sorted(some) if day * DAY in held]
        self.lake.manager.force(self.lake.catalog.view("v").declaration, buckets, "by hand")

    def _dimension(self) -> None:
        if self.lake.dimensions:
            self.lake.write("z.parquet", through(0), self.chance.randrange(9), self.lake.dimensions[0])

    def _other(self) -> None:
        name, times = f"other-{self.chance.randrange(3)}.parquet", through(self.chance.randrange(DAYS))
        self.lake.write(name, times, 1, "others")

    def _elsewhere(self, step: Callable[[], object] | None = None) -> None:
        """Another process has looked and computed: nothing of that is remembered here."""
        with process_of_its_own():
            (step or self.lake.refresh)()

    def _damaged(self) -> None:
        """And mended a look later: while a file is broken nothing is remembered."""
        found = sorted((self.lake.folder / "events").glob("*.parquet"))
        if found:
            hurt = self.chance.choice(found)
            content = hurt.read_bytes()
            self.lake.damage(hurt.name)
            self.lake.look(self.chance.choice([*self.lake.catalog.views]))
            hurt.write_bytes(content)

    def _restored(self) -> None:
        """The database is as it was, and what has been done since is done in another way."""
        backup, database = self.lake.folder / "backup.db", database_of(self.lake)
        if not backup.exists():
            copied(database, backup)
            return
        copied(backup, database)
        steps: list[Callable[[], object]] = [self._forced, self._goes, self.lake.refresh]
        self._elsewhere(self.chance.choice(steps))
        self._elsewhere()

    def _redefined(self) -> None:
        """Another definition, and back."""
        lake, before = self.lake, self.lake.catalog.view("v").definition
        view, *others = lake.views
        another = (view.sql or "").replace("AS n", f"AS n, count(*) AS n{self.chance.randrange(1 << 60)}")
        lake.declare(view.model_copy(update={"sql": another}), *others)
        steps: list[Callable[[], object]] = [lake.look, lake.refresh]
        self.chance.choice(steps)()
        lake.declare(*lake.views)
        lake.manager.adopt("v", before)

    def _moved(self) -> None:
        """The table is elsewhere, and then where it was; in between that other place is looked at."""
        lake, away = self.lake, self.lake.folder / "away"
        if not away.exists():
            shutil.copytree(lake.folder / "events", away)
        lake.table = {"path": str(away)}
        lake.declare(*lake.views)
        lake.look()
        lake.table = {}
        lake.declare(*lake.views)

    def _ticked(self) -> None:
        """The clock goes on, or is set back."""
        self.lake.clock.now += self.chance.choice([30_000, -3_000, DAY // 2])


def database_of(lake: Lake) -> Path:
    return Path(lake.store.database.where.removeprefix("sqlite:///"))


def copied(database: Path, into: Path) -> None:
    """A database in place of another, while that is open."""
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(into)) as target:
        source.backup(target)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_left_to_find(
    tmp_path: Path, store: Store, kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"{kind} {seed}")
    dimensions = ["z"] if kind == "a dimension" else []
    further = ["others"] if kind == "days of a zone" else []
    lake = Lake(tmp_path / "lake", store, KINDS[kind], dimensions=dimensions, further=further)
    if dimensions:
        lake.write("z.parquet", through(0), 1, "z")
    lake.days(*range(DAYS - 2))
    lake.refresh()
    happenings = Happenings(lake, chance)
    compared, swept = list[int](), ViewInputs.of

    def counted(self: ViewInputs, buckets: Iterable[int]) -> Iterator[BucketInputs]:
        compared.append(len(wanted := list(buckets)))
        return swept(self, wanted)

    monkeypatch.setattr(ViewInputs, "of", counted)
    for _ in range(15):
        for _ in range(chance.randint(1, 2)):
            chance.choice(happenings.all)()
        for name in lake.catalog.views:
            lake.look(name)
            # What a look has frozen or thawed it takes for work; the next one knows.
            found = lake.look(name)
            whole = lake.dry(name)
            assert isinstance(whole, Observation)
            kept = store.snapshot(name)
            assert dict(whole.snapshot.rows) == dict(kept.rows)
            assert kept.look is not None
            assert whole.snapshot.look is not None
            assert (kept.look.first_vacant, kept.look.oldest_waiting) == (
                whole.snapshot.look.first_vacant,
                whole.snapshot.look.oldest_waiting,
            )
            if isinstance(found, Observation):
                assert planner.plan(found) == planner.plan(whole)
    # Else all of this were said of whole looks.
    assert compared


def compared_at(lake: Lake) -> int | None:
    """When all buckets were compared last."""
    record = lake.snapshot().look
    return None if record is None else record.whole_at


def test_only_what_is_not_settled_is_kept_of_a_look_but_where_all_is_asked_for(
    tmp_path: Path, store: Store
) -> None:
    lake = Lake(tmp_path / "lake", store)
    lake.days(*range(4))
    lake.converge()
    late(lake)
    process_memory.forget()
    named = lake.watch().round(named={"v": frozenset([3 * DAY])})["v"]
    assert isinstance(named, Observation)
    assert [*named.buckets] == [DAY, 3 * DAY]
    assert compared_at(lake) == lake.clock.now
    assert [*observation_of(lake.look()).buckets] == [DAY]
    assert len(observation_of(lake.look(whole=True)).buckets) == 4


def unreadable(lake: Lake) -> None:
    """For as long as the look that is due takes."""
    table, away = lake.folder / "events", lake.folder / "away"
    table.rename(away)
    with pytest.raises(TableUnreadable):
        lake.look()
    away.rename(table)


# What may happen when a whole look is due.
MEANWHILE: dict[str, Callable[[Lake], object]] = {
    "nothing": lambda _: None,
    "its table can't be read": unreadable,
    "the process ends, and another goes on": lambda _: process_memory.forget(),
    "the process has looked at too many other views": lambda _: REMEMBERED.clear(),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_what_is_settled_is_compared_in_time_even_if_nothing_changes(
    tmp_path: Path, store: Store, meanwhile: str
) -> None:
    """Were it remembered wrongly, it would else be so until something happens to its table."""
    lake = Lake(tmp_path / "lake", store)
    lake.days(*range(4))
    lake.converge()
    lake.days(1)
    lake.converge()
    assert isinstance(lake.look(), Unchanged)
    for _ in range(2):
        lake.clock.now += 3_600_000
        MEANWHILE[meanwhile](lake)
        assert isinstance(lake.look(), Observation)
        assert compared_at(lake) == lake.clock.now
        assert isinstance(lake.look(), Unchanged)


def test_what_a_process_remembers_is_checked_in_time_though_others_compare_all(
    tmp_path: Path, store: Store
) -> None:
    lake = Lake(tmp_path / "lake", store)
    lake.days(*range(4))
    lake.converge()
    for passed in (3_000_000, 600_000):
        lake.clock.now += passed
        with process_of_its_own():
            assert isinstance(lake.look(whole=True), Observation)
        found = lake.look()
    assert isinstance(found, Observation)
    assert compared_at(lake) == lake.clock.now


def test_a_look_of_which_nobody_knows_when_all_was_compared_is_followed_by_a_whole_one(
    tmp_path: Path, store: Store
) -> None:
    """As those of an earlier mv_assets are."""
    lake = Lake(tmp_path / "lake", store)
    lake.days(*range(4))
    lake.converge()
    with store.database.write() as connection:
        connection.execute(update(schema.look).values(whole_at=None))
    assert isinstance(lake.look(), Observation)
    assert isinstance(lake.look(), Unchanged)


def late(lake: Lake) -> None:
    lake.write("late.parquet", through(1))


def waits(lake: Lake) -> None:
    """A bucket is marked, seen to be, and not computed."""
    late(lake)
    lake.look()
    lake.look()


# Mistakes of looks that remember, and what shows each: the kind of view, and what happens to it.
MISTAKES: dict[str, tuple[str, Callable[[Lake], object]]] = {
    "remembered, whatever files changed": ("a day", late),
    "remembered, whatever dimensions changed": (
        "a dimension",
        lambda lake: lake.write("z.parquet", through(0), 2, "z"),
    ),
    "remembered, whatever others wrote": (
        "a day",
        lambda lake: lake.manager.force(lake.catalog.view("v").declaration, [DAY], "by hand"),
    ),
    "remembered, what waits": ("a day", waits),
    "remembered, without windows": ("windows", late),
}


def test_each_mistake_of_looks_that_remember_is_among_these() -> None:
    assert MISTAKES.keys() == {name for name in MUTANTS if name.startswith("remembered")}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_lasts_until_the_next_whole_look(
    tmp_path: Path, store: Store, mistake: str, meanwhile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, happens = MISTAKES[mistake]
    lake = Lake(tmp_path / "lake", store, KINDS[kind], dimensions=["z"] if kind == "a dimension" else [])
    if lake.dimensions:
        lake.write("z.parquet", through(0), 1, "z")
    lake.days(*range(4))
    lake.converge()
    MUTANTS[mistake](monkeypatch)
    happens(lake)
    # Files come to rest.
    lake.clock.now += 60_000
    assert planned(lake.look()) != planned(lake.dry()) != []
    lake.clock.now += 3_600_000
    MEANWHILE[meanwhile](lake)
    assert planned(lake.look()) == planned(lake.dry()) != []


def planned(observed: Observed) -> list[tuple[str, list[int]]]:
    return operations_of(planner.plan(observed))


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_map_of_another_past_is_read_and_compared_as_a_whole(
    tmp_path: Path, store: Store, ahead: int
) -> None:
    """The database is restored from a backup, and others have written it since, as often or more."""
    lake, backup = Lake(tmp_path / "lake", store), tmp_path / "backup.db"
    lake.days(*range(4))
    lake.converge()
    copied(database_of(lake), backup)
    lake.write("late.parquet", through(1))
    lake.converge()
    assert lake.states(*range(4)) == "VVVV"
    version = lake.version()
    copied(backup, database_of(lake))
    while lake.version() < version + ahead:
        lake.manager.force(lake.catalog.view("v").declaration, [3 * DAY], "by hand")
    lake.look()
    assert lake.states(*range(4)) == "VSVS"


def test_a_write_of_another_past_on_the_same_bucket_is_seen(tmp_path: Path, store: Store) -> None:
    """As many writes, of the same buckets at the same versions, and other states."""
    lake, backup = Lake(tmp_path / "lake", store), tmp_path / "backup.db"
    lake.days(*range(4))
    lake.converge()
    declaration = lake.catalog.view("v").declaration
    lake.manager.mark_stale(declaration, {DAY: Mark("a false alarm")})
    copied(database_of(lake), backup)
    assert lake.refresh() == {1: "reverted"}
    lake.look()
    version = lake.version()
    copied(backup, database_of(lake))
    attempt = Attempt("g", version - 1, (Planned(DAY, version - 1, known_inputs(lake)),))
    lake.manager.register(declaration, attempt)
    lake.manager.fail(declaration, attempt, {DAY: "no disk"})
    assert lake.version() == version
    assert dict(observation_of(lake.look()).snapshot.rows) == dict(lake.snapshot().rows)


def known_inputs(lake: Lake) -> Inputs:
    row = lake.row(1)
    assert row is not None
    assert row.inputs is not None
    return row.inputs

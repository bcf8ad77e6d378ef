"""A lake in which things happen between refreshes: files come late, are corrected, deleted, broken."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.errors import MvError
from mv_assets.spark.session import Engine
from mv_assets.state.store import Store
from mv_assets_tests.proof.fuzz.views import VIEWS, Known
from mv_assets_tests.support.spark_lake import SparkLake

# Leap day and month; the year and its weeks; what lies before 1970.
FIRST_DAYS = (date(2024, 2, 24), date(2019, 12, 26), date(1969, 12, 26))
DAYS = 12
SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us", "UTC"),
        "zone": pa.int32(),
        "kind": pa.string(),
        "fare": pa.decimal128(10, 2),
        "x": pa.int64(),
        "f": pa.float64(),
        "flag": pa.bool_(),
        "d": pa.date32(),
    }
)
KINDS = (None, "", "a", "A", "b", "é", "東京", "a b")
_HOURS = (0, 0, 1, 5, 6, 11, 12, 17, 18, 22, 23, 23)
_WITHIN = (0, 0, 0, 0, 0, 1, 999_999, 1_000_000, 60_000_000, 1_800_000_000, 3_599_999_000, 3_599_999_999)


class World:
    """Everything follows from the seed."""

    def __init__(self, seed: int, folder: Path, engine: Engine) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.first = FIRST_DAYS[seed % len(FIRST_DAYS)]
        cut = f"{self.first + timedelta(days=4)} 06:30:00"
        self.views = [
            replace(v, sql=v.sql.replace("{cut}", cut), duck=(v.duck or v.sql).replace("{cut}", cut))
            for v in VIEWS
        ]
        self.store = Store(f"sqlite:///{folder}/state.db")
        declared = [each.declared(self.first) for each in self.views]
        self.lake = SparkLake(folder / "lake", self.store, declared, engine=engine, dimensions=["zones"])
        # Whole copies of files with a damaged column.
        self.whole: dict[str, pa.Table] = {}
        self.story: list[str] = []
        self.looked = False
        self._numbers = iter(range(10_000))
        self._nan = seed % 4 == 3
        # Whatever else happens: a day without files, a failed bucket, and frozen ones.
        self._sure = cycle((self.clear_day, self.fail, self.look))
        self.zones()
        # Of a folder of few files every type is known, of more it is not.
        parts = (1, 2, 2, 3) if seed % 2 else (1, 1, 1, 2)
        for number in range(DAYS - 3):
            for part in range(self.random.choice(parts)):
                self.put(f"{number:02}-{part}.parquet", [number])
        for _ in range(2):
            self.late()
        self.lake.run()
        self.looked = True

    @property
    def folder(self) -> Path:
        return self.lake.folder / "events"

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.parquet"))

    def known(self, name: str) -> Known:
        return next(each for each in self.views if each.name == name)

    def close(self) -> None:
        self.store.close()

    def put(self, name: str, days: Sequence[int], rows: int | None = None) -> None:
        """Write a file, anew if it is there."""
        pick = self.random
        count = pick.randint(4, 24) if rows is None else rows
        timeless = pick.random() < 0.15
        times = [
            None if timeless and pick.random() < 0.2 else self.time(pick.choice(days)) for _ in range(count)
        ]
        # A row right where a bucket begins, which is where bounds go wrong.
        times[0] = self._midnight(days[0])
        table = pa.table(
            {
                "at": times,
                "zone": [pick.choice((None, -1, 0, 1, 1, 2, 2, 3, 4)) for _ in times],
                "kind": [pick.choice(KINDS) for _ in times],
                "fare": [pick.choice((None, *[Decimal(pick.randint(-500, 5_000)) / 100] * 4)) for _ in times],
                "x": [pick.choice((None, *[pick.randint(-50, 50)] * 6)) for _ in times],
                "f": [self._float() for _ in times],
                "flag": [pick.choice((None, True, True, False)) for _ in times],
                "d": [
                    pick.choice((None, *[self.first + timedelta(days=pick.randint(0, 20))] * 4))
                    for _ in times
                ],
            },
            schema=SCHEMA,
        )
        self._write(self.folder / name, table)

    def time(self, number: int) -> datetime:
        pick = self.random
        within = pick.choice((*_WITHIN, pick.randrange(3_600_000_000)))
        return self._midnight(number) + timedelta(hours=pick.choice(_HOURS), microseconds=within)

    def _midnight(self, number: int) -> datetime:
        return datetime(self.first.year, self.first.month, self.first.day, tzinfo=UTC) + timedelta(number)

    def _float(self) -> float | None:
        if self._nan and self.random.random() < 0.01:
            return float("nan")
        return self.random.choice((None, *[self.random.randint(-40, 80) / 4] * 5))

    def _write(self, path: Path, table: pa.Table) -> None:
        pq.write_table(table, path.with_suffix(".tmp~"))
        path.with_suffix(".tmp~").replace(path)
        self.whole.pop(path.name, None)
        self.looked = False

    def zones(self) -> None:
        """The dimension; a zone may be there twice, or not at all. Those that are none are no duplicates."""
        zones: list[int | None] = [*range(4), *self.random.sample(range(-1, 6), 2)]
        if self.random.random() < 0.6:
            zones = [*dict.fromkeys(zones), None, None]
        table = {
            "zone": pa.array(zones, pa.int32()),
            "borough": [self.random.choice((None, "north", "south", "Süd")) for _ in zones],
            "rank": pa.array([self.random.randint(1, 9) for _ in zones], pa.int32()),
        }
        self._write(self.lake.folder / "zones" / "zones.parquet", pa.table(table))

    def step(self) -> None:
        """Some things happen, and perhaps some views are refreshed."""
        for _ in range(2):
            next(self._sure)()
        happen: list[tuple[Callable[[], None], int]] = [
            (self.late, 4), (self.correct, 4), (self.delete, 3), (self.clear_day, 1), (self.force, 3),
            (self.fail, 1), (self.next_day, 2), (self.rename_zones, 1), (self.look, 2),
            (self.refresh_some, 5), (self.refresh, 2), (self.same_again, 1),
        ]  # fmt: skip
        actions, weights = zip(*happen, strict=True)
        for action in self.random.choices(actions, weights, k=self.random.randint(1, 3)):
            action()

    def _say(self, what: str) -> None:
        self.story.append(what)

    def late(self) -> None:
        start = self.random.randrange(DAYS)
        days = list(range(start, min(start + self.random.choice((1, 1, 2, 4)), DAYS)))
        name = f"late-{next(self._numbers)}.parquet"
        self.put(name, days, self.random.randint(1, 8))
        self._say(f"{name} with days {days}")

    def correct(self) -> None:
        name = self.random.choice(self.files)
        number = int(name[:2]) if name[:2].isdigit() else self.random.randrange(DAYS)
        self.put(name, [number])
        self._say(f"{name} corrected")

    def same_again(self) -> None:
        """A file comes back with the same rows, as another object."""
        name = self.random.choice(self.files)
        if name not in self.whole:
            self._write(self.folder / name, pq.read_table(self.folder / name))
            self._say(f"{name} written again")

    def delete(self) -> None:
        name = self.random.choice(self.files)
        self._delete(name)
        self._say(f"{name} deleted")

    def _delete(self, name: str) -> None:
        (self.folder / name).unlink()
        self.whole.pop(name, None)
        self.looked = False

    def clear_day(self) -> None:
        number = self.random.randrange(DAYS - 3)
        for name in self.files:
            if name.startswith(f"{number:02}-"):
                self._delete(name)
        self._say(f"day {number} deleted")

    def next_day(self) -> None:
        number = self.random.randint(DAYS - 3, DAYS - 1)
        name = f"{number:02}-{next(self._numbers)}.parquet"
        self.put(name, [number])
        self._say(f"{name} appended")

    def rename_zones(self) -> None:
        self.zones()
        self._say("zones changed")

    def force(self) -> None:
        view = self.random.choice(list(self.lake.catalog.views.values()))
        rows = sorted(self.store.snapshot(view.name).rows)
        if rows:
            bucket = self.random.choice(rows)
            self.lake.manager.force(view.declaration, [bucket], "a person")
            self._say(f"{view.name} {view.buckets.key(bucket)} forced")

    def fail(self) -> None:
        """Buckets fail, as a file is broken for a while."""
        name = self.random.choice(self.files)
        whole = pq.read_table(self.folder / name)
        self.lake.spoil(name, self.random.choice(("fare", "zone", "x")))
        self.lake.run()
        self._write(self.folder / name, whole)
        self._say(f"{name} broken for a while")

    def spoil(self) -> str:
        """One column of a file is broken, and stays so."""
        name = self.random.choice(self.files)
        self.whole[name] = pq.read_table(self.folder / name)
        column = self.random.choice(("fare", "zone", "x"))
        self.lake.spoil(name, column)
        self.looked = False
        self._say(f"{name} has a broken {column}")
        return name

    def look(self) -> None:
        self.lake.watch().round(whole=True)
        self.looked = True
        self._say("looked")

    def refresh_some(self) -> None:
        names = [each.name for each in self.views if self.random.random() < 0.35] or ["hourly"]
        with suppress(MvError):
            self.lake.run(*names)
        self._say(f"refreshed {', '.join(names)}")

    def refresh(self) -> None:
        self.lake.run()
        self.looked = True
        self._say("refreshed")

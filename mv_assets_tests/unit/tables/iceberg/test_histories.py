"""Tables with random histories: whatever is remembered of them, they are listed as the library plans them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import LongType, StringType, TimestamptzType
from sqlalchemy import delete, insert, select

from mv_assets.state.store import schema
from mv_assets.state.store.database import Database
from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.iceberg.deletes import Place, plain
from mv_assets_tests.support import process_memory
from mv_assets_tests.unit.tables.iceberg import log
from mv_assets_tests.unit.tables.iceberg.tables import Create, Make, local, rows, visible
from mv_assets_tests.unit.tables.told import Told

_STEPS = 12


class History:
    """One table, and all that may happen to it."""

    def __init__(self, made: Table, catalog: SqlCatalog, root: Path, seed: int) -> None:
        self.table = made
        self.catalog = catalog
        self.root = root
        self.random = random.Random(seed)
        self.count = 0
        self.first: int | None = None

    def step(self) -> str:
        done = self.random.choice(
            [
                self.append,
                self.append,
                self.append,
                self.overwrite,
                self.drop_rows,
                self.add_column,
                self.partition,
                self.branch,
                self.roll_back,
                self.expire,
                self.delete_places,
                self.delete_places,
                self.delete_by_vector,
            ]
        )
        done()
        return done.__name__

    def append(self) -> None:
        self.table.append(self._rows())

    def overwrite(self) -> None:
        self.table.overwrite(self._rows(), f"v < {self.random.randrange(self.count + 1)}")

    def drop_rows(self) -> None:
        self.table.delete(f"v = {self.random.randrange(self.count + 1)}")

    def add_column(self) -> None:
        with self.table.update_schema() as change:
            change.add_column(f"c{self.count}_{len(self.table.metadata.schemas)}", LongType())

    def partition(self) -> None:
        named = {part.name for part in self.table.spec().fields}
        with self.table.update_spec() as change:
            if "p" in named:
                change.remove_field("p")
            else:
                change.add_identity("p")

    def branch(self) -> None:
        snapshot = self.table.current_snapshot()
        if snapshot is not None:
            name = f"b{len(self.table.metadata.refs)}"
            self.table.manage_snapshots().create_branch(snapshot.snapshot_id, name).commit()

    def roll_back(self) -> None:
        snapshot = self.table.current_snapshot()
        known = {each.snapshot_id for each in self.table.metadata.snapshots}
        if snapshot is not None and snapshot.parent_snapshot_id in known:
            self.table.manage_snapshots().create_branch(snapshot.parent_snapshot_id, "main").commit()

    def expire(self) -> None:
        kept = {each.snapshot_id for each in self.table.metadata.refs.values()}
        old = [each.snapshot_id for each in self.table.metadata.snapshots if each.snapshot_id not in kept]
        if old:
            self.table.maintenance.expire_snapshots().by_id(old[0]).commit()

    def delete_places(self) -> None:
        """By a file for one data file, or for two of a partition; none that has a vector."""
        tasks = [
            task
            for task in self.table.scan().plan_files()
            if not any(each.file_path.endswith("puffin") for each in task.delete_files)
        ]
        if tasks:
            first = self.random.choice(tasks)
            alike = [task for task in tasks if self._partition(task) == self._partition(first)]
            chosen = {task.file.file_path for task in (first, self.random.choice(alike))}
            places = [(path, self.random.randrange(_rows_in(path))) for path in sorted(chosen)]
            spec, partition = self._partition(first)
            file = self.root / f"{self._number()}.parquet"
            self._by_hand(log.position_deletes(file, *places, partition=partition), spec_id=spec)

    def delete_by_vector(self) -> None:
        """A file that has deletes already gets no vector here: it would have to have those as well."""
        tasks = [task for task in self.table.scan().plan_files() if not task.delete_files]
        if tasks:
            task = self.random.choice(tasks)
            path = task.file.file_path
            spec, partition = self._partition(task)
            file = self.root / f"{self._number()}.puffin"
            chosen = {path: [self.random.randrange(_rows_in(path))]}
            bounds = log.bounds(log.FILE_PATH, path.encode(), path.encode())
            self._by_hand(*log.vectors(file, chosen, partition=partition, **bounds), spec_id=spec)

    def _by_hand(self, *files: Any, spec_id: int) -> None:
        log.commit(self.root, *files, spec_id=spec_id)
        self.catalog.drop_table("db.t")
        self.table = self.catalog.register_table("db.t", f"file://{log.newest(self.root)}")

    def _partition(self, task: Any) -> tuple[int, tuple[Any, ...]]:
        record = task.file.partition
        return task.file.spec_id, tuple(record[at] for at in range(len(record)))

    def _number(self) -> int:
        self.count += 1
        return self.count

    def _rows(self) -> Any:
        count = self.random.randint(1, 4)
        numbers = [self._number() for _ in range(count)]
        days = [self.random.randrange(9) for _ in numbers]
        return rows(*days, v=numbers, p=[self.random.choice("xy") for _ in numbers])


def _rows_in(path: str) -> int:
    return int(pq.read_metadata(local(path)).num_rows)


class Cache:
    """What is remembered, kept or not."""

    def __init__(self, database: Database, choose: random.Random) -> None:
        self.database = database
        self.random = choose
        self.older: list[dict[str, Any]] = []

    def shake(self) -> None:
        if self.random.random() < 0.5:
            process_memory.forget()
        do: Callable[[], None] = self.random.choice([lambda: None, self.keep, self.drop, self.go_back])
        do()

    def keep(self) -> None:
        with self.database.read() as connection:
            self.older = [dict(row) for row in connection.execute(select(schema.manifest)).mappings()]

    def drop(self) -> None:
        with self.database.write() as connection:
            connection.execute(delete(schema.manifest))

    def go_back(self) -> None:
        self.drop()
        if self.older:
            with self.database.write() as connection:
                connection.execute(insert(schema.manifest), self.older)


def planned(root: Path) -> tuple[dict[str, set[str]], list[int]]:
    """The data files with their files of deletes, and the rows, as the library has them."""
    scan = StaticTable.from_metadata(str(log.newest(root))).scan()
    files = {
        plain(task.file.file_path): {plain(each.file_path) for each in task.delete_files}
        for task in scan.plan_files()
    }
    return files, sorted(scan.to_arrow()["v"].to_pylist())


def listed(table: IcebergFiles) -> tuple[dict[str, set[str]], list[int]]:
    listing = table.current().listing()
    assert not listing.broken
    deletes = {
        plain(listing.path(name)): {plain(Place.of(place).path) for place in each.places}
        for name, each in listing.details.deletes.items()
    }
    files = {
        path: deletes.get(path, set()) for path in (plain(listing.path(name)) for name in listing.listed())
    }
    return files, sorted(row["v"] for row in visible(table, listing))


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize("seed", range(12))
def test_random_histories_are_listed_as_the_library_plans_them(
    create: Create, table: Make, warehouse: SqlCatalog, root: Path, seed: int
) -> None:
    made = create(("ts", TimestamptzType()), ("v", LongType()), ("p", StringType()))
    history = History(made, warehouse, root, seed)
    database = table().inventory.database
    assert database is not None
    cache, before, steps = Cache(database, history.random), dict[str, tuple[Any, int]](), list[str]()
    told = Told()
    for _ in range(_STEPS):
        steps.append(history.step())
        cache.shake()
        expected = planned(root)
        assert listed(table()) == expected, steps
        # A file's checksum follows what is deleted of it, and nothing else.
        listing = table().current().listing()
        told.check(listing)
        for segment in listing.segments():
            gone = expected[0][plain(listing.path(segment.name))]
            deletes, crc = before.setdefault(f"{segment.name} {sorted(gone)}", (gone, segment.crc))
            assert (gone, segment.crc) == (deletes, crc), steps
        crcs = [crc for _, crc in before.values()]
        assert len(set(crcs)) == len(crcs), steps
    assert told.times > 0, steps

"""Random histories of a Delta table, with what is remembered of it kept, lost and stale."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from sqlalchemy import delete

from mv_assets.state.store.schema import remembered
from mv_assets.tables import parts
from mv_assets.tables.delta import DeltaFiles, codec, files
from mv_assets.tables.delta.remembered import KEPT
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.library import same
from mv_assets_tests.unit.tables.delta.rows import Make, rows
from mv_assets_tests.unit.tables.told import Told

STEPS = 30

Row = dict[str, Any]


class History:
    """A table that others write, and now and then put back from a backup."""

    def __init__(self, root: Path, chance: random.Random, *, partitioned: bool) -> None:
        self.root = root
        self.chance = chance
        self._partitioned = ["p"] if partitioned else None
        self._columns = 0
        # The first version that the library can still restore.
        self._restorable = 0
        self.append()
        log.commit(root, log.protocol("deletionVectors"))
        self._restorable = 1

    @property
    def steps(self) -> list[Callable[[], object]]:
        writes = [self.append, self.append, self.delete, self.update, self.merge, self.overwrite, self.evolve]
        rewrites = [self.compact, self.order, self.restore]
        vectors = [self.inline, self.inline, self.in_a_file, self.in_a_file, self.without_vector]
        return [*writes, *rewrites, *vectors, self.checkpoint, self.clean_up, self.property]

    def rows(self, count: int) -> pa.Table:
        days = [self.chance.choice([None, *range(1, 28)]) for _ in range(count)]
        values = [self.chance.randrange(5) for _ in range(count)]
        parts = [self.chance.choice(["a b", "ü%", None]) for _ in range(count)]
        return rows(*days, v=values, p=pa.array(parts, pa.string()))

    def append(self) -> None:
        write_deltalake(
            self.root,
            self.rows(self.chance.randrange(1, 9)),
            mode="append",
            partition_by=self._partitioned,
            schema_mode="merge",
        )

    def delete(self) -> None:
        DeltaTable(self.root).delete(f"v = {self.chance.randrange(5)}")

    def update(self) -> None:
        DeltaTable(self.root).update({"v": "v + 1"}, predicate=f"v = {self.chance.randrange(5)}")

    def merge(self) -> None:
        target = DeltaTable(self.root).merge(
            rows(3, v=[9], p=["a b"]), "t.v = s.v", source_alias="s", target_alias="t"
        )
        target.when_matched_delete().when_not_matched_insert({"ts": "s.ts", "v": "s.v", "p": "s.p"}).execute()

    def overwrite(self) -> None:
        write_deltalake(self.root, self.rows(3), mode="overwrite", schema_mode="merge")

    def evolve(self) -> None:
        self._columns += 1
        more = self.rows(2).append_column(f"c{self._columns}", [[1, 2]])
        write_deltalake(self.root, more, mode="append", schema_mode="merge")

    def compact(self) -> None:
        DeltaTable(self.root).optimize.compact()

    def order(self) -> None:
        DeltaTable(self.root).optimize.z_order(["v"])

    def restore(self) -> None:
        latest = DeltaTable(self.root).version()
        if self._restorable < latest:
            DeltaTable(self.root).restore(self.chance.randrange(self._restorable, latest))

    def restored(self) -> None:
        """Someone put back a backup."""
        self._restorable = DeltaTable(self.root).version()

    def inline(self) -> None:
        self._vector(lambda places: log.deletion_vector(*places))

    def in_a_file(self) -> None:
        absolute = self.chance.random() < 0.3
        self._vector(lambda places: log.vector_file(self.root, [0], places, absolute=absolute)[1])

    def without_vector(self) -> None:
        self._vector(lambda _: None)

    def _vector(self, make: Callable[[list[int]], log.Action | None]) -> None:
        """On a file that the log still tells all about."""
        actions = pa.table(DeltaTable(self.root).get_add_actions(flatten=True)).to_pylist()
        counts = {row["path"]: row["num_records"] for row in actions}
        told = {added["path"]: added for added in log.actions(self.root, "add") if added["path"] in counts}
        if not told:
            return
        path = self.chance.choice(sorted(told))
        places = self.chance.sample(range(counts[path]), self.chance.randrange(1, counts[path] + 1))
        vector = make(sorted(places))
        if vector != told[path].get("deletionVector"):
            log.with_vector(self.root, vector, path)

    def checkpoint(self) -> None:
        DeltaTable(self.root).create_checkpoint()

    def clean_up(self) -> None:
        """Only the checkpoint and the last commits stay."""
        DeltaTable(self.root).create_checkpoint()
        self._restorable = DeltaTable(self.root).version()
        for file in self._commits():
            if int(file.stem) < self._restorable - 2:
                file.unlink()

    def property(self) -> None:
        DeltaTable(self.root).alter.set_table_properties({"delta.appendOnly": "false"})

    def _commits(self) -> list[Path]:
        return sorted((self.root / "_delta_log").glob("0" * 10 + "*.json"))


class Looks:
    """Looks at a table, with what is remembered of it kept, thrown away, or put back from long ago."""

    def __init__(self, table: DeltaFiles, chance: random.Random) -> None:
        self._table = table
        assert table.inventory.database is not None
        self._database = table.inventory.database
        self._chance = chance
        self._old: list[tuple[dict[Any, Any], list[Row]]] = []
        self.told = Told()

    def look(self, root: Path) -> None:
        getattr(self, self._chance.choice(["kept", "kept", "new_process", "forgotten", "stale"]))()
        listing = self._table.current().listing()
        same(self._table, listing, root)
        self.told.check(listing)
        self._old.append((KEPT._kept.copy(), self._rows()))

    def kept(self) -> None:
        """Nothing happens to it."""

    def new_process(self) -> None:
        KEPT.clear()

    def forgotten(self) -> None:
        KEPT.clear()
        self._put([])

    def stale(self) -> None:
        if self._old:
            kept, rows = self._chance.choice(self._old)
            KEPT.clear()
            self._put(rows)
            if self._chance.random() < 0.5:
                KEPT._kept.update(kept)

    def _rows(self) -> list[Row]:
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(remembered.select()).mappings()]

    def _put(self, rows: list[Row]) -> None:
        with self._database.write() as connection:
            connection.execute(delete(remembered))
            if rows:
                connection.execute(remembered.insert(), rows)


@pytest.mark.parametrize("seed", range(12))
def test_after_every_step_the_listing_is_what_the_library_says(
    root: Path, table: Make, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    # Parts so small that these tables have several.
    for module in (files, codec):
        monkeypatch.setattr(module, "PART", 2 + seed)
    monkeypatch.setattr(parts, "_FEW", seed % 3)
    KEPT.clear()
    history = History(root, chance, partitioned=seed % 2 == 1)
    # The library's restore asks for all reader features that it knows.
    looks = Looks(table(reader="spark"), chance)
    backup = root.with_name("backup")
    for _ in range(STEPS):
        if backup.exists() and chance.random() < 0.05:
            shutil.rmtree(root)
            shutil.copytree(backup, root)
            history.restored()
        step = chance.choice(history.steps)
        step()
        if not backup.exists() and chance.random() < 0.2:
            shutil.copytree(root, backup)
        if chance.random() < 0.7:
            looks.look(root)
    looks.look(root)
    assert looks.told.times > 0

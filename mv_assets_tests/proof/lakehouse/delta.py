"""A Delta table that its own library writes, with deletion vectors put in between by hand."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Field, WriterProperties, write_deltalake
from deltalake.schema import PrimitiveType

from mv_assets_tests.proof.lakehouse.rows import GROUP, SCHEMA, Arrivals, Row, happen, some
from mv_assets_tests.support import process_memory
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.library import deleted_by_library

_SMALL = WriterProperties(max_row_group_size=GROUP)


class File(NamedTuple):
    """A file of the current version, as the library lists it; `gone` are rows of it that are deleted."""

    path: str
    gone: list[int]
    partition: Mapping[str, Any]


class DeltaHistory:
    """What happens to one table. The library says what it holds: files, and their deleted rows."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self.random = chance
        self.story: list[str] = []
        self.arrivals = Arrivals(chance)
        # The places that vectors delete, as the log tells of these.
        self.vectors: dict[tuple[str, int | None], list[int]] = {}
        self._more = 0
        self.create()
        for _ in range(4):
            self.append()

    def close(self) -> None:
        """Nothing is open."""

    def create(self) -> None:
        by = ["x"] if self.random.random() < 0.5 else None
        DeltaTable.create(self.root, SCHEMA, partition_by=by)
        log.commit(self.root, log.protocol("deletionVectors"))
        # The first version that can still be restored.
        self._restorable = 1

    @property
    def steps(self) -> dict[Callable[[], object], int]:
        return {
            self.append: 4, self.late: 4, self.delete: 2, self.update: 2, self.merge: 2, self.overwrite: 1,
            self.replace_where: 2, self.add_column: 1, self.restore: 2, self.vacuum: 1, self.checkpoint: 1,
            self.back_up: 1, self.put_back: 1, self.compact: 2, self.order: 1, self.vector: 6,
            self.two_vectors: 2, self.other_vector: 2, self.without_vector: 2,
        }  # fmt: skip

    def change(self) -> None:
        happen(self.random, self.story, self.steps)

    def forget(self) -> None:
        process_memory.forget()

    def rows(self) -> pa.Table:
        found = []
        for file in self.files():
            gone = set(file.gone)
            held = pq.read_table(self.root / file.path, partitioning=None).to_pylist()
            found += [self.seen(row, file) for at, row in enumerate(held) if at not in gone]
        return pa.Table.from_pylist(found, SCHEMA.set(3, pa.field("v", pa.int64())))

    def seen(self, row: Row, file: File) -> Row:
        """A row of a file under the table's names."""
        return {**row, **file.partition}

    def files(self) -> list[File]:
        opened = DeltaTable(self.root)
        gone, by = deleted_by_library(self.root), opened.metadata().partition_columns
        actions = pa.table(opened.get_add_actions(flatten=True))
        found = []
        for each in actions.to_pylist():
            name = unquote(each["path"])
            found.append(File(name, gone.get(name, []), {key: each[f"partition.{key}"] for key in by}))
        return sorted(found)

    def append(self) -> object:
        return self.write(self.arrivals.next_day())

    def late(self) -> object:
        return self.write(self.arrivals.late())

    def write(self, rows: list[Row]) -> object:
        made = pa.Table.from_pylist(rows, SCHEMA)
        write_deltalake(self.root, made, mode="append", schema_mode="merge", writer_properties=_SMALL)
        return None

    def delete(self) -> object:
        DeltaTable(self.root).delete(f"v = {self.random.randrange(8)}")
        return None

    def update(self) -> None:
        table = DeltaTable(self.root)
        table.update({"v": "v + 1"}, predicate=f"v = {self.random.randrange(8)}", writer_properties=_SMALL)

    def merge(self) -> None:
        """Rows of some ids are changed, others deleted, others inserted."""
        ids = [row["id"] for row in self.rows().to_pylist()]
        rows = [{**row, "id": self.random.choice([*ids, row["id"]])} for row in self.arrivals.late()]
        source = pa.Table.from_pylist(list({row["id"]: row for row in rows}.values()), SCHEMA)
        merging = DeltaTable(self.root).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        new = {name: f"s.{name}" for name in SCHEMA.names}
        merging.when_matched_delete("s.v < 2").when_matched_update({"v": "s.v", "c": "s.c"}).execute()
        merging = DeltaTable(self.root).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        merging.when_not_matched_insert(new).execute()

    def overwrite(self) -> None:
        made = pa.Table.from_pylist([*self.arrivals.late(), *self.arrivals.next_day()], SCHEMA)
        write_deltalake(self.root, made, mode="overwrite", schema_mode="merge", writer_properties=_SMALL)

    def replace_where(self) -> None:
        rows = [{**row, "x": "a"} for row in self.arrivals.late()]
        made = pa.Table.from_pylist(rows, SCHEMA)
        write_deltalake(self.root, made, mode="overwrite", predicate="x = 'a'", schema_mode="merge")

    def add_column(self) -> None:
        self._more += 1
        DeltaTable(self.root).alter.add_columns([Field(f"d{self._more}", PrimitiveType("long"))])

    def compact(self) -> object:
        DeltaTable(self.root).optimize.compact(writer_properties=_SMALL)
        return None

    def order(self) -> None:
        DeltaTable(self.root).optimize.z_order(["v"], writer_properties=_SMALL)

    def restore(self) -> object:
        latest = DeltaTable(self.root).version()
        if self._restorable >= latest:
            return False
        DeltaTable(self.root).restore(self.random.randrange(self._restorable, latest))
        return None

    def vacuum(self) -> None:
        """Files that only older versions need are gone."""
        table = DeltaTable(self.root)
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        self._restorable = table.version()

    def checkpoint(self) -> None:
        DeltaTable(self.root).create_checkpoint()

    @property
    def _backup(self) -> Path:
        return self.root.with_name("backup")

    def back_up(self) -> None:
        shutil.rmtree(self._backup, ignore_errors=True)
        shutil.copytree(self.root, self._backup)

    def put_back(self) -> object:
        """Its versions have the same numbers once more."""
        if not self._backup.exists():
            return False
        shutil.rmtree(self.root)
        shutil.move(self._backup, self.root)
        self._restorable = DeltaTable(self.root).version()
        return None

    def vector(self) -> object:
        """More rows of a file are deleted."""
        return self._with_vector(1, self._kept)

    def two_vectors(self) -> object:
        """Of two files, by one file of vectors."""
        return self._with_vector(2, self._kept)

    def other_vector(self) -> object:
        """Other rows of a file are deleted instead: some are there again."""
        return self._with_vector(1, self._any)

    def without_vector(self) -> object:
        files = [file for file in self.files() if file.gone]
        if not files:
            return False
        self._commit({self.random.choice(files).path: None})
        return None

    def _with_vector(self, count: int, choose: Callable[[File], list[int]]) -> object:
        files = [file for file in self.files() if choose(file)]
        if len(files) < count:
            return False
        chosen = {file.path: some(self.random, choose(file)) for file in self.random.sample(files, count)}
        if choose == self._kept:
            gone = {file.path: file.gone for file in files}
            chosen = {path: sorted({*gone[path], *places}) for path, places in chosen.items()}
        kind = self.random.choice(("inline", "relative", "absolute"))
        vectors = (
            [log.deletion_vector(*places) for places in chosen.values()]
            if kind == "inline"
            else log.vector_file(self.root, *chosen.values(), absolute=kind == "absolute")
        )
        for vector, places in zip(vectors, chosen.values(), strict=True):
            self.vectors[vector["pathOrInlineDv"], vector.get("offset")] = places
        self._commit(dict(zip(chosen, vectors, strict=True)))
        return None

    def _kept(self, file: File) -> list[int]:
        rows = pq.read_metadata(self.root / file.path).num_rows
        return sorted({*range(rows)} - {*file.gone})

    def _any(self, file: File) -> list[int]:
        return list(range(pq.read_metadata(self.root / file.path).num_rows)) if file.gone else []

    def _commit(self, vectors: Mapping[str, log.Action | None]) -> None:
        """Delete by other vectors than those that files have now."""
        actions = []
        for path, vector in vectors.items():
            known = self.last_added(path)
            before = {key: known[key] for key in ("deletionVector",) if key in known}
            kept = {key: value for key, value in known.items() if key != "deletionVector"}
            now = {} if vector is None else {"deletionVector": vector}
            actions += [log.remove(known["path"], **before), {"add": {**kept, **now, "dataChange": True}}]
        log.commit(self.root, *actions)

    def last_added(self, path: str) -> log.Action:
        """What the log said of a file last."""
        return [each for each in log.actions(self.root, "add") if unquote(each["path"]) == path][-1]

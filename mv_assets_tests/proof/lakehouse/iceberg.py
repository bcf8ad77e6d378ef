"""An Iceberg table that its own library writes, with deletes and compactions put in between by hand."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.types import LongType

from mv_assets_tests.proof.lakehouse.rows import GROUP, SCHEMA, Arrivals, Row, happen, some
from mv_assets_tests.support import process_memory
from mv_assets_tests.support.lake import EPOCH
from mv_assets_tests.unit.tables.iceberg import log

# A row by the ids of its fields: what columns are called now does not change it.
_ById = Mapping[int, Any]


class File(NamedTuple):
    """A data file of the current snapshot, and the rows' ids by their places in it."""

    path: str
    spec: int
    partition: tuple[Any, ...]
    ids: tuple[int, ...]


class IcebergHistory:
    """What happens to one table. Its rows are kept here, and compared with what the library reads."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = root
        self.random = chance
        self.story: list[str] = []
        self.arrivals = Arrivals(chance)
        self._catalog = SqlCatalog("c", uri=f"sqlite:///{root.parent}/catalog.db", warehouse=f"file://{root}")
        self._catalog.create_namespace("db")
        small = {"write.parquet.row-group-limit": str(GROUP), "format-version": "2"}
        self.table = self._catalog.create_table("db.t", SCHEMA, f"file://{root}", properties=small)
        self._rows: dict[int, _ById] = {}
        # By snapshot: what there was.
        self._then: dict[int, dict[int, _ById]] = {}
        # Data files by the paths of their vectors.
        self._vector_of: dict[str, str] = {}
        self._files = 0
        if chance.random() < 0.5:
            self.partition()
        for _ in range(4):
            self.append()

    def close(self) -> None:
        self._catalog.close()

    @property
    def steps(self) -> dict[Callable[[], object], int]:
        return {
            self.append: 4, self.late: 4, self.delete: 2, self.overwrite: 1, self.upsert: 2, self.compact: 3,
            self.add_column: 1, self.replace_column: 1, self.rename_column: 1, self.widen: 1,
            self.partition: 2, self.roll_back: 2, self.expire: 1, self.branch: 1, self.delete_places: 4,
            self.delete_by_vector: 4, self.delete_equal: 3, self.delete_equal_in_partition: 3,
            self.upsert_by_values: 3, self.drop_compared: 1,
        }  # fmt: skip

    def change(self) -> None:
        happen(self.random, self.story, self.steps)

    def forget(self) -> None:
        process_memory.forget()

    def rows(self) -> pa.Table:
        ids = {part.name: part.field_id for part in self.table.schema().fields}
        kept = [{name: row.get(ids[name]) for name in SCHEMA.names} for row in self._rows.values()]
        schema = SCHEMA.set(3, pa.field("v", pa.int64()))
        found = pa.Table.from_pylist(kept, schema).sort_by("id")
        if not self._equal():
            said = self.table.scan().to_arrow().select(SCHEMA.names).cast(schema).sort_by("id")
            assert said.to_pylist() == found.to_pylist(), "the history knows its own rows"
        return found

    # What the library does.

    def append(self) -> object:
        return self._write(self.arrivals.next_day())

    def late(self) -> object:
        return self._write(self.arrivals.late())

    def delete(self) -> object:
        number = self.random.randrange(8)
        hit = {row for row, each in self._rows.items() if each.get(self._id("v")) == number}
        if not hit or not self._without_equal():
            return False
        self.table.delete(f"v = {number}")
        return self._now({row: each for row, each in self._rows.items() if row not in hit})

    def overwrite(self) -> object:
        """All before some row goes, and other rows come."""
        if not self._rows or not self._without_equal():
            return False
        limit = self.random.choice(sorted(self._rows))
        rows = [*self.arrivals.late(), *self.arrivals.next_day()]
        self.table.overwrite(self._arrow(rows), f"id < {limit}")
        kept = {row: each for row, each in self._rows.items() if row >= limit}
        return self._now(kept | self._by_id(rows))

    def upsert(self) -> object:
        """Some rows get other values, and others come."""
        if not self._rows or not self._without_equal():
            return False
        ids = some(self.random, sorted(self._rows))[:3]
        rows = self.arrivals.late()
        rows = [{**row, "id": ids[at] if at < len(ids) else row["id"]} for at, row in enumerate(rows)]
        # It asks for all columns of the table.
        source = pa.Table.from_pylist(rows, self.table.schema().as_arrow())
        self.table.upsert(source, join_cols=["id"])
        return self._now({**self._rows, **self._by_id(rows)})

    def add_column(self) -> None:
        with self.table.update_schema() as change:
            change.add_column(f"d{len(self.table.metadata.schemas)}", LongType())

    def replace_column(self) -> None:
        """One that views use was dropped, and added again."""
        with self.table.update_schema() as change:
            change.delete_column("c")
        with self.table.update_schema() as change:
            change.add_column("c", LongType())

    def rename_column(self) -> None:
        """One that views use is another one now: the first has another name."""
        with self.table.update_schema() as change:
            change.rename_column("c", f"e{len(self.table.metadata.schemas)}")
        with self.table.update_schema() as change:
            change.add_column("c", LongType())

    def widen(self) -> object:
        if str(self.table.schema().find_field("v").field_type) == "long":
            return False
        with self.table.update_schema() as change:
            change.update_column("v", LongType())
        return None

    def partition(self) -> None:
        with self.table.update_spec() as change:
            if self._partitioned:
                change.remove_field("x")
            else:
                change.add_identity("x")

    def roll_back(self) -> object:
        current = self.table.current_snapshot()
        known = {each.snapshot_id for each in self.table.metadata.snapshots} & self._then.keys()
        parent = None if current is None else current.parent_snapshot_id
        if parent is None or parent not in known:
            return False
        self.table.manage_snapshots().create_branch(parent, "main").commit()
        return self._now(self._then[parent])

    def expire(self) -> object:
        kept = {each.snapshot_id for each in self.table.metadata.refs.values()}
        old = [each.snapshot_id for each in self.table.metadata.snapshots if each.snapshot_id not in kept]
        if not old:
            return False
        self.table.maintenance.expire_snapshots().by_id(self.random.choice(old)).commit()
        return None

    def branch(self) -> None:
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        name = f"b{len(self.table.metadata.refs)}"
        self.table.manage_snapshots().create_branch(snapshot.snapshot_id, name).commit()

    # What others do.

    def delete_places(self) -> object:
        """By one file of places, of one data file or of two of a partition; none that has a vector."""
        vectors = {self._vector_of.get(each.file_path) for each in self._deletes()}
        files = [file for file in self._data() if file.path not in vectors]
        if not files:
            return False
        first = self.random.choice(files)
        alike = [file for file in files if (file.spec, file.partition) == (first.spec, first.partition)]
        chosen = {file.path: file for file in (first, self.random.choice(alike))}
        places = [(path, at) for path in sorted(chosen) for at in self._some_places(chosen[path])]
        deletes = log.position_deletes(self._new("parquet"), *places, partition=first.partition)
        return self._without({chosen[path].ids[at] for path, at in places}, deletes, spec_id=first.spec)

    def delete_by_vector(self) -> object:
        """It has all that is deleted of its file by places; an older vector goes."""
        files = self._data()
        if not files:
            return False
        file = self.random.choice(files)
        gone = {at for at, row in enumerate(file.ids) if row not in self._rows}
        places = sorted({*gone, *self._some_places(file)})
        vectors = [each.file_path for each in self._deletes()]
        old = [path for path in vectors if self._vector_of.get(path) == file.path]
        bounds = log.bounds(log.FILE_PATH, file.path.encode(), file.path.encode())
        made = log.vectors(self._new("puffin"), {file.path: places}, partition=file.partition, **bounds)
        self._vector_of[made[0].file_path] = file.path
        return self._without({file.ids[at] for at in places}, *made, spec_id=file.spec, remove=old)

    def delete_equal(self) -> object:
        """All rows of a key and a number, wherever they are."""
        rows = list(self._rows.values())
        if not rows:
            return False
        names = self.random.choice((("x", "v"), ("id",), ("v", "c")))
        ids = {name: self._id(name) for name in names}
        values = [{name: row.get(ids[name]) for name in names} for row in self.random.sample(rows, 1)]
        return self._delete_values(values, ids)

    def delete_equal_in_partition(self) -> object:
        """Only in files of that spec and partition; not in those from before the table was so partitioned."""
        spec = self.table.spec().spec_id
        files = [file for file in self._data() if file.spec == spec and self._partitioned]
        if not files:
            return False
        partition, ids = self.random.choice(files).partition, {name: self._id(name) for name in ("x", "v")}
        reached = {row for file in files if file.partition == partition for row in file.ids}
        values = [{"x": partition[0], "v": self.random.randrange(8)}]
        return self._delete_values(values, ids, partition=partition, reached=reached)

    def drop_compared(self) -> object:
        """What was compared is a column no more."""
        if self._delete_equal_by("c") is False:
            return False
        self.replace_column()
        return None

    def upsert_by_values(self) -> object:
        """As a stream does it: what is older goes by its key, and in the same commit the new rows come."""
        if not self._rows:
            return False
        rows, ids = self.arrivals.late(), {name: self._id(name) for name in ("x", "v")}
        made = self._written(rows)
        return self._delete_values([{name: row[name] for name in ids} for row in rows], ids, made, rows)

    def compact(self) -> object:
        """All rows in other files, and nothing left that deletes any."""
        files, deletes = self._data(), self._deletes()
        names = {part.field_id: part.name for part in self.table.schema().fields}
        rows = [{names[n]: v for n, v in row.items() if n in names} for row in self._rows.values()]
        if not files or not rows:
            return False
        self.random.shuffle(rows)
        half = self.random.choice((len(rows), len(rows) // 2 + 1))
        made = [file for part in (rows[:half], rows[half:]) if part for file in self._written(part)]
        gone = [*(file.path for file in files), *(each.file_path for each in deletes)]
        log.commit(self.root, *made, remove=gone, operation="replace")
        return self._registered(self._rows)

    def _delete_equal_by(self, name: str) -> object:
        rows = [row for row in self._rows.values() if row.get(self._id(name)) is not None]
        if not rows:
            return False
        value = self.random.choice(rows)[self._id(name)]
        return self._delete_values([{name: value}], {name: self._id(name)})

    def _delete_values(
        self,
        values: Sequence[Row],
        ids: Mapping[str, int],
        files: Sequence[DataFile] = (),
        come: Sequence[Row] = (),
        partition: tuple[Any, ...] = (),
        reached: Container[int] | None = None,
    ) -> object:
        """Delete what equals these, and add files that this does not concern.

        Without a partition by a spec that has none, which is for all of them.
        """
        kinds = {part.name: part.type for part in self._schema}
        made = pa.Table.from_pylist(values, pa.schema({name: kinds[name] for name in ids}))
        equal = log.equality_deletes(self._new("parquet"), made, ids, partition=partition)
        hit = [{ids[name]: value for name, value in each.items()} for each in values]
        kept = {
            row: each
            for row, each in self._rows.items()
            if (reached is not None and row not in reached)
            or not any(all(each.get(number) == value for number, value in one.items()) for one in hit)
        }
        spec = self.table.spec().spec_id
        if files and spec:
            # A commit by hand is of one spec.
            log.commit(self.root, equal, spec_id=0)
            log.commit(self.root, *files, spec_id=spec)
        else:
            log.commit(self.root, equal, *files, spec_id=spec if partition else 0)
        return self._registered(kept | self._by_id(come))

    def _without(self, gone: set[int], *deletes: DataFile, **how: Any) -> object:
        log.commit(self.root, *deletes, **how)
        return self._registered({row: each for row, each in self._rows.items() if row not in gone})

    def _registered(self, rows: Mapping[int, _ById]) -> object:
        """The catalog knows what was committed by hand."""
        self._catalog.drop_table("db.t")
        self.table = self._catalog.register_table("db.t", f"file://{log.newest(self.root)}")
        return self._now(rows)

    def _write(self, rows: list[Row]) -> object:
        self.table.append(self._arrow(rows))
        return self._now({**self._rows, **self._by_id(rows)})

    def _now(self, rows: Mapping[int, _ById]) -> object:
        self._rows = dict(rows)
        current = self.table.current_snapshot()
        assert current is not None
        self._then[current.snapshot_id] = self._rows
        return None

    @property
    def _partitioned(self) -> bool:
        return bool(self.table.spec().fields) and not self.table.spec().is_unpartitioned()

    @property
    def _schema(self) -> pa.Schema:
        wide = str(self.table.schema().find_field("v").field_type) == "long"
        return SCHEMA.set(3, pa.field("v", pa.int64() if wide else pa.int32()))

    def _id(self, name: str) -> int:
        return self.table.schema().find_field(name).field_id

    def _by_id(self, rows: Iterable[Row]) -> dict[int, _ById]:
        ids = {name: self._id(name) for name in SCHEMA.names}
        return {row["id"]: {ids[name]: row[name] for name in ids} for row in rows}

    def _arrow(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, self._schema)

    def _entries(self) -> list[tuple[int, DataFile]]:
        snapshot = self.table.current_snapshot()
        manifests = [] if snapshot is None else snapshot.manifests(self.table.io)
        return [
            (manifest.partition_spec_id, entry.data_file)
            for manifest in manifests
            for entry in log.live(manifest, self.table.io)
        ]

    def _data(self) -> list[File]:
        found = []
        for spec, file in self._entries():
            if file.content == DataFileContent.DATA:
                ids = pq.read_table(_local(file.file_path), columns=["id"], partitioning=None)["id"]
                partition = tuple(file.partition[at] for at in range(len(file.partition)))
                found.append(File(file.file_path, spec, partition, tuple(ids.to_pylist())))
        return sorted(found, key=repr)

    def _deletes(self) -> list[DataFile]:
        return [file for _, file in self._entries() if file.content != DataFileContent.DATA]

    def _equal(self) -> bool:
        return any(file.content == DataFileContent.EQUALITY_DELETES for file in self._deletes())

    def _without_equal(self) -> bool:
        """Have no deletes by values, with which the library can't read the table."""
        return not self._equal() or self.compact() is not False

    def _some_places(self, file: File) -> list[int]:
        return some(self.random, range(len(file.ids)))

    def _new(self, kind: str) -> Path:
        self._files += 1
        return self.root / "data" / f"by-hand-{self._files}.{kind}"

    def _written(self, rows: Sequence[Row]) -> list[DataFile]:
        """Data files by hand, in the partitions that there are now."""
        parts = defaultdict[tuple[Any, ...], list[Row]](list)
        for row in rows:
            parts[(row["x"],) if self._partitioned else tuple(None for _ in self.table.spec().fields)].append(
                row
            )
        return [self._file(partition, part) for partition, part in parts.items()]

    def _file(self, partition: tuple[Any, ...], rows: list[Row]) -> DataFile:
        columns = {part.name: part.field_id for part in self.table.schema().fields}
        known = {part.name: part.type for part in self._schema}
        schema = pa.schema({name: known.get(name, pa.int64()) for name in columns})
        path = self._new("parquet")
        made = log.with_ids(pa.Table.from_pylist(rows, schema), columns)
        pq.write_table(made, path, row_group_size=GROUP)
        times = sorted(row["at"] for row in rows if row["at"] is not None)
        nulls, at = len(rows) - len(times), columns["at"]
        bounds = (
            log.bounds(at, _long(times[0]), _long(times[-1]), nulls)
            if times
            else {"null_value_counts": {at: nulls}}
        )
        return log.data_file(
            f"file://{path}", len(rows), partition, file_size_in_bytes=path.stat().st_size, **bounds
        )


def _long(time: datetime) -> bytes:
    return ((time - EPOCH) // timedelta(microseconds=1)).to_bytes(8, "little", signed=True)


def _local(path: str) -> str:
    return path.removeprefix("file://")

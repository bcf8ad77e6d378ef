"""Where view data lives: immutable files, in a folder a generation."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from mv_assets.engine.stored import BUCKET
from mv_assets.errors import WarehouseUnusable
from mv_assets.state.model import DataFile
from mv_assets.tables.locating import filesystem_at, folder_at


def new_generation() -> str:
    return uuid.uuid4().hex


@dataclass(slots=True)
class Contents:
    """What an attempt wrote: its files, and how much of each bucket is in them."""

    files: list[DataFile] = field(default_factory=list)
    rows: Counter[int | None] = field(default_factory=Counter)
    bytes: Counter[int | None] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Warehouse:
    """The folder of all generations of all views."""

    root: str

    def place(self, view: str, generation: str) -> str:
        """Where a generation's files go, as Spark is told."""
        return f"{self.root.rstrip('/')}/{view}/{generation}"

    def open(self, path: str) -> pa.NativeFile:
        """A file by its path in the warehouse."""
        filesystem, root = filesystem_at(self.root)
        return filesystem.open_input_file(f"{root.rstrip('/')}/{path}")

    def contents(self, view: str, generation: str) -> Contents:
        """What is really there of a generation, read from its files.

        Raises:
            WarehouseUnusable: it can't be read back.

        """
        found = Contents()
        try:
            walk = folder_at(self.place(view, generation)).walk()
            for name, size in sorted(zip(walk.names, walk.sizes, strict=True)):
                path = f"{view}/{generation}/{name}"
                with self.open(path) as opened:
                    rows = _rows(pq.ParquetFile(opened))
                count = rows.total()
                found.files.append(DataFile(path, size, count))
                found.rows += rows
                found.bytes += Counter({bucket: size * part // count for bucket, part in rows.items()})
        except (OSError, pa.ArrowException) as error:
            raise WarehouseUnusable(self.place(view, generation), str(error)) from error
        return found

    def delete(self, view: str, generation: str) -> None:
        """Delete a generation's files; what is gone already is fine.

        Raises:
            WarehouseUnusable: they can't be deleted.

        """
        filesystem, root = filesystem_at(self.place(view, generation))
        try:
            if filesystem.get_file_info(root).type != fs.FileType.NotFound:
                filesystem.delete_dir(root)
        except FileNotFoundError:
            pass
        except (OSError, pa.ArrowException) as error:
            raise WarehouseUnusable(root, str(error)) from error


def _rows(file: pq.ParquetFile) -> Counter[int | None]:
    """How many rows a file has of each bucket."""
    rows: Counter[int | None] = Counter()
    for batch in file.iter_batches(columns=[BUCKET], batch_size=1 << 20):
        for counted in pc.value_counts(batch[BUCKET]).to_pylist():
            rows[counted["values"]] += counted["counts"]
    return rows

"""Tables of real Parquet files, and looks at them at a time that the test chooses."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.state.model import Fingerprint
from mv_assets.state.store.database import Database
from mv_assets.tables.fingerprint import fingerprint
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.listing import Listing
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.support.harness import Clock

DAY = 86_400_000
SETTLE = 5_000
TS = TimeColumn("ts")
# Every file that a test writes is old by then.
LATER = 4_102_444_800_000

Values = Sequence[Any]


def content(*values: Any, kind: pa.DataType | None = None, column: str = "ts", **options: Any) -> bytes:
    """A Parquet file of one column; times are milliseconds unless a `kind` says otherwise."""
    return table_content(
        pa.table({column: pa.array(values, pa.timestamp("ms") if kind is None else kind)}), **options
    )


def table_content(rows: pa.Table, **options: Any) -> bytes:
    made = io.BytesIO()
    pq.write_table(rows, made, **options)
    return made.getvalue()


def spoiled(data: bytes, column: str = "ts") -> bytes:
    """A Parquet file with the pages of one column damaged in every row group; its footer is whole."""
    metadata, made = pq.read_metadata(pa.BufferReader(data)), bytearray(data)
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = map(group.column, range(group.num_columns))
        chunk = next(each for each in chunks if each.path_in_schema == column)
        start, size = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
        made[start : start + size] = b"\xff" * size
    return bytes(made)


def put(file: Path, data: bytes) -> Path:
    """Write in place: the file stays the same inode if it is there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def changed_at(file: Path) -> int:
    """When the file system says that the file changed, which nobody can forge."""
    return file.stat().st_ctime_ns // 1_000_000


def ranges(listing: Listing) -> dict[str, tuple[int, int]]:
    return {segment.name: (segment.start_ms, segment.end_ms) for segment in listing.segments()}


def crcs(listing: Listing) -> dict[str, int]:
    return {segment.name: segment.crc for segment in listing.segments()}


def whole(listing: Listing) -> Fingerprint:
    """The fingerprint of all segments."""
    return fingerprint(listing.segments())


@dataclass
class Lake:
    """One folder of files, its inventory, and a clock."""

    root: Path
    database: Database | None = None
    clock: Clock = field(default_factory=lambda: Clock(LATER))

    def write(self, name: str, *values: Any, **options: Any) -> Path:
        return put(self.root / name, content(*values, **options))

    def damage(self, name: str) -> Path:
        """Leave nothing that could be read, at the same place."""
        return put(self.root / name, b"not Parquet")

    def age(self, file: Path, milliseconds: int) -> None:
        """Let it be so long since the file changed."""
        self.clock.now = changed_at(file) + milliseconds

    def table(
        self,
        time: TimeColumn | None = TS,
        *,
        path: Path | str | None = None,
        pattern: str = "*",
        keep: bool = True,
        clock: Callable[[], int] | None = None,
    ) -> ParquetFiles:
        where = str(self.root if path is None else path)
        inventory = Inventory(self.database, "t", keep)
        return ParquetFiles("t", where, time, inventory, clock or self.clock, SETTLE, pattern)

    def look(self, time: TimeColumn | None = TS, **options: Any) -> Listing:
        return self.table(time, **options).current().listing()

    def version(self) -> str:
        return self.table().current().version

"""The rows that a view stored, read from the generations that its map names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from mv_assets.config import Storage
from mv_assets.spark.errors import Unreadable
from mv_assets.spark.read.arrow import ArrowReader
from mv_assets.spark.read.columns import Open
from mv_assets.spark.read.files import union
from mv_assets.spark.read.readers import FolderReader, Reader, Unknown
from mv_assets.state.model import BUCKET, DataFile, PartitionRow
from mv_assets.tables.listing import Details, Listing


class StoredReader:
    """Buckets of one view, each by its key as if it were a file.

    A generation may hold more buckets than the map names it for: others were computed again since.
    """

    by_file = True

    def __init__(
        self,
        spark: SparkSession,
        root: str,
        open_file: Open,
        rows: Mapping[str, PartitionRow],
        files: Mapping[str, Sequence[DataFile]],
        wanted: Iterable[str] | None,
        *,
        by_arrow: bool = False,
        unknown: Unknown = lambda _columns: {},
        storage: Storage | None = None,
    ) -> None:
        listing = Listing("the warehouse", "", 0, details=Details(root))
        columns = None if wanted is None else {*wanted, BUCKET}
        reader = FolderReader(spark, listing, columns, open_file, unknown, storage=storage)
        self._reader: Reader = ArrowReader(spark, reader, listing, open_file) if by_arrow else reader
        self._rows = rows
        self._files = files

    def files(self, names: Iterable[str]) -> list[str]:
        """The files that hold some buckets, by their paths in the warehouse."""
        return [file.path for generation in self._asked(names) for file in self._files[generation]]

    def has(self, name: str) -> bool:
        """Whether a bucket is there."""
        return name in self._rows

    def size(self, names: Iterable[str]) -> int:
        """How many bytes some buckets have."""
        return sum(row.bytes for rows in self._asked(names).values() for row in rows)

    def learn(self, names: Sequence[str]) -> None:
        self._reader.learn(self.files(name for name in names if name in self._rows))

    def schema(self, names: Iterable[str]) -> StructType:
        found = self._reader.schema(self.files(names))
        return StructType([part for part in found if part.name != BUCKET])

    def frame(self, names: Sequence[str], schema: StructType) -> DataFrame:
        return self.with_buckets(names, schema).drop(BUCKET)

    def with_buckets(self, names: Sequence[str], schema: StructType) -> DataFrame:
        """The rows of some buckets, each with the start of its bucket."""
        columns = StructType([*schema, StructField(BUCKET, LongType())])
        whole, frames = [], []
        for generation, rows in self._asked(names).items():
            files = self._files[generation]
            paths = [file.path for file in files]
            if sum(file.rows for file in files) == sum(row.rows for row in rows):
                whole += paths
            else:
                starts = ", ".join(f"{row.bucket}L" for row in rows)
                frames.append(self._reader.frame(paths, columns).where(f"{BUCKET} IN ({starts})"))
        if whole or not frames:
            frames.append(self._reader.frame(whole, columns))
        return union(frames)

    def _asked(self, names: Iterable[str]) -> dict[str, list[PartitionRow]]:
        asked: dict[str, list[PartitionRow]] = {}
        for name in names:
            row = self._rows.get(name)
            if row is None:
                raise Unreadable(f"bucket {name} is no longer what it was when it was listed")
            if row.generation is not None:
                asked.setdefault(row.generation, []).append(row)
        return asked

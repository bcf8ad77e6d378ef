"""Rows of files as Arrow reads them: a second opinion, which shares nothing with how Spark finds columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from mv_assets.spark.errors import Unreadable
from mv_assets.spark.read.columns import Open, Types
from mv_assets.spark.read.deletes import Deleted, WithDeletes, deleted_in
from mv_assets.spark.read.readers import Reader, opened
from mv_assets.spark.versions import arrow_schema
from mv_assets.tables.arrow import ArrowRows
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.lakehouse import short
from mv_assets.tables.listing import Listing, Table
from mv_assets.tables.parquet.footer import Unusable
from mv_assets.tables.parquet.table import ParquetFiles

# What one frame may hold in memory: here, and once more in Spark.
LARGEST = 128 << 20


class ArrowReader:
    """The files and the types of another reader; the rows are read here, and handed to Spark.

    Deleted rows are left out here as well: by their places, and by what `open_delete` finds at a path.
    """

    by_file = True

    def __init__(
        self,
        spark: SparkSession,
        of: Reader,
        listing: Listing,
        open_file: Open,
        deleted: Deleted | None = None,
        open_delete: Open | None = None,
    ) -> None:
        self._spark = spark
        self._of = of
        self._rows = ArrowRows(listing, open_file, self._kind_of, deleted, open_delete)

    def files(self, names: Iterable[str]) -> list[str]:
        return self._of.files(names)

    def learn(self, names: Sequence[str]) -> None:
        self._of.learn(names)

    def schema(self, names: Iterable[str]) -> StructType:
        return self._of.schema(names)

    def frame(self, names: Sequence[str], schema: StructType) -> DataFrame:
        """The rows of those files, in that schema.

        Raises:
            Unreadable: Arrow can't read them, has them in types that are not surely the same, or there are
                too many.

        """
        if _has_variants(schema):
            raise Unreadable("variants are structs to Arrow, of which it does not know the meaning")
        try:
            wanted = arrow_schema(schema)
        except PySparkException as error:
            raise Unreadable(f"Arrow has no such types ({short(error)})") from error
        try:
            batches = self._batches(names, wanted)
        except Unusable as error:
            raise Unreadable(str(error)) from error
        try:
            return self._spark.createDataFrame(pa.Table.from_batches(batches, wanted), schema)
        except pa.ArrowException as error:
            raise Unreadable(f"Spark can't be given what Arrow read ({short(error)})") from error

    def _batches(self, names: Sequence[str], wanted: pa.Schema) -> list[pa.RecordBatch]:
        batches, size = list[pa.RecordBatch](), 0
        for name in names:
            for batch in self._rows.batches(name, wanted):
                size += batch.nbytes
                if size > LARGEST:
                    raise Unreadable(f"its rows take more than {LARGEST >> 20} MB in memory")
                # After one without rows Spark takes no more.
                if batch.num_rows:
                    batches.append(batch)
        return batches

    def _kind_of(self, kind: str) -> pa.DataType:
        return arrow_schema(StructType().add("kind", Types(self._spark).of(kind))).field(0).type


def _has_variants(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(_has_variants(part.dataType) for part in kind)
        case ArrayType():
            return _has_variants(kind.elementType)
        case MapType():
            return _has_variants(kind.keyType) or _has_variants(kind.valueType)
    return isinstance(kind, VariantType)


def by_arrow(spark: SparkSession, table: Table, listing: Listing, of: Reader) -> Reader:
    """A table of the project, read by Arrow.

    Raises:
        Unreadable: only Spark reads it.
        TableUnreadable: it can't be opened.

    """
    match table:
        case ParquetFiles():
            return ArrowReader(spark, of, listing, table.folder.open)
        case DeltaFiles(reader="files") | IcebergFiles(reader="files"):
            deleted = deleted_in(cast("WithDeletes", table), listing)
            paths = table.current().source if isinstance(table, IcebergFiles) else None
            return ArrowReader(spark, of, listing, opened(table, listing), deleted, open_delete=paths)
    raise Unreadable(f"table {table.name} is read by its connector for Spark, not by its files")

"""Base tables and views as data frames, of the files that a listing names and of no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, NullType, StructField, StructType

from mv_assets.config import Storage
from mv_assets.config.storage import as_s3a
from mv_assets.spark.errors import Unreadable
from mv_assets.spark.failures import condition_of
from mv_assets.spark.read.columns import (
    Holding,
    Open,
    Types,
    alike_spelled,
    by_footers,
    by_table,
    merged,
    parts,
)
from mv_assets.spark.read.files import frame, quoted
from mv_assets.spark.stores import options
from mv_assets.spark.versions import keeps_structs
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.listing import Listing, Table
from mv_assets.tables.parquet.table import ParquetFiles

# By format: the option that names a version, and where the connector is had from.
_CONNECTORS = {
    "delta": ("versionAsOf", "io.delta:delta-spark"),
    "iceberg": ("snapshot-id", "org.apache.iceberg:iceberg-spark-runtime"),
}

Unknown = Callable[[frozenset[str]], dict[str, str]]


class Reader(Protocol):
    """How the rows of one table are had, for the columns that are wanted of it."""

    def files(self, names: Iterable[str]) -> list[str]:
        """The files behind the names that a listing has; a bucket of a view may have none.

        Raises:
            Unreadable: it is no longer what was listed.

        """
        ...

    def learn(self, names: Sequence[str]) -> None:
        """Find out what files hold, all at once."""
        ...

    def schema(self, names: Iterable[str]) -> StructType:
        """The wanted columns as those files have them together. It depends on no other file.

        Raises:
            Unreadable: a file can't be read, or they don't go together.

        """
        ...

    def frame(self, names: Sequence[str], schema: StructType) -> DataFrame:
        """The rows of those files, in that schema."""
        ...


class _OfFiles:
    """A table whose names are those of files."""

    def files(self, names: Iterable[str]) -> list[str]:
        return list(names)


class FolderReader(_OfFiles):
    """Parquet files of which each knows its columns itself."""

    def __init__(
        self,
        spark: SparkSession,
        listing: Listing,
        wanted: Iterable[str] | None,
        open_file: Open,
        unknown: Unknown,
        mentioned: Iterable[str] = (),
        storage: Storage | None = None,
    ) -> None:
        self._spark = spark
        self._listing = listing
        self._storage = storage
        needed = None if wanted is None else once(sorted(wanted))
        self._needed = None if needed is None else frozenset(needed)
        self._wanted = None if needed is None else tuple(sorted(once([*needed, *mentioned])))
        self._open = open_file
        # Neighbouring buckets lack the same columns.
        self._unknown = cache(unknown)
        self._types = Types(spark)
        self._held: dict[str, Holding | Unreadable] = {}

    def learn(self, names: Sequence[str]) -> None:
        new = [name for name in names if name not in self._held]
        given = self._listing.details.partitions
        self._held |= by_footers(new, self._wanted, given, self._open, self._types)

    def schema(self, names: Iterable[str]) -> StructType:
        holdings = self._holdings(names)
        if self._wanted is None:
            # Those of these files and of no others, in their order: what is read depends on nothing else.
            holdings = alike_spelled(holdings, ())
        kinds = merged(holdings, self._given if self._wanted is not None or holdings else {})
        absent = self._absent(kinds)
        if absent:
            kinds |= self._elsewhere(absent)
        wanted = list(kinds) if self._wanted is None else self._wanted
        return StructType([StructField(column, kinds[column]) for column in wanted if column in kinds])

    def _absent(self, kinds: Mapping[str, DataType]) -> list[str]:
        """Columns to be null in files without them; where all are wanted, and of no file, all there are."""
        if self._needed is not None:
            return sorted(self._needed - kinds.keys())
        return [] if kinds else sorted(self._unknown(frozenset()))

    def frame(self, names: Sequence[str], schema: StructType) -> DataFrame:
        holdings = self._holdings(names)
        if self._wanted is None:
            holdings = alike_spelled(holdings, schema.fieldNames())
        return frame(self._spark, list(parts(holdings, self._listing.path)), schema, self._storage)

    def _holdings(self, names: Iterable[str]) -> list[Holding]:
        found = []
        for name in names:
            held = self._held[name]
            if isinstance(held, Unreadable):
                raise held
            found.append(held)
        return found

    @cached_property
    def _given(self) -> dict[str, DataType]:
        """Columns whose values stand in the folders' names: of one type in the whole table."""
        schema = self._listing.schema
        folded = {name.lower(): kind for name, kind in schema.items()}
        wanted = schema if self._wanted is None else self._wanted
        return {c: self._types.of(folded[c.lower()]) for c in wanted if c.lower() in folded}

    def _elsewhere(self, absent: Sequence[str]) -> dict[str, DataType]:
        """Columns that none of some files has are null there, in the type they have in other files.

        One that no file has may be another table's; if not, Spark will say so.
        """
        known = {name.lower(): kind for name, kind in self._unknown(frozenset(absent)).items()}
        found: dict[str, DataType] = {}
        for column in absent:
            if column.lower() in known:
                try:
                    found[column] = self._types.of(known[column.lower()])
                except Unreadable:
                    # The other files fail by it; here it is null whatever its type.
                    found[column] = NullType()
        return found


class LakehouseReader(_OfFiles):
    """Parquet files of which the table's log or metadata says what they hold."""

    def __init__(
        self,
        spark: SparkSession,
        listing: Listing,
        wanted: Iterable[str] | None,
        storage: Storage | None = None,
    ) -> None:
        types, folded = Types(spark), {name.lower(): name for name in listing.schema}
        columns = listing.schema if wanted is None else sorted(wanted)
        spelled = {column: folded[column.lower()] for column in columns if column.lower() in folded}
        self._spark = spark
        self._listing = listing
        self._storage = storage
        self._schema = {name: types.of(listing.schema[name]) for name in spelled.values()}

    def learn(self, names: Sequence[str]) -> None:
        """Nothing that the listing does not say."""

    def schema(self, names: Iterable[str]) -> StructType:  # noqa: ARG002 - one for all
        return StructType([StructField(column, kind) for column, kind in self._schema.items()])

    def frame(self, names: Sequence[str], schema: StructType) -> DataFrame:
        details = self._listing.details
        emptied = sorted(details.emptied & self._schema.keys())
        if emptied and not keeps_structs(self._spark):
            raise Unreadable(
                f"older files have none of the fields of a struct in {', '.join(emptied)}, which this Spark "
                "takes for null; use Spark 4.1 or newer, or rewrite the files"
            )
        held = by_table(names, self._schema, details.partitions, details.physical_names, details.field_ids)
        return frame(self._spark, list(parts(held, self._listing.path)), schema, self._storage)


class ConnectorReader(_OfFiles):
    """A table at its listed version, through the format's own connector."""

    def __init__(
        self,
        spark: SparkSession,
        wanted: Iterable[str] | None,
        kind: str,
        place: str,
        version: str,
        storage: Storage | None = None,
    ) -> None:
        self._spark = spark
        self._wanted = None if wanted is None else tuple(sorted(once(wanted)))
        self._kind = kind
        self._place = place
        self._version = version
        self._storage = storage

    def learn(self, names: Sequence[str]) -> None:
        """The connector knows its files."""

    def schema(self, names: Iterable[str]) -> StructType:  # noqa: ARG002 - one for all
        if self._wanted is None:
            return self._rows.schema
        folded = {name.lower(): name for name in self._rows.columns}
        columns = [folded[column.lower()] for column in self._wanted if column.lower() in folded]
        return self._rows.select(*map(quoted, columns)).schema

    def frame(self, names: Sequence[str], schema: StructType) -> DataFrame:  # noqa: ARG002 - it finds them by time
        return self._rows.select(*map(quoted, schema.fieldNames()))

    @cached_property
    def _rows(self) -> DataFrame:
        option, package = _CONNECTORS[self._kind]
        rows = self._spark.read.format(self._kind).option(option, self._version)
        rows = rows.options(**options([self._place], self._storage))
        try:
            found = rows.load(as_s3a(self._place))
            # A Spark behind a server looks for the connector only when it is asked something.
            found.schema  # noqa: B018
        except (PySparkException, Py4JError) as error:
            if condition_of(error) != "DATA_SOURCE_NOT_FOUND":
                raise
            raise Unreadable(
                f"Spark has no connector for {self._kind}: add {package} to its spark.jars.packages, or take "
                "`reader: spark` out of the table"
            ) from error
        return found


def once(names: Iterable[str]) -> list[str]:
    """Names without those that are the same to Spark."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(name.lower(), name)
    return list(found.values())


def reader_of(
    spark: SparkSession,
    table: Table,
    listing: Listing,
    wanted: Iterable[str] | None,
    mentioned: Iterable[str] = (),
) -> Reader:
    """The reader for a table of the project.

    Wanted columns, or all, are null in files without them; those that are only mentioned are there if a file
    has them.
    """
    both = None if wanted is None else [*wanted, *mentioned]
    match table:
        case ParquetFiles():
            return FolderReader(
                spark,
                listing,
                wanted,
                table.folder.open,
                lambda columns: table.columns(columns, everywhere=True) or {},
                mentioned,
                table.storage,
            )
        case DeltaFiles(reader="spark"):
            version = listing.version.rpartition("@")[2]
            return ConnectorReader(spark, both, "delta", table.path, version, table.storage)
        case IcebergFiles(reader="spark"):
            snapshot = listing.version.rpartition("@")[2].split(" ", 1)[0]
            place = table.identifier or table.path or ""
            return ConnectorReader(spark, both, "iceberg", place, snapshot, table.storage)
        case DeltaFiles() | IcebergFiles():
            return LakehouseReader(spark, listing, both, table.storage)
        case _:
            return LakehouseReader(spark, listing, both)

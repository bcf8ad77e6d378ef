"""Base tables and views as data frames, of the files that a listing names and of no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import Protocol, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, NullType, StringType, StructField, StructType

from mv_assets.config import Storage
from mv_assets.config.storage import as_s3a
from mv_assets.spark.errors import Unreadable
from mv_assets.spark.failures import condition_of
from mv_assets.spark.read.columns import (
    Holding,
    Open,
    Types,
    Values,
    alike_spelled,
    by_footers,
    footers,
    merged,
    parts,
)
from mv_assets.spark.read.deletes import Deleted, bits, deleted_in, deletes_of
from mv_assets.spark.read.equality import GROUP, Equality
from mv_assets.spark.read.files import frame, quoted, union
from mv_assets.spark.read.places import by_footer, by_table
from mv_assets.spark.stores import options
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.listing import Listing, Table
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets.tables.places import Place
from mv_assets.tables.types import Shape

# By format: the option that names a version, and where the connector is had from.
_CONNECTORS = {
    "delta": ("versionAsOf", "io.delta:delta-spark"),
    "iceberg": ("snapshot-id", "org.apache.iceberg:iceberg-spark-runtime"),
}

T = TypeVar("T")
Unknown = Callable[[frozenset[str]], dict[str, str]]


class Reader(Protocol):
    """How the rows of one table are had, for the columns that are wanted of it."""

    @property
    def by_file(self) -> bool:
        """Whether the rows of the files that are asked for are had, and no others."""
        ...

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

    by_file = True

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
        holdings = whole(self._held[name] for name in names)
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
        holdings = whole(self._held[name] for name in names)
        if self._wanted is None:
            holdings = alike_spelled(holdings, schema.fieldNames())
        return frame(self._spark, list(parts(holdings, self._listing.path)), schema, self._storage)

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
    """Parquet files of which the table's log or metadata says what they hold.

    Where that may differ from file to file, their footers are asked.

    Raises:
        Unreadable: a wanted column would be read wrong.

    """

    def __init__(
        self,
        spark: SparkSession,
        listing: Listing,
        wanted: Iterable[str] | None,
        open_file: Open,
        deleted: Deleted,
        storage: Storage | None = None,
    ) -> None:
        folded = {name.lower(): name for name in listing.schema}
        columns = listing.schema if wanted is None else sorted(wanted)
        spelled = {column: folded[column.lower()] for column in columns if column.lower() in folded}
        refused = listing.refusals(spelled.values())
        if refused:
            raise Unreadable("; ".join(refused))
        self._spark = spark
        self._listing = listing
        self._storage = storage
        self._open = open_file
        self._types = Types(spark)
        self._schema = {name: self._types.of(listing.schema[name]) for name in spelled.values()}
        places = listing.details.columns
        self._places = {name: places.get(name, Place(name)) for name in self._schema}
        asked = {**self._places, **{each.name: each for each in _compared(listing)}}
        self._asks = any(place.only_footers_tell for place in asked.values())
        self._inside: dict[str, list[Shape] | Unreadable] = {}
        # The windows of neighbouring buckets have the same files.
        self._deleted = cache(lambda name: bits(deleted(name)))

    def learn(self, names: Sequence[str]) -> None:
        if self._asks:
            self._inside |= footers([name for name in names if name not in self._inside], self._open)

    def schema(self, names: Iterable[str]) -> StructType:
        if self._asks:
            self._held(list(names), self._schema, self._listing.details.partitions, self._places)
        return StructType([StructField(column, kind) for column, kind in self._schema.items()])

    def frame(self, names: Sequence[str], schema: StructType) -> DataFrame:
        deletes = deletes_of(self._listing, names)
        partly = [name for name in names if name in deletes and deletes[name].equal]
        others = sorted(set(names) - set(partly))
        frames = [self._rows(others, schema)] if others or not partly else []
        return union([*frames, self._without_equal(partly, schema)] if partly else frames)

    def _without_equal(self, names: Sequence[str], schema: StructType) -> DataFrame:
        """The rows of files from which rows are deleted by their values."""
        equality = Equality(self._listing, names, self._types.of, self._storage)
        further = [part for part in equality.compared.values() if part.name not in schema.fieldNames()]
        read = StructType([*schema, *further, StructField(GROUP, StringType())])
        rows = equality.kept(self._spark, self._rows(names, read, equality.places, equality.groups))
        return rows.select(*map(quoted, schema.fieldNames()))

    def _rows(
        self,
        names: Sequence[str],
        schema: StructType,
        places: Mapping[str, Place] = MappingProxyType({}),
        groups: Mapping[str, str] = MappingProxyType({}),
    ) -> DataFrame:
        """The rows of files, without those at deleted places.

        Columns that are not wanted have `places` of their own, and the group is given.
        """
        details = self._listing.details
        kinds = {part.name: self._schema.get(part.name, part.dataType) for part in schema}
        given: Mapping[str, Values] = {
            name: {**details.partitions.get(name, {}), GROUP: group} for name, group in groups.items()
        } or details.partitions
        held = self._held(names, kinds, given, {GROUP: Place(GROUP), **places, **self._places})
        deletes = deletes_of(self._listing, names)
        deleted = {name: self._deleted(name) for name, each in deletes.items() if each.places}
        return frame(self._spark, list(parts(held, self._listing.path, deleted)), schema, self._storage)

    def _held(
        self,
        names: Sequence[str],
        kinds: Mapping[str, DataType],
        given: Mapping[str, Values],
        places: Mapping[str, Place],
    ) -> list[Holding]:
        # What is of no type is in no file.
        stored = {name: kind for name, kind in kinds.items() if not isinstance(kind, NullType)}
        if not self._asks:
            return list(by_table(names, stored, given, places))
        return [
            by_footer(name, shapes, stored, given.get(name, {}), places, self._types)
            for name, shapes in zip(names, whole(self._inside[name] for name in names), strict=True)
        ]


def _compared(listing: Listing) -> list[Place]:
    """The columns by whose values rows are deleted, as far as the table still has them."""
    deletes = listing.details.deletes.values()
    ids = {number for each in deletes for delete in each.equal for number, _ in delete.columns}
    return [place for place in listing.details.columns.values() if ids and place.field_id in ids]


class ConnectorReader(_OfFiles):
    """A table at its listed version, through the format's own connector."""

    by_file = False

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


def whole(found: Iterable[T | Unreadable]) -> list[T]:
    """What is known of files.

    Raises:
        Unreadable: one of them can't be read.

    """
    known = []
    for each in found:
        if isinstance(each, Unreadable):
            raise each
        known.append(each)
    return known


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
            deleted, open_file = deleted_in(table, listing), opened(table, listing)
            return LakehouseReader(spark, listing, both, open_file, deleted, table.storage)
    raise Unreadable(f"table {table.name} is none whose files could be read")


def opened(table: Table, listing: Listing) -> Open:
    """How the files of a Delta or Iceberg table are opened; the table itself only when the first one is."""

    @cache
    def source() -> Open:
        match table:
            case DeltaFiles():
                return table.source
            case IcebergFiles():
                found = table.current().source
                return lambda name: found(listing.path(name))
        raise Unreadable(f"table {table.name} has no files of its own")

    def open_file(name: str) -> pa.NativeFile:
        return source()(name)

    return open_file

"""An Iceberg table: the files of its current snapshot, as its manifests list them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from mv_assets.config.storage import Storage
from mv_assets.tables import lakehouse
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.tables.fingerprint import hashed
from mv_assets.tables.iceberg import kept, schemas
from mv_assets.tables.iceberg.blocks import Assembly, Meaning, blocks
from mv_assets.tables.iceberg.catalogs import named_table
from mv_assets.tables.iceberg.entries import Entry, Manifest
from mv_assets.tables.iceberg.metadata import static_table
from mv_assets.tables.iceberg.positions import positions
from mv_assets.tables.iceberg.remembered import Metadata
from mv_assets.tables.iceberg.rewrites import rewrites
from mv_assets.tables.iceberg.times import IcebergTime
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.lakehouse import Active, Reader
from mv_assets.tables.listing import Details, Listing, OnRead, unnoticed
from mv_assets.tables.parquet.footer import Extent, Unusable
from mv_assets.tables.parts import Merged
from mv_assets.tables.times import TimeColumn

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

_UNSUPPORTED = re.compile(r"Unsupported field type: '(\w+)'|Input tag '(\d+)' found using 'format")


@dataclass(frozen=True, slots=True)
class IcebergFiles:
    """The table, by its folder or metadata file, or else by its name in a catalog.

    `time` is None for a dimension. With a `path`, the catalog's properties say how to reach it, and `unsafe`
    that its newest metadata file is current where no version hint says which one is.
    """

    name: str
    path: str | None
    time: TimeColumn | None
    inventory: Inventory
    clock: Callable[[], int]
    settle_ms: int
    reader: Reader = "files"
    catalog: Mapping[str, str] | None = field(default=None, repr=False)
    identifier: str | None = None
    unsafe: bool = False
    storage: Storage | None = None
    # How the files of the version that was read last are reached.
    _reached: dict[str, FileIO] = field(default_factory=dict, compare=False, repr=False)

    @property
    def where(self) -> str:
        return self.path or f"{self.identifier} in its catalog"

    def current(self) -> IcebergTableVersion:
        with self.readable():
            return IcebergTableVersion(self, self._open())

    def columns(
        self,
        wanted: frozenset[str] = frozenset(),  # noqa: ARG002 - it has all
        *,
        everywhere: bool = False,  # noqa: ARG002
    ) -> dict[str, str] | None:
        with self.readable():
            return schemas.columns(self._open().schema())

    def deleted(self, listing: Listing, name: str) -> pa.Int64Array:
        """Which rows of a listed file are deleted by their places in it, ascending, each once.

        Raises:
            Unusable: what tells it is missing, damaged, or does not fit.
            TableUnreadable: the table can't be opened.

        """
        places, path = listing.details.deletes[name].places, listing.path(name)
        again = listing.version in self._reached
        try:
            return positions(self._io(listing.version), places, path)
        except Unusable:
            if not again:
                raise
            # What a catalog lends to reach files with ends some day.
            self._reached.clear()
            return positions(self._io(listing.version), places, path)

    def _io(self, version: str) -> FileIO:
        found = self._reached.get(version)
        if found is None:
            with self.readable():
                found = self._open().io
            self._reached.clear()
            self._reached[version] = found
        return found

    def refused(self) -> Mapping[str, str]:
        with self.readable():
            return self.current().refused

    def _open(self) -> Table:
        properties = self.catalog or {}
        try:
            if self.path is not None:
                return static_table(self.path, properties, unsafe=self.unsafe)
            if self.identifier is not None:
                return named_table(self.identifier, properties)
        except ImportError as error:
            if (error.name or "").partition(".")[0] != "pyiceberg":
                raise
            why = "the pyiceberg library is not installed: pip install 'mv_assets[iceberg]'"
            raise TableUnreadable(self.name, self.where, why) from error
        raise TableUnreadable(self.name, self.where, "it is given neither a path nor an identifier")

    @contextmanager
    def readable(self) -> Iterator[None]:
        """What the library can't read is refused by its name; all else makes the table unreadable."""
        with lakehouse.readable(self.name, self.where, self.catalog or {}):
            try:
                yield
            except Exception as error:
                found = _UNSUPPORTED.search(str(error))
                if found is None:
                    raise
                what = (
                    f"has a column of type {found[1]}"
                    if found[1]
                    else f"is of Iceberg's format version {found[2]}"
                )
                raise TableRefused(self.name, what, "try a newer pyiceberg library") from error


@dataclass(frozen=True, slots=True)
class IcebergTableVersion:
    """The table at the snapshot that was current when its metadata was read."""

    table: IcebergFiles
    opened: Table

    @property
    def version(self) -> str:
        metadata = self.opened.metadata
        # Names may be mapped anew without a snapshot.
        names = metadata.properties.get("schema.name-mapping.default")
        mapped = "" if names is None else f" names {hashed(names)}"
        schema = f"schema {metadata.current_schema_id}{mapped}"
        return f"{metadata.table_uuid}@{metadata.current_snapshot_id} {schema}"

    @property
    def refused(self) -> Mapping[str, str]:
        return schemas.refused(self.opened.schema()) if self.table.reader == "files" else {}

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        table, schema = self.table, self.opened.schema()
        with table.readable():
            columns = schemas.columns(schema)
            listing = Listing(table.name, self.version, table.clock(), schema=columns)
            time = self._time(columns)
            redefined = schemas.redefined(self.opened.metadata, time.column.name) if time else []
            meaning = Meaning(self.opened.metadata, table.reader, time, redefined)
            files = Metadata(self.opened.io, table.inventory, None if time is None else time.field_id)
            made = self._assembled(listing, meaning, files)
            listing.details = Details(
                meaning.root,
                Merged(part.elsewhere for part in made.parts),
                Merged(part.partitions for part in made.parts),
                schemas.places(self.opened.metadata),
                self.refused,
                deletes=made.row_deletes,
            )

            def read(file: Active) -> Extent:
                return self._read(made.entries[file.name], time)

            how = "" if time is None else f"{time.place.meaning} {time.column.unit}"
            self._refuse_twice(made)
            lakehouse.enter(listing, made.others, read, how, table.inventory, table.settle_ms, on_read)
            listing.rewrites = rewrites(files, meaning)
            files.finish()
            kept.keep(table.inventory.table, meaning, made)
        return listing

    def _refuse_twice(self, made: Assembly) -> None:
        table, others = self.table, [file.name for file in made.others]
        known = () if others else kept.known(table.inventory.table, made.meaning)
        lakehouse.refuse_twice_in(table.name, made.parts, {id(block.files.names) for block in known}, others)

    def _assembled(self, listing: Listing, meaning: Meaning, files: Metadata) -> Assembly:
        """The listing with the data files of the current snapshot; some are yet to be read."""
        manifests = self._manifests(files)
        files.note(manifests)
        deletes = meaning.deletes(files.entries([each for each in manifests if each.deletes]))
        committed = {known.snapshot_id: known.timestamp_ms for known in self.opened.metadata.snapshots}
        made = Assembly(listing, meaning, deletes, committed)
        for block in blocks(meaning, files, [each for each in manifests if not each.deletes]):
            made.add(block)
        listing.take(made.parts)
        return made

    def _manifests(self, files: Metadata) -> list[Manifest]:
        metadata = self.opened.metadata
        if metadata.current_snapshot_id is None:
            return []
        snapshot = metadata.current_snapshot()
        if snapshot is None:
            raise ValueError(
                f"its metadata does not have its current snapshot {metadata.current_snapshot_id}"
            )
        found = files.manifests(snapshot.manifest_list)
        sequences = {known.snapshot_id: known.sequence_number for known in metadata.snapshots}
        for each in found:
            # A number that is not its commit's would have deletes apply to other files.
            if each.sequence not in (0, sequences.get(each.snapshot, each.sequence)):
                raise ValueError(
                    f"its manifest list {snapshot.manifest_list} is damaged: it gives {each.path} the "
                    f"sequence number {each.sequence}"
                )
        return found

    def _time(self, columns: Mapping[str, str]) -> IcebergTime | None:
        time = self.table.time
        if time is None:
            return None
        name, unit = lakehouse.time_of(self.table.name, self.table.where, columns, time)
        kind = str(self.opened.schema().find_field(name).field_type)
        place = schemas.places(self.opened.metadata)[name]
        return IcebergTime(TimeColumn(name, time.unit), place, "ns" if kind.endswith("_ns") else unit)

    def source(self, path: str) -> pa.NativeFile:
        """A listed file, opened."""
        opened = self.opened.io.new_input(path).open()
        return opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, mode="r")

    def _read(self, file: Entry, time: IcebergTime | None) -> Extent:
        if time is None:
            raise Unusable("a dimension's files are not read")
        if file.format != "PARQUET":
            raise Unusable(f"the table does not state its time range, and it is {file.format}, not Parquet")
        with self.source(file.path) as source:
            return lakehouse.of_footer(source, time.column, time.place)

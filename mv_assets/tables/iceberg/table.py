"""An Iceberg table: the files of its current snapshot, as its manifests list them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mv_assets.config.storage import Storage, as_s3
from mv_assets.tables import lakehouse
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.tables.iceberg import schemas
from mv_assets.tables.iceberg.catalogs import named_table
from mv_assets.tables.iceberg.deletes import Deletes, Partition, entries, partition_of
from mv_assets.tables.iceberg.metadata import static_table
from mv_assets.tables.iceberg.times import IcebergTime, stated_extent
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.lakehouse import BY_SPARK, Active, Reader
from mv_assets.tables.listing import Details, Listing, OnRead, unnoticed
from mv_assets.tables.parquet.footer import Extent, Unusable
from mv_assets.tables.times import TimeColumn

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
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

    @property
    def where(self) -> str:
        return self.path or f"{self.identifier} in its catalog"

    def current(self) -> IcebergTableVersion:
        with self.readable():
            version = IcebergTableVersion(self, self._open())
            if self.reader == "files":
                version.refuse()
        return version

    def columns(
        self,
        wanted: frozenset[str] = frozenset(),  # noqa: ARG002 - it has all
        *,
        everywhere: bool = False,  # noqa: ARG002
    ) -> dict[str, str] | None:
        with self.readable():
            return schemas.columns(self._open().schema())

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
        with lakehouse.readable(self.name, self.where):
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
        return f"{metadata.table_uuid}@{metadata.current_snapshot_id} schema {metadata.current_schema_id}"

    def refuse(self) -> None:
        """Refuse what can't be told from the listed files alone."""
        name, metadata = self.table.name, self.opened.metadata
        defaulted = schemas.defaulted(self.opened.schema())
        if defaulted:
            raise TableRefused(name, f"has default values for older files ({', '.join(defaulted)})", BY_SPARK)
        moved = schemas.moved_inside(metadata)
        if moved is not None:
            raise TableRefused(name, f"has a nested field that was renamed or replaced ({moved})", BY_SPARK)
        if metadata.current_snapshot_id is not None and "schema.name-mapping.default" in metadata.properties:
            raise TableRefused(name, "has imported files without field ids (a name mapping)", BY_SPARK)

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        table, schema = self.table, self.opened.schema()
        with table.readable():
            columns = schemas.columns(schema)
            listing = Listing(table.name, self.version, table.clock(), schema=columns)
            time = self._time(columns)
            files: list[Active] = []
            sources: dict[str, DataFile] = {}
            partitions: dict[str, Mapping[str, str | None]] = {}
            elsewhere: dict[str, str] = {}
            shared: dict[Partition, tuple[dict[int, Any], dict[str, str | None]]] = {}
            redefined = schemas.redefined(self.opened.metadata)
            for file, changed, deletes in self._data_files():
                key = partition_of(file)
                if key not in shared:
                    values = self._identical(*key)
                    shared[key] = values, self._texts(values)
                values, texts = shared[key]
                name, size = self._relative(file.file_path), file.file_size_in_bytes
                extent = stated_extent(file, time, values)
                crc = lakehouse.content(name, size, texts, [*deletes, *redefined])
                files.append(Active(name, crc, size, changed, extent))
                if texts:
                    partitions[name] = texts
                if name == file.file_path:
                    elsewhere[name] = name
                if extent is None:
                    sources[name] = file
            ids = {part.name: part.field_id for part in schema.fields}
            root = self.opened.location().rstrip("/")
            emptied = schemas.emptied_inside(self.opened.metadata)
            listing.details = Details(root, elsewhere, partitions, field_ids=ids, emptied=emptied)

            def read(file: Active) -> Extent:
                return self._read(sources[file.name], time)

            how = "" if time is None else f"{time.field_id} {time.column.unit}"
            lakehouse.enter(listing, files, read, how, table.inventory, table.settle_ms, on_read)
        return listing

    def _time(self, columns: Mapping[str, str]) -> IcebergTime | None:
        time = self.table.time
        if time is None:
            return None
        name, unit = lakehouse.time_of(self.table.name, self.table.where, columns, time)
        column = self.opened.schema().find_field(name)
        unit = "ns" if str(column.field_type).endswith("_ns") else unit
        return IcebergTime(
            TimeColumn(name, time.unit), column.field_id, unit, column.initial_default is not None
        )

    def _data_files(self) -> Iterator[tuple[DataFile, int, list[str]]]:
        """Data files, when they were committed, and the delete files that apply to them."""
        from pyiceberg.manifest import ManifestContent  # noqa: PLC0415 - an extra

        metadata, io = self.opened.metadata, self.opened.io
        if metadata.current_snapshot_id is None:
            return
        snapshot = metadata.current_snapshot()
        if snapshot is None:
            raise ValueError(
                f"its metadata does not have its current snapshot {metadata.current_snapshot_id}"
            )
        manifests = snapshot.manifests(io)
        deletes = Deletes()
        for manifest in manifests:
            if manifest.content == ManifestContent.DELETES:
                for entry, sequence in entries(manifest, io):
                    deletes.add(entry, sequence)
        committed = {known.snapshot_id: known.timestamp_ms for known in metadata.snapshots}
        for manifest in manifests:
            if manifest.content == ManifestContent.DATA:
                for entry in manifest.fetch_manifest_entry(io):
                    file, when = entry.data_file, committed.get(entry.snapshot_id or 0, 0)
                    applied = deletes.of(file, entry.sequence_number or 0)
                    if self.table.reader == "files":
                        self._refuse(file, applied)
                    yield file, when, applied

    def _refuse(self, file: DataFile, deletes: list[str]) -> None:
        """Refuse a file that Spark would read wrong by itself."""
        compact = f"{BY_SPARK}, or compact it (CALL system.rewrite_data_files)"
        if deletes:
            raise TableRefused(self.table.name, f"has delete files, as for {file.file_path}", compact)
        if file.file_format != "PARQUET":
            what = f"has {file.file_format.value} files, as {file.file_path}"
            raise TableRefused(self.table.name, what, compact)
        if file.key_metadata is not None:
            raise TableRefused(self.table.name, f"has encrypted files, as {file.file_path}", BY_SPARK)

    def _identical(self, spec_id: int, values: tuple[Any, ...]) -> dict[int, Any]:
        """Values that hold for all rows of a file, by field id. Imported files may lack these columns."""
        from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415 - an extra

        parts = zip(self.opened.specs()[spec_id].fields, values, strict=True)
        return {
            part.source_id: value for part, value in parts if isinstance(part.transform, IdentityTransform)
        }

    def _texts(self, values: Mapping[int, Any]) -> dict[str, str | None]:
        """The same as text, under the columns' present names."""
        return {
            part.name: schemas.text(str(part.field_type), values[part.field_id])
            for part in self.opened.schema().fields
            if part.field_id in values and not isinstance(values[part.field_id], bytes)
        }

    def _relative(self, path: str) -> str:
        root, plain = _plain(self.opened.location()).rstrip("/") + "/", _plain(path)
        return plain.removeprefix(root) if plain.startswith(root) else path

    def source(self, path: str) -> pa.NativeFile:
        """A listed file, opened."""
        opened = self.opened.io.new_input(path).open()
        return opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, mode="r")

    def _read(self, file: DataFile, time: IcebergTime | None) -> Extent:
        if time is None:
            raise Unusable("a dimension's files are not read")
        if file.file_format != "PARQUET":
            raise Unusable(
                f"the table does not state its time range, and it is {file.file_format.value}, not Parquet"
            )
        with self.source(file.file_path) as source:
            found = lakehouse.of_footer(source, time.column, time.field_id)
        if time.has_default and found.range is None:
            raise Unusable(f"it is older than the default value of its time column {time.column.name}")
        return found


def _plain(path: str) -> str:
    """A path in the one way of writing it: local ones as such, and one scheme for S3."""
    return re.sub(r"^file:/+", "/", as_s3(path))

"""A Delta table: the files of its current version, as its log lists them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from mv_assets.config.storage import Storage, is_s3
from mv_assets.tables import lakehouse
from mv_assets.tables.delta.columns import DeltaColumns
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.tables.files.locations import filesystem_at
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.lakehouse import BY_SPARK, Active, Reader
from mv_assets.tables.listing import Details, Listing, OnRead, unnoticed
from mv_assets.tables.parquet.footer import Extent
from mv_assets.tables.times import TimeColumn

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Reader features that ask nothing of whoever reads the listed files, or that are checked on their own.
_UNDERSTOOD = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_UNSUPPORTED = re.compile(
    r"Feature '([^']+)' is not supported|Unknown feature '([^']+)'|features required: \[([^\]]+)\]"
)
_ABSOLUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:/")
# As much of a commit as tells it from any other: it names its time, and files that nobody else has.
_TELLING = 1 << 16


@dataclass(frozen=True, slots=True)
class DeltaFiles:
    """The table; `time` is None for a dimension."""

    name: str
    path: str
    time: TimeColumn | None
    inventory: Inventory
    clock: Callable[[], int]
    settle_ms: int
    reader: Reader = "files"
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    storage: Storage | None = None

    def current(self) -> DeltaTableVersion:
        with self.readable():
            opened = self._open()
            version = DeltaTableVersion(self, opened, DeltaColumns.of(opened), self._last_commit(opened))
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
            return DeltaColumns.of(self._open()).types

    def _open(self) -> DeltaTable:
        try:
            from deltalake import DeltaTable  # noqa: PLC0415 - an extra
        except ImportError as error:
            why = "the deltalake library is not installed: pip install 'mv_assets[delta]'"
            raise TableUnreadable(self.name, self.path, why) from error
        return DeltaTable(self.path, storage_options=dict(self.storage_options) or None)

    def _last_commit(self, opened: DeltaTable) -> str:
        """A hash of the last commit; of nothing where only a checkpoint is left of it."""
        try:
            with self.stored(opened).open_input_file(f"_delta_log/{opened.version():020}.json") as file:
                said = file.read(_TELLING)
        except OSError:
            said = b""
        return hashlib.blake2b(said, digest_size=8).hexdigest()

    def stored(self, opened: DeltaTable) -> fs.FileSystem:
        """Where the table's files are, by their paths inside it."""
        from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - an extra

        raw, options = opened._table, dict(self.storage_options)  # noqa: SLF001 - as the library itself
        return fs.PyFileSystem(DeltaStorageHandler.from_table(raw, options))

    @contextmanager
    def readable(self) -> Iterator[None]:
        """What the library can't read is refused by its name; all else makes the table unreadable."""
        with lakehouse.readable(self.name, self.path):
            try:
                yield
            except Exception as error:
                feature = _unsupported(str(error))
                if feature is None:
                    raise
                what = f"needs the Delta reader feature {feature}"
                instead = (
                    f"drop it (ALTER TABLE ... DROP FEATURE {feature}), or try a newer deltalake library"
                )
                raise TableRefused(self.name, what, instead) from error


def _unsupported(said: str) -> str | None:
    """The feature over which the library failed, if it was over one."""
    if "catalog-managed table" in said:
        return "catalogManaged"
    found = _UNSUPPORTED.search(said)
    return None if found is None else found[found.lastindex or 0]


@dataclass(frozen=True, slots=True)
class DeltaTableVersion:
    """The table at the version that was current when it was opened."""

    table: DeltaFiles
    opened: DeltaTable
    columns: DeltaColumns
    commit: str

    @property
    def version(self) -> str:
        """With the last commit: a table that was restored from a backup gets the same numbers once more."""
        return f"{self.opened.metadata().id} {self.commit}@{self.opened.version()}"

    def refuse(self) -> None:
        """Refuse what can't be told from the listed files alone."""
        name, columns = self.table.name, self.columns
        foreign = sorted(frozenset(self.opened.protocol().reader_features or ()) - _UNDERSTOOD)
        if foreign:
            raise TableRefused(name, f"needs the Delta reader feature {', '.join(foreign)}", BY_SPARK)
        if columns.widened:
            what = f"has columns whose types were widened ({', '.join(columns.widened)})"
            raise TableRefused(name, what, BY_SPARK)
        if columns.mapped_inside:
            what = f"uses column mapping inside nested columns ({', '.join(columns.mapped_inside)})"
            raise TableRefused(name, what, BY_SPARK)
        binary = [part for part in columns.partitioning if columns.types[part] == "binary"]
        if binary:
            raise TableRefused(name, f"is partitioned by binary values ({', '.join(binary)})", BY_SPARK)

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        table, columns = self.table, self.columns
        with table.readable():
            listing = Listing(table.name, self.version, table.clock(), schema=columns.types)
            actions = pa.table(self.opened.get_add_actions(flatten=False))
            partitions = self._partitions(actions)
            files = self._files(actions, partitions)
            listing.details = Details(
                table.path.rstrip("/"),
                {file.name: unquote(file.name) for file in files if _ABSOLUTE.match(file.name)},
                {file.name: values for file, values in zip(files, partitions, strict=True) if values},
                columns.physical_names,
                columns.field_ids,
            )
            time, field_id = self._time_in_files()

            def read(file: Active) -> Extent:
                with self.source(file.name) as source:
                    return lakehouse.of_footer(source, time, field_id)

            how = f"{time} {field_id}"
            lakehouse.enter(listing, files, read, how, table.inventory, table.settle_ms, on_read)
        return listing

    def _partitions(self, actions: pa.Table) -> list[dict[str, str | None]]:
        """Each file's partition values as text; files of one partition share them."""
        names = self.columns.partitioning
        if not names:
            return [{}] * len(actions)
        texts = [_within(actions, "partition", name).cast(pa.string()).to_pylist() for name in names]
        shared: dict[tuple[str | None, ...], dict[str, str | None]] = {}
        return [
            shared.setdefault(values, dict(zip(names, values, strict=True)))
            for values in zip(*texts, strict=True)
        ]

    def _files(self, actions: pa.Table, partitions: list[dict[str, str | None]]) -> list[Active]:
        deletes = self._deletes()
        paths = actions["path"].to_pylist()
        uris = [urljoin(self.opened.table_uri, path) for path in paths] if deletes else paths
        if not deletes.keys() <= set(uris):
            why = "it has deletion vectors for files that it does not list"
            raise TableUnreadable(self.table.name, self.table.path, why)
        sizes, changed = (actions[name].to_pylist() for name in ("size_bytes", "modification_time"))
        files = []
        for path, uri, size, when, partition, extent in zip(
            paths, uris, sizes, changed, partitions, self._extents(actions), strict=True
        ):
            name = path if _ABSOLUTE.match(path) else unquote(path)
            crc = lakehouse.content(name, size, partition, [deletes[uri]] if uri in deletes else [])
            files.append(Active(name, crc, size, when, extent))
        return files

    def _extents(self, actions: pa.Table) -> list[Extent | None]:
        table = self.table
        rows = actions["num_records"].to_pylist()
        if table.time is None:
            return [lakehouse.timeless(count) for count in rows]
        name, unit = lakehouse.time_of(table.name, table.path, self.columns.types, table.time)
        if name in self.columns.partitioning:
            values = _integers(_within(actions, "partition", name))
            return [
                # One value for all rows: where it is null, all are.
                Extent(None, count or 0) if value is None else lakehouse.stated(count, 0, value, value, unit)
                for count, value in zip(rows, values, strict=True)
            ]
        logged = self.columns.logged(name)
        nulls = _within(actions, "null_count", logged).to_pylist()
        firsts, lasts = (_integers(_within(actions, bound, logged)) for bound in ("min", "max"))
        return [
            lakehouse.stated(*values, unit=unit) for values in zip(rows, nulls, firsts, lasts, strict=True)
        ]

    def _time_in_files(self) -> tuple[TimeColumn, int | None]:
        time = self.table.time
        if time is None:
            return TimeColumn(""), None
        name = lakehouse.named(self.columns.types, time.name) or time.name
        return TimeColumn(self.columns.logged(name), time.unit), self.columns.field_ids.get(name)

    def source(self, name: str) -> pa.NativeFile:
        """A listed file, opened."""
        if _ABSOLUTE.match(name):
            found = filesystem_at(unquote(name), self.table.storage) if is_s3(name) else None
            filesystem, path = found or fs.FileSystem.from_uri(name)
            return filesystem.open_input_file(path)
        return self.table.stored(self.opened).open_input_file(name)

    def _deletes(self) -> dict[str, str]:
        """Which rows are deleted by vectors, as a hash, by their files' URIs."""
        if "deletionVectors" not in (self.opened.protocol().reader_features or ()):
            return {}
        found = {}
        for batch in pa.RecordBatchReader.from_stream(self.opened.deletion_vectors()):
            for uri, kept in zip(batch["filepath"].to_pylist(), batch["selection_vector"], strict=True):
                deleted = pc.indices_nonzero(pc.invert(kept.values)).to_pylist()
                found[uri] = hashlib.blake2b(str(deleted).encode(), digest_size=16).hexdigest()
        if found and self.table.reader == "files":
            what = f"has deletion vectors on {len(found)} file(s)"
            instead = f"{BY_SPARK}, or purge them (REORG TABLE ... APPLY (PURGE))"
            raise TableRefused(self.table.name, what, instead)
        return found


def _within(actions: pa.Table, struct: str, name: str) -> pa.ChunkedArray:
    """A column inside a struct; nulls where the log has no such statistics."""
    kind = actions.schema.field(struct).type if struct in actions.column_names else None
    if kind is None or kind.get_field_index(name) < 0:
        return pa.chunked_array([pa.nulls(len(actions), pa.int64())])
    return pc.struct_field(actions[struct], [name])


def _integers(values: pa.ChunkedArray) -> list[Any]:
    """Days, microseconds or numbers; not Python's times, which end with the year 9999."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return list(values.to_pylist())

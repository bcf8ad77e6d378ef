"""A Delta table: the files of its current version, as its log lists them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from mv_assets.config.storage import Storage, is_s3
from mv_assets.tables import lakehouse
from mv_assets.tables.delta import vectors
from mv_assets.tables.delta.changes import advanced
from mv_assets.tables.delta.description import Description, Time, is_absolute, name_of
from mv_assets.tables.delta.files import FileList, Twice
from mv_assets.tables.delta.log import NOTHING, Commit, Log
from mv_assets.tables.delta.remembered import Head, Memory
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.tables.files.locations import filesystem_at
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.lakehouse import BY_SPARK, Active, Reader
from mv_assets.tables.listing import Details, Listing, OnRead, unnoticed
from mv_assets.tables.parquet.footer import Extent
from mv_assets.tables.places import Place
from mv_assets.tables.times import TimeColumn

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Reader features that ask nothing of whoever reads the listed files, or concern some columns or files only.
_UNDERSTOOD = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
_UNSUPPORTED = re.compile(
    r"Feature '([^']+)' is not supported|Unknown feature '([^']+)'|features required: \[([^\]]+)\]"
)
# Commits that are read one by one, rather than the checkpoint that sums them up.
_MOST_COMMITS = 100


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
            version = self._version()
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
            return self.current().head.columns.types

    def refused(self) -> Mapping[str, str]:
        with self.readable():
            return self.current().refused

    def deleted(self, listing: Listing, name: str) -> pa.Int64Array:
        """The rows of a listed file that are deleted, by their places in it, ascending.

        Raises:
            Unusable: what says so is missing or damaged.

        """
        deletes = listing.details.deletes.get(name)
        if deletes is None:
            return pa.array([], pa.int64())
        return vectors.deleted(deletes.places[0], self.source)

    def source(self, name: str) -> pa.NativeFile:
        """A listed file, opened."""
        if is_absolute(name):
            found = filesystem_at(unquote(name), self.storage) if is_s3(name) else None
            filesystem, path = found or fs.FileSystem.from_uri(name)
            return filesystem.open_input_file(path)
        return self.stored().open_input_file(name)

    def stored(self) -> fs.FileSystem:
        """Where the table's files are, by their paths inside it."""
        try:
            from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise self._not_installed from error
        return fs.PyFileSystem(DeltaStorageHandler(self.path, dict(self.storage_options)))

    def log(self, head: Head) -> Log:
        return Log(self.stored(), self.description(head).wanted)

    def description(self, head: Head) -> Description:
        """How the files of a version are described.

        Raises:
            TableUnreadable: its time column is none.

        """
        columns = head.columns
        if self.time is None:
            return Description(columns, None)
        return Description(columns, Time(*lakehouse.time_of(self.name, self.path, columns.types, self.time)))

    @property
    def memory(self) -> Memory:
        time = self.time
        return Memory(self.inventory, self.path, "" if time is None else f"{time.name} {time.unit}")

    def _version(self) -> DeltaTableVersion:
        """What was remembered and the commits since; else the table as the library opens it.

        The library says what nobody here can read, and tells of columns. Neither changes without a commit
        that says so.
        """
        last = self.memory.head()
        commits = None if last is None else self._since(last)
        if last is None or commits is None:
            return DeltaTableVersion(self, self._head())
        if any(commit.redefines for commit in commits):
            return DeltaTableVersion(self, self._head(), last)
        head = last._replace(version=commits[-1].version, commit=commits[-1].digest) if commits else last
        return DeltaTableVersion(self, head, last, commits)

    def _since(self, last: Head) -> tuple[Commit, ...] | None:
        """The commits since that version; None if it is not a past one of this table, or too far."""
        log = self.log(last)
        if last.commit == NOTHING or log.digest(last.version) != last.commit:
            return None
        found: list[Commit] = []
        while (commit := log.commit(last.version + len(found) + 1)) is not None:
            found.append(commit)
            if len(found) > _MOST_COMMITS:
                return None
        return tuple(found)

    def _head(self) -> Head:
        opened = self._opened()
        metadata, version = opened.metadata(), opened.version()
        return Head(
            str(metadata.id),
            version,
            Log(self.stored()).digest(version),
            opened.schema().to_json(),
            tuple(metadata.partition_columns),
            metadata.configuration.get("delta.columnMapping.mode") or "none",
            tuple(opened.protocol().reader_features or ()),
            self.memory.how,
        )

    def _opened(self) -> DeltaTable:
        try:
            from deltalake import DeltaTable  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise self._not_installed from error
        return DeltaTable(self.path, storage_options=dict(self.storage_options) or None)

    @property
    def _not_installed(self) -> TableUnreadable:
        why = "the deltalake library is not installed: pip install 'mv_assets[delta]'"
        return TableUnreadable(self.name, self.path, why)

    @contextmanager
    def readable(self) -> Iterator[None]:
        """What the library can't read is refused by its name; all else makes the table unreadable."""
        with lakehouse.readable(self.name, self.path, self.storage_options):
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
    """The table at the version that was current when it was looked at.

    `last` is the version that is remembered, where it is a past one of this table. Where `commits` are None,
    they don't tell all that changed since.
    """

    table: DeltaFiles
    head: Head
    last: Head | None = None
    commits: tuple[Commit, ...] | None = None

    @property
    def version(self) -> str:
        """With the last commit: a table that was restored from a backup gets the same numbers once more."""
        return f"{self.head.id} {self.head.commit}@{self.head.version}"

    def source(self, name: str) -> pa.NativeFile:
        """A listed file, opened."""
        return self.table.source(name)

    def refuse(self) -> None:
        """Refuse what can't be told from the listed files alone."""
        foreign = sorted(frozenset(self.head.features) - _UNDERSTOOD)
        if foreign:
            what = f"needs the Delta reader feature {', '.join(foreign)}"
            raise TableRefused(self.table.name, what, BY_SPARK)

    @property
    def refused(self) -> Mapping[str, str]:
        return self.head.columns.refused if self.table.reader == "files" else {}

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        table, columns = self.table, self.head.columns
        with table.readable():
            listing = Listing(table.name, self.version, table.clock(), schema=columns.types)
            files, gone = self._files()
            files.enter(listing)
            listing.details = Details(
                table.path.rstrip("/"),
                files.all("elsewhere"),
                files.all("partitions"),
                columns.places,
                self.refused,
                deletes=files.all("deletes"),
            )
            self._read(listing, files, gone, on_read)
        return listing

    def _files(self) -> tuple[FileList, frozenset[str] | None]:
        """The files, and which are gone since they were last listed; None if that is not known."""
        memory, commits, now = self.table.memory, self.commits, self.table.clock()
        before = None if self.last is None else memory.files(self.last)
        known = before if before is None or commits is None else self._followed(before, commits)
        if known is None or commits is None or memory.is_due(now):
            files = self._whole()
            # What was rewritten before the checkpoint is known from then only.
            files.rewrites = (known.rewrites if known is not None else {}) | files.rewrites
            memory.keep(self.head, files, now)
            return files, None
        removed = {name_of(path) for commit in commits for path, _ in commit.removes}
        added = {name_of(path) for commit in commits for path, _ in commit.adds}
        if commits:
            memory.keep(self.head, known, now, len(removed | added))
        return known, frozenset(removed - added)

    def _followed(self, before: FileList, commits: Sequence[Commit]) -> FileList | None:
        """What is remembered and the commits since make of the files; None if they contradict each other."""
        try:
            return advanced(before, commits, self.table.description(self.head)) if commits else before
        except Twice:
            return None

    def _whole(self) -> FileList:
        """The files by the last checkpoint and all commits after it."""
        head, description = self.head, self.table.description(self.head)
        log = self.table.log(head)
        checkpoint = log.checkpoint(head.version)
        first = 0 if checkpoint is None else checkpoint.version + 1
        active = () if checkpoint is None else log.active(checkpoint)
        commits = []
        for version in range(first, head.version + 1):
            commit = log.commit(version)
            if commit is None:
                raise ValueError(f"there is no commit of version {version} in its log")
            commits.append(commit)
        if commits and commits[-1].digest != head.commit:
            raise ValueError("it was replaced while it was read")
        try:
            return advanced(FileList.of(active, description), commits, description)
        except Twice as twice:
            what, instead = f"lists {twice} twice", "rewrite that file's rows"
            raise TableRefused(self.table.name, what, instead) from twice

    def _read(self, listing: Listing, files: FileList, gone: frozenset[str] | None, on_read: OnRead) -> None:
        """Enter the files whose ranges only their footers tell."""
        table, unread = self.table, files.unread
        if not unread:
            return
        time, place = self._time_in_files()

        def read(file: Active) -> Extent:
            with table.source(file.name) as source:
                return lakehouse.of_footer(source, time, place)

        how = f"{time} {place.field_id}"
        lakehouse.enter(listing, unread, read, how, table.inventory, table.settle_ms, on_read, gone)
        known = [file for file in unread if file.name not in listing.broken]
        if known:
            learned = files.learned(known, listing)
            table.memory.keep(self.head, learned, listing.at, len(known))
            if not learned.unread:
                listing.history = learned.history

    def _time_in_files(self) -> tuple[TimeColumn, Place]:
        time, columns = self.table.time, self.head.columns
        if time is None:
            return TimeColumn(""), Place("")
        name = lakehouse.named(columns.types, time.name) or time.name
        return TimeColumn(columns.logged(name), time.unit), columns.places[name]

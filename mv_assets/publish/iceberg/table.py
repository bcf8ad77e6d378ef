"""One table of an Iceberg catalog that shows a view's map: a snapshot for each version that is shown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.types import StructType

from mv_assets.buckets import iso
from mv_assets.publish.contents import DIGEST, MARK, VERSION, VIEW
from mv_assets.publish.errors import Lost, NotPublished
from mv_assets.publish.iceberg import changes, settings
from mv_assets.publish.iceberg.catalog import Manifest, Overwrite, Staged, table_of
from mv_assets.publish.iceberg.leftovers import remove
from mv_assets.publish.iceberg.schemas import mapping_of, numbered
from mv_assets.publish.iceberg.snapshots import (
    Known,
    expired,
    forgotten,
    forgotten_with,
    known,
    remains,
    said,
)
from mv_assets.publish.target import Shown
from mv_assets.text import printable

Files = Callable[[TableMetadata, FileIO], Iterable[DataFile]]


class Change(NamedTuple):
    """What a new snapshot changes: all columns of the table, files that come, and paths of those that go."""

    columns: StructType
    added: Files
    gone: Sequence[str]
    sorted_by: str | None = None


@dataclass(slots=True)
class PublishedTable:
    """A table that is nobody's but ours to write; what is written there all the same is replaced."""

    view: str
    identifier: str
    catalog: Catalog
    location: str | None
    keep: int
    # Whether its data files are its own, and go with the snapshots that name them.
    owns_files: bool = False
    _table: Table | None = field(default=None, init=False)
    _known: list[Known] = field(default_factory=list, init=False)
    _left: list[Known] = field(default_factory=list, init=False)
    _read: list[Manifest] | None = field(default=None, init=False)

    def load(self) -> Shown | None:
        """What it shows now; None if it is not there.

        Raises:
            NotPublished: a table of that name is not ours.

        """
        self._table = table_of(self.catalog, self.identifier)
        return self._seen()

    def _seen(self) -> Shown | None:
        self._known, self._read = [], None
        if self._table is None:
            return None
        if self._table.metadata.properties.get(VIEW) != self.view:
            why = "there is such a table already, which was not made for this view; drop or rename it there"
            raise NotPublished(self.view, self.identifier, why)
        self._known = known(self._table.metadata, self.view)
        last = self._last_own()
        return Shown(
            None if last is None else last.version,
            None if last is None else str(last.snapshot.snapshot_id),
            self._table.location(),
            None if last is None else said(last.snapshot, DIGEST),
            self._foreign(self._table),
            None if last is None else said(last.snapshot, MARK),
        )

    @property
    def columns(self) -> StructType | None:
        """Those of its last snapshot of ours; None if it is not there."""
        if self._table is None:
            return None
        return settings.schema_of(self._table.metadata, self._last_own()).as_struct()

    def files(self) -> dict[str, DataFile]:
        """The data files of its last snapshot of ours, by path; none if there is none of them."""
        found = (entry.data_file for manifest in self._manifests() for entry in manifest.entries)
        return {file.file_path: file for file in found}

    def _manifests(self) -> list[Manifest]:
        if self._read is None:
            self._read = self._read_manifests()
        return self._read

    def _read_manifests(self) -> list[Manifest]:
        last = self._last_own()
        if self._table is None or (last is None and self._table.current_snapshot() is None):
            return []
        snapshot = self._table.current_snapshot() if last is None else last.snapshot
        assert snapshot is not None  # noqa: S101 - as said above
        io = self._table.io
        try:
            return [Manifest(each, each.fetch_manifest_entry(io)) for each in snapshot.manifests(io)]
        except FileNotFoundError as error:
            now = table_of(self.catalog, self.identifier)
            if now is not None and now.metadata_location == self._table.metadata_location:
                raise
            # It was withdrawn meanwhile, or what was shown then has expired.
            raise Lost from error

    def commit(self, change: Change, summary: Mapping[str, str], at: int) -> Shown:
        """One snapshot more, on top of the last of ours; whatever else came since is not part of it.

        Raises:
            Exception: whatever the library says; that of a lost race if the table is not as it was loaded.

        """
        if self._table is None:
            self._create(change, summary)
            shown = self.load()
        else:
            # A commit leaves it as it is then.
            self._replace(self._table, change, summary, at)
            shown = self._seen()
        assert shown is not None  # noqa: S101 - it was written just now
        return shown

    def show_again(self, version: int) -> Shown | None:
        """Show our last snapshot in the place of what came since; None if it shows another version."""
        last = self._last_own()
        if self._table is None or last is None or last.version != version:
            return None
        if self._foreign(self._table) is not None:
            with self._transaction(self._table) as tx:
                self._set_back(tx)
        return self._seen()

    def expire(self, now: int) -> int | None:
        """Forget snapshots whose time is over; the oldest version that can still be read.

        What only they had is deleted.
        """
        if self._table is None:
            self.load()
        if self._table is not None and not self._left:
            self._left = self._expired(self._table.metadata, self._known, now)
            if self._left and changes.is_of_later(self._table.metadata):
                # The clock was set: what is forgotten now would be so before it was written.
                self._left = []
            elif self._left:
                self._forget(self._table)
        due = [each for each in self._known if each.at < now - self.keep]
        gone = [*self._left, *self._remains([*self._left, *due])]
        if self._table is not None and gone:
            remove(self._table, gone, self._known, data_files=self.owns_files)
            self._left = []
        held = [found for each in self._known if each not in due and (found := forgotten(each)) is not None]
        versions = [each.version for each in self._known if each.version is not None]
        return min([*versions, *(each.oldest for each in held)], default=None)

    def _remains(self, snapshots: Sequence[Known]) -> list[Known]:
        """What went with them and has files; the first list of manifests is deleted last."""
        found, io = list[Known](), None if self._table is None else self._table.io
        for each in snapshots:
            old = remains(each)
            if old and io is not None and io.new_input(old[0].snapshot.manifest_list).exists():
                found += old
        return found

    def _forget(self, table: Table) -> None:
        gone = {each.snapshot.snapshot_id for each in self._left}
        try:
            with self._transaction(table) as tx:
                changes.forget(tx, gone)
        except ValueError as error:
            self.load()
            if gone <= {each.snapshot.snapshot_id for each in self._known}:
                raise
            # The library's word for that a peer was faster.
            raise Lost from error
        left = self._left
        self.load()
        self._left = left

    def withdraw(self) -> None:
        if self.load() is None or self._table is None:
            return
        self.catalog.drop_table(self.identifier)
        remove(self._table, [*self._known, *self._remains(self._known)], [], data_files=self.owns_files)

    def _last_own(self) -> Known | None:
        return next((each for each in reversed(self._known) if each.own), None)

    def _set_back(self, tx: Transaction) -> None:
        """Stage that the last snapshot of ours is shown as we left it, if nobody is faster."""
        last, metadata = self._last_own(), tx.table_metadata
        if changes.is_of_later(metadata):
            at = iso(metadata.last_updated_ms)
            why = f"somebody changed it at {at}, which is still to come here; see that clocks are right"
            raise NotPublished(self.view, self.identifier, why)
        if last is not None:
            changes.show(tx, last.snapshot.snapshot_id)
        settings.set_right(tx, last, self._known, self.view)

    def _foreign(self, table: Table) -> str | None:
        """What is shown in the place of the last snapshot of ours; None if that is."""
        last, current = self._last_own(), table.current_snapshot()
        if current != (None if last is None else last.snapshot):
            return self._foreign_snapshot(current)
        return settings.changed(table.metadata, last, self._known, self.view)

    def _foreign_snapshot(self, current: Snapshot | None) -> str:
        if current is None:
            return "all its rows were taken out"
        when = iso(current.timestamp_ms)
        if current.summary is not None and current.summary.get(VERSION) is not None:
            return f"it was set back to version {printable(str(current.summary.get(VERSION)))}"
        operation = "" if current.summary is None else f" ({current.summary.operation.value})"
        return f"snapshot {current.snapshot_id} of {when}{operation} is somebody else's"

    def _transaction(self, table: Table) -> Staged:
        # In this process, whatever others have set.
        table.metadata.properties.update(settings.NO_RETRIES)
        return Staged(table)

    def _create(self, change: Change, summary: Mapping[str, str]) -> None:
        schema = Schema(*numbered(change.columns, [], itertools.count(1)).fields)
        # Who may write tables may not be allowed to make what they are in.
        namespace = self.identifier.rpartition(".")[0]
        try:
            self.catalog.load_namespace_properties(namespace)
        except NoSuchNamespaceError:
            self.catalog.create_namespace_if_not_exists(namespace)
        tx = self.catalog.create_table_transaction(
            self.identifier,
            schema,
            location=self.location,
            sort_order=changes.order_by(schema, change.sorted_by),
            properties=settings.properties(self.view),
        )
        with tx:
            mapping, _ = mapping_of(tx.table_metadata.schema(), [])
            tx.set_properties({settings.MAPPING: mapping.model_dump_json()})
            self._snapshot(tx, Operation.APPEND, change, (), summary)

    def _replace(self, table: Table, change: Change, summary: Mapping[str, str], at: int) -> None:
        metadata, files = table.metadata, self.files()
        schema = _schema(metadata, settings.schema_of(metadata, self._last_own()), change.columns)
        wrong, left = frozenset[int](), list[Known]()
        with self._transaction(table) as tx:
            if schema is not None:
                changes.expect_columns(tx)
            if self._foreign(table) is not None:
                self._set_back(tx)
            if schema is not None:
                mapping, wrong = mapping_of(schema, settings.earlier(metadata, self._known))
                changes.have_columns(tx, schema, change.sorted_by)
                tx.set_properties({settings.MAPPING: mapping.model_dump_json()})
            gone = [files[path] for path in change.gone if path in files]
            coming = [Known(self._known[-1].snapshot, None, at, own=True)] if self._known else []
            left = self._expired(metadata, [*self._known, *coming], at)
            lost = self._wrong(metadata, wrong, left)
            found = forgotten_with(lost)
            said = summary if found is None else {**summary, **found.said()}
            self._snapshot(tx, Operation.OVERWRITE, change, gone, said)
            if left or lost:
                changes.forget(tx, [each.snapshot.snapshot_id for each in (*left, *lost)])
        # Not before: of a commit that lost, nothing was forgotten.
        self._left = left

    def _wrong(self, metadata: TableMetadata, schemas: frozenset[int], gone: Sequence[Known]) -> list[Known]:
        """Snapshots that the table's columns would show wrong from now on.

        Who holds one reads it rightly, by the columns that were: its files stay until its time is over.

        Raises:
            NotPublished: somebody has given one a name, so that it is kept.

        """
        found = [each for each in self._known if each.snapshot.schema_id in schemas and each not in gone]
        ids = {each.snapshot.snapshot_id for each in found}
        named = [
            name for name, ref in metadata.refs.items() if name != changes.MAIN and ref.snapshot_id in ids
        ]
        if named:
            why = (
                f"a column is of another type now, by which {printable(named[0])!r} would be read wrong; "
                "drop that branch or tag, or call the column otherwise in the view's query"
            )
            raise NotPublished(self.view, self.identifier, why)
        return found

    def _snapshot(
        self,
        tx: Transaction,
        operation: Operation,
        change: Change,
        gone: Sequence[DataFile],
        summary: Mapping[str, str],
    ) -> None:
        with Overwrite(operation, tx, changes.io_of(tx), summary, self._manifests()) as overwrite:
            for file in change.added(tx.table_metadata, changes.io_of(tx)):
                overwrite.append_data_file(file)
            for file in gone:
                overwrite.delete_data_file(file)

    def _expired(self, metadata: TableMetadata, snapshots: Sequence[Known], now: int) -> list[Known]:
        named = {ref.snapshot_id for name, ref in metadata.refs.items() if name != changes.MAIN}
        return list(expired(snapshots, now, self.keep, named))


def _schema(metadata: TableMetadata, current: Schema, columns: StructType) -> Schema | None:
    """The table's columns from now on; None if they stay as they are."""
    older = sorted(metadata.schemas, key=lambda each: -each.schema_id)
    known = [current.as_struct(), *(each.as_struct() for each in older if each != current)]
    found = numbered(columns, known, itertools.count(metadata.last_column_id + 1))
    if found == current.as_struct():
        return None
    return Schema(*found.fields, schema_id=max(each.schema_id for each in older) + 1)

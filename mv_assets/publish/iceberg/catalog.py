"""pyiceberg's catalogs and commits, as far as a published table needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AddSnapshotUpdate, UpdatesAndRequirements
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _OverwriteFiles

from mv_assets.errors import MvError
from mv_assets.publish.errors import Lost, NotPublished, trouble
from mv_assets.tables.iceberg import catalogs
from mv_assets.text import cause

_SQLITE = "sqlite:///"
# So many manifests of one commit each become one: whoever reads the table reads all of them.
_MANY_MANIFESTS = 8
_MANIFEST_BYTES = 8 << 20


class Manifest(NamedTuple):
    """A list of files, read: those that are still there."""

    file: ManifestFile
    entries: Sequence[ManifestEntry]


class Staged(Transaction):
    """Changes to a table; the library's own copies all that the table ever was each time it is asked."""

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._applied: tuple[object, TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        # Whatever is staged makes another tuple of it.
        if self._applied is None or self._applied[0] is not self._updates:
            self._applied = self._updates, super().table_metadata
        return self._applied[1]


class Overwrite(_OverwriteFiles):
    """Files that come and go in one snapshot, over one whose manifests were read.

    The library's own reads them twice more, keeps empty ones, and never puts small ones together.
    """

    def __init__(
        self,
        operation: Operation,
        transaction: Transaction,
        io: FileIO,
        summary: Mapping[str, str],
        before: Sequence[Manifest],
    ) -> None:
        super().__init__(operation, transaction, io, snapshot_properties=dict(summary))
        self._before = before

    def _commit(self) -> UpdatesAndRequirements:
        (added, *others), requirements = super()._commit()
        assert isinstance(added, AddSnapshotUpdate)  # noqa: S101 - as the library makes it
        # Readers refuse a table whose history goes back in time, as it would where a clock was set.
        last = self._transaction._table.metadata.last_updated_ms  # noqa: SLF001 - it is had nowhere else
        at = max(added.snapshot.timestamp_ms, last + 1)
        snapshot = added.snapshot.model_copy(update={"timestamp_ms": at})
        return (AddSnapshotUpdate(snapshot=snapshot), *others), requirements

    def _deleted_entries(self) -> list[ManifestEntry]:
        gone = [entry for each in self._before for entry in each.entries if self._goes(entry)]
        self._validate_required_deletes(gone)
        return [self._as(ManifestEntryStatus.DELETED, entry, self._snapshot_id) for entry in gone]

    def _existing_manifests(self) -> list[ManifestFile]:
        found = list[ManifestFile]()
        for file, entries in self._before:
            stay = [entry for entry in entries if not self._goes(entry)]
            if stay and len(stay) == len(entries):
                found.append(file)
            elif stay:
                with self.new_manifest_writer(self.spec(file.partition_spec_id)) as writer:
                    for entry in stay:
                        writer.add_entry(self._as(ManifestEntryStatus.EXISTING, entry, entry.snapshot_id))
                found.append(writer.to_manifest_file())
        return found

    def _goes(self, entry: ManifestEntry) -> bool:
        return entry.data_file in self._deleted_data_files

    def _as(self, status: ManifestEntryStatus, entry: ManifestEntry, snapshot: int | None) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=snapshot,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        manager = _ManifestMergeManager(
            target_size_bytes=_MANIFEST_BYTES,
            min_count_to_merge=_MANY_MANIFESTS,
            merge_enabled=True,
            snapshot_producer=self,
        )
        return manager.merge_manifests(manifests)


def opened(properties: Mapping[str, str]) -> Catalog:
    given = dict(properties)
    uri = given.get("uri", "")
    if uri.startswith(_SQLITE) and not uri.startswith(f"{_SQLITE}file:"):
        Path(uri.removeprefix(_SQLITE)).parent.mkdir(parents=True, exist_ok=True)
    return catalogs.opened(given)


def table_of(catalog: Catalog, identifier: str) -> Table | None:
    with suppress(NoSuchTableError):
        return catalog.load_table(identifier)
    return None


@contextmanager
def speaking(view: str, where: str, properties: Mapping[str, str]) -> Iterator[None]:
    """Whatever a library, a driver or a store says, in a sentence of ours."""
    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError, NoSuchTableError) as error:
        raise Lost from error
    except (MvError, Lost):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the trouble of this view
        raise NotPublished(view, where, trouble(error, properties)) from cause(error, properties)

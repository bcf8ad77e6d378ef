"""The data files of one manifest, in columns, as a listing takes them over: a table has millions of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from mv_assets.state.model import Segment
from mv_assets.tables import lakehouse
from mv_assets.tables.iceberg import schemas
from mv_assets.tables.iceberg.deletes import (
    COMPACT,
    UNLIKE,
    Delete,
    Deletes,
    Partition,
    Unreadable,
    plain,
    row_deletes,
)
from mv_assets.tables.iceberg.entries import DELETED, Entry, Manifest, partition_values
from mv_assets.tables.iceberg.remembered import Metadata, place_of
from mv_assets.tables.iceberg.times import IcebergTime, stated_extent
from mv_assets.tables.lakehouse import BY_SPARK, Active, Reader
from mv_assets.tables.listing import Broken, Listing, RowDeletes
from mv_assets.tables.parquet.footer import Extent, Range
from mv_assets.tables.parts import Part
from mv_assets.tables.recent import Recent

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata


# So many files are remembered in columns.
_MOST = 2_000_000


def _numbers() -> array[int]:
    return array("q")


@dataclass(slots=True)
class Block:
    """Data files that the manifest places in time, before rows of them are deleted; and all others.

    What differs per file and is the same for all snapshots is said of the others too.
    """

    files: Part = field(default_factory=Part)
    rows: array[int] = field(default_factory=_numbers)
    sequences: array[int] = field(default_factory=_numbers)
    snapshots: array[int] = field(default_factory=_numbers)
    # The partitions that there are, and for each file which of them it is in.
    partitions: list[Partition] = field(default_factory=list)
    places: array[int] = field(default_factory=_numbers)
    # Those nowhere in time, of which only the file itself knows where its rows lie, or that can't be read.
    others: list[Entry] = field(default_factory=list)
    spec: int = 0
    # The snapshots that there are, and the files with the times at which these were committed.
    commits: tuple[int, ...] = ()
    _dated: tuple[tuple[int, ...], Part] | None = None

    def __len__(self) -> int:
        return len(self.files.names) + len(self.others)

    def dated(self, committed: Mapping[int, int]) -> Part:
        """The files with when they were committed; snapshots expire."""
        times = tuple(committed.get(snapshot, 0) for snapshot in self.commits)
        if self._dated is None or self._dated[0] != times:
            if len(times) == 1:
                changed = array("q", times) * len(self.snapshots)
            else:
                changed = array("q", (committed.get(snapshot, 0) for snapshot in self.snapshots))
            self._dated = times, replace(self.files, changed=changed)
        return self._dated[1]


@dataclass(frozen=True)
class Meaning:
    """What a table's metadata makes of the entries of its manifests."""

    metadata: TableMetadata
    reader: Reader
    time: IcebergTime | None
    # What makes the same files read otherwise than once.
    redefined: Sequence[str]
    _shared: dict[Partition, tuple[dict[int, Any], dict[str, str | None]]] = field(default_factory=dict)

    @cached_property
    def root(self) -> str:
        return self.metadata.location.rstrip("/")

    @cached_property
    def _plain_root(self) -> str:
        return plain(self.metadata.location).rstrip("/") + "/"

    @cached_property
    def _specs(self) -> dict[int, Any]:
        return {spec.spec_id: spec for spec in self.metadata.partition_specs}

    @cached_property
    def text(self) -> str:
        """All of it that a block depends on."""
        sources = {part.source_id for spec in self._specs.values() for part in spec.fields}
        named = [str(part) for part in self.metadata.schema().fields if part.field_id in sources]
        specs = {number: str(spec) for number, spec in self._specs.items()}
        return repr((self.root, self.reader, self.time, self.redefined, specs, named))

    def key(self, path: str) -> str:
        """What tells a data file from others, however its path is spelled."""
        return plain(path).removeprefix(self._plain_root)

    def name(self, path: str) -> str:
        """How a listing calls a file: by its place below the table's, if it is there."""
        return self.key(path) if plain(path).startswith(self._plain_root) else path

    def path(self, path: str) -> str:
        """Where Spark finds a file."""
        return f"{self.root}/{self.key(path)}" if plain(path).startswith(self._plain_root) else path

    def values(self, partition: Partition) -> tuple[dict[int, Any], dict[str, str | None]]:
        """Values that hold for all rows of a file, by field id, and as text under the columns' names."""
        if partition not in self._shared:
            values = self._identical(partition[0], partition_values(partition[1]))
            self._shared[partition] = values, self._texts(values)
        return self._shared[partition]

    def crc(self, name: str, size: int, partition: Partition, deletes: Iterable[str] = ()) -> int:
        return lakehouse.content(name, size, self.values(partition)[1], [*deletes, *self.redefined])

    def extent(self, entry: Entry, partition: Partition) -> Extent | None:
        return stated_extent(entry, self.time, self.values(partition)[0])

    def refused(self, entry: Entry) -> str | None:
        """Why Spark can't read a file by itself."""
        if self.reader == "spark":
            return None
        if entry.encrypted:
            return f"it is encrypted; {BY_SPARK}"
        return None if entry.format == "PARQUET" else f"it is {entry.format}, not Parquet; {COMPACT}"

    def segment(self, entry: Entry, partition: Partition, deletes: Deletes) -> Segment | None:
        """A data file as deletes leave it; None for one without rows in time.

        Raises:
            LookupError: the manifest does not say where its rows lie.

        """
        extent = self.extent(entry, partition)
        if extent is None:
            raise LookupError(entry.path)
        if extent.range is None:
            return None
        found = deletes.of(entry.path, partition, entry.sequence, extent.range)
        name = self.name(entry.path)
        crc = self.crc(name, entry.size, partition, [delete.identity for delete in found])
        return Segment(name, crc, *extent.range)

    def block(self, manifest: Manifest, entries: Iterable[Entry]) -> Block:
        block, places = Block(spec=manifest.spec), dict[Partition, int]()
        for entry in entries:
            if entry.status != DELETED:
                self._enter(block, entry, (manifest.spec, entry.partition), places)
        block.partitions = list(places)
        block.commits = tuple(sorted({*block.snapshots}))
        return block

    def _enter(self, block: Block, entry: Entry, partition: Partition, places: dict[Partition, int]) -> None:
        name, extent, files = self.name(entry.path), self.extent(entry, partition), block.files
        texts = self.values(partition)[1]
        if texts:
            files.partitions[name] = texts
        if name == entry.path:
            files.elsewhere[name] = name
        if extent is None or extent.range is None or self.refused(entry) is not None:
            block.others.append(entry)
            return
        if extent.nulls:
            files.nulls[name] = extent.nulls
        files.names.append(name)
        crc = self.crc(name, entry.size, partition)
        files.crcs.append(crc)
        files.identities.append(lakehouse.identity(Active(name, crc, entry.size, 0, extent)))
        files.starts.append(extent.range[0])
        files.ends.append(extent.range[1])
        files.sizes.append(entry.size)
        block.rows.append(entry.rows)
        block.sequences.append(entry.sequence)
        block.snapshots.append(entry.snapshot)
        block.places.append(places.setdefault(partition, len(places)))

    def deletes(self, found: Iterable[tuple[Manifest, list[Entry]]]) -> Deletes:
        """The delete files of manifests."""
        types = schemas.types_by_id(self.metadata, UNLIKE)
        deletes = Deletes(self.key)
        for manifest, entries in found:
            empty = self._unpartitioned(manifest.spec)
            for entry in entries:
                if entry.status != DELETED:
                    span = self._span(entry, (manifest.spec, entry.partition))
                    deletes.add(entry, manifest.spec, types, span, unpartitioned=empty)
        return deletes

    def _span(self, entry: Entry, partition: Partition) -> Range | None:
        """Where the rows lie that an equality delete may delete, if it tells rows by their times."""
        by_time = self.time is not None and self.time.field_id in (entry.equality_ids or ())
        # A row without a time may be in any file.
        if not by_time or entry.nulls != 0:
            return None
        extent = self.extent(entry, partition)
        return None if extent is None else extent.range

    def _unpartitioned(self, spec: int) -> bool:
        from pyiceberg.transforms import VoidTransform  # noqa: PLC0415 - an extra

        return all(isinstance(part.transform, VoidTransform) for part in self._specs[spec].fields)

    def _identical(self, spec: int, values: tuple[Any, ...]) -> dict[int, Any]:
        """Values that hold for all rows of a file, by field id. Imported files may lack these columns."""
        from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415 - an extra

        parts = zip(self._specs[spec].fields, values, strict=True)
        return {
            part.source_id: value for part, value in parts if isinstance(part.transform, IdentityTransform)
        }

    def _texts(self, values: Mapping[int, Any]) -> dict[str, str | None]:
        """The same as text, under the columns' present names."""
        return {
            part.name: schemas.text(str(part.field_type), values[part.field_id])
            for part in self.metadata.schema().fields
            if part.field_id in values and not isinstance(values[part.field_id], bytes)
        }


_recent: Recent[Block] = Recent(_MOST)


def blocks(meaning: Meaning, files: Metadata, manifests: Sequence[Manifest]) -> Iterator[Block]:
    """The data files of manifests, of which only those are read that this process does not know."""
    known = [_recent.get((place_of(each), meaning.text)) for each in manifests]
    new = files.entries([each for each, block in zip(manifests, known, strict=True) if block is None])
    for block in known:
        if block is None:
            manifest, entries = next(new)
            made = meaning.block(manifest, entries)
            _recent.put((place_of(manifest), meaning.text), made, len(made))
            yield made
        else:
            yield block


class Placed(NamedTuple):
    """A block, and its files as deletes leave them."""

    block: Block
    files: Part


@dataclass(slots=True)
class Assembly:
    """A listing that is put together of blocks."""

    listing: Listing
    meaning: Meaning
    deletes: Deletes
    # When snapshots were committed.
    committed: Mapping[int, int]
    row_deletes: dict[str, RowDeletes] = field(default_factory=dict)
    placed: list[Placed] = field(default_factory=list)
    # Those of the blocks that are nowhere in time, or yet to be read.
    others: list[Active] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def parts(self) -> list[Part]:
        return [each.files for each in self.placed]

    def add(self, block: Block) -> None:
        files = block.dated(self.committed)
        if self.deletes:
            files = self._delete(block, files)
        self.placed.append(Placed(block, files))
        for entry in block.others:
            self._other(entry, (block.spec, entry.partition))

    def _delete(self, block: Block, files: Part) -> Part:
        """Say of each file what is deleted of it."""
        names, crcs = files.names, files.crcs[:]
        keys = [plain(name) for name in names] if files.elsewhere else names
        for at in self.deletes.among(keys, block.partitions, block.places):
            name, partition = names[at], block.partitions[block.places[at]]
            span = files.starts[at], files.ends[at]
            path = files.elsewhere.get(name) or f"{self.meaning.root}/{name}"
            found = self.deletes.of(path, partition, block.sequences[at], span)
            if found:
                identities = [delete.identity for delete in found]
                crcs[at] = self.meaning.crc(name, files.sizes[at], partition, identities)
                refused = self._note(name, found, block.rows[at])
                if refused is not None:
                    self.listing.broken[name] = Broken(name, refused, *span)
        return files if crcs == files.crcs else replace(files, crcs=crcs)

    def _other(self, entry: Entry, partition: Partition) -> None:
        name, extent = self.meaning.name(entry.path), self.meaning.extent(entry, partition)
        span = None if extent is None else extent.range
        found = self.deletes.of(entry.path, partition, entry.sequence, span)
        crc = self.meaning.crc(name, entry.size, partition, [delete.identity for delete in found])
        refused = self._note(name, found, entry.rows)
        changed = self.committed.get(entry.snapshot, 0)
        self.others.append(
            Active(name, crc, entry.size, changed, extent, self.meaning.refused(entry) or refused)
        )
        self.entries[name] = entry

    def _note(self, name: str, found: Sequence[Delete], rows: int) -> str | None:
        """Note what is deleted of a file; the reason, if that can't be read."""
        if not found or self.meaning.reader == "spark":
            return None
        try:
            self.row_deletes[name] = row_deletes(found, rows, self.meaning.path)
        except Unreadable as error:
            self.row_deletes[name] = RowDeletes(refused=str(error))
        return self.row_deletes[name].refused

"""Which of an Iceberg table's delete files take rows out of which data files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestEntry, ManifestFile

# Reserved by the specification for the column of a position delete file that names the data file.
_FILE_PATH = 2_147_483_546
# The newest layout of a manifest; what an older one lacks is read as null.
_NEWEST = 3

Partition = tuple[int, tuple[Any, ...]]


class _Delete(NamedTuple):
    identity: str
    # Data files of a later sequence number are not affected.
    through: int


@dataclass(frozen=True, slots=True)
class Deletes:
    """Delete files by what they reach. Where that is not told exactly, it is taken to be more."""

    by_path: dict[str, list[_Delete]] = field(default_factory=lambda: defaultdict(list))
    by_partition: dict[Partition, list[_Delete]] = field(default_factory=lambda: defaultdict(list))
    everywhere: list[_Delete] = field(default_factory=list)

    def add(self, entry: ManifestEntry, sequence: int) -> None:
        from pyiceberg.manifest import DATA_FILE_TYPE, DataFileContent  # noqa: PLC0415 - an extra

        file = entry.data_file
        places = {part.name: place for place, part in enumerate(DATA_FILE_TYPE[_NEWEST].fields)}
        identity = f"{file.file_path} {file[places['content_offset']]}"
        if file.content == DataFileContent.EQUALITY_DELETES:
            delete = _Delete(identity, sequence - 1)
            # Those of an unpartitioned spec are for all partitions.
            (self.by_partition[partition_of(file)] if len(file.partition) else self.everywhere).append(delete)
            return
        target = file[places["referenced_data_file"]] or _target(file)
        delete = _Delete(identity, sequence)
        (self.by_path[target] if target else self.by_partition[partition_of(file)]).append(delete)

    def of(self, file: DataFile, sequence: int) -> list[str]:
        """What identifies the delete files of a data file."""
        found = [
            *self.by_path.get(file.file_path, ()),
            *self.by_partition.get(partition_of(file), ()),
            *self.everywhere,
        ]
        return [delete.identity for delete in found if sequence <= delete.through]


def partition_of(file: DataFile) -> Partition:
    return file.spec_id, tuple(file.partition[place] for place in range(len(file.partition)))


def _target(file: DataFile) -> str | None:
    """The one data file that all of a file's position deletes are of, if there is only one."""
    low, high = (
        bounds.get(_FILE_PATH) if bounds else None for bounds in (file.lower_bounds, file.upper_bounds)
    )
    return low.decode() if low is not None and low == high else None


def entries(manifest: ManifestFile, io: FileIO) -> Iterator[tuple[ManifestEntry, int]]:
    """Live entries of a manifest with their sequence numbers, newest fields included.

    The library's own reading leaves out the fields by which deletion vectors name their data files.
    """
    from pyiceberg.avro.file import AvroFile  # noqa: PLC0415 - an extra
    from pyiceberg.manifest import (  # noqa: PLC0415
        MANIFEST_ENTRY_SCHEMAS,
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestEntry,
        ManifestEntryStatus,
    )

    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[_NEWEST],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        for entry in reader:
            if entry.status != ManifestEntryStatus.DELETED:
                entry.data_file.spec_id = manifest.partition_spec_id
                own = entry.sequence_number
                yield entry, manifest.sequence_number if own is None else own

"""Iceberg snapshots and metadata written by hand, for what the pyiceberg library reads but does not write."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record
from pyroaring import BitMap64

FILE_PATH = 2_147_483_546


def newest(root: Path) -> Path:
    return max((root / "metadata").glob("*.metadata.json"))


def rewrite(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Commit changed metadata."""
    last = newest(root)
    metadata = json.loads(last.read_text())
    change(metadata)
    number = int(last.name.split("-")[0]) + 1
    (root / "metadata" / f"{number:05}-{uuid4()}.metadata.json").write_text(json.dumps(metadata))


def data_file(path: str, rows: int = 2, partition: tuple[Any, ...] = (), **more: Any) -> DataFile:
    given = {
        "content": DataFileContent.DATA,
        "file_format": FileFormat.PARQUET,
        "file_size_in_bytes": 100,
        **more,
    }
    return DataFile.from_args(3, file_path=path, record_count=rows, partition=Record(*partition), **given)


def bounds(field_id: int, low: bytes, high: bytes, nulls: int = 0) -> dict[str, Any]:
    return {
        "lower_bounds": {field_id: low},
        "upper_bounds": {field_id: high},
        "null_value_counts": {field_id: nulls},
    }


class _Manifest(ManifestWriterV2):
    """A manifest of the newest version, of data or of deletes."""

    deletes = False

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES if self.deletes else ManifestContent.DATA

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes" if self.deletes else "data"}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema = self._with_partition(3)
        return AvroOutputFile(self._output_file, schema, "manifest_entry", schema, self._meta)


class _DeleteManifest(_Manifest):
    deletes = True


def live(manifest: ManifestFile, io: FileIO) -> list[ManifestEntry]:
    """The files of a manifest, with all that the newest version says of them."""
    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        found = [entry for entry in reader if entry.status != ManifestEntryStatus.DELETED]
    for entry in found:
        entry.data_file.spec_id = manifest.partition_spec_id
        if entry.sequence_number is None:
            entry.sequence_number = manifest.sequence_number
    return found


@dataclass
class _Commit:
    """A snapshot that is being written by hand."""

    root: Path
    table: StaticTable
    number: int
    codec: AvroCompressionCodec
    written: int = 0

    def manifest(self, entries: list[ManifestEntry], spec_id: int, *, deletes: bool) -> ManifestFile:
        self.written += 1
        output = self.table.io.new_output(f"{self.root}/metadata/{self.number}-m{self.written}.avro")
        kind = _DeleteManifest if deletes else _Manifest
        spec = self.table.specs()[spec_id]
        with kind(spec, self.table.schema(), output, self.number, self.codec) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def without(self, manifest: ManifestFile, paths: Collection[str]) -> ManifestFile:
        """A manifest, or another that says that files of it are no longer there."""
        entries = live(manifest, self.table.io)
        if not any(entry.data_file.file_path in paths for entry in entries):
            return manifest
        said = [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.DELETED if gone else ManifestEntryStatus.EXISTING,
                snapshot_id=self.number if gone else entry.snapshot_id or manifest.added_snapshot_id,
                sequence_number=entry.sequence_number,
                data_file=entry.data_file,
            )
            for entry in entries
            for gone in [entry.data_file.file_path in paths]
        ]
        deletes = manifest.content == ManifestContent.DELETES
        return self.manifest(said, manifest.partition_spec_id, deletes=deletes)


def commit(
    root: Path,
    *files: DataFile,
    keep: bool = True,
    remove: Collection[str] = (),
    operation: str = "append",
    spec_id: int | None = None,
    codec: AvroCompressionCodec = "null",
    summary: Mapping[str, str] | None = None,
    again: bool = False,
) -> int:
    """Add files in a new snapshot, to those of the current one or, unless `keep`, instead of them.

    With `again`, the manifests of the current one are listed twice.
    """
    table = StaticTable.from_metadata(str(newest(root)))
    metadata, io = table.metadata, table.io
    # Of snapshots that are gone too: names of files are made of it.
    known = (each.sequence_number or 0 for each in metadata.snapshots)
    sequence = max(getattr(metadata, "last_sequence_number", 0), *known, 0) + 1
    number, current = 1_000 + sequence, metadata.current_snapshot()
    made = _Commit(root, table, number, codec)
    manifests = current.manifests(io) if current is not None and keep else []
    manifests = [made.without(manifest, remove) for manifest in manifests] * (1 + again)
    for deletes in (False, True):
        chosen = [file for file in files if (file.content != DataFileContent.DATA) is deletes]
        if chosen:
            added = [
                ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file)
                for file in chosen
            ]
            spec = table.spec().spec_id if spec_id is None else spec_id
            manifests.append(made.manifest(added, spec, deletes=deletes))
    output = io.new_output(f"{root}/metadata/snap-{number}.avro")
    with write_manifest_list(2, output, number, None, sequence, codec) as listed:
        listed.add_manifests(manifests)

    def change(json_metadata: dict[str, Any]) -> None:
        snapshot = {
            "snapshot-id": number,
            "sequence-number": sequence,
            "timestamp-ms": number,
            "manifest-list": output.location,
            "summary": {"operation": operation, **(summary or {})},
            "schema-id": json_metadata["current-schema-id"],
        }
        if current is not None:
            snapshot["parent-snapshot-id"] = current.snapshot_id
        json_metadata["snapshots"] = [*json_metadata.get("snapshots", []), snapshot]
        json_metadata["current-snapshot-id"] = number
        json_metadata["last-sequence-number"] = sequence
        json_metadata["refs"] = {"main": {"snapshot-id": number, "type": "branch"}}

    rewrite(root, change)
    return number


def position_deletes(file: Path, *rows: tuple[str, int], **more: Any) -> DataFile:
    """A file that deletes rows of data files, by the paths of these, with checksums of its pages."""
    paths, places = [path for path, _ in rows], [place for _, place in rows]
    content = pa.table({"file_path": pa.array(paths, pa.string()), "pos": pa.array(places, pa.int64())})
    pq.write_table(content, file, write_page_checksum=True)
    low, high = min(paths).encode(), max(paths).encode()
    given = {
        "content": DataFileContent.POSITION_DELETES,
        "file_size_in_bytes": file.stat().st_size,
        **bounds(FILE_PATH, low, high),
        **more,
    }
    return data_file(f"file://{file}", len(rows), **given)


def with_ids(rows: pa.Table, ids: Mapping[str, int]) -> pa.Table:
    fields = [part.with_metadata({"PARQUET:field_id": str(ids[part.name])}) for part in rows.schema]
    return rows.cast(pa.schema(fields))


def equality_deletes(file: Path, rows: pa.Table, ids: Mapping[str, int], **more: Any) -> DataFile:
    """A file that deletes older rows which equal one of its rows."""
    pq.write_table(with_ids(rows, ids), file)
    given = {
        "content": DataFileContent.EQUALITY_DELETES,
        "file_size_in_bytes": file.stat().st_size,
        "equality_ids": list(ids.values()),
        **more,
    }
    return data_file(f"file://{file}", rows.num_rows, **given)


def vectors(file: Path, of: Mapping[str, Collection[int]], **more: Any) -> list[DataFile]:
    """A Puffin file of deletion vectors, one for each data file."""
    content, blobs, found = b"PFA1", list[dict[str, Any]](), list[tuple[str, int, int, int]]()
    for path, places in of.items():
        bitmap = b"\xd1\xd3\x39\x64" + BitMap64(places).serialize()
        blob = len(bitmap).to_bytes(4, "big") + bitmap + zlib.crc32(bitmap).to_bytes(4, "big")
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {"referenced-data-file": path, "cardinality": str(len(places))},
            }
        )
        found.append((path, len(content), len(blob), len(places)))
        content += blob
    footer = json.dumps({"blobs": blobs}).encode()
    content += b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    file.write_bytes(content)
    return [
        data_file(
            f"file://{file}",
            deleted,
            content=DataFileContent.POSITION_DELETES,
            file_format=FileFormat.PUFFIN,
            file_size_in_bytes=len(content),
            referenced_data_file=path,
            content_offset=offset,
            content_size_in_bytes=length,
            **more,
        )
        for path, offset, length, deleted in found
    ]

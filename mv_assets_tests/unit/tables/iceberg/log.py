"""Iceberg snapshots and metadata written by hand, for what the pyiceberg library reads but does not write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record

FILE_PATH = 2_147_483_546


def newest(root: Path) -> Path:
    return max((root / "metadata").glob("*.metadata.json"))


def rewrite(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Commit changed metadata."""
    last = newest(root)
    metadata = json.loads(last.read_text())
    change(metadata)
    number = int(last.name.split("-")[0]) + 1
    (root / "metadata" / f"{number:05}-by-hand.metadata.json").write_text(json.dumps(metadata))


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


def commit(root: Path, *files: DataFile, keep: bool = True) -> None:
    """Add files in a new snapshot, to those of the current one or, unless `keep`, instead of them."""
    table = StaticTable.from_metadata(str(newest(root)))
    metadata, io = table.metadata, table.io
    number, sequence = 1_000 + len(metadata.snapshots), len(metadata.snapshots) + 1
    current = metadata.current_snapshot()
    manifests = current.manifests(io) if current is not None and keep else []
    for deletes in (False, True):
        chosen = [file for file in files if (file.content != DataFileContent.DATA) is deletes]
        if chosen:
            output = io.new_output(f"{root}/metadata/{number}-{deletes}.avro")
            with _Manifest(table.spec(), table.schema(), output, number, "null") as writer:
                writer.deletes = deletes  # type: ignore[attr-defined]
                for file in chosen:
                    writer.add_entry(
                        ManifestEntry.from_args(
                            status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file
                        )
                    )
            manifests.append(writer.to_manifest_file())
    output = io.new_output(f"{root}/metadata/snap-{number}.avro")
    with write_manifest_list(2, output, number, None, sequence, "null") as listed:
        listed.add_manifests(manifests)

    def change(json_metadata: dict[str, Any]) -> None:
        snapshot = {
            "snapshot-id": number,
            "sequence-number": sequence,
            "timestamp-ms": number,
            "manifest-list": output.location,
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        json_metadata["snapshots"] = [*json_metadata.get("snapshots", []), snapshot]
        json_metadata["current-snapshot-id"] = number
        json_metadata["last-sequence-number"] = sequence
        json_metadata["refs"] = {"main": {"snapshot-id": number, "type": "branch"}}

    rewrite(root, change)

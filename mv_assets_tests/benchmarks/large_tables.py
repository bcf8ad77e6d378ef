"""Delta and Iceberg tables of very many files, by their metadata alone: what a look reads are these."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from deltalake import DeltaTable as DeltaLibrary
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table as IcebergLibrary
from pyiceberg.typedef import Record

from mv_assets.buckets import HOUR, iso
from mv_assets.config import DeltaTable, IcebergTable

START = 1_262_304_000_000
_A_COMMIT, _A_MANIFEST = 100_000, 10_000
_LONG = struct.Struct("<q")


class LargeTable(Protocol):
    """Files of an hour each, in as many hours as there are to be; a commit adds one more."""

    place: Path
    start: str

    @property
    def declared(self) -> DeltaTable | IcebergTable: ...

    def commit(self) -> None:
        """One file more."""

    def reader(self) -> Callable[[], object]:
        """The format's own library, with the table in mind as it is now: have it read what is new since."""


class LargeDelta:
    start = iso(START)[:10]

    def __init__(self, place: Path, files: int, hours: int) -> None:
        self.place, self._hours, self._names = place, hours, itertools.count()
        self._log, self._versions = place / "_delta_log", itertools.count()
        self._log.mkdir(parents=True)
        kind = {"name": "at", "type": "timestamp", "nullable": True, "metadata": {}}
        about = {
            "id": "00000000-0000-4000-8000-000000000000",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": [kind]}),
            "partitionColumns": [],
            "configuration": {},
            "createdTime": START,
        }
        self._commit([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": about}])
        left = files
        while left:
            self._commit(self._adds(min(left, _A_COMMIT)))
            left -= min(left, _A_COMMIT)
        DeltaLibrary(str(place)).create_checkpoint()

    @property
    def declared(self) -> DeltaTable:
        return DeltaTable(name="events", path=str(self.place), time_column="at")

    def commit(self) -> None:
        self._commit(self._adds(1))

    def reader(self) -> Callable[[], object]:
        return DeltaLibrary(str(self.place)).update_incremental

    def _adds(self, number: int) -> Iterator[dict[str, Any]]:
        for at in itertools.islice(self._names, number):
            first = START + at % self._hours * HOUR
            bounds = {"minValues": {"at": iso(first)}, "maxValues": {"at": iso(first + HOUR - 1)}}
            stats = json.dumps({"numRecords": 1, **bounds, "nullCount": {"at": 0}})
            path = f"part-{at:09}.snappy.parquet"
            yield {
                "add": {
                    "path": path,
                    "partitionValues": {},
                    "size": 1_000,
                    "modificationTime": START,
                    "dataChange": True,
                    "stats": stats,
                }
            }

    def _commit(self, actions: Any) -> None:
        with (self._log / f"{next(self._versions):020}.json").open("w") as file:
            file.writelines(json.dumps(action) + "\n" for action in actions)


class LargeIceberg:
    start = iso(START)[:10]

    def __init__(self, place: Path, files: int, hours: int) -> None:
        self.place, self._hours, self._names = place, hours, itertools.count()
        place.mkdir(parents=True)
        self._catalog = {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": str(place)}
        with self._opened() as catalog:
            catalog.create_namespace("lake")
            catalog.create_table("lake.events", pa.schema({"at": pa.timestamp("us", "UTC")}))
            left = files
            while left:
                self._append(catalog.load_table("lake.events"), min(left, _A_MANIFEST))
                left -= min(left, _A_MANIFEST)

    @property
    def declared(self) -> IcebergTable:
        return IcebergTable(name="events", catalog=self._catalog, identifier="lake.events", time_column="at")

    def commit(self) -> None:
        with self._opened() as catalog:
            self._append(catalog.load_table("lake.events"), 1)

    def reader(self) -> Callable[[], object]:
        with self._opened() as catalog:
            table = catalog.load_table("lake.events")

        def read() -> None:
            with self._opened() as catalog:
                table = catalog.load_table("lake.events")
            now = table.current_snapshot()
            assert now is not None
            new = [each for each in now.manifests(table.io) if each.added_snapshot_id == now.snapshot_id]
            assert [len(each.fetch_manifest_entry(table.io)) for each in new] == [1]

        assert table.current_snapshot() is not None
        return read

    def _opened(self) -> Catalog:
        return load_catalog("default", **self._catalog)

    def _append(self, table: IcebergLibrary, number: int) -> None:
        with table.transaction() as change, change.update_snapshot().fast_append() as append:
            for at in itertools.islice(self._names, number):
                first = (START + at % self._hours * HOUR) * 1_000
                bounds = [_LONG.pack(edge) for edge in (first, first + (HOUR - 1) * 1_000)]
                append.append_data_file(
                    DataFile.from_args(
                        content=DataFileContent.DATA,
                        file_path=f"{table.location()}/data/part-{at:09}.parquet",
                        file_format=FileFormat.PARQUET,
                        partition=Record(),
                        record_count=1,
                        file_size_in_bytes=1_000,
                        column_sizes={1: 100},
                        value_counts={1: 1},
                        null_value_counts={1: 0},
                        nan_value_counts={},
                        lower_bounds={1: bounds[0]},
                        upper_bounds={1: bounds[1]},
                        split_offsets=[4],
                        sort_order_id=0,
                        spec_id=0,
                    )
                )

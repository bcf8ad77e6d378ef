"""A view in an Iceberg catalog: the table of its rows, whose files are the warehouse's, and its buckets'."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import StructType

from mv_assets.config import IcebergTarget, buckets_table
from mv_assets.publish.contents import BUCKETS, Contents
from mv_assets.publish.errors import NotPublished
from mv_assets.publish.iceberg.catalog import opened, speaking
from mv_assets.publish.iceberg.files import data_file
from mv_assets.publish.iceberg.schemas import NoSuchType, columns_of, united
from mv_assets.publish.iceberg.table import Change, PublishedTable
from mv_assets.publish.target import Shown
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.model import DataFile as ViewFile
from mv_assets.tables.files.stores import for_pyiceberg

# Of a SQL catalog that has no warehouse of its own, in ours; no view can be called so.
_METADATA = "_iceberg"


@dataclass(slots=True)
class _Wanted:
    """The files that a snapshot is to have: paths of all, and the footers of those that are new."""

    uris: dict[str, ViewFile]
    footers: dict[str, pq.FileMetaData]

    def described(self, metadata: TableMetadata, _io: FileIO) -> Iterator[DataFile]:
        for uri, footer in self.footers.items():
            yield data_file(metadata, uri, self.uris[uri].bytes, footer)


@dataclass
class IcebergView:
    """What the catalog shows of one view. Nothing is asked of it before it has to be."""

    name: str
    view: str
    time_column: str | None
    target: IcebergTarget
    warehouse: Warehouse

    @property
    def table(self) -> str:
        return f"{self.target.namespace}.{self.view}"

    def shown(self) -> Shown | None:
        with self._speaking():
            return self._rows.load()

    def commit(self, contents: Contents, at: int) -> Shown | None:
        with self._speaking():
            again = self._rows.show_again(contents.version)
            if again is not None:
                return again
            wanted = self._wanted(contents)
            if self._rows.columns is None and not wanted.uris:
                return None
            gone = [path for path in self._rows.files() if path not in wanted.uris]
            change = Change(self._columns(wanted), wanted.described, gone, self.time_column)
            return self._rows.commit(change, contents.summary(at), at)

    def commit_buckets(self, contents: Contents, at: int) -> None:
        with self._speaking():
            there = self._buckets.load()
            version = -1 if there is None or there.version is None else there.version
            if version > contents.version or self._buckets.show_again(contents.version):
                return
            change = self._change_of_buckets(contents)
            self._buckets.commit(change, contents.summary(at), at)

    def expire(self, now: int) -> int | None:
        with self._speaking():
            self._buckets.expire(now)
            return self._rows.expire(now)

    def withdraw(self) -> None:
        with self._speaking():
            self._buckets.withdraw()
            self._rows.withdraw()

    def close(self) -> None:
        if "_catalog" in self.__dict__:
            self._catalog.close()

    @cached_property
    def _catalog(self) -> Catalog:
        return opened(self._properties)

    @property
    def _properties(self) -> dict[str, str]:
        return {**for_pyiceberg(self.warehouse.storage), **self.target.catalog}

    @cached_property
    def _rows(self) -> PublishedTable:
        return self._published(self.view)

    @cached_property
    def _buckets(self) -> PublishedTable:
        return self._published(buckets_table(self.view), owns_files=True)

    def _published(self, name: str, *, owns_files: bool = False) -> PublishedTable:
        declared = self.target
        location = None
        if declared.catalog.get("type") == "sql" and "warehouse" not in declared.catalog:
            location = self.warehouse.uri(f"{_METADATA}/{declared.namespace}/{name}")
        identifier = f"{declared.namespace}.{name}"
        return PublishedTable(self.view, identifier, self._catalog, location, declared.keep, owns_files)

    def _wanted(self, contents: Contents) -> _Wanted:
        uris = {self.warehouse.uri(file.path): file for file in contents.files}
        there = self._rows.files()
        new = [uri for uri in uris if uri not in there]
        footers = self.warehouse.footers([uris[uri].path for uri in new])
        return _Wanted(uris, dict(zip(new, footers, strict=True)))

    def _columns(self, wanted: _Wanted) -> StructType:
        """All columns: those of new files, and of the table while it keeps files or has no others."""
        known = self._rows.columns
        found = [columns_of(footer.schema.to_arrow_schema()) for footer in wanted.footers.values()]
        if known is not None and len(wanted.footers) < max(1, len(wanted.uris)):
            found.insert(0, known)
        return united(found)

    def _change_of_buckets(self, contents: Contents) -> Change:
        parts, paths = contents.parts, self._buckets.files()
        kept = {_part_of(path): path for path in paths if _part_of(path) in parts}
        new = {part: places for part, places in parts.items() if part not in kept}

        def written(metadata: TableMetadata, io: FileIO) -> list[DataFile]:
            return [_bucket_file(metadata, io, part, contents.buckets(at)) for part, at in new.items()]

        gone = [path for path in paths if path not in kept.values()]
        return Change(columns_of(BUCKETS), written, gone, "start")

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        with speaking(self.view, self.table, self._properties):
            try:
                yield
            except NoSuchType as error:
                why = f"{error}; leave it out or cast it in the view's query, then refresh the view"
                raise NotPublished(self.view, self.table, why) from error


def _bucket_file(metadata: TableMetadata, io: FileIO, part: str, buckets: pa.Table) -> DataFile:
    """A file of the table's own with a part of the buckets."""
    arrow, buffer = schema_to_pyarrow(metadata.schema()), pa.BufferOutputStream()
    pq.write_table(buckets.cast(arrow), buffer)
    written = buffer.getvalue()
    uri = f"{metadata.location.rstrip('/')}/data/{part}-{uuid.uuid4().hex}.parquet"
    with io.new_output(uri).create() as out:
        out.write(written.to_pybytes())
    return data_file(metadata, uri, written.size, pq.read_metadata(pa.BufferReader(written)))


def _part_of(path: str) -> str:
    """The name of the part that a file holds; another publisher may write the same one meanwhile."""
    return path.rpartition("/")[2].partition("-")[0]

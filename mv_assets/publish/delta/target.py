"""A view as a Delta table, and its buckets as another.

The table lies around the view's files, in the warehouse, unless another folder is named: paths that leave
the table's folder are allowed, but not every reader follows them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction

from mv_assets.config import DeltaTarget, buckets_table
from mv_assets.errors import MvError
from mv_assets.publish.contents import BUCKETS, Contents
from mv_assets.publish.delta.statistics import statistics
from mv_assets.publish.delta.table import Files, PublishedTable
from mv_assets.publish.errors import Lost, NotPublished, trouble
from mv_assets.publish.target import Shown
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.model import BUCKET
from mv_assets.tables.files.stores import for_deltalake
from mv_assets.text import cause

# The library's own patience with a store is three minutes a question, and a sensor has one in all.
_PATIENCE = {"connect_timeout": "10s", "timeout": "30s", "retry_timeout": "30s", "max_retries": "2"}
# What the library says where somebody else made the table first.
_EXISTS = "already exists"


class _NoSuchType(Exception):
    """A column that files have different types of."""


@dataclass
class DeltaView:
    """What a folder shows of one view."""

    name: str
    view: str
    target: DeltaTarget
    warehouse: Warehouse

    def __post_init__(self) -> None:
        self._rows = self._published(self.view)
        self._buckets = self._published(buckets_table(self.view), owns_files=True)

    @property
    def table(self) -> str:
        return self._rows.uri

    def shown(self) -> Shown | None:
        with self._speaking():
            return self._rows.load()

    def commit(self, contents: Contents, at: int) -> Shown | None:
        with self._speaking():
            self._rows.set_right()
            there, added, schemas = self._rows.paths(), list[AddAction](), list[pa.Schema]()
            paths = {self._path(file.path): file for file in contents.files}
            new = [path for path in paths if path not in there]
            footers = self.warehouse.footers([paths[path].path for path in new])
            for path, footer in zip(new, footers, strict=True):
                schemas.append(footer.schema.to_arrow_schema())
                added.append(_added(path, paths[path].bytes, footer, at))
            known, kept = self._rows.schema, frozenset(paths.keys() & there.keys())
            if known is None and not added:
                return None
            if known is not None and (kept or not added):
                schemas.insert(0, known)
            return self._rows.commit(Files(added, kept), _united(schemas), contents.summary(at), at)

    def commit_buckets(self, contents: Contents, at: int) -> None:
        with self._speaking():
            there = self._buckets.load()
            version = -1 if there is None or there.version is None else there.version
            is_right = there is not None and there.foreign is None
            if version > contents.version or (version == contents.version and is_right):
                return
            self._buckets.set_right()
            parts, paths = contents.parts, self._buckets.paths()
            kept = {path.partition("-")[0]: path for path in paths if path.partition("-")[0] in parts}
            added = [
                self._bucket_file(part, contents.buckets(where), at)
                for part, where in parts.items()
                if part not in kept
            ]
            files = Files(added, frozenset(kept.values()))
            self._buckets.commit(files, BUCKETS, contents.summary(at), at)

    def expire(self, _now: int) -> None:
        """Give up nothing: a log does not say since when something is no longer shown."""
        with self._speaking():
            self._buckets.tidy()

    def withdraw(self) -> None:
        with self._speaking():
            self._buckets.withdraw()
            self._rows.withdraw()

    def close(self) -> None:
        """Nothing is open between two calls."""

    def _published(self, name: str, *, owns_files: bool = False) -> PublishedTable:
        folder = self.target.folder
        uri = self.warehouse.uri(name) if folder is None else Warehouse(folder).uri(name)
        # The library wants local paths plain, and takes what is in them for escaped otherwise.
        place = uri.removeprefix("file://")
        # Of a folder that is not the warehouse, only its options say how it is reached.
        storage = self.warehouse.storage if folder is None else None
        self._given = {**for_deltalake(storage), **self.target.storage_options}
        return PublishedTable(self.view, place, self.target.keep, _PATIENCE | self._given, owns_files)

    def _path(self, path: str) -> str:
        """A file of the warehouse as the log names it: relative where it lies in the table's folder."""
        uri = self.warehouse.uri(path)
        inside = f"{self.warehouse.uri(self.view)}/"
        return uri.removeprefix(inside) if self.target.folder is None else uri

    def _bucket_file(self, part: str, buckets: pa.Table, at: int) -> AddAction:
        """A file of the table's own with a part of the buckets."""
        buffer = pa.BufferOutputStream()
        pq.write_table(buckets, buffer)
        written = buffer.getvalue()
        # Another publisher may write the same part meanwhile.
        name = f"{part}-{uuid.uuid4().hex}.parquet"
        self._buckets.folder.write(name, written)
        return _added(name, written.size, pq.read_metadata(pa.BufferReader(written)), at)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Whatever a library or a store says, in a sentence of ours."""
        try:
            yield
        except (MvError, Lost):
            raise
        except CommitFailedError as error:
            raise Lost from error
        except _NoSuchType as error:
            why = f"{error}; cast it in the view's query, then refresh the view"
            raise NotPublished(self.view, self.table, why) from error
        except Exception as error:
            if _EXISTS in str(error):
                raise Lost from error
            why = trouble(error, self._given)
            raise NotPublished(self.view, self.table, why) from cause(error, self._given)


def _added(path: str, size: int, footer: pq.FileMetaData, at: int) -> AddAction:
    return AddAction(path, size, {}, at, data_change=True, stats=statistics(footer))


def _united(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Columns of all files; all may be null."""
    found: dict[str, pa.Field] = {}
    for schema in schemas:
        for part in schema:
            known = found.setdefault(part.name, pa.field(part.name, _plain(part.type)))
            if known.type != _plain(part.type):
                raise _NoSuchType(
                    f"column {part.name} is {known.type} in some buckets and {part.type} in others, which no "
                    "Delta table can show"
                )
    return pa.schema([part for name, part in found.items() if name != BUCKET])


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type as Delta gives it back: all may be null, and times are in microseconds of UTC."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, _plain(part.type)) for part in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return kind

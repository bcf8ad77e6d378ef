"""Where view data lives: immutable files, in a folder a generation."""

from __future__ import annotations

import errno
import os
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from mv_assets.config import Storage, WarehouseFolder
from mv_assets.run.errors import WarehouseUnusable
from mv_assets.state.model import BUCKET, DataFile
from mv_assets.tables.files.locations import filesystem_at, folder_at

# How often a folder is deleted again that another gc deletes, or a late attempt fills, at the same time.
_TRIES = 5
# How many footers are read at once of a store, and of how many files.
_THREADS, _FEW_FILES = 32, 4
# Written to see whether a view's folder can be; always the same, so that no crash leaves one more.
_PROBE = ".writable"


def new_generation() -> str:
    return uuid.uuid4().hex


@dataclass(slots=True)
class Contents:
    """What an attempt wrote: its files, and how much of each bucket is in them."""

    files: list[DataFile] = field(default_factory=list)
    rows: Counter[int | None] = field(default_factory=Counter)
    bytes: Counter[int | None] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Warehouse:
    """The folder of all generations of all views."""

    root: str
    storage: Storage | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, declared: WarehouseFolder) -> Warehouse:
        return cls(declared.path, storage=declared.storage)

    @property
    def filesystem(self) -> tuple[fs.FileSystem, str]:
        """The file system of the warehouse, and the path there."""
        filesystem, root = filesystem_at(self.root, self.storage)
        return filesystem, root.rstrip("/")

    def place(self, view: str, generation: str) -> str:
        """Where a generation's files go, as Spark is told.

        Raises:
            WarehouseUnusable: that would be elsewhere than in the view's folder.

        """
        for name in (view, generation):
            if name in ("", ".", "..") or "/" in name:
                raise WarehouseUnusable(self.root, f"{name!r} names no folder in it; who changed the state?")
        return f"{self.root.rstrip('/')}/{view}/{generation}"

    def uri(self, path: str) -> str:
        """A file by its path in the warehouse, as other tools are told.

        Raises:
            WarehouseUnusable: they would take it for another one.

        """
        root = self.root.rstrip("/")
        uri = f"{root}/{path}" if "://" in root else f"file://{Path(root).absolute()}/{path}"
        if any(sign in uri for sign in "?#%"):
            why = (
                "a path with ?, # or % means another one to other tools; move the warehouse to publish views"
            )
            raise WarehouseUnusable(self.root, why)
        return uri

    def open(self, path: str) -> pa.NativeFile:
        """A file by its path in the warehouse."""
        filesystem, root = self.filesystem
        return filesystem.open_input_file(f"{root}/{path}")

    def footers(self, paths: Sequence[str]) -> list[pq.FileMetaData]:
        """The footers of files, by their paths in it; many at once of a store, as each takes long."""
        filesystem, _ = self.filesystem
        if isinstance(filesystem, fs.LocalFileSystem) or len(paths) < _FEW_FILES:
            return [self._footer(path) for path in paths]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(self._footer, paths))

    def _footer(self, path: str) -> pq.FileMetaData:
        with self.open(path) as opened:
            return pq.read_metadata(opened)

    def contents(self, view: str, generation: str) -> Contents:
        """What is really there of a generation, read from its files.

        Raises:
            WarehouseUnusable: it can't be read back.

        """
        found = Contents()
        with self._usable(view, generation):
            walk = folder_at(self.place(view, generation), storage=self.storage).walk()
            for name, size in sorted(zip(walk.names, walk.sizes, strict=True)):
                path = f"{view}/{generation}/{name}"
                with self.open(path) as opened:
                    rows = _rows(pq.ParquetFile(opened))
                count = rows.total()
                found.files.append(DataFile(path, size, count, _named(rows)))
                found.rows += rows
                found.bytes += Counter({bucket: size * part // count for bucket, part in rows.items()})
        return found

    def prepare(self, view: str) -> None:
        """See that a view's generations can be written, so that no bucket is blamed if they can't.

        Raises:
            WarehouseUnusable: they can't.

        """
        with self._usable(view, "*"):
            filesystem, root = self._own(view)
            filesystem.create_dir(root, recursive=True)
            # One that a crash has left may be another user's, who shares the folder but not his files.
            with suppress(FileNotFoundError):
                filesystem.delete_file(f"{root}/{_PROBE}")
            with filesystem.open_output_stream(f"{root}/{_PROBE}") as opened:
                opened.write(b"?")
            with suppress(FileNotFoundError):
                filesystem.delete_file(f"{root}/{_PROBE}")

    def create(self, path: str) -> pa.NativeFile:
        """A new file by its path in the warehouse."""
        filesystem, root = self._own(path.partition("/")[0])
        place = f"{root}/{path.partition('/')[2]}"
        filesystem.create_dir(place.rpartition("/")[0], recursive=True)
        return filesystem.open_output_stream(place)

    def sync(self, files: Iterable[DataFile]) -> None:
        """Have files survive a power cut, as the row that is about to name them will.

        Raises:
            WarehouseUnusable: that can't be had.

        """
        filesystem, root = self.filesystem
        if isinstance(filesystem, fs.LocalFileSystem):
            written = [f"{root}/{file.path}" for file in files]
            folders = {path.rsplit("/", above)[0] for path in written for above in (1, 2, 3)}
            try:
                for path in [*written, *folders]:
                    _fsync(path)
            except OSError as error:
                raise WarehouseUnusable(self.root, _why(error)) from error

    def size(self, view: str, generation: str) -> int | None:
        """How many bytes of a generation are there; None if it has no folder.

        Raises:
            WarehouseUnusable: that can't be told, because nothing is where the warehouse should be.

        """
        with self._usable(view, generation):
            filesystem, root = filesystem_at(self.place(view, generation), self.storage)
            if filesystem.get_file_info(root).type == fs.FileType.NotFound:
                # A store has no folders that are empty.
                if isinstance(filesystem, fs.LocalFileSystem):
                    self.see_anything()
                return None
            # Another gc may delete what is being listed.
            everything = fs.FileSelector(root, allow_not_found=True, recursive=True)
            return sum(found.size or 0 for found in filesystem.get_file_info(everything))

    def see_anything(self) -> None:
        """See that the warehouse is there: a disk that is not mounted leaves an empty folder, or none.

        Raises:
            WarehouseUnusable: nothing at all is in it.

        """
        filesystem, root = self.filesystem
        if not filesystem.get_file_info(fs.FileSelector(root or "/", allow_not_found=True)):
            raise WarehouseUnusable(
                self.root,
                "nothing at all is there; mount or restore it, or mark the view to compute it again",
            )

    def delete(self, view: str, generation: str) -> None:
        """Delete a generation's files; what is gone already is fine.

        Raises:
            WarehouseUnusable: they can't be deleted.

        """
        with self._usable(view, generation):
            filesystem, _ = self._own(view)
            _, root = filesystem_at(self.place(view, generation), self.storage)
            for _ in range(_TRIES):
                if filesystem.get_file_info(root).type == fs.FileType.NotFound:
                    return
                # Another gc was faster with one file: what it has not deleted yet is still there.
                with suppress(FileNotFoundError):
                    filesystem.delete_dir(root)
            if filesystem.get_file_info(root).type != fs.FileType.NotFound:
                raise WarehouseUnusable(root, "files come as fast as they are deleted; try again later")

    def _own(self, view: str) -> tuple[fs.FileSystem, str]:
        """A view's folder, to be written or deleted in: one of ours, and no link to somebody else's."""
        filesystem, root = filesystem_at(f"{self.root.rstrip('/')}/{view}", self.storage)
        if isinstance(filesystem, fs.LocalFileSystem) and Path(root).is_symlink():
            raise WarehouseUnusable(root, "it is a link to another place; put the folder itself there")
        return filesystem, root

    @contextmanager
    def _usable(self, view: str, generation: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise WarehouseUnusable(self.place(view, generation), _why(error)) from error


def _why(error: Exception) -> str:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return f"{error}; {'make room' if full else 'see that it can be read and written'} there, then try again"


def _fsync(path: str) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _named(rows: Counter[int | None]) -> tuple[int, ...]:
    return tuple(sorted(bucket for bucket in rows if bucket is not None))


def _rows(file: pq.ParquetFile) -> Counter[int | None]:
    """How many rows a file has of each bucket."""
    rows: Counter[int | None] = Counter()
    for batch in file.iter_batches(columns=[BUCKET], batch_size=1 << 20):
        for counted in pc.value_counts(batch[BUCKET]).to_pylist():
            rows[counted["values"]] += counted["counts"]
    return rows

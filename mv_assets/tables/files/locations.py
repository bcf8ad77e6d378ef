"""From a path or URI to the folder there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from mv_assets.tables.files.folders import Folder
from mv_assets.tables.files.local import LocalFile, LocalFolder
from mv_assets.tables.files.remote import RemoteFolder


def folder_at(path: str, pattern: str = "*") -> Folder:
    """The folder, or the single file, at a local path or a URI."""
    found, root = filesystem_at(path)
    if isinstance(found, fs.LocalFileSystem):
        return _local(root, pattern)
    return RemoteFolder(found, root.rstrip("/"), path.rstrip("/"), pattern)


def filesystem_at(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a local path or a URI, and the path there."""
    if "://" not in path:
        return fs.LocalFileSystem(), path
    try:
        return fs.FileSystem.from_uri(path)  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        # A store that Arrow does not know itself, but fsspec may; most projects need not load it.
        import fsspec  # noqa: PLC0415

        store, root = fsspec.url_to_fs(path)
        return fs.PyFileSystem(fs.FSSpecHandler(store)), root


def _local(path: str, pattern: str) -> Folder:
    return LocalFile(path) if Path(path).is_file() else LocalFolder(path, pattern)

"""From a path or URI to the folder there."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from mv_assets.config.storage import Storage, as_s3, bucket_of
from mv_assets.tables.files.folders import Folder
from mv_assets.tables.files.local import LocalFile, LocalFolder
from mv_assets.tables.files.remote import RemoteFolder

# Who runs us may say by these where the store is; Arrow goes by the latter alone.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def folder_at(path: str, pattern: str = "*", storage: Storage | None = None) -> Folder:
    """The folder, or the single file, at a local path or a URI."""
    found, root = filesystem_at(path, storage)
    if isinstance(found, fs.LocalFileSystem):
        return _local(root, pattern)
    return RemoteFolder(found, root.rstrip("/"), path.rstrip("/"), pattern)


def filesystem_at(path: str, storage: Storage | None = None) -> tuple[fs.FileSystem, str]:
    """The file system of a local path or a URI, and the path there."""
    if "://" not in path:
        return fs.LocalFileSystem(), path
    path = as_s3(path)
    if (bucket := bucket_of(path)) is not None:
        said = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
        return _store(bucket, storage or Storage(), said), path.removeprefix("s3://")
    try:
        return fs.FileSystem.from_uri(path)  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        # A store that Arrow does not know itself, but fsspec may; most projects need not load it.
        import fsspec  # noqa: PLC0415

        store, root = fsspec.url_to_fs(path)
        return fs.PyFileSystem(fs.FSSpecHandler(store)), root


@lru_cache(maxsize=64)
def _store(bucket: str, storage: Storage, endpoint: str | None) -> fs.S3FileSystem:
    """A store by Arrow, which keeps its connections; what is not given it finds by its own chain."""
    scheme, _, host = (storage.endpoint or endpoint or "").partition("://")
    region = storage.known_region or (None if host else _asked(bucket))
    return fs.S3FileSystem(
        **storage.credentials(),
        **({"endpoint_override": host.rstrip("/"), "scheme": scheme} if host else {}),
        **({} if region is None else {"region": region}),
        anonymous=storage.anonymous,
        force_virtual_addressing=storage.path_style is False,
    )


def _asked(bucket: str) -> str | None:
    """Where Amazon keeps a bucket, unless somebody says it to Arrow."""
    return None if any(os.environ.get(name) for name in _REGIONS) else str(fs.resolve_s3_region(bucket))


def _local(path: str, pattern: str) -> Folder:
    return LocalFile(path) if Path(path).is_file() else LocalFolder(path, pattern)

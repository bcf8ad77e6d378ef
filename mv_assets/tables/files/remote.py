"""Folders of other file systems: whatever Arrow, or fsspec through Arrow, can reach."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import pyarrow as pa
from pyarrow import fs

from mv_assets.tables.files.folders import Entry, Walk, hidden
from mv_assets.tables.fingerprint import hashed

Listed = Iterator[tuple[str, Entry]]


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """A folder, or a single object, at `root` of a file system; `uri` is the same place for Spark."""

    filesystem: fs.FileSystem
    root: str
    uri: str
    pattern: str = "*"
    # Remote stores answer slowly, but many at once.
    threads: ClassVar[int] = 32

    def walk(self) -> Walk:
        with _as_os_errors():
            single = self._is_file()
            walk = Walk(posixpath.dirname(self.uri) if single else self.uri)
            for name, entry in self._only() if single else self._all():
                parts = name.split("/")
                if not any(hidden(part) for part in parts) and fnmatchcase(parts[-1], self.pattern):
                    walk.add(name, entry)
        return walk

    def holds(self, name: str) -> bool:
        with _as_os_errors():
            return bool(self.filesystem.get_file_info(self._place(name)).type != fs.FileType.NotFound)

    def entry(self, name: str) -> Entry | None:
        with _as_os_errors():
            store, place = self._fsspec(), self._place(name)
            if store is None:
                return self._by_arrow(name, place)
            store.invalidate_cache()
            return _of_fsspec(name, store.info(place)) if store.exists(place) else None

    def open(self, name: str) -> pa.NativeFile:
        with _as_os_errors():
            return self.filesystem.open_input_file(self._place(name))

    def _by_arrow(self, name: str, place: str) -> Entry | None:
        """An object with its etag, which Arrow tells of one that is opened, but not in a listing."""
        try:
            with self.filesystem.open_input_file(place) as opened:
                said = {key.lower(): _text(value) for key, value in (opened.metadata() or {}).items()}
                size = opened.size()
        except FileNotFoundError:
            return None
        changed = _milliseconds(said.get("last-modified"))
        if changed is None:
            found = self.filesystem.get_file_info(place)
            return None if found.type != fs.FileType.File else _of_arrow(name, found)
        return _in_seconds(name, size, changed // 1_000)._replace(checksum=said.get("etag"))

    def _is_file(self) -> bool:
        return bool(self.root) and self.filesystem.get_file_info(self.root).type == fs.FileType.File

    def _only(self) -> Listed:
        name = posixpath.basename(self.root)
        entry = self.entry(name)
        if entry is not None:
            yield name, entry

    def _all(self) -> Listed:
        store, prefix = self._fsspec(), f"{self.root}/" if self.root else ""
        if store is None:
            for found in self.filesystem.get_file_info(fs.FileSelector(self.root, recursive=True)):
                if found.type == fs.FileType.File:
                    name = found.path.removeprefix(prefix)
                    yield name, _of_arrow(name, found)
            return
        store.invalidate_cache()
        for place, details in _objects(store, self.root):
            name = place.lstrip("/").removeprefix(prefix.lstrip("/"))
            yield name, _of_fsspec(name, details)

    def _place(self, name: str) -> str:
        if self._is_root(name):
            return self.root
        return f"{self.root}/{name}" if self.root else name

    def _is_root(self, name: str) -> bool:
        """Whether the table is a single object, which is then called as the root's last part is."""
        return bool(name) and name == posixpath.basename(self.root)

    def _fsspec(self) -> Any:
        """The fsspec store behind Arrow, which knows more of its objects than Arrow passes on."""
        handler = getattr(self.filesystem, "handler", None)
        return handler.fs if isinstance(handler, fs.FSSpecHandler) else None


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Stores raise what they like; to us it is all one.

    Raises:
        OSError: something was raised.

    """
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _objects(store: Any, root: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All objects below a folder.

    fsspec's own `find` and `walk` leave out what can't be listed, and half a listing is no look; only stores
    that list whole subtrees in one go bring better ones.
    """
    if _lists_subtrees(store):
        if not store.exists(root):
            raise FileNotFoundError(f"there is no folder {root}")
        yield from store.find(root, detail=True).items()
        return
    folders = [root]
    while folders:
        for details in store.ls(folders.pop(), detail=True):
            if details["type"] == "directory":
                folders.append(details["name"])
            else:
                yield details["name"], details


def _lists_subtrees(store: Any) -> bool:
    from fsspec.asyn import AsyncFileSystem  # noqa: PLC0415 - fsspec is optional

    return isinstance(store, AsyncFileSystem) and type(store)._find is not AsyncFileSystem._find  # noqa: SLF001


def _of_arrow(name: str, found: fs.FileInfo) -> Entry:
    if found.mtime_ns is None:
        return Entry(hashed(f"{name}\0{found.size}"), found.size, None)
    return _in_seconds(name, found.size, found.mtime_ns // 1_000_000_000)


def _in_seconds(name: str, size: int, second: int) -> Entry:
    """A file by the second in which it changed, at its end at the latest.

    Some stores list finer times than they tell of one object, and an object must look the same in both.
    """
    return Entry(hashed(f"{name}\0{size} {second}"), size, second * 1_000 + 999)


def _of_fsspec(name: str, details: Mapping[str, Any]) -> Entry:
    size, tag = details["size"], _first(details, "ETag", "etag", "md5Hash", "content_md5")
    changed = _milliseconds(_first(details, "LastModified", "last_modified", "mtime", "updated", "created"))
    # A version is told by some listings only; an object must look the same in all of them.
    seen = hashed(f"{name}\0{size} {tag} {changed}")
    known = changed if changed is not None or tag is None else 0
    return Entry(seen, size, known, None if tag is None else str(tag))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _milliseconds(when: Any) -> int | None:
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            return None
    if isinstance(when, datetime):
        when = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    return int(when * 1000) if isinstance(when, int | float) else None


def _first(details: Mapping[str, Any], *keys: str) -> Any:
    return next((details[key] for key in keys if details.get(key) is not None), None)

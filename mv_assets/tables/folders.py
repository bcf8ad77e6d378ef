"""Which files a folder holds, with what tells that each is still the same object."""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import urlsplit

import farmhash
import pyarrow as pa
from pyarrow import fs

from mv_assets.tables.fingerprint import hashed, signed

_ATTEMPTS = 5
_NUMBERS = struct.Struct("<qqqQ").pack
_KIND, _REGULAR = 0o170000, 0o100000
_WRAP = 1 << 64


class Entry(NamedTuple):
    """A file as found: when it last changed (ms), and what its store says of its content, if anything."""

    identity: int
    size: int
    changed: int
    checksum: str | None = None


@dataclass(slots=True)
class Walk:
    """All files of a folder, in columns. `version` changes when a file comes, goes or changes."""

    names: list[str] = field(default_factory=list)
    identities: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    changed: array[int] = field(default_factory=lambda: array("q"))
    # Things that stand where files should be, and why they can't be read.
    unusable: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """A sum, so that the order in which a store lists its files does not matter."""
        total = sum(self.identities) + hashed(repr(sorted(self.unusable)))
        return f"{len(self.names)}:{total % _WRAP:016x}"

    def add(self, name: str, entry: Entry) -> None:
        self.names.append(name)
        self.identities.append(entry.identity)
        self.sizes.append(entry.size)
        self.changed.append(entry.changed)


class Folder(Protocol):
    """Where the files of a table are. `threads` is how many readers at once it rewards."""

    threads: ClassVar[int]

    def walk(self) -> Walk:
        """Find all files.

        Raises:
            OSError: a part could not be listed.

        """
        ...

    def entry(self, name: str) -> Entry | None:
        """One file as it is now; None if it is gone."""
        ...

    def open(self, name: str) -> pa.NativeFile: ...

    def path(self, name: str) -> str: ...


def folder_at(path: str, pattern: str = "*") -> Folder:
    """The folder, or the single file, at a local path or a URI."""
    if "://" not in path:
        return _local(path, pattern)
    try:
        found, root = fs.FileSystem.from_uri(path)
    except pa.ArrowInvalid:
        # A store that Arrow does not know itself, but fsspec may.
        found, root = fs.FileSystem.from_uri(f"fsspec+{path}")
    if isinstance(found, fs.LocalFileSystem):
        return _local(root, pattern)
    return RemoteFolder(found, root.rstrip("/"), urlsplit(path).scheme, pattern)


def _local(path: str, pattern: str) -> Folder:
    return LocalFile(path) if os.path.isfile(path) else LocalFolder(path, pattern)


def hidden(name: str) -> bool:
    """Spark's rule for what in a table's folder is not data: `_col=value` is, `_SUCCESS` is not."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A table that is one file of this machine."""

    whole: str
    threads: ClassVar[int] = 1

    def walk(self) -> Walk:
        walk, name = Walk(), os.path.basename(self.whole)
        walk.add(name, _local_entry(name, os.stat(self.whole)))
        return walk

    def entry(self, name: str) -> Entry | None:
        return _entry_at(self.whole, name)

    def open(self, name: str) -> pa.NativeFile:
        return pa.OSFile(self.path(name))

    def path(self, name: str) -> str:  # noqa: ARG002 - there is only one
        return self.whole


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A folder of this machine. Written for a million files: no objects but strings."""

    root: str
    pattern: str = "*"
    # Small files keep the interpreter busy, not the disk: more threads would only wait for each other.
    threads: ClassVar[int] = os.cpu_count() or 1

    def walk(self) -> Walk:
        for _ in range(_ATTEMPTS):
            try:
                return self._walk()
            except FileNotFoundError as error:
                # A folder went away between its parent's listing and its own: half a listing is no look.
                gone = error
                if not os.path.isdir(self.root):
                    break
        raise gone

    def entry(self, name: str) -> Entry | None:
        return _entry_at(self.path(name), name)

    def open(self, name: str) -> pa.NativeFile:
        return pa.OSFile(self.path(name))

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _walk(self) -> Walk:
        walk = Walk()
        folders = [("", self.root)]
        everything = self.pattern == "*"
        while folders:
            prefix, folder = folders.pop()
            with os.scandir(folder) as listed:
                for entry in listed:
                    base = entry.name
                    if base[0] in "._" and hidden(base):
                        continue
                    if entry.is_dir():
                        if entry.is_symlink():
                            _refuse_loop(entry.path)
                        folders.append((f"{prefix}{base}/", entry.path))
                    elif everything or fnmatchcase(base, self.pattern):
                        _add_local(walk, prefix + base, entry)
        return walk


def _add_local(walk: Walk, name: str, entry: os.DirEntry[str]) -> None:
    """`Walk.add` of a file of this machine, without a value in between: this is a look's innermost step."""
    try:
        found = entry.stat()
        if found.st_mode & _KIND != _REGULAR:
            walk.unusable[name] = "it is not a regular file"
            return
        identity = _local_identity(name, found)
    except FileNotFoundError:
        if entry.is_symlink():
            walk.unusable[name] = "it is a link that points to nothing"
        return
    except UnicodeEncodeError:
        walk.unusable[ascii(name)] = "its name is not valid UTF-8, so Spark can't open it; rename it"
        return
    walk.names.append(name)
    walk.identities.append(identity)
    walk.sizes.append(found.st_size)
    walk.changed.append(found.st_ctime_ns // 1_000_000)


def _local_identity(name: str, found: os.stat_result) -> int:
    """Size and mtime can be forged back; inode and ctime can't."""
    numbers = _NUMBERS(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return signed(farmhash.fingerprint64(numbers + name.encode()))


def _entry_at(path: str, name: str) -> Entry | None:
    try:
        return _local_entry(name, os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _local_entry(name: str, found: os.stat_result) -> Entry:
    return Entry(_local_identity(name, found), found.st_size, found.st_ctime_ns // 1_000_000)


def _refuse_loop(link: str) -> None:
    target = os.path.realpath(link)
    if os.path.commonpath([target, os.path.realpath(os.path.dirname(link))]) == target:
        raise OSError(f"{link} is a link to a folder that contains it")


@dataclass(frozen=True, slots=True)
class RemoteFolder:
    """A folder of any other file system that Arrow can reach."""

    filesystem: fs.FileSystem
    root: str
    scheme: str
    pattern: str = "*"
    threads: ClassVar[int] = 32

    def walk(self) -> Walk:
        walk = Walk()
        for name, entry in self._listed(None):
            parts = name.split("/")
            if not any(hidden(part) for part in parts) and fnmatchcase(parts[-1], self.pattern):
                walk.add(name, entry)
        return walk

    def entry(self, name: str) -> Entry | None:
        return next((entry for _, entry in self._listed(name)), None)

    def open(self, name: str) -> pa.NativeFile:
        return self.filesystem.open_input_file(f"{self.root}/{name}")

    def path(self, name: str) -> str:
        return f"{self.scheme}://{self.root.lstrip('/')}/{name}"

    def _listed(self, only: str | None) -> Iterator[tuple[str, Entry]]:
        handler = getattr(self.filesystem, "handler", None)
        if isinstance(handler, fs.FSSpecHandler):
            yield from _by_fsspec(handler.fs, self.root, only)
            return
        wanted: Any = fs.FileSelector(self.root, recursive=True) if only is None else [f"{self.root}/{only}"]
        for found in self.filesystem.get_file_info(wanted):
            if found.type == fs.FileType.File:
                name = found.path[len(self.root) + 1 :]
                seen = hashed(f"{name}\0{found.size} {found.mtime_ns}")
                yield name, Entry(seen, found.size, found.mtime_ns // 1_000_000)


def _by_fsspec(store: Any, root: str, only: str | None) -> Iterator[tuple[str, Entry]]:
    """Object stores know more of their objects than Arrow passes on: entity tags and versions."""
    store.invalidate_cache()
    path = root if only is None else f"{root}/{only}"
    if not store.exists(path):
        if only is None:
            raise FileNotFoundError(f"there is no folder {root}")
        return
    details: Mapping[str, Mapping[str, Any]]
    details = store.find(root, detail=True) if only is None else {path: store.info(path)}
    for place, found in details.items():
        name = place.lstrip("/")[len(root.lstrip("/")) + 1 :]
        tag = _first(found, "ETag", "etag", "md5Hash", "content_md5")
        when = _first(found, "LastModified", "last_modified", "mtime", "updated", "created")
        version = _first(found, "VersionId", "version_id", "generation")
        seen = hashed(f"{name}\0{found['size']} {tag} {version} {when}")
        changed = when.timestamp() if hasattr(when, "timestamp") else 0.0
        yield name, Entry(seen, found["size"], int(changed * 1000), None if tag is None else str(tag))


def _first(found: Mapping[str, Any], *keys: str) -> Any:
    return next((found[key] for key in keys if found.get(key) is not None), None)

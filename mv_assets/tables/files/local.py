"""Folders of this machine, walked fast: a look that finds nothing costs little more than a bare listing."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

import farmhash
import pyarrow as pa

from mv_assets.tables.files.folders import Entry, Walk, hidden

_ATTEMPTS = 5
_NUMBERS = struct.Struct("<qqqQ").pack
_KIND, _REGULAR = 0o170000, 0o100000
_SIGN, _WRAP = 1 << 63, 1 << 64


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A table that is one file of this machine."""

    whole: str
    threads: ClassVar[int] = 1

    def walk(self) -> Walk:
        walk, name = Walk(os.path.dirname(self.whole)), os.path.basename(self.whole)
        walk.add(name, _local_entry(name, os.stat(self.whole)))
        return walk

    def holds(self, name: str) -> bool:  # noqa: ARG002 - a file holds none
        return False

    def entry(self, name: str) -> Entry | None:
        return _entry_at(self.whole, name)

    def open(self, name: str) -> pa.NativeFile:
        return pa.OSFile(f"{os.path.dirname(self.whole)}/{name}")


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

    def holds(self, name: str) -> bool:
        return os.path.exists(f"{self.root}/{name}")

    def entry(self, name: str) -> Entry | None:
        return _entry_at(f"{self.root}/{name}", name)

    def open(self, name: str) -> pa.NativeFile:
        return pa.OSFile(f"{self.root}/{name}")

    def _walk(self) -> Walk:
        walk = Walk(self.root)
        # With each folder, the real paths of those that links were followed from.
        folders: list[tuple[str, str, tuple[str, ...]]] = [("", self.root, ())]
        while folders:
            prefix, folder, links = folders.pop()
            with os.scandir(folder) as listed:
                for inside in self._add(walk, prefix, listed):
                    followed = _followed(inside.path, links) if inside.is_symlink() else links
                    folders.append((f"{prefix}{inside.name}/", inside.path, followed))
        return walk

    def _add(self, walk: Walk, prefix: str, listed: Iterable[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        """`Walk.add` of a folder's files, without a value in between: this is a look's innermost loop."""
        names, identities = walk.names.append, walk.identities.append
        sizes, changed = walk.sizes.append, walk.changed.append
        pack, fingerprint = _NUMBERS, farmhash.fingerprint64
        everything, before = self.pattern == "*", len(walk.names)
        for entry in listed:
            base = entry.name
            if (base[0] in "._" or base[-1] == "_") and hidden(base):
                continue
            name = prefix + base
            try:
                if entry.is_dir():
                    yield entry
                    continue
                if not everything and not fnmatchcase(base, self.pattern):
                    continue
                found = entry.stat()
                size, changed_ns = found.st_size, found.st_ctime_ns
                # As `_identity`, for which a call of each file would take too long.
                value = fingerprint(pack(size, found.st_mtime_ns, changed_ns, found.st_ino) + name.encode())
            except (OSError, UnicodeEncodeError) as error:
                _note(walk, name, entry, error)
                continue
            if found.st_mode & _KIND != _REGULAR:
                walk.unusable[name] = "it is not a regular file"
                continue
            names(name)
            identities(value - _WRAP if value >= _SIGN else value)
            sizes(size)
            changed(changed_ns // 1_000_000)
        if len(walk.names) > before:
            walk.folders.add(prefix[:-1])


def _note(walk: Walk, name: str, entry: os.DirEntry[str], error: OSError | UnicodeEncodeError) -> None:
    """What is gone is no file; a link to nothing, or a name that is no text, is one that can't be read."""
    if isinstance(error, UnicodeEncodeError):
        walk.unusable[ascii(name)] = "its name is not valid UTF-8, so Spark can't open it; rename it"
    elif error.errno not in (errno.ENOENT, errno.ELOOP):
        raise error
    elif entry.is_symlink():
        walk.unusable[name] = "it is a link that points to nothing"


def _followed(link: str, links: tuple[str, ...]) -> tuple[str, ...]:
    """The links followed so far and this one, unless it leads back to where one of them was found."""
    target, found_in = os.path.realpath(link), os.path.realpath(os.path.dirname(link))
    for place in (found_in, *links):
        if os.path.commonpath([target, place]) == target:
            raise OSError(f"{link} is a link to a folder that contains it")
    return (*links, found_in)


def _identity(name: str, found: os.stat_result) -> int:
    """Size and mtime can be forged back; inode and ctime can't."""
    numbers = _NUMBERS(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    value: int = farmhash.fingerprint64(numbers + name.encode())
    return value - _WRAP if value >= _SIGN else value


def _entry_at(path: str, name: str) -> Entry | None:
    try:
        return _local_entry(name, os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _local_entry(name: str, found: os.stat_result) -> Entry:
    return Entry(_identity(name, found), found.st_size, found.st_ctime_ns // 1_000_000)

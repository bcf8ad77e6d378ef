"""Which metadata file of an Iceberg table is the current one, where no catalog says it."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyarrow import fs

from mv_assets.tables.files.locations import filesystem_at

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import StaticTable

_NAME = re.compile(r"(?:v(?P<version>\d+)|(?P<number>\d+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_SUFFIXES = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_HINT = "version-hint.text"
_GZIP = b"\x1f\x8b"


def static_table(path: str, properties: Mapping[str, str], *, unsafe: bool) -> StaticTable:
    """The table at a folder, or at its metadata file; `properties` say how its files are reached.

    Raises:
        OSError: it is not there, or can't be reached.
        ValueError: its current metadata file can't be told.

    """
    from pyiceberg.catalog.noop import NoopCatalog  # noqa: PLC0415 - an extra
    from pyiceberg.io import load_file_io  # noqa: PLC0415
    from pyiceberg.table import StaticTable  # noqa: PLC0415
    from pyiceberg.table.metadata import TableMetadataUtil  # noqa: PLC0415

    io = load_file_io(dict(properties), path)
    location = path if path.endswith(_SUFFIXES) else _current(path.rstrip("/"), io, unsafe=unsafe)
    content = _read(io, location)
    # By what it holds: the library knows a compressed file by one of its two names only.
    text = (gzip.decompress(content) if content.startswith(_GZIP) else content).decode()
    metadata = TableMetadataUtil.parse_raw(text)
    # Not by the table's own properties, as the library would: they could name code, and other stores.
    reached = load_file_io(dict(properties), location)
    identifier, nowhere = ("static-table", location), NoopCatalog("static-table")
    return StaticTable(identifier, metadata, location, reached, nowhere)


def _current(path: str, io: FileIO, *, unsafe: bool) -> str:
    folder = f"{path}/metadata"
    # Before the listing: what a hint names is there by the time it is written.
    hint = _read(io, f"{folder}/{_HINT}") if io.new_input(f"{folder}/{_HINT}").exists() else None
    names = _names(folder, io)
    chosen = newest(names, unsafe=unsafe) if hint is None else hinted(names, hint.decode().strip())
    return f"{folder}/{chosen}"


def hinted(names: set[str], hint: str) -> str:
    """The metadata file that a version hint names.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: there are two of that version.

    """
    if not hint.isdecimal():
        found = sorted(names & {hint, *(f"{hint}{suffix}" for suffix in _SUFFIXES)})
        return _only(found, hint if hint.endswith(_SUFFIXES) else f"{hint}.metadata.json")
    versions = defaultdict[int, list[str]](list)
    for each in map(_NAME.fullmatch, names):
        if each and each["version"]:
            versions[int(each["version"])].append(each[0])
    version = int(hint)
    # Here the commit is the renaming to the next version: a writer that died after it has not moved the hint.
    while version + 1 in versions:
        version += 1
    return _only(sorted(versions.get(version, ())), f"v{version}.metadata.json")


def newest(names: set[str], *, unsafe: bool) -> str:
    """The metadata file of the highest number, which only `unsafe` takes for the current one.

    Raises:
        FileNotFoundError: there is none.
        ValueError: there are two of them, or it would be a guess.

    """
    numbers = {
        found[0]: int(found["version"] or found["number"]) for found in map(_NAME.fullmatch, names) if found
    }
    if numbers and not unsafe:
        # A writer that died before the catalog took its commit has left its file behind.
        raise ValueError(
            f"its metadata folder has no {_HINT}, and its newest metadata file may be of a commit that never "
            "happened; declare it by `identifier` and `catalog`, or set `unsafe: true` to take that file"
        )
    return _only(sorted(name for name, at in numbers.items() if at == max(numbers.values())), "metadata file")


def _only(found: list[str], wanted: str) -> str:
    if not found:
        raise FileNotFoundError(f"its metadata folder has no {wanted}")
    if len(found) > 1:
        # Of two commits that raced, one lost and left its file behind; only the catalog knows which.
        raise ValueError(f"{' and '.join(found)} could both be current; give its catalog and identifier")
    return found[0]


def _read(io: FileIO, location: str) -> bytes:
    with io.new_input(location).open() as file:
        content: bytes = file.read()
    return content


def _names(folder: str, io: FileIO) -> set[str]:
    filesystem, root = _filesystem(folder, io)
    return {found.base_name for found in filesystem.get_file_info(fs.FileSelector(root))}


def _filesystem(folder: str, io: FileIO) -> tuple[fs.FileSystem, str]:
    """Where the library, which lists no folders itself, reads files."""
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 - an extra

    if isinstance(io, PyArrowFileIO):
        scheme, place, root = io.parse_location(folder)
        return io.fs_by_scheme(scheme, place), root
    from pyiceberg.io.fsspec import FsspecFileIO  # noqa: PLC0415

    if isinstance(io, FsspecFileIO):
        opened = io.get_fs(urlsplit(folder).scheme)
        return fs.PyFileSystem(fs.FSSpecHandler(opened)), opened._strip_protocol(folder)  # noqa: SLF001 - fsspec's own way
    return filesystem_at(folder)

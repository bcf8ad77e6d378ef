"""The files of one version of a Delta table, in columns; the next version's follow from its commits."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import compress, pairwise
from typing import Any
from urllib.parse import unquote

from mv_assets.tables.delta.description import Described, Description, Texts, is_absolute
from mv_assets.tables.delta.log import Add, Key
from mv_assets.tables.delta.vectors import id_of
from mv_assets.tables.lakehouse import Active, identity
from mv_assets.tables.listing import History, Listing, Rewrite, RowDeletes
from mv_assets.tables.parquet.footer import Extent

NUMBERS = ("crcs", "starts", "ends", "sizes", "changed", "identities")
_BY_NAME = ("others", "nulls", "paths", "elsewhere", "partitions", "deletes")


class Twice(Exception):
    """A file is listed twice, so that its rows would count twice; the message is its name."""


@dataclass(slots=True)
class FileList:
    """The columns hold the files with a known range, `others` those without: nowhere in time, or unread.

    What differs per file is kept by name only where there is something to say. A list that was given away
    is not changed any more.
    """

    names: list[str] = field(default_factory=list)
    crcs: array[int] = field(default_factory=lambda: array("q"))
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    changed: array[int] = field(default_factory=lambda: array("q"))
    identities: array[int] = field(default_factory=lambda: array("q"))
    others: dict[str, Active] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)
    # What the log calls them, where that is not their name; and where those outside of the table are.
    paths: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, Texts] = field(default_factory=dict)
    deletes: dict[str, RowDeletes] = field(default_factory=dict)
    # By the version that rewrote them.
    rewrites: dict[int, Rewrite] = field(default_factory=dict)
    history: History = field(default_factory=History, compare=False)

    @classmethod
    def of(cls, adds: Iterable[Add], description: Description) -> FileList:
        """The files of a checkpoint.

        Raises:
            Twice: it lists a file twice.

        """
        found = cls()
        refuse_twice(found.add(description.of(add)) for add in adds)
        return found

    def __len__(self) -> int:
        return len(self.names) + len(self.others)

    @property
    def unread(self) -> list[Active]:
        """Files of which only the footer tells the range."""
        return [file for file in self.others.values() if file.extent is None]

    def key(self, name: str) -> Key:
        """What the log knows a file by."""
        deletes = self.deletes.get(name)
        return self.paths.get(name, name), None if deletes is None else id_of(deletes.places[0])

    def enter(self, listing: Listing) -> None:
        """Enter all files but the unread ones. Where there are none of these, the listing has our columns."""
        listing.names = self.names.copy() if self.unread else self.names
        for column in NUMBERS:
            setattr(listing, column, getattr(self, column)[:] if self.unread else getattr(self, column))
        listing.nulls = self.nulls.copy()
        listing.timeless = {name for name, file in self.others.items() if file.extent is not None}
        listing.rewrites = tuple(rewrite for _, rewrite in sorted(self.rewrites.items()))
        if not self.unread:
            listing.history = self.history

    def add(self, described: Described) -> str:
        """Add a file, and give its name; only while the list is being made."""
        file, path, partition, deletes = described
        self._place(file)
        if path != file.name:
            self.paths[file.name] = path
        if is_absolute(path):
            self.elsewhere[file.name] = unquote(path)
        if partition:
            self.partitions[file.name] = partition
        if deletes is not None:
            self.deletes[file.name] = deletes
        return file.name

    def _place(self, file: Active) -> None:
        if file.extent is None or file.extent.range is None:
            self.others[file.name] = file
        else:
            values = (file.crc, *file.extent.range, file.size, file.changed, identity(file))
            self.names.append(file.name)
            for column, value in zip(NUMBERS, values, strict=True):
                getattr(self, column).append(value)
        if file.extent is not None and file.extent.nulls:
            self.nulls[file.name] = file.extent.nulls

    def learned(self, files: Iterable[Active], listing: Listing) -> FileList:
        """The list after unread files were listed by their footers."""
        places = {name: at for at, name in enumerate(listing.names[len(self.names) :], len(self.names))}
        found = self.without({})
        for file in files:
            at, nulls = places.get(file.name), listing.nulls.get(file.name, 0)
            span = None if at is None else (listing.starts[at], listing.ends[at])
            del found.others[file.name]
            found._place(file._replace(extent=Extent(span, nulls)))  # noqa: SLF001 - its own
        found.history = self.history.then(map(listing.segment, places.values()))
        return found

    def places(self, names: AbstractSet[str]) -> dict[str, int | None]:
        """Where files are, of those that are listed: their places in the columns, None among the others."""
        # All of it without a step of Python for each of a million names.
        found = compress(range(len(self.names)), map(names.__contains__, self.names))
        return {self.names[at]: at for at in found} | dict.fromkeys(names & self.others.keys())

    def file(self, name: str, at: int | None) -> Active:
        if at is None:
            return self.others[name]
        extent = Extent((self.starts[at], self.ends[at]), self.nulls.get(name, 0))
        return Active(name, self.crcs[at], self.sizes[at], self.changed[at], extent)

    def without(self, places: Mapping[str, int | None]) -> FileList:
        """A copy without some files."""
        cuts = [-1, *sorted(at for at in places.values() if at is not None), len(self.names)]
        columns = {column: _cut(getattr(self, column), cuts) for column in ("names", *NUMBERS)}
        by_name = {kind: getattr(self, kind).copy() for kind in _BY_NAME}
        for values in by_name.values():
            for name in places.keys() & values.keys():
                del values[name]
        return FileList(**columns, **by_name, rewrites=self.rewrites.copy())


def _cut(column: Any, cuts: Sequence[int]) -> Any:
    """A column without the values at some places."""
    kept = column[:0]
    for before, at in pairwise(cuts):
        kept += column[before + 1 : at]
    return kept


def refuse_twice(names: Iterable[str]) -> None:
    """Refuse a name that is there twice.

    Raises:
        Twice: there is one.

    """
    found: set[str] = set()
    for name in names:
        if name in found:
            raise Twice(name)
        found.add(name)

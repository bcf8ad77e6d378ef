"""The files of one version of a Delta table, in columns; the next version's follow from its commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, compress
from typing import Any, NamedTuple
from urllib.parse import unquote

from mv_assets.tables.delta.description import Described, Description, Texts, is_absolute
from mv_assets.tables.delta.log import Add, Key
from mv_assets.tables.delta.vectors import id_of
from mv_assets.tables.lakehouse import Active, identity
from mv_assets.tables.listing import History, Listing, Rewrite, RowDeletes
from mv_assets.tables.parquet.footer import Extent
from mv_assets.tables.parts import NUMBERS, Merged, Part

_COLUMNS = ("names", *NUMBERS)
_BY_NAME = ("nulls", "partitions", "elsewhere", "others", "paths", "deletes")
# So many files are in a part at most: one that goes has the others of its part copied.
PART = 1 << 16


class Twice(Exception):
    """A file is listed twice, so that its rows would count twice; the message is its name."""


@dataclass(slots=True, eq=False)
class DeltaPart(Part):
    """`others` are files without a known range: nowhere in time, or unread."""

    others: dict[str, Active] = field(default_factory=dict)
    # What the log calls files, where that is not their name.
    paths: dict[str, str] = field(default_factory=dict)
    deletes: dict[str, RowDeletes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names) + len(self.others)

    def add(self, described: Described) -> None:
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

    def take(self, other: DeltaPart) -> None:
        """Add all files of another part."""
        for column in _COLUMNS:
            getattr(self, column).extend(getattr(other, column))
        for kind in _BY_NAME:
            getattr(self, kind).update(getattr(other, kind))

    def without(self, names: AbstractSet[str]) -> DeltaPart:
        """A copy without some files."""
        kept = [name not in names for name in self.names]
        made = DeltaPart(list(compress(self.names, kept)))
        for column in NUMBERS:
            getattr(made, column).extend(compress(getattr(self, column), kept))
        for kind in _BY_NAME:
            values = getattr(self, kind).copy()
            for name in names & values.keys():
                del values[name]
            setattr(made, kind, values)
        return made


class Place(NamedTuple):
    """Where a file is: in which part, and at which place of its columns; None among the others."""

    part: DeltaPart
    at: int | None


@dataclass(slots=True)
class FileList:
    """A list that was given away is not changed any more, nor is a part that another list has too."""

    parts: list[DeltaPart] = field(default_factory=list)
    # By the version that rewrote them.
    rewrites: dict[int, Rewrite] = field(default_factory=dict)
    history: History = field(default_factory=History, compare=False)
    _own: DeltaPart | None = field(default=None, compare=False, repr=False)

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
        return sum(map(len, self.parts))

    def all(self, kind: str) -> Mapping[str, Any]:
        """What its parts say by name."""
        return Merged(getattr(part, kind) for part in self.parts)

    @property
    def unread(self) -> list[Active]:
        """Files of which only the footer tells the range."""
        return [file for file in self._others() if file.extent is None]

    def _others(self) -> Iterator[Active]:
        return chain.from_iterable(part.others.values() for part in self.parts)

    def enter(self, listing: Listing) -> None:
        """Enter all files but the unread ones."""
        listing.take(self.parts)
        listing.timeless = {file.name for file in self._others() if file.extent is not None}
        listing.rewrites = tuple(rewrite for _, rewrite in sorted(self.rewrites.items()))
        if not self.unread:
            listing.history = self.history

    def add(self, described: Described) -> str:
        """Add a file, and give its name; only while the list is being made."""
        if self._own is None or len(self._own) >= PART:
            self._own = DeltaPart()
            self.parts.append(self._own)
        self._own.add(described)
        return described.file.name

    def learned(self, files: Iterable[Active], listing: Listing) -> FileList:
        """The list after unread files were listed by their footers."""
        placed = sum(len(part.names) for part in self.parts)
        places = {listing.names[at]: at for at in range(placed, len(listing))}
        known = self.places({file.name for file in files})
        found = self.without(known)
        for file in files:
            at, nulls = places.get(file.name), listing.nulls.get(file.name, 0)
            span = None if at is None else (listing.starts[at], listing.ends[at])
            found.add(_described(file._replace(extent=Extent(span, nulls)), known[file.name].part))
        found.settle()
        found.history = self.history.then(map(listing.segment, places.values()))
        return found

    def places(self, names: AbstractSet[str]) -> dict[str, Place]:
        """Where files are, of those that are listed."""
        found: dict[str, Place] = {}
        for part in self.parts:
            found |= {part.names[at]: Place(part, at) for at in part.among(names)}
            found |= dict.fromkeys(names & part.others.keys(), Place(part, None))
        return found

    def without(self, places: Mapping[str, Place]) -> FileList:
        """A copy without some files."""
        out: dict[int, set[str]] = {}
        for name, place in places.items():
            out.setdefault(id(place.part), set()).add(name)
        parts = [part.without(out[id(part)]) if id(part) in out else part for part in self.parts]
        return FileList(parts, self.rewrites.copy())

    def settle(self) -> None:
        """Put small neighbours together: a list has few parts, however many commits made it."""
        self._own, parts, own = None, list[DeltaPart](), set[int]()
        for part in self.parts:
            while parts and len(parts[-1]) <= 2 * len(part) and len(parts[-1]) + len(part) <= PART:
                last = parts.pop()
                if id(last) not in own:
                    joined = DeltaPart()
                    joined.take(last)
                    last = joined
                    own.add(id(last))
                last.take(part)
                part = last  # noqa: PLW2901 - both of them from here on
            if len(part):
                parts.append(part)
        self.parts = parts


def key_of(name: str, place: Place) -> Key:
    """What the log knows a file by."""
    deletes = place.part.deletes.get(name)
    return place.part.paths.get(name, name), None if deletes is None else id_of(deletes.places[0])


def file_at(name: str, place: Place) -> Active:
    part, at = place
    if at is None:
        return part.others[name]
    extent = Extent((part.starts[at], part.ends[at]), part.nulls.get(name, 0))
    return Active(name, part.crcs[at], part.sizes[at], part.changed[at], extent)


def _described(file: Active, part: DeltaPart) -> Described:
    """A file as a part that has it describes it."""
    name = file.name
    texts: Texts = part.partitions.get(name, {})
    return Described(file, part.paths.get(name, name), texts, part.deletes.get(name))


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

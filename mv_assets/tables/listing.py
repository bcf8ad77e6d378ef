"""A base table as one look listed it: its segments in columns, because a lake has millions of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple, Protocol

from mv_assets.state.model import Segment
from mv_assets.tables.fingerprint import hashed
from mv_assets.tables.parts import NUMBERS, Joined, Merged, Part, some
from mv_assets.tables.places import Place
from mv_assets.tables.times import FIRST, LAST
from mv_assets.text import printable

# The range of a file that has no time of its own, as in a dimension: it belongs to every bucket.
ALWAYS = (FIRST, LAST)

# Called with files and bytes examined so far, and with how many of each there are to examine.
OnRead = Callable[[int, int, int, int], None]


def unnoticed(_files: int, _bytes: int, _all_files: int, _all_bytes: int) -> None:
    """The default: nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A file that can't be used, why, and its last known range; None where that is not known."""

    name: str
    why: str
    start_ms: int | None = None
    end_ms: int | None = None

    @property
    def range(self) -> tuple[int, int] | None:
        return None if self.start_ms is None or self.end_ms is None else (self.start_ms, self.end_ms)

    @property
    def ranged(self) -> bool:
        return self.range is not None

    def __str__(self) -> str:
        return printable(f"file {self.name}: {self.why}")


@dataclass(frozen=True, slots=True)
class Pending:
    """A stretch of time (end exclusive) whose segments are not to be read yet, and what it waits for."""

    start_ms: int
    end_ms: int
    why: str
    # Nothing was ever computed there.
    vacant: bool = False


class EqualityDelete(NamedTuple):
    """A file of rows: what equals one of them in these columns, by field id and Spark type, is deleted."""

    path: str
    columns: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class RowDeletes:
    """What takes rows out of one file: by their places in it, and by the values they have.

    Places are told as the format tells them; the table reads that when the rows are read. Where it can't be
    told which rows are left, `refused` says why: none of them may be read then.
    """

    places: tuple[str, ...] = ()
    equal: tuple[EqualityDelete, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Files that the table replaced by others with the same rows, by its own word.

    All of them, each as it was then: its range, and the checksum that covers what was deleted of it. Files
    without rows in time are in neither; a rewrite of which a file's range is not known must not be told.
    """

    removed: tuple[Segment, ...]
    added: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Details:
    """What a table keeps about its files outside of them, by segment name where it differs per file."""

    # Where the files are; some may be elsewhere, each with its own whole path.
    root: str = ""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    # Partition values as text, None for null.
    partitions: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    # How columns are found inside the files, where the table says so.
    columns: Mapping[str, Place] = field(default_factory=dict)
    # Columns that would be read wrong: why, and what to do.
    refused: Mapping[str, str] = field(default_factory=dict)
    # Rows that are in a file, and no longer in the table.
    deletes: Mapping[str, RowDeletes] = field(default_factory=dict)


class Step(NamedTuple):
    """How a listing differs from an earlier one of its table: the segments that came, went or changed."""

    earlier: object
    segments: tuple[Segment, ...]


# A look that missed more listings than this compares everything; and so many segments are kept for it.
_STEPS, _STEPPED = 64, 10_000


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """What tells a listing from all others, were they alike; and where the table knows it, how it came about.

    Listings of one origin have the same segments.
    """

    origin: object = field(default_factory=object)
    steps: tuple[Step, ...] = ()

    def then(self, changed: Iterable[Segment]) -> History:
        """That of the next listing, which differs in these segments."""
        steps = (Step(self.origin, tuple(changed)), *self.steps)[:_STEPS]
        sizes = accumulate(len(step.segments) for step in steps)
        return History(steps=tuple(step for step, size in zip(steps, sizes, strict=True) if size <= _STEPPED))

    def since(self, origin: object) -> list[Segment] | None:
        """The segments that came, went or changed since the listing of that origin; None if not known."""
        found: list[Segment] = []
        if origin is self.origin:
            return found
        for step in self.steps:
            found += step.segments
            if step.earlier is origin:
                return found
        return None


@dataclass(slots=True)
class Listing:
    """One complete listing. The columns hold the files that have a time range, broken ones included.

    They are its own, or those of parts that it shares with other listings: these are not changed.
    `recheck_at` is the time from which the same files may mean something else: a checksum that was
    taken while its file was young is not trusted for ever.
    """

    table: str
    version: str
    at: int
    names: list[str] | Joined[str] = field(default_factory=list)
    crcs: array[int] | Joined[int] = field(default_factory=lambda: array("q"))
    starts: array[int] | Joined[int] = field(default_factory=lambda: array("q"))
    ends: array[int] | Joined[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] | Joined[int] = field(default_factory=lambda: array("q"))
    # When a file last changed, in ms; and the hash of what tells that it is still the same object.
    changed: array[int] | Joined[int] = field(default_factory=lambda: array("q"))
    identities: array[int] | Joined[int] = field(default_factory=lambda: array("q"))
    broken: dict[str, Broken] = field(default_factory=dict)
    # Files that are there, but have no rows in time.
    timeless: set[str] = field(default_factory=set)
    # Those of them that could not be read and never were: they may hold rows of any time.
    unread: set[str] = field(default_factory=set)
    # Rows whose time is null belong to no bucket; they are counted here by file.
    nulls: MutableMapping[str, int] = field(default_factory=dict)
    # Types of the table's columns where the table itself, not each file, decides them.
    schema: Mapping[str, str] = field(default_factory=dict)
    details: Details = field(default_factory=Details)
    # Files that were replaced without a change of rows, in the order in which they were.
    rewrites: tuple[Rewrite, ...] = ()
    # Disjoint and in order; only a view that is used as a table has any.
    pending: tuple[Pending, ...] = ()
    # Last millisecond through which the table says it is complete, if it does not leave that to its segments.
    complete_through: int | None = None
    # Whether that is all there is, as far as anybody knows: nothing behind it is only late.
    ends_there: bool = True
    recheck_at: int | None = None
    history: History = field(default_factory=History, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.names)

    def take(self, parts: Sequence[Part]) -> None:
        """Have the files of parts, and no others yet."""
        self.names = Joined((part.names for part in parts), [])
        for column in NUMBERS:
            setattr(self, column, Joined((getattr(part, column) for part in parts), array("q")))
        self.nulls = Merged(part.nulls for part in parts)

    def add(self, segment: Segment, *, size: int = 0, changed: int = 0, identity: int = 0) -> None:
        self.names.append(segment.name)
        self.crcs.append(segment.crc)
        self.starts.append(segment.start_ms)
        self.ends.append(segment.end_ms)
        self.sizes.append(size)
        self.changed.append(changed)
        self.identities.append(identity)

    def segment(self, index: int) -> Segment:
        return Segment(self.names[index], self.crcs[index], self.starts[index], self.ends[index])

    def segments(self) -> Iterator[Segment]:
        return map(Segment, self.names, self.crcs, self.starts, self.ends)

    def some(self, places: Sequence[int]) -> Iterator[Segment]:
        """The segments at some places."""
        columns = (self.names, self.crcs, self.starts, self.ends)
        return map(Segment, *(some(column, places) for column in columns))

    def leave_out(self, indices: set[int]) -> None:
        """Take files out of the columns that are there, but nowhere in time."""
        self.timeless |= {self.names[index] for index in indices}
        kept = [index for index in range(len(self)) if index not in indices]
        self.names = [self.names[index] for index in kept]
        for column in NUMBERS:
            values = getattr(self, column)
            setattr(self, column, array("q", (values[index] for index in kept)))

    def path(self, name: str) -> str:
        """Where Spark finds a file."""
        return self.details.elsewhere.get(name) or f"{self.details.root}/{name}"

    def refusals(self, columns: Iterable[str] | None) -> list[str]:
        """Why some of its columns, or all, can't be read."""
        return refusals(self.table, self.details.refused, columns)

    def behind(self, now: int) -> int:
        """How far the clock that dates the files is behind one that says `now` when they are listed."""
        return now - self.at

    def recheck(self, at: int) -> None:
        """Have the table listed again from that time on, even if nothing seems to have changed."""
        self.recheck_at = at if self.recheck_at is None else min(self.recheck_at, at)

    def place(self, broken: Broken, span: tuple[int, int] | None) -> None:
        """Note a broken file; with a range it is a segment as well, so that its buckets notice."""
        if span is not None:
            broken = replace(broken, start_ms=span[0], end_ms=span[1])
            self.add(Segment(broken.name, hashed(broken.why), *span))
        self.broken[broken.name] = broken

    def listed(self) -> frozenset[str]:
        """All files that are there at all."""
        return frozenset(self.names) | self.timeless | self.broken.keys()

    @property
    def number(self) -> int:
        """How many files are there at all."""
        return len(self.listed()) if self.timeless or self.broken else len(self)

    @property
    def unplaced(self) -> list[Broken]:
        """Broken files that may hold rows of any bucket."""
        return [broken for broken in self.broken.values() if not broken.ranged]


class TableVersion(Protocol):
    """A table seen without reading files: enough to tell whether anything changed."""

    @property
    def version(self) -> str: ...

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        """List it completely.

        Raises:
            TableUnreadable: the table could not be listed as a whole.

        """
        ...


class Table(Protocol):
    """A base table or a dimension."""

    @property
    def name(self) -> str: ...

    def current(self) -> TableVersion:
        """See the table as it is now.

        Raises:
            TableUnreadable: it is not there, can't be listed, or has what this reader must refuse.

        """
        ...

    def columns(
        self, wanted: frozenset[str] = frozenset(), *, everywhere: bool = False
    ) -> dict[str, str] | None:
        """Columns with their Spark SQL types; None while the table has no files.

        Files may differ: the answer has all `wanted` columns that any sampled file has; `everywhere` goes on
        looking in the others while one is missing, which takes long if no file has it.
        """
        ...

    def refused(self) -> Mapping[str, str]:
        """Columns that would be read wrong: why, and what to do."""
        ...


def refusals(table: str, refused: Mapping[str, str], columns: Iterable[str] | None) -> list[str]:
    """Sentences for those of some columns, or of all, that are refused; names are those of any case."""
    wanted = None if columns is None else {name.lower() for name in columns}
    return [
        f"column {name} of table {table!r} {why}"
        for name, why in refused.items()
        if wanted is None or name.lower() in wanted
    ]


def replaced(before: Listing, now: Listing) -> set[str]:
    """Files of a listing that are no longer the objects they were."""
    if now is before:
        return set()
    current = dict(zip(now.names, now.identities, strict=True))
    listed = zip(before.names, before.identities, strict=True)
    return {name for name, identity in listed if current.get(name) != identity}

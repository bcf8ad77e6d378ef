"""Which of an Iceberg table's delete files take rows out of which data files."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mv_assets.config.storage import as_s3
from mv_assets.tables.iceberg.entries import EQUALITY_DELETES, Entry
from mv_assets.tables.lakehouse import BY_SPARK
from mv_assets.tables.listing import EqualityDelete, RowDeletes
from mv_assets.tables.parquet.footer import Range

# The partition spec, and the values as text.
Partition = tuple[int, str]

COMPACT = f"{BY_SPARK}, or compact it (CALL system.rewrite_data_files)"
_LOCAL = re.compile(r"^file:/+")
# Spark takes 0.0 and -0.0 for the same value, as it does nanoseconds of one microsecond, and Iceberg does
# not. A uuid is bytes in the file.
UNLIKE = ("float", "double", "uuid", "timestamp_ns", "timestamptz_ns")


class Place(NamedTuple):
    """Where the places of a data file's deleted rows are told: a whole file, or a part of it."""

    path: str
    offset: int | None
    size: int
    # How many rows are deleted there, and how many the data file has.
    deleted: int
    rows: int

    def text(self) -> str:
        return json.dumps(self, separators=(",", ":"))

    @classmethod
    def of(cls, text: str) -> Place:
        return cls(*json.loads(text))


class Unreadable(Exception):
    """What deletes rows of a file can't be read; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Delete:
    """A file of deletes, and how far it reaches."""

    entry: Entry
    # Data files of a later sequence number are not affected.
    through: int
    # Of an equality delete, by id and type, and where the rows lie that it deletes, if that is told.
    columns: tuple[tuple[int, str], ...] = ()
    span: Range | None = None

    @property
    def identity(self) -> str:
        length = self.entry.size if self.entry.offset is None else self.entry.length
        return f"{self.entry.path} {self.entry.offset} {length}"

    @property
    def by_value(self) -> bool:
        return self.entry.content == EQUALITY_DELETES

    @property
    def vector(self) -> bool:
        return self.entry.format == "PUFFIN"

    def reaches(self, path: str, span: Range | None) -> bool:
        """Whether it may delete rows of that file, as far as bounds tell."""
        if self.by_value:
            return self.span is None or span is None or (self.span[0] <= span[1] and span[0] <= self.span[1])
        low, high = self.entry.path_low, self.entry.path_high
        return self.entry.target is not None or low is None or high is None or _between(low, path, high)


@dataclass(frozen=True, slots=True)
class Deletes:
    """Delete files by what they reach. Where that is not told exactly, it is taken to be more."""

    # The key that tells data files apart by their paths.
    key: Callable[[str], str]
    by_path: dict[str, list[Delete]] = field(default_factory=lambda: defaultdict(list))
    by_partition: dict[Partition, list[Delete]] = field(default_factory=lambda: defaultdict(list))
    everywhere: list[Delete] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.by_path or self.by_partition or self.everywhere)

    def add(
        self, entry: Entry, spec: int, types: Mapping[int, str], span: Range | None, *, unpartitioned: bool
    ) -> None:
        """Add a file of deletes; `types` are those of columns by id, `span` what is told of its times."""
        if entry.content == EQUALITY_DELETES:
            columns = tuple((number, types.get(number, "")) for number in entry.equality_ids or ())
            delete = Delete(entry, entry.sequence - 1, columns, span)
            # Those of an unpartitioned spec are for all partitions.
            (self.everywhere if unpartitioned else self.by_partition[spec, entry.partition]).append(delete)
            return
        target = entry.target or _only(entry)
        delete = Delete(entry, entry.sequence)
        (self.by_path[self.key(target)] if target else self.by_partition[spec, entry.partition]).append(
            delete
        )

    def among(
        self, keys: Sequence[str], partitions: Sequence[Partition], places: Sequence[int]
    ) -> Iterable[int]:
        """Which of many files deletes may be of; `places` says for each which partition it is in."""
        if self.everywhere:
            return range(len(keys))
        wanted = {at for at, partition in enumerate(partitions) if partition in self.by_partition}
        found: set[int] = set()
        if wanted:
            found |= {at for at, place in enumerate(places) if place in wanted}
        if self.by_path:
            found |= {at for at, key in enumerate(keys) if key in self.by_path}
        return sorted(found)

    def of(self, path: str, partition: Partition, sequence: int, span: Range | None) -> list[Delete]:
        """The delete files of a data file, whose rows lie there in time."""
        found = [
            delete
            for delete in (
                *self.by_path.get(self.key(path), ()),
                *self.by_partition.get(partition, ()),
                *self.everywhere,
            )
            if sequence <= delete.through and delete.reaches(path, span)
        ]
        # A vector has all that older position deletes of its file have.
        if any(delete.vector for delete in found):
            return [delete for delete in found if delete.vector or delete.by_value]
        return found


def row_deletes(found: Iterable[Delete], rows: int, path_of: Callable[[str], str]) -> RowDeletes:
    """What delete files of a data file of so many rows mean; `path_of` says where Spark finds a file.

    Raises:
        Unreadable: one of them can't be read.

    """
    deletes = sorted(found, key=lambda delete: delete.identity)
    for delete in deletes:
        _refuse(delete)
    if sum(delete.vector for delete in deletes) > 1:
        raise Unreadable(f"it has two deletion vectors, the second in {deletes[1].entry.path}; {COMPACT}")
    return RowDeletes(
        tuple(_place(delete.entry, rows).text() for delete in deletes if not delete.by_value),
        tuple(
            EqualityDelete(path_of(delete.entry.path), delete.columns)
            for delete in deletes
            if delete.by_value
        ),
    )


def _place(entry: Entry, rows: int) -> Place:
    size = entry.size if entry.offset is None else entry.length or 0
    return Place(entry.path, entry.offset, size, entry.rows, rows)


def _refuse(delete: Delete) -> None:
    entry = delete.entry
    of_it = f"its delete file {entry.path}"
    if entry.encrypted:
        raise Unreadable(f"{of_it} is encrypted; {BY_SPARK}")
    if delete.vector and not delete.by_value:
        if entry.target is None or entry.offset is None or entry.length is None:
            raise Unreadable(f"{of_it} does not say which part of it is a deletion vector; {COMPACT}")
    elif entry.format != "PARQUET":
        raise Unreadable(f"{of_it} is {entry.format}, not Parquet; {COMPACT}")
    if not delete.by_value:
        return
    odd = sorted({kind for _, kind in delete.columns if kind in UNLIKE or not kind})
    if odd or not delete.columns:
        what = (
            "a field inside of another" if "" in odd else f"a column of type {odd[0]}" if odd else "no column"
        )
        raise Unreadable(f"{of_it} tells rows by {what}; {COMPACT}")


def plain(path: str) -> str:
    """A path in the one way of writing it: local ones as such, and one scheme for S3."""
    return _LOCAL.sub("/", as_s3(path))


def _only(entry: Entry) -> str | None:
    """The one data file that all of a file's position deletes are of, if there is only one."""
    low = entry.path_low
    return low.decode() if low is not None and low == entry.path_high else None


def _between(low: bytes, path: str, high: bytes) -> bool:
    """Whether a path is within bounds. Where these are spelled in two ways, no order is told."""
    try:
        first, last = low.decode(), high.decode()
    except UnicodeDecodeError:
        return True
    if _LOCAL.findall(first) != _LOCAL.findall(last):
        return True
    return plain(first).encode() <= plain(path).encode() <= plain(last).encode()

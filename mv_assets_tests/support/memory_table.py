"""A base table in memory: files with content, time range and identity, and what a look sees of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from mv_assets.state import rules
from mv_assets.state.model import (
    Attempt,
    CurrentInputs,
    Declaration,
    Fingerprint,
    Header,
    Inputs,
    Look,
    Mark,
    PartitionRow,
    SecondLook,
    Segment,
)
from mv_assets.tables.fingerprint import fingerprint, hashed
from mv_assets.tables.listing import Rewrite

DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class File:
    """`crc` stands for the content; `identity` is new with every write, as inode and ctime are."""

    crc: int
    start: int
    end: int
    identity: int


Files = Mapping[str, File]
BASE = "base"

# Rows, by the file that first had them, its content and range; and which of them a compacted file holds.
Rows = tuple[tuple[str, int, int, int], ...]
Contents = Mapping[tuple[str, int], Rows]


def rows_of(name: str, file: File, contents: Contents) -> Rows:
    """What a file holds: of others, or what was written into it."""
    return contents.get((name, file.crc), ((name, file.crc, file.start, file.end),))


@dataclass(frozen=True, slots=True)
class Compacted:
    """Files of one table in one: its name for the tests, what it holds, and what the table says of it."""

    name: str
    file: File
    rows: Rows
    told: Rewrite


def compacted(files: Files, into: str, identity: int, contents: Contents) -> Compacted:
    rows = tuple(sorted(row for name, file in files.items() for row in rows_of(name, file, contents)))
    [table] = {name.rpartition("/")[0] for name in files}
    ranges = [(file.start, file.end) for file in files.values()]
    # Unlike any content that is written into a file.
    crc = hashed(repr(rows))
    made = File(crc, min(start for start, _ in ranges), max(end for _, end in ranges), identity)
    told = Rewrite(tuple(segments(_own(files))), tuple(segments({into: made})))
    return Compacted(f"{table}/{into}" if table else into, made, rows, told)


def _own(files: Files) -> dict[str, File]:
    return {name.rpartition("/")[2]: file for name, file in files.items()}


def rows_in(data: Iterable[tuple[str, int]], start: int, end: int, contents: Contents) -> list[object]:
    """The rows of files, by name and content, in `[start, end)`; of files that reach there."""
    found: list[object] = []
    for each in data:
        held = contents.get(each)
        found += [each] if held is None else [row[:2] for row in held if row[2] < end and row[3] >= start]
    return sorted(found, key=repr)


def segments(files: Files) -> list[Segment]:
    return [Segment(name, file.crc, file.start, file.end) for name, file in files.items()]


def overlapping(segments: Iterable[Segment], start: int, end: int) -> list[Segment]:
    """Segments that reach into `[start, end)`. A segment's own end is inclusive."""
    return [segment for segment in segments if segment.start_ms < end and segment.end_ms >= start]


def of_table(files: Files, table: str) -> dict[str, File]:
    """The files of one of several tables by their own names; a further one's are kept as `table/name`."""
    found = {}
    for name, file in files.items():
        of, _, own = name.rpartition("/")
        if (of or BASE) == table:
            found[own] = file
    return found


def source_end(files: Files, now: int) -> int | None:
    ends = (file.end if file.end <= now else file.start for file in files.values())
    return max((end for end in ends if end <= now), default=None)


def see(
    files: Files,
    view: Declaration,
    bucket: int,
    *,
    dimensions: Mapping[str, Fingerprint] | None = None,
    recorded: Iterable[Segment] | None = None,
    waiting_for: str | None = None,
) -> CurrentInputs:
    """What a look sees of a bucket; `recorded` are its contributing segments where the view freezes."""
    if waiting_for is not None:
        return CurrentInputs(None, waiting_for)
    here = overlapping(segments(files), bucket, view.buckets.next(bucket))
    inputs = Inputs(fingerprint(here), view.definition, tuple(sorted((dimensions or {}).items())))
    if recorded is None:
        return CurrentInputs(inputs)
    names = {segment.name for segment in here}
    missing = tuple(sorted(s.name for s in recorded if s.name not in names))
    rest = fingerprint(s for s in recorded if s.name in names)
    return CurrentInputs(inputs, missing=missing, rest_equal=bool(missing) and rest == inputs.base)


def marks_of(
    rows: Mapping[int, PartitionRow], header: Header, current_inputs: Mapping[int, CurrentInputs]
) -> dict[int, Mark]:
    """The marks of one look: every bucket that differs from what its row records."""
    return {
        bucket: Mark("inputs differ", current)
        for bucket, current in current_inputs.items()
        if rules.differs(rows.get(bucket), header, bucket, current)
    }


@dataclass
class BaseTable:
    """The mutable table of a test."""

    files: dict[str, File] = field(default_factory=dict)
    writes: int = 0
    # What the tables tell of: the table, and files that it replaced by others with the same rows.
    rewrites: list[tuple[str, Rewrite]] = field(default_factory=list)
    contents: dict[tuple[str, int], Rows] = field(default_factory=dict)

    def put(self, name: str, crc: int, start: int, end: int) -> None:
        """Write a file, new or in place."""
        self.writes += 1
        self.files[name] = File(crc, start, end, self.writes)

    def day(self, name: str, crc: int, first: int, last: int | None = None) -> None:
        """A file that fills the days `first` to `last`."""
        self.put(name, crc, first * DAY, ((first if last is None else last) + 1) * DAY - 1)

    def compact(self, *names: str) -> None:
        """Put files of one table into one, and have the table say so."""
        self.writes += 1
        files = {name: self.files.pop(name) for name in names}
        made = compacted(files, f"c{self.writes}", self.writes, self.contents)
        self.files[made.name] = made.file
        self.contents[made.name, made.file.crc] = made.rows
        self.rewrites.append((made.name.rpartition("/")[0] or BASE, made.told))

    def remove(self, name: str) -> File:
        return self.files.pop(name)

    def restore(self, name: str, file: File) -> None:
        """Bring the same content back; it is another object all the same."""
        self.writes += 1
        self.files[name] = replace(file, identity=self.writes)

    @property
    def version(self) -> str:
        return str(self.writes) + ",".join(sorted(self.files))


def second_look(
    files: Files,
    attempt: Attempt,
    view: Declaration,
    listed: Files,
    current_inputs: Mapping[int, CurrentInputs] | None = None,
) -> SecondLook:
    """Look again after staging: inputs now, and whether every listed file is still the same object."""
    changed = {}
    for bucket in attempt.buckets:
        for segment in overlapping(segments(listed), bucket, view.buckets.next(bucket)):
            now = files.get(segment.name)
            if now is None or now.identity != listed[segment.name].identity:
                changed[bucket] = segment.name
    return SecondLook(current_inputs or {b: see(files, view, b) for b in attempt.buckets}, changed)


def whole_look(
    files: Files,
    version: str,
    header: Header,
    rows: Mapping[int, PartitionRow],
    current_inputs: Mapping[int, CurrentInputs],
    now: int,
) -> Look:
    """A complete look, ready for the manager."""
    return Look(version, header.version, now, source_end(files, now), marks_of(rows, header, current_inputs))

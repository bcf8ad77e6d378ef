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
from mv_assets.tables.fingerprint import fingerprint

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
    return rules.latest_end(((file.start, file.end) for file in files.values()), now)


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

    def put(self, name: str, crc: int, start: int, end: int) -> None:
        """Write a file, new or in place."""
        self.writes += 1
        self.files[name] = File(crc, start, end, self.writes)

    def day(self, name: str, crc: int, first: int, last: int | None = None) -> None:
        """A file that fills the days `first` to `last`."""
        self.put(name, crc, first * DAY, ((first if last is None else last) + 1) * DAY - 1)

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

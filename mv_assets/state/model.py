"""The values of the partition map. Times are UTC milliseconds; versions and tokens count the map's writes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from enum import StrEnum
from typing import NamedTuple

from mv_assets.buckets import Buckets
from mv_assets.state.errors import Sealed

# Rows and headers are the truth that readers trust, so only the rules (and the store that loads
# what they wrote) may build one: everybody else lacks this object.
_SEAL = object()

# The column of a generation's files that tells which bucket a row belongs to.
BUCKET = "_mv_bucket"
# Among a bucket's inputs, what a table says of its columns, by the table's name behind this.
SCHEMA_OF = "schema of "


class State(StrEnum):
    """Whether a bucket can be trusted.

    VACANT: no row. VALID: computed from what was there at the last look. STALE: known, or said by a person,
    to differ from what is there; it may still have data.
    """

    VACANT = "VACANT"
    VALID = "VALID"
    STALE = "STALE"


class Operation(StrEnum):
    """What changed the map; the words of the event log."""

    DECLARE = "DECLARE"
    EXTEND = "EXTEND"
    TAKE_OVER = "TAKE_OVER"
    ADOPT = "ADOPT"
    LOOK = "LOOK"
    MARK = "MARK"
    FORCE = "FORCE"
    FOLLOW = "FOLLOW"
    FREEZE = "FREEZE"
    THAW = "THAW"
    APPEND = "APPEND"
    OVERWRITE = "OVERWRITE"
    DELETE = "DELETE"
    FAIL = "FAIL"
    REVERT = "REVERT"
    REPOINT = "REPOINT"
    DROP = "DROP"


class Outcome(StrEnum):
    """What became of one bucket of some work."""

    COMMITTED = "committed"
    COMMITTED_STALE = "committed as STALE"
    REPLAY = "replay"
    SUPERSEDED = "superseded"
    SOURCE_CHANGED = "source changed"
    PLANNED_AGAIN = "planned again"
    WAITING = "waiting"
    FROZEN = "frozen"
    REVERTED = "reverted"
    FAILED = "failed"

    @property
    def wrote(self) -> bool:
        return self in (Outcome.COMMITTED, Outcome.COMMITTED_STALE)


class GenerationState(StrEnum):
    """What becomes of a generation.

    STAGED: being written, with a heartbeat. LIVE: a row names it. DEAD: no row does any more, a reader may
    still need it. DOOMED: gc deletes it, and no commit may name it.
    """

    STAGED = "STAGED"
    LIVE = "LIVE"
    DEAD = "DEAD"
    DOOMED = "DOOMED"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """How many segments overlap a bucket and the hash of their names and checksums."""

    segment_count: int
    crc: int


# The hash of no bytes. (0, 0) would be a value that no set of segments can have.
EMPTY = Fingerprint(0, -7286425919675154353)


@dataclass(frozen=True, slots=True)
class Segment:
    """One data file of a base table, as listed. `end_ms` is inclusive."""

    name: str
    crc: int
    start_ms: int
    end_ms: int
    # The further table that it is of, where a view reads several; None: the base.
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a bucket's rows were computed from.

    `base` and `further` are what is in the bucket's window of each table with a time. `dimensions` has the
    fingerprint of each table that is joined whole, and as `schema of T` what a table that tells its columns
    says of them.
    """

    base: Fingerprint
    definition: str
    dimensions: tuple[tuple[str, Fingerprint], ...] = ()
    further: tuple[tuple[str, Fingerprint], ...] = ()

    @property
    def windows(self) -> tuple[Fingerprint, ...]:
        """What is in each window, the base's first."""
        return (self.base, *(found for _, found in self.further))

    @property
    def empty(self) -> bool:
        """Whether no window holds a segment: there is nothing to compute, whatever the SQL."""
        return all(found == EMPTY for found in self.windows)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A view as one deployment declares it; every call to the manager says in whose name it acts."""

    view: str
    definition: str
    width: str
    # None: with the first data, which looks find.
    start: int | None

    @property
    def buckets(self) -> Buckets:
        return Buckets.of(self.width)


@dataclass(frozen=True, slots=True)
class Header:
    """One per view. Every write to the map increments `version`."""

    view: str
    version: int
    watermark: int
    width: str
    start: int
    definition: str
    source_end: int | None
    # Work planned before this version was overtaken by a DROP or a mark of the whole view.
    reset_at: int
    # The end of the bucket in which `source_end` lies, if a look found it to count as complete.
    closed: int | None = None
    seal: InitVar[object] = None

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise Sealed("view header")

    @property
    def buckets(self) -> Buckets:
        return Buckets.of(self.width)


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One per bucket that is not VACANT."""

    bucket: int
    state: State
    token: int
    inputs: Inputs | None = None
    generation: str | None = None
    # Names the content for views on this view: new with each data commit, kept when only the place changes.
    content: int | None = None
    rows: int = 0
    bytes: int = 0
    duration_ms: int = 0
    operation: Operation | None = None
    refreshed_at: int | None = None
    reason: str | None = None
    forced: bool = False
    # Version of the last forced mark, kept after it was served: work planned before it stays out.
    forced_at: int = 0
    frozen: bool = False
    seal: InitVar[object] = None

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise Sealed("partition row")

    @property
    def has_data(self) -> bool:
        """Whether something was committed; no rows at all is data too (VALID-empty)."""
        return self.inputs is not None


@dataclass(frozen=True, slots=True)
class CurrentInputs:
    """What a look saw of one bucket.

    `inputs` is None while an upstream bucket is pending; `waiting_for` then says which. `missing` are
    recorded segment names that are listed no longer, filled in only for views that freeze;
    `rest_equal` says that the bucket's other segments are as recorded.
    """

    inputs: Inputs | None
    waiting_for: str | None = None
    missing: tuple[str, ...] = ()
    rest_equal: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A bucket that no longer matches, why, and what the look saw (None: mark it whatever is there)."""

    reason: str
    current: CurrentInputs | None = None


@dataclass(frozen=True, slots=True)
class Follow:
    """A bucket whose files were replaced by others with the same rows, by the table's own word.

    A row that records `recorded` might as well record `inputs`, and `segments` if other files are among them.
    `matches` if those are what is there now.
    """

    recorded: Inputs
    inputs: Inputs
    segments: tuple[Segment, ...] | None
    why: str
    matches: bool


@dataclass(frozen=True, slots=True)
class Look:
    """One complete listing, compared with the map at `map_version`.

    `recheck_at` is the time from which the same listing would mean something else (a segment that ends
    in the future comes due): an unchanged table then does not mean that nothing is to be done.
    """

    table_version: str
    map_version: int
    at: int
    source_end: int | None
    marks: Mapping[int, Mark] = field(default_factory=dict)
    # Before the marks: a bucket that is marked may have followed as well.
    follows: Mapping[int, Follow] = field(default_factory=dict)
    recheck_at: int | None = None
    # Files that can't be used, each with its reason.
    broken: tuple[str, ...] = ()
    # The first bucket at or above W that has no row, if no row is STALE.
    first_vacant: int | None = None
    # The oldest bucket that could be computed and is not, though no attempt on it failed.
    oldest_waiting: int | None = None
    # The end of the bucket in which the source's end lies, if it counts as complete.
    closed: int | None = None
    # Of several tables, the one whose end that is: W waits for it.
    ends_first: str | None = None
    # When all buckets were compared last, in this look or in those that it goes on from.
    whole_at: int | None = None


@dataclass(frozen=True, slots=True)
class OldestWaiting:
    """A bucket that could be computed and is not, though nothing failed; and since when looks see it."""

    bucket: int
    since: int


@dataclass(frozen=True, slots=True)
class LookRecord:
    """The last completed look at a view's inputs; with a first vacant bucket if no row was STALE after it."""

    table_version: str
    map_version: int
    at: int
    recheck_at: int | None
    broken: tuple[str, ...] = ()
    first_vacant: int | None = None
    oldest_waiting: OldestWaiting | None = None
    ends_first: str | None = None
    whole_at: int | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A bucket of a plan: the token its row had and the inputs it is to be computed from."""

    bucket: int
    token: int | None
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class Attempt:
    """One generation being made for buckets planned on the map's `version`."""

    generation: str
    version: int
    work: tuple[Planned, ...]

    @property
    def buckets(self) -> tuple[int, ...]:
        return tuple(planned.bucket for planned in self.work)


@dataclass(frozen=True, slots=True)
class Staged:
    """What staging made of one bucket."""

    rows: int
    bytes: int
    duration_ms: int
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What is there after staging: a current a bucket, and for buckets whose files changed, which one did."""

    current_inputs: Mapping[int, CurrentInputs]
    changed: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a generation, by its path in the warehouse.

    `buckets` are those that it has rows of, in order; None where that was not noted.
    """

    path: str
    bytes: int
    rows: int
    buckets: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """Immutable files of one attempt. `dead_since` is the version at which the last row left it."""

    id: str
    view: str
    state: GenerationState
    heartbeat_at: int
    dead_since: int | None = None
    files: tuple[DataFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Copied:
    """A bucket's rows in a copy: the generation they were copied from, and the bytes they take now."""

    generation: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Lease:
    """A reader's claim on all that the map names at `version` or later."""

    id: str
    view: str
    version: int
    expires_at: int
    who: str


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """Attempts on a bucket since it last succeeded. It stands beside the map: a VACANT bucket has one too."""

    count: int
    generation: str | None = None
    last_error: str | None = None
    retry_after: int | None = None
    inputs: Inputs | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A line of the log: who did what to which bucket (None: the whole view), at which version, and why."""

    operation: Operation
    bucket: int | None
    before: State | None
    after: State | None
    version: int
    at: int
    who: str
    why: str | None


class Doing(StrEnum):
    """What may not be possible for a view as a whole."""

    LOOK = "look"
    WORK = "work"
    PUBLISH = "publish"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a view from being looked at, computed or published, and since when."""

    doing: Doing
    since: int
    what: str


class StoredRow(NamedTuple):
    """As much of a bucket's row as tells what is stored of it."""

    bucket: int
    # A `State`, by its value.
    state: str
    generation: str | None
    rows: int
    bytes: int
    refreshed_at: int | None
    reason: str | None
    token: int
    # Whether its data is of the header's definition, 0 or 1 in some databases; None without any.
    current: bool | int | None


class StoredRows(NamedTuple):
    """Those of a map in the order of buckets, by column: of very many rows that takes a fraction."""

    bucket: list[int]
    state: list[str]
    generation: list[str | None]
    rows: list[int]
    bytes: list[int]
    refreshed_at: list[int | None]
    reason: list[str | None]
    token: list[int]
    current: list[bool | int | None]

    def row(self, at: int) -> StoredRow:
        return StoredRow(*(column[at] for column in self))  # type: ignore[arg-type]

    def part(self, places: slice) -> StoredRows:
        return StoredRows(*(column[places] for column in self))  # type: ignore[arg-type]

    def with_newer(self, newer: StoredRows) -> StoredRows:
        """All of these, but for those that are newer."""
        found = StoredRows(*map(list, self))  # type: ignore[arg-type]
        for row in zip(*newer, strict=True):
            at = bisect_left(found.bucket, row[0])
            there = found.bucket[at : at + 1] == [row[0]]
            for column, value in zip(found, row, strict=True):
                column[at : at + there] = [value]  # type: ignore[index]
        return found


@dataclass(frozen=True, slots=True)
class Publication:
    """What others see of a view at one target: a table that shows the map as it was at `version`.

    Readers may hold any of its snapshots from `oldest` on, so gc keeps what the map named since then. All
    else is None before the first one is known to be there.
    """

    view: str
    target: str
    oldest: int
    version: int | None = None
    # The map's version up to which nothing changed that the table would show.
    seen: int | None = None
    # The table's name for readers, its snapshot, and where it is.
    table: str | None = None
    snapshot: str | None = None
    location: str | None = None
    # Names all that the table shows.
    digest: str | None = None
    at: int | None = None
    # What somebody else had written into the table, and the last publication replaced.
    replaced: str | None = None
    # Where the target itself does not say since when something is no longer shown: all before this version
    # is not, since that time.
    passed: int | None = None
    passed_at: int | None = None
    # What its snapshots say whose they are: another project may have a view of the same name.
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class MapSummary:
    """As much of a view's map as tells whether anything is to be done, whatever its size."""

    header: Header
    look: LookRecord | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A view's map at one version."""

    header: Header
    rows: Mapping[int, PartitionRow]
    attempts: Mapping[int, AttemptRecord]
    look: LookRecord | None
    troubles: tuple[Trouble, ...] = ()

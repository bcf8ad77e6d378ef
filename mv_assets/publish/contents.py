"""What a published table shows of a map at one version: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from mv_assets.buckets import iso
from mv_assets.publish.errors import Unaccounted
from mv_assets.state.health import OTHER_DEFINITION
from mv_assets.state.model import DataFile, Header, State, StoredRows

# Keys of a snapshot's summary, of a commit, and of a table's properties.
VIEW = "mv-assets.view"
VERSION = "mv-assets.version"
AT = "mv-assets.at"
# Another way to name contents takes another key: tables keep what was said of them.
DIGEST = "mv-assets.digest"
# Whose publication it is: other projects may have a view of the same name.
MARK = "mv-assets.mark"
_TIME = pa.timestamp("us", "UTC")
# So many buckets are in a file of their table; of a version only the parts that changed are written.
_PART = 1_000
BUCKETS = pa.schema(
    [
        pa.field("start", _TIME),
        pa.field("end", _TIME),
        pa.field("state", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("refreshed_at", _TIME),
        pa.field("reason", pa.string()),
    ]
)


@dataclass(frozen=True)
class Contents:
    """A map at one version, as others see it: files that hold exactly its current rows, and its buckets."""

    header: Header
    rows: StoredRows
    files: tuple[DataFile, ...]
    version: int
    # The states that count: data of another definition is STALE without being marked.
    states: Sequence[str]
    # All buckets with a row, so many at a time, by a name that another content does not have.
    parts: Mapping[str, slice]
    # Names all of it but the version: what is equal need not be published again.
    digest: str
    mark: str | None = None

    @property
    def view(self) -> str:
        return self.header.view

    def as_of(self, version: int) -> Contents:
        """The same, as the map had it at another version too."""
        return self if version == self.version else replace(self, version=version)

    def summary(self, at: int) -> dict[str, str]:
        """What a snapshot says of itself."""
        return {
            VIEW: self.header.view,
            VERSION: str(self.version),
            DIGEST: self.digest,
            "mv-assets.watermark": iso(self.header.watermark),
            "mv-assets.definition": self.header.definition,
            "mv-assets.stale": str(self.states.count(State.STALE.value)),
            AT: str(at),
            **({} if self.mark is None else {MARK: self.mark}),
        }

    def buckets(self, part: slice) -> pa.Table:
        """What is said of a part of the buckets."""
        rows, states = self.rows.part(part), self.states[part]
        columns = [
            _times(rows.bucket),
            _times(list(map(self.header.buckets.next, rows.bucket))),
            pa.array(states, pa.string()),
            pa.array(_shown(rows), pa.int64()),
            _times(rows.refreshed_at),
            pa.array(map(_reason, rows.reason, states), pa.string()),
        ]
        return pa.Table.from_arrays(columns, schema=BUCKETS)


def contents(header: Header, rows: StoredRows, files: Sequence[DataFile]) -> Contents:
    """What is to be published of a map whose current rows share no file with others.

    Raises:
        Unaccounted: the files hold other rows than the map says; nobody is shown those.

    """
    shown, held = _shown(rows), sum(file.rows for file in files)
    if held != sum(shown):
        raise Unaccounted(header.view, held, sum(shown))
    states = _states(rows)
    parts = _parts(header, rows, states, shown)
    digest = _named(header.definition, header.watermark, sorted(file.path for file in files), list(parts))
    return Contents(header, rows, tuple(files), header.version, states, parts, digest)


def _parts(header: Header, rows: StoredRows, states: Sequence[str], shown: Sequence[int]) -> dict[str, slice]:
    """Most parts of two versions are the same. Tokens do not tell: a map set back gives them again."""
    told = (rows.bucket, states, shown, rows.refreshed_at, rows.reason)
    slices = [slice(at, at + _PART) for at in range(0, max(1, len(rows.bucket)), _PART)]
    return {_named(header.definition, *(column[at] for column in told)): at for at in slices}


def _states(rows: StoredRows) -> list[str]:
    found = zip(rows.state, rows.current, strict=True)
    return [State.STALE.value if current == 0 else state for state, current in found]


def _named(*told: object) -> str:
    return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()


def _shown(rows: StoredRows) -> list[int]:
    """How many of each bucket's rows are shown: STALE ones are, those of another definition are not."""
    return [number if current else 0 for number, current in zip(rows.rows, rows.current, strict=True)]


def _reason(reason: str | None, state: str) -> str | None:
    return reason or OTHER_DEFINITION if state == State.STALE else None


def _times(milliseconds: Sequence[int | None]) -> pa.Array:
    return pc.multiply(pa.array(milliseconds, pa.int64()), 1_000).cast(_TIME)

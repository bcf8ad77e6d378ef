"""What a published table shows of a map at one version: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
            "mv-assets.stale": str(self._states.count(State.STALE.value)),
            AT: str(at),
            **({} if self.mark is None else {MARK: self.mark}),
        }

    def parts(self) -> dict[str, slice]:
        """All buckets with a row, so many at a time, by a name that another content does not have.

        Most parts of two versions are the same. Tokens don't tell: a map that was set back gives them again.
        """
        rows, definition = self.rows, self.header.definition
        told = (rows.bucket, self._states, _shown(rows), rows.refreshed_at, rows.reason)
        slices = [slice(at, at + _PART) for at in range(0, max(1, len(rows.bucket)), _PART)]
        return {_named(definition, *(column[at] for column in told)): at for at in slices}

    def buckets(self, part: slice) -> pa.Table:
        """What is said of a part of the buckets."""
        rows, states = self.rows.part(part), self._states[part]
        columns = [
            _times(rows.bucket),
            _times(list(map(self.header.buckets.next, rows.bucket))),
            pa.array(states, pa.string()),
            pa.array(_shown(rows), pa.int64()),
            _times(rows.refreshed_at),
            pa.array(map(_reason, rows.reason, states), pa.string()),
        ]
        return pa.Table.from_arrays(columns, schema=BUCKETS)

    @cached_property
    def digest(self) -> str:
        """Names all of it but the version: what is equal need not be published again."""
        header, files = self.header, sorted(file.path for file in self.files)
        return _named(header.definition, header.watermark, files, list(self.parts()))

    @cached_property
    def _states(self) -> list[str]:
        """The states that count: data of another definition is STALE without being marked."""
        found = zip(self.rows.state, self.rows.current, strict=True)
        return [State.STALE.value if current == 0 else state for state, current in found]


def contents(header: Header, rows: StoredRows, files: Sequence[DataFile]) -> Contents:
    """What is to be published of a map whose current rows share no file with others.

    Raises:
        Unaccounted: the files hold other rows than the map says; nobody is shown those.

    """
    held, wanted = sum(file.rows for file in files), sum(_shown(rows))
    if held != wanted:
        raise Unaccounted(header.view, held, wanted)
    return Contents(header, rows, tuple(files), header.version)


def _named(*told: object) -> str:
    return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()


def _shown(rows: StoredRows) -> list[int]:
    """How many of each bucket's rows are shown: STALE ones are, those of another definition are not."""
    return [number if current else 0 for number, current in zip(rows.rows, rows.current, strict=True)]


def _reason(reason: str | None, state: str) -> str | None:
    return reason or OTHER_DEFINITION if state == State.STALE else None


def _times(milliseconds: Sequence[int | None]) -> pa.Array:
    return pc.multiply(pa.array(milliseconds, pa.int64()), 1_000).cast(_TIME)

"""What a published table shows of a map at one version: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mv_assets.buckets import iso
from mv_assets.maintain.compaction import Holding
from mv_assets.publish.errors import Unaccounted
from mv_assets.state.health import OTHER_DEFINITION
from mv_assets.state.model import DataFile, Header, State, StoredRow

# Keys of a snapshot's summary, of a commit, and of a table's properties.
VIEW = "mv-assets.view"
VERSION = "mv-assets.version"
AT = "mv-assets.at"
_TIME = pa.timestamp("us", "UTC")
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


@dataclass(frozen=True, slots=True)
class Contents:
    """A map at one version, as others see it: files that hold exactly its current rows, and its buckets."""

    header: Header
    rows: Sequence[StoredRow]
    files: tuple[DataFile, ...]

    @property
    def view(self) -> str:
        return self.header.view

    @property
    def version(self) -> int:
        return self.header.version

    def summary(self, at: int) -> dict[str, str]:
        """What a snapshot says of itself."""
        stale = sum(self._state(row) is State.STALE for row in self.rows)
        return {
            VIEW: self.header.view,
            VERSION: str(self.header.version),
            "mv-assets.watermark": iso(self.header.watermark),
            "mv-assets.definition": self.header.definition,
            "mv-assets.stale": str(stale),
            AT: str(at),
        }

    def buckets(self) -> pa.Table:
        """Every bucket with a row in the map."""
        following = self.header.buckets.next
        columns = [
            _times([row.bucket for row in self.rows]),
            _times([following(row.bucket) for row in self.rows]),
            pa.array([self._state(row).value for row in self.rows], pa.string()),
            pa.array([shown(row, self.header) for row in self.rows], pa.int64()),
            _times([row.refreshed_at for row in self.rows]),
            pa.array([self._reason(row) for row in self.rows], pa.string()),
        ]
        return pa.Table.from_arrays(columns, schema=BUCKETS)

    def digest(self) -> str:
        """Names all of it but the version: what is equal need not be published again."""
        rows = [(row.bucket, row.state, row.rows, row.refreshed_at, self._reason(row)) for row in self.rows]
        header, files = self.header, sorted(file.path for file in self.files)
        told = (header.definition, header.watermark, files, rows)
        return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()

    def _state(self, row: StoredRow) -> State:
        """The state that counts: data of another definition is STALE without being marked."""
        return row.state if row.definition in (None, self.header.definition) else State.STALE

    def _reason(self, row: StoredRow) -> str | None:
        return row.reason or OTHER_DEFINITION if self._state(row) is State.STALE else None


def contents(header: Header, rows: Sequence[StoredRow], holdings: Iterable[Holding]) -> Contents:
    """What is to be published of a map whose current rows share no file with others.

    Raises:
        Unaccounted: the files hold other rows than the map says; nobody is shown those.

    """
    files = tuple(file for holding in holdings for file in holding.whole_files())
    held, wanted = sum(file.rows for file in files), sum(shown(row, header) for row in rows)
    if held != wanted:
        raise Unaccounted(header.view, held, wanted)
    return Contents(header, rows, files)


def is_current(row: StoredRow, header: Header) -> bool:
    """Whether a bucket's rows are shown: STALE ones are, those of another definition are not."""
    return row.definition == header.definition


def shown(row: StoredRow, header: Header) -> int:
    return row.rows if is_current(row, header) else 0


def _times(milliseconds: Sequence[int | None]) -> pa.Array:
    return pc.multiply(pa.array(milliseconds, pa.int64()), 1_000).cast(_TIME)

"""What a published table shows of a map at one version: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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


@dataclass(frozen=True)
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
        return {
            VIEW: self.header.view,
            VERSION: str(self.header.version),
            "mv-assets.watermark": iso(self.header.watermark),
            "mv-assets.definition": self.header.definition,
            "mv-assets.stale": str(self._columns["state"].count(State.STALE.value)),
            AT: str(at),
        }

    def buckets(self) -> pa.Table:
        """Every bucket with a row in the map."""
        columns = [
            _times(values)
            if BUCKETS.field(name).type == _TIME
            else pa.array(values, BUCKETS.field(name).type)
            for name, values in self._columns.items()
        ]
        return pa.Table.from_arrays(columns, schema=BUCKETS)

    def digest(self) -> str:
        """Names all of it but the version: what is equal need not be published again."""
        header, files = self.header, sorted(file.path for file in self.files)
        told = (header.definition, header.watermark, files, self._columns)
        return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()

    @cached_property
    def _columns(self) -> dict[str, list[Any]]:
        """What is said of the buckets: made once, as there may be very many of them."""
        rows, following = self.rows, self.header.buckets.next
        # The state that counts: data of another definition is STALE without being marked.
        usual = (None, self.header.definition)
        states = [row.state if row.definition in usual else State.STALE for row in rows]
        starts = [row.bucket for row in rows]
        return {
            "start": starts,
            "end": [following(start) for start in starts],
            "state": [state.value for state in states],
            "rows": [shown(row, self.header) for row in rows],
            "refreshed_at": [row.refreshed_at for row in rows],
            "reason": [
                row.reason or OTHER_DEFINITION if state is State.STALE else None
                for row, state in zip(rows, states, strict=True)
            ],
        }


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

"""What a published table shows of a map at one version: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from mv_assets.buckets import iso
from mv_assets.maintain.compaction import Holding
from mv_assets.publish.errors import Unaccounted
from mv_assets.state import health, rules
from mv_assets.state.model import DataFile, PartitionRow, Snapshot, State

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

    snapshot: Snapshot
    files: tuple[DataFile, ...]

    @property
    def view(self) -> str:
        return self.snapshot.header.view

    @property
    def version(self) -> int:
        return self.snapshot.header.version

    def summary(self, at: int) -> dict[str, str]:
        """What a snapshot says of itself."""
        header = self.snapshot.header
        return {
            VIEW: header.view,
            VERSION: str(header.version),
            "mv-assets.watermark": iso(header.watermark),
            "mv-assets.definition": header.definition,
            "mv-assets.stale": str(health.counts(self.snapshot)[State.STALE]),
            AT: str(at),
        }

    def buckets(self) -> pa.Table:
        """Every bucket with a row in the map."""
        header = self.snapshot.header
        rows = [self.snapshot.rows[bucket] for bucket in sorted(self.snapshot.rows)]
        states = [rules.effective_state(row, header) for row in rows]
        columns = [
            _times(row.bucket for row in rows),
            _times(header.buckets.next(row.bucket) for row in rows),
            pa.array([state.value for state in states], pa.string()),
            pa.array([_published(row, self.snapshot) for row in rows], pa.int64()),
            _times(row.refreshed_at for row in rows),
            pa.array(
                [
                    health.stale_reason(r) if s is State.STALE else None
                    for r, s in zip(rows, states, strict=True)
                ],
                pa.string(),
            ),
        ]
        return pa.Table.from_arrays(columns, schema=BUCKETS)

    def digest(self) -> str:
        """Names all of it but the version: what is equal need not be published again."""
        header = self.snapshot.header
        rows = [
            (
                r.bucket,
                rules.effective_state(r, header),
                _published(r, self.snapshot),
                r.refreshed_at,
                r.reason,
            )
            for r in self.snapshot.rows.values()
        ]
        shown = (header.definition, header.watermark, sorted(file.path for file in self.files), sorted(rows))
        return hashlib.blake2b(repr(shown).encode(), digest_size=16).hexdigest()


def contents(snapshot: Snapshot, holdings: Iterable[Holding]) -> Contents | None:
    """What is to be published of a map; None while files hold current rows beside others.

    The holdings are those of its rows with current data.

    Raises:
        Unaccounted: the files hold other rows than the map says; nobody is shown those.

    """
    found = list(holdings)
    if any(holding.mixed().files for holding in found):
        return None
    files = tuple(file for holding in found for file in holding.whole_files())
    wanted = sum(_published(row, snapshot) for row in snapshot.rows.values())
    held = sum(file.rows for file in files)
    if held != wanted:
        raise Unaccounted(snapshot.header.view, held, wanted)
    return Contents(snapshot, files)


def _published(row: PartitionRow, snapshot: Snapshot) -> int:
    return row.rows if rules.has_current_data(row, snapshot.header) else 0


def _times(milliseconds: Iterable[int | None]) -> pa.Array:
    return pa.array([None if each is None else each * 1_000 for each in milliseconds], pa.int64()).cast(_TIME)

"""The snapshots of a published table: which are ours, and which can still be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from mv_assets.publish.contents import AT, VERSION, VIEW


class Known(NamedTuple):
    """A snapshot, the map's version that it shows, and when it came; of somebody else's, that before it."""

    snapshot: Snapshot
    version: int | None
    at: int
    own: bool


def known(metadata: TableMetadata, view: str) -> list[Known]:
    """All snapshots of a table that can be read, in the order in which they came."""
    found, version = list[Known](), None
    versions: dict[int, int | None] = {}
    for snapshot in sorted(metadata.snapshots, key=lambda each: each.sequence_number or 0):
        shown = version_of(snapshot, view)
        if shown is None and snapshot.parent_snapshot_id in versions:
            # Written on top of an older one, as on a branch.
            version = versions[snapshot.parent_snapshot_id]
        version = versions[snapshot.snapshot_id] = version if shown is None else shown
        at = snapshot.timestamp_ms if shown is None else int(said(snapshot, AT) or snapshot.timestamp_ms)
        found.append(Known(snapshot, version, at, shown is not None))
    return found


def version_of(snapshot: Snapshot, view: str) -> int | None:
    """The map's version that a snapshot of ours shows; None of somebody else's."""
    version = said(snapshot, VERSION)
    return int(version) if said(snapshot, VIEW) == view and version is not None else None


def said(snapshot: Snapshot, key: str) -> str | None:
    return None if snapshot.summary is None else snapshot.summary.get(key)


def expired(snapshots: Sequence[Known], now: int, keep: int, kept: Iterable[int]) -> Iterator[Known]:
    """Snapshots in whose place another one came longer ago than they are kept; never the last of ours.

    What a branch or a tag of somebody's names is `kept`, and what somebody else's was written on top of.
    """
    stay, last = set(kept), next((each for each in reversed(snapshots) if each.own), None)
    # By a clock that was ahead one may have come after the next: it came before it.
    came = [*accumulate((each.at for each in reversed(snapshots)), min)][::-1]
    over = [
        each
        for each, replaced in zip(snapshots, came[1:], strict=False)
        if replaced < now - keep and each.snapshot.snapshot_id not in stay and each is not last
    ]
    gone = {each.snapshot.snapshot_id for each in over}
    for each in reversed(snapshots):
        if not each.own and each.snapshot.snapshot_id not in gone:
            gone.discard(each.snapshot.parent_snapshot_id or 0)
    return (each for each in over if each.snapshot.snapshot_id in gone)

"""The snapshots of a published table: which are ours, and which can still be read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from mv_assets.publish.contents import AT, VERSION, VIEW

# What can't be read rightly any more since a snapshot, though who holds it may: in the summary of that one.
FORGOTTEN = "mv-assets.forgotten"


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


class Forgotten(NamedTuple):
    """Snapshots that nobody finds any more: the oldest version among them, and where their manifests are."""

    oldest: int
    lists: tuple[str, ...]

    def said(self) -> dict[str, str]:
        return {FORGOTTEN: json.dumps([self.oldest, self.lists])}


def forgotten(each: Known) -> Forgotten | None:
    """What went when a snapshot of ours came."""
    with suppress(ValueError, TypeError):
        oldest, lists = json.loads(said(each.snapshot, FORGOTTEN) or "null")
        return Forgotten(int(oldest), tuple(map(str, lists)))
    return None


def forgotten_with(gone: Sequence[Known]) -> Forgotten | None:
    """What is to be said of snapshots that go before their time; what went with them before, too."""
    before = [found for each in gone if (found := forgotten(each)) is not None]
    versions = [each.version for each in gone if each.version is not None]
    lists = [path for each in before for path in each.lists] + [each.snapshot.manifest_list for each in gone]
    oldest = [each.oldest for each in before] + versions
    return Forgotten(min(oldest), tuple(lists)) if oldest else None


def remains(each: Known) -> list[Known]:
    """The snapshots that went when one of ours came, as far as their files are concerned."""
    found = forgotten(each)
    number = (each.snapshot.sequence_number or 1) - 1
    return [
        Known(
            Snapshot.model_validate(
                {"snapshot-id": 0, "sequence-number": number, "timestamp-ms": each.at, "manifest-list": path}
            ),
            None,
            each.at,
            own=True,
        )
        for path in (() if found is None else found.lists)
    ]


def expired(snapshots: Sequence[Known], now: int, keep: int, kept: Iterable[int]) -> Iterator[Known]:
    """Snapshots in whose place another one came longer ago than they are kept; never the last of ours.

    What a branch or a tag of somebody's names is `kept`, and what somebody else's was written on top of.
    """
    stay, last = set(kept), next((each for each in reversed(snapshots) if each.own), None)
    over = [
        each
        for each, replaced in zip(snapshots, _replaced(snapshots, now), strict=True)
        if replaced is not None
        and replaced < now - keep
        and each.snapshot.snapshot_id not in stay
        and each is not last
    ]
    gone = {each.snapshot.snapshot_id for each in over}
    for each in reversed(snapshots):
        if not each.own and each.snapshot.snapshot_id not in gone:
            gone.discard(each.snapshot.parent_snapshot_id or 0)
    return (each for each in over if each.snapshot.snapshot_id in gone)


def _replaced(snapshots: Sequence[Known], now: int) -> list[int | None]:
    """When each had another in its place. One of a time to come, by a clock that was ahead, says nothing."""
    found, following = list[int | None](), None
    for each in reversed(snapshots):
        found.append(following)
        following = each.at if each.at <= now else following
    return found[::-1]

"""Files of an Iceberg table that were replaced by others with the same rows, by the table's own word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mv_assets.state.model import Segment
from mv_assets.tables.iceberg.blocks import Meaning
from mv_assets.tables.iceberg.deletes import Deletes
from mv_assets.tables.iceberg.entries import ADDED, DELETED, Entry, Manifest
from mv_assets.tables.iceberg.remembered import Metadata
from mv_assets.tables.listing import Rewrite
from mv_assets.tables.recent import Recent

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

# So many are told of, and of so many files at most: who looks now and then needs the last ones only.
_MOST = 20
_MOST_FILES = 100_000

_File = tuple[Manifest, Entry]

_recent: Recent[tuple[Rewrite | None, int, frozenset[str]]] = Recent(2 * _MOST_FILES)


def rewrites(files: Metadata, meaning: Meaning) -> tuple[Rewrite, ...]:
    """What snapshots on the way to the current one only rewrote, the newest last."""
    found: list[Rewrite] = []
    left = _MOST_FILES
    for before, after in _replacements(meaning.metadata):
        try:
            rewrite, size, used = _remembered(files, meaning, before, after, left)
        except (OSError, ValueError, KeyError):
            # That an older snapshot can't be read is no reason not to look: its files count as changed.
            break
        files.used |= used
        left -= size
        if left < 0:
            break
        if rewrite is not None:
            found.append(rewrite)
    return tuple(reversed(found))


def _replacements(metadata: TableMetadata) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Snapshots that by their own word only replaced files, each with its parent; the newest first."""
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    after, count = known.get(metadata.current_snapshot_id or -1), 0
    for _ in known:
        before = None if after is None else known.get(after.parent_snapshot_id or -1)
        if after is None or before is None or count == _MOST:
            return
        if _only_replaces(before, after):
            count += 1
            yield before, after
        after = before


def _only_replaces(before: Snapshot, after: Snapshot) -> bool:
    if after.summary is None or after.summary.operation.value != "replace":
        return False
    said = [each.summary.additional_properties if each.summary else {} for each in (before, after)]
    if any(int(each.get("total-delete-files", 0)) for each in said):
        # Records that delete files deleted are counted until they are rewritten.
        return True
    total = [each.get("total-records") for each in said]
    return None in total or total[0] == total[1]


def _remembered(
    files: Metadata, meaning: Meaning, before: Snapshot, after: Snapshot, most: int
) -> tuple[Rewrite | None, int, frozenset[str]]:
    """A rewrite, if it is one, how many files it is of, and all that was read for it."""
    place = (before.manifest_list, after.manifest_list, meaning.text)
    known = _recent.get(place)
    if known is None:
        asked = files.aside()
        rewrite, size = _rewrite(asked, meaning, before, after, most)
        known = rewrite, size, frozenset(asked.used)
        files.fresh |= asked.fresh
        _recent.put(place, known, size + 1)
    return known


def _rewrite(
    files: Metadata, meaning: Meaning, before: Snapshot, after: Snapshot, most: int
) -> tuple[Rewrite | None, int]:
    then, now = files.manifests(before.manifest_list), files.manifests(after.manifest_list)
    own = [each for each in now if each.snapshot == after.snapshot_id and not each.deletes]
    size = sum(sum(each.counts or [most + 1]) for each in own)
    if size > most:
        return None, size
    changed = [
        (manifest, entry)
        for manifest, entries in files.entries(own)
        for entry in entries
        if entry.snapshot == after.snapshot_id
    ]
    gone, come = _with(changed, DELETED), _with(changed, ADDED)
    old, new = (meaning.deletes(files.entries([m for m in each if m.deletes])) for each in (then, now))
    if not gone or not _as_many(gone, come, deletes=bool(old)):
        return None, size
    try:
        return Rewrite(_segments(meaning, gone, old), _segments(meaning, come, new)), size
    except LookupError:
        return None, size


def _with(changed: list[_File], status: int) -> list[_File]:
    return [(manifest, entry) for manifest, entry in changed if entry.status == status]


def _as_many(gone: list[_File], come: list[_File], *, deletes: bool) -> bool:
    """Whether there are as many rows as before or, if some were deleted, no more."""
    rows = [sum(entry.rows for _, entry in each) for each in (gone, come)]
    return rows[1] <= rows[0] if deletes else rows[0] == rows[1]


def _segments(meaning: Meaning, files: list[_File], deletes: Deletes) -> tuple[Segment, ...]:
    found = (meaning.segment(entry, (each.spec, entry.partition), deletes) for each, entry in files)
    return tuple(segment for segment in found if segment is not None)

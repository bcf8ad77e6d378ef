"""Buckets to which files only came: their stored rows and those files are enough to compute them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mv_assets.observe.inputs import BucketInputs
from mv_assets.state import rules
from mv_assets.state.model import PartitionRow, Segment, Snapshot, State
from mv_assets.tables.listing import Listing

# The bytes that a job must spare to be worth merging: it reads stored rows too, and groups twice.
WORTH = 16 << 20


@dataclass(frozen=True, slots=True)
class Addition:
    """The files that came since a bucket was computed, by their places in the listing.

    `stored` are the bytes that are read in place of the files it was computed from.
    """

    added: tuple[int, ...]
    stored: int


def candidates(snapshot: Snapshot, seen: Mapping[int, BucketInputs], base: Listing) -> list[int]:
    """The stale buckets that nobody distrusts and that differ in nothing but that they have more files.

    None at all if even together they could not spare enough: what they were computed from need not be loaded.
    """
    found = [
        bucket
        for bucket in seen
        if (row := snapshot.rows.get(bucket)) is not None
        and rules.effective_state(row, snapshot.header) is State.STALE
        and not (row.forced or row.frozen or row.generation is None)
        and _grew(row, seen[bucket])
    ]
    read = {bucket: sum(base.sizes[at] for at in seen[bucket].reached[0]) for bucket in found}
    most = sum(max(read[bucket] - snapshot.rows[bucket].bytes, 0) for bucket in found)
    return found if most >= WORTH else []


def _grew(row: PartitionRow, seen: BucketInputs) -> bool:
    recorded, now = row.inputs, seen.current.inputs
    return (
        recorded is not None
        and now is not None
        and (recorded.definition, recorded.dimensions) == (now.definition, now.dimensions)
        and recorded.base.segment_count < now.base.segment_count
    )


def addition(
    row: PartitionRow, seen: BucketInputs, recorded: Sequence[Segment], base: Listing
) -> Addition | None:
    """What came to a bucket; None if something went or changed, or if merging would read more."""
    before = {segment.name: segment.crc for segment in recorded}
    [members] = seen.reached
    added = tuple(at for at in members if base.names[at] not in before)
    kept = tuple(at for at in members if base.names[at] in before)
    if not added or len(kept) < len(before) or any(base.crcs[at] != before[base.names[at]] for at in kept):
        return None
    spares = row.bytes < sum(base.sizes[at] for at in kept)
    return Addition(added, row.bytes) if spares else None


@dataclass(frozen=True, slots=True)
class _Group:
    buckets: list[int]
    adds: set[str]
    has: set[str]


def together(added: Mapping[int, frozenset[str]], files: Mapping[int, frozenset[str]]) -> list[list[int]]:
    """Buckets that one job may merge: none of them has already counted a file that another one adds."""
    groups: list[_Group] = []
    for bucket, adds in added.items():
        has = files[bucket] - adds
        group = next((each for each in groups if not (adds & each.has or has & each.adds)), None)
        if group is None:
            group = _Group([], set(), set())
            groups.append(group)
        group.buckets.append(bucket)
        group.adds.update(adds)
        group.has.update(has)
    return [group.buckets for group in groups]

"""A view as the base table of another: every row of its map is a segment."""

from __future__ import annotations

from collections.abc import Iterator

from mv_assets.state import rules
from mv_assets.state.model import Header, Segment, Snapshot, State
from mv_assets.tables.listing import ALWAYS, Listing, Pending


def listing_of(snapshot: Snapshot, at: int) -> Listing:
    """The map of a view as a listing. Its rows that can't be trusted are pending, vacant buckets too."""
    header = snapshot.header
    listing = Listing(header.view, version_of(header), at, complete_through=header.watermark - 1)
    for bucket, row in sorted(snapshot.rows.items()):
        if row.content is not None and rules.effective_state(row, header) is State.VALID:
            end = header.buckets.next(bucket) - 1
            segment = Segment(header.buckets.key(bucket), row.content, bucket, end)
            listing.add(segment, size=row.bytes)
    listing.pending = tuple(_pending(snapshot))
    return listing


def version_of(header: Header) -> str:
    return str(header.version)


def _pending(snapshot: Snapshot) -> Iterator[Pending]:
    """Stretches of coverage between the buckets that are VALID, the last one without an end."""
    header = snapshot.header
    cursor = header.start
    for bucket, row in sorted(snapshot.rows.items()):
        if rules.effective_state(row, header) is State.VALID and row.content is not None:
            if bucket > cursor:
                yield Pending(cursor, bucket, _waits_for(snapshot, cursor))
            cursor = header.buckets.next(bucket)
    yield Pending(cursor, ALWAYS[1], _waits_for(snapshot, cursor))


def _waits_for(snapshot: Snapshot, bucket: int) -> str:
    header = snapshot.header
    state = rules.effective_state(snapshot.rows.get(bucket), header)
    return f"{header.view} {header.buckets.key(bucket)}, which is {state}"

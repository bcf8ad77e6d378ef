"""A view as the base table of another: every row of its map is a segment."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from mv_assets.state import health, rules
from mv_assets.state.model import Header, Segment, Snapshot, State
from mv_assets.tables.listing import ALWAYS, Listing, Pending


def listing_of(snapshot: Snapshot, at: int, fit: Container[int] | None = None) -> Listing:
    """The map of a view as a listing. Its rows that can't be trusted are pending, vacant buckets too.

    With `fit`, only those among them are trusted.
    """
    header = snapshot.header
    listing = Listing(header.view, version_of(header), at, complete_through=header.watermark - 1)
    listing.ends_there = fit is None and _has_all(snapshot)
    trusted = {
        bucket: row.content
        for bucket, row in sorted(snapshot.rows.items())
        if row.content is not None
        and rules.effective_state(row, header) is State.VALID
        and (fit is None or bucket in fit)
    }
    for bucket, content in trusted.items():
        end = header.buckets.next(bucket) - 1
        listing.add(
            Segment(header.buckets.key(bucket), content, bucket, end), size=snapshot.rows[bucket].bytes
        )
    listing.pending = tuple(_pending(snapshot, trusted))
    return listing


def _has_all(snapshot: Snapshot) -> bool:
    """Whether the view has all that its own source holds: behind W is no row, and nothing to compute."""
    header, latest = snapshot.header, rules.cap(snapshot.header)
    if latest is None or latest > header.watermark or health.broken(snapshot):
        return False
    return max(snapshot.rows, default=header.start) < header.watermark


def version_of(header: Header) -> str:
    return str(header.version)


def _pending(snapshot: Snapshot, trusted: Iterable[int]) -> Iterator[Pending]:
    """Stretches of coverage between the buckets that can be trusted, the last one without an end."""
    header = snapshot.header
    cursor = header.start
    for bucket in trusted:
        if bucket > cursor:
            yield Pending(cursor, bucket, _waits_for(snapshot, cursor))
        cursor = header.buckets.next(bucket)
    yield Pending(cursor, ALWAYS[1], _waits_for(snapshot, cursor))


def _waits_for(snapshot: Snapshot, bucket: int) -> str:
    header = snapshot.header
    state = rules.effective_state(snapshot.rows.get(bucket), header)
    return f"{header.view} {header.buckets.key(bucket)}, which is {state}"

"""A view as the base table of another: every row of its map is a segment."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import groupby

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
    """Coverage but for the buckets that can be trusted: others with a row, and what lies between all."""
    header, held = snapshot.header, frozenset(trusted)
    if header.source_end is None and not snapshot.rows:
        # Nor is it known where it will begin: a view may start with its data.
        yield Pending(*ALWAYS, f"{header.view}, of whose data nothing is known yet", vacant=True)
        return
    cursor = header.start
    for run in header.buckets.stretches(bucket for bucket in snapshot.rows if bucket >= cursor):
        if run[0] > cursor:
            yield Pending(cursor, run[0], _waits_for(snapshot, cursor), vacant=True)
        for is_held, part in groupby(run, key=held.__contains__):
            some = list(part)
            cursor = header.buckets.next(some[-1])
            if not is_held:
                yield Pending(some[0], cursor, _waits_for(snapshot, some[0]))
    yield Pending(cursor, ALWAYS[1], _waits_for(snapshot, cursor), vacant=True)


def _waits_for(snapshot: Snapshot, bucket: int) -> str:
    header = snapshot.header
    state = rules.effective_state(snapshot.rows.get(bucket), header)
    return f"{header.view} {header.buckets.key(bucket)}, which is {state}"

"""A view as the base table of another: every row of its map is a segment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mv_assets.state import health, rules
from mv_assets.state.model import Header, PartitionRow, Segment, Snapshot, State
from mv_assets.tables.listing import ALWAYS, Listing, Pending
from mv_assets.tables.parts import pieces

# Of more rows that changed the listing is made anew: each that comes or goes moves all behind it.
_MOST_MOVED = 1_000
_COLUMNS = ("names", "crcs", "starts", "ends", "sizes", "changed", "identities")


@dataclass(frozen=True, slots=True)
class Known:
    """A listing, the map it was made from, and the buckets with a row that it does not have, in order."""

    snapshot: Snapshot
    listing: Listing
    others: Sequence[int]


def listing_of(snapshot: Snapshot, at: int, fit: Container[int] | None = None) -> Listing:
    """The map of a view as a listing. Its rows that can't be trusted are pending, vacant buckets too.

    With `fit`, only those among them are trusted.
    """
    listing, others = _whole(snapshot, at, fit)
    listing.ends_there = fit is None and _has_all(snapshot)
    listing.pending = tuple(_pending(snapshot, listing, others))
    return listing


def following(last: Known | None, snapshot: Snapshot, at: int) -> Known:
    """The map of a view as a listing that knows how it differs from the last one, of which it is made."""
    listing, others = (None if last is None else _patched(last, snapshot, at)) or _whole(snapshot, at)
    listing.ends_there = _has_all(snapshot)
    listing.pending = tuple(_pending(snapshot, listing, others))
    return Known(snapshot, listing, others)


def version_of(header: Header) -> str:
    return str(header.version)


def _new(snapshot: Snapshot, at: int) -> Listing:
    header = snapshot.header
    return Listing(header.view, version_of(header), at, complete_through=header.watermark - 1)


def _whole(snapshot: Snapshot, at: int, fit: Container[int] | None = None) -> tuple[Listing, list[int]]:
    """The rows that can be trusted, and the buckets of all others; in order."""
    listing, header, others = _new(snapshot, at), snapshot.header, list[int]()
    for bucket, row in sorted(snapshot.rows.items()):
        segment = _segment(header, row)
        if segment is None or (fit is not None and bucket not in fit):
            others.append(bucket)
        else:
            listing.add(segment, size=row.bytes)
    return listing, others


def _patched(last: Known, snapshot: Snapshot, at: int) -> tuple[Listing, list[int]] | None:
    """The last listing, but for the rows that changed; None if these are many, or not known."""
    moved = _moved(last.snapshot, snapshot)
    if moved is None or len(moved) > _MOST_MOVED:
        return None
    listing, header, others = _new(snapshot, at), snapshot.header, {*last.others}
    for column in _COLUMNS:
        setattr(listing, column, getattr(last.listing, column)[:])
    changed: list[Segment] = []
    for bucket in moved:
        place, row = bisect_left(listing.starts, bucket), snapshot.rows[bucket]
        if place < len(listing) and listing.starts[place] == bucket:
            changed.append(listing.segment(place))
            for column in _COLUMNS:
                del getattr(listing, column)[place]
        segment = _segment(header, row)
        if segment is None:
            others.add(bucket)
        else:
            others.discard(bucket)
            changed.append(segment)
            values = (segment.name, segment.crc, segment.start_ms, segment.end_ms, row.bytes, 0, 0)
            for column, value in zip(_COLUMNS, values, strict=True):
                getattr(listing, column).insert(place, value)
    listing.history = last.listing.history.then(changed)
    return listing, sorted(others)


def _moved(before: Snapshot, now: Snapshot) -> list[int] | None:
    """Rows that came or changed, which are other objects then; None if some are gone, or count otherwise."""
    then = before.rows
    if before.header.definition != now.header.definition or before.header.width != now.header.width:
        return None
    if now.rows is then:
        return []
    moved = [bucket for bucket, row in now.rows.items() if then.get(bucket) is not row]
    new = sum(bucket not in then for bucket in moved)
    return moved if len(now.rows) - new == len(then) else None


def _segment(header: Header, row: PartitionRow) -> Segment | None:
    """A row that can be trusted."""
    if row.content is None or rules.effective_state(row, header) is not State.VALID:
        return None
    return Segment(
        header.buckets.key(row.bucket), row.content, row.bucket, header.buckets.next(row.bucket) - 1
    )


def _has_all(snapshot: Snapshot) -> bool:
    """Whether the view has all that its own source holds: behind W is no row, and nothing to compute."""
    header, latest = snapshot.header, rules.cap(snapshot.header)
    if latest is None or latest > header.watermark or health.broken(snapshot):
        return False
    return max(snapshot.rows, default=header.start) < header.watermark


def _pending(snapshot: Snapshot, listing: Listing, others: Sequence[int]) -> Iterator[Pending]:
    """Coverage but for the buckets that can be trusted: others with a row, and what lies between all."""
    header = snapshot.header
    if header.source_end is None and not snapshot.rows:
        # Nor is it known where it will begin: a view may start with its data.
        yield Pending(*ALWAYS, f"{header.view}, of whose data nothing is known yet", vacant=True)
        return
    for begin, end in _gaps(header.start, listing):
        first, last = bisect_left(others, begin), bisect_left(others, end)
        yield from _between(snapshot, begin, end, others[first:last])


def _gaps(start: int, listing: Listing) -> Iterator[tuple[int, int]]:
    """The stretches from `start` on that no segment holds, the last one without an end."""
    if not listing.starts:
        yield start, ALWAYS[1]
        return
    starts, ends = (np.concatenate(pieces(column)) for column in (listing.starts, listing.ends))
    if starts[0] > start:
        yield start, int(starts[0])
    for at in np.flatnonzero(starts[1:] != ends[:-1] + 1).tolist():
        yield int(ends[at]) + 1, int(starts[at + 1])
    yield int(ends[-1]) + 1, ALWAYS[1]


def _between(snapshot: Snapshot, begin: int, end: int, others: Sequence[int]) -> Iterator[Pending]:
    """A stretch without trusted rows: neighbours among others are one, and so is what lies between them."""
    cursor = begin
    for run in snapshot.header.buckets.stretches(others):
        if run[0] > cursor:
            yield Pending(cursor, run[0], _waits_for(snapshot, cursor), vacant=True)
        cursor = snapshot.header.buckets.next(run[-1])
        yield Pending(run[0], cursor, _waits_for(snapshot, run[0]))
    if cursor < end:
        yield Pending(cursor, end, _waits_for(snapshot, cursor), vacant=True)


def _waits_for(snapshot: Snapshot, bucket: int) -> str:
    header = snapshot.header
    state = rules.effective_state(snapshot.rows.get(bucket), header)
    return f"{header.view} {header.buckets.key(bucket)}, which is {state}"

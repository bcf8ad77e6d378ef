"""Which segments reach into which buckets: one sweep over time, not buckets times segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mv_assets.buckets import Buckets
from mv_assets.state.model import Fingerprint
from mv_assets.state.rules import latest_end
from mv_assets.tables.fingerprint import fingerprint_of
from mv_assets.tables.listing import Listing


@dataclass(frozen=True, slots=True)
class Reach:
    """A bucket, the segments (their places in the listing) that reach into it, and their fingerprint."""

    bucket: int
    members: tuple[int, ...]
    fingerprint: Fingerprint


def sweep(
    listing: Listing, buckets: Buckets, first: int, end: int, before: int = 0, after: int = 0
) -> Iterator[Reach]:
    """The buckets that overlap `[first, end)`, in order; a bucket's window may be wider than itself.

    Neighbours with the same segments share one fingerprint, so a file that spans ten thousand empty
    buckets is hashed once.
    """
    starts, ends = listing.starts, listing.ends
    order = sorted(range(len(listing)), key=starts.__getitem__)
    following, soonest_end = 0, None
    members: list[int] = []
    seen: tuple[tuple[int, ...], Fingerprint] | None = None
    for bucket in buckets.between(first, end):
        begin, stop = buckets.window(bucket, before, after)
        if soonest_end is not None and soonest_end < begin:
            members = [at for at in members if ends[at] >= begin]
            seen, soonest_end = None, min((ends[at] for at in members), default=None)
        while following < len(order) and starts[order[following]] < stop:
            at = order[following]
            following += 1
            if ends[at] >= begin:
                members.append(at)
                seen = None
                soonest_end = ends[at] if soonest_end is None else min(soonest_end, ends[at])
        if seen is None:
            named = ((listing.names[at], listing.crcs[at]) for at in members)
            seen = tuple(members), fingerprint_of(named)
        yield Reach(bucket, *seen)


def source_end(listing: Listing, now: int) -> int | None:
    """How far the table's data is known to reach."""
    if listing.complete_through is not None:
        return listing.complete_through
    return latest_end(zip(listing.starts, listing.ends, strict=True), now)


def next_end(listing: Listing, now: int) -> int | None:
    """When a segment that lies in the future begins or ends; the same listing means more from then on."""
    ranges = zip(listing.starts, listing.ends, strict=True)
    return min((start if start > now else end for start, end in ranges if end > now), default=None)

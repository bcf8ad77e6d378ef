"""Which segments reach into which buckets: one sweep over time, not buckets times segments."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mv_assets.buckets import Buckets
from mv_assets.state.model import Fingerprint
from mv_assets.tables.fingerprint import fingerprint_of
from mv_assets.tables.listing import Listing
from mv_assets.tables.parts import Numbers, pieces, some


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
    # By their starts; members are places in this order.
    order, starts, ends = _within(listing, *_stretch(buckets, first, end, before, after))
    following, soonest_end = 0, None
    members: list[int] = []
    seen: tuple[tuple[int, ...], Fingerprint] | None = None
    for bucket in buckets.between(first, end):
        begin, stop = buckets.window(bucket, before, after)
        if soonest_end is not None and soonest_end < begin:
            members = [at for at in members if ends[at] >= begin]
            seen, soonest_end = None, min((ends[at] for at in members), default=None)
        while following < len(order) and starts[following] < stop:
            at, last = following, ends[following]
            following += 1
            if last >= begin:
                members.append(at)
                seen = None
                soonest_end = last if soonest_end is None else min(soonest_end, last)
        if seen is None:
            reached = tuple(order[at] for at in members)
            named = zip(some(listing.names, reached), some(listing.crcs, reached), strict=True)
            seen = reached, fingerprint_of(named)
        yield Reach(bucket, *seen)


def all_within(spans: Iterable[tuple[int, int]], stretches: Sequence[tuple[int, int]]) -> bool:
    """Whether each span, end inclusive, lies in one of some stretches, end exclusive.

    Stretches are in order, and none reaches into the next.
    """
    begins = [begin for begin, _ in stretches]
    for first, last in spans:
        at = bisect_right(begins, first) - 1
        if at < 0 or last >= stretches[at][1]:
            return False
    return True


def _stretch(buckets: Buckets, first: int, end: int, before: int, after: int) -> tuple[int, int]:
    """From the first to the last time that the windows of these buckets hold; the end is exclusive."""
    last = buckets.floor(max(end - 1, first))
    return buckets.window(buckets.floor(first), before, after)[0], buckets.window(last, before, after)[1]


def _within(listing: Listing, begin: int, stop: int) -> tuple[array[int], array[int], array[int]]:
    """The segments that reach into `[begin, stop)` by their starts: their places, starts and ends.

    No step of Python for each of a million.
    """
    found: list[tuple[Numbers, Numbers, Numbers]] = []
    first = 0
    for starts, ends in zip(pieces(listing.starts), pieces(listing.ends), strict=True):
        at = np.flatnonzero((starts < stop) & (ends >= begin))
        if at.size:
            found.append((at + first, starts[at], ends[at]))
        first += len(starts)
    if not found:
        return array("q"), array("q"), array("q")
    places, starts, ends = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(starts, kind="stable")
    return _array(places[order]), _array(starts[order]), _array(ends[order])


def _array(numbers: Numbers) -> array[int]:
    return array("q", numbers.tobytes())


def earliest(listing: Listing) -> int | None:
    """The place of a segment that begins first."""
    found: list[tuple[int, int]] = []
    first = 0
    for starts in pieces(listing.starts):
        at = int(starts.argmin())
        found.append((int(starts[at]), first + at))
        first += len(starts)
    return min(found)[1] if found else None


def source_end(listing: Listing, now: int) -> int | None:
    """How far the table's data is known to reach."""
    if listing.complete_through is not None:
        return listing.complete_through
    latest = max((int(ends.max()) for ends in pieces(listing.ends)), default=None)
    if latest is None or latest <= now:
        return latest
    # One that ends after now counts with its start, if that is past: one row dated 2099 must not let W run
    # away.
    found: list[int] = []
    for starts, ends in zip(pieces(listing.starts), pieces(listing.ends), strict=True):
        known = np.where(ends <= now, ends, starts)
        past = known[known <= now]
        if past.size:
            found.append(int(past.max()))
    return max(found, default=None)


def next_end(listing: Listing, now: int) -> int | None:
    """When a segment that lies in the future begins or ends; the same listing means more from then on."""
    found: list[int] = []
    for starts, ends in zip(pieces(listing.starts), pieces(listing.ends), strict=True):
        if int(ends.max()) > now:
            found.append(int(np.where(starts > now, starts, ends)[ends > now].min()))
    return min(found, default=None)

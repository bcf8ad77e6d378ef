"""Which segments reach into which buckets: one sweep over time, not buckets times segments."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mv_assets.buckets import Buckets
from mv_assets.state.model import Fingerprint
from mv_assets.tables.fingerprint import fingerprint_of
from mv_assets.tables.listing import Listing

Numbers = npt.NDArray[np.int64]
_NONE = np.array([], np.int64)


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
    order = sorted(_within(listing, *_stretch(buckets, first, end, before, after)), key=starts.__getitem__)
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


def _within(listing: Listing, begin: int, stop: int) -> Sequence[int]:
    """The places of the segments that reach into `[begin, stop)`; no step of Python for each of a million."""
    starts, ends = _column(listing.starts), _column(listing.ends)
    found: list[int] = np.flatnonzero((starts < stop) & (ends >= begin)).tolist()
    return found


def _column(values: array[int]) -> Numbers:
    return np.frombuffer(values, np.int64) if values else _NONE


def source_end(listing: Listing, now: int) -> int | None:
    """How far the table's data is known to reach."""
    if listing.complete_through is not None:
        return listing.complete_through
    starts, ends = _column(listing.starts), _column(listing.ends)
    if not ends.size:
        return None
    if (latest := int(ends.max())) <= now:
        return latest
    # One that ends after now counts with its start, if that is past: one row dated 2099 must not let W run
    # away.
    known = np.where(ends <= now, ends, starts)
    past = known[known <= now]
    return int(past.max()) if past.size else None


def next_end(listing: Listing, now: int) -> int | None:
    """When a segment that lies in the future begins or ends; the same listing means more from then on."""
    starts, ends = _column(listing.starts), _column(listing.ends)
    if not ends.size or int(ends.max()) <= now:
        return None
    ahead = np.where(starts > now, starts, ends)[ends > now]
    return int(ahead.min()) if ahead.size else None

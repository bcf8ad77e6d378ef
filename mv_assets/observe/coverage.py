"""Where a view begins that starts at `earliest`: with the first bucket that its base has anything of.

Coverage only grows. What comes before it later has it begin earlier from the next look on; what can't be
covered is said.
"""

from __future__ import annotations

from dataclasses import replace

from mv_assets.buckets import iso
from mv_assets.config.values import EARLIEST
from mv_assets.observe.maps import Maps
from mv_assets.state.model import Snapshot
from mv_assets.tables.listing import Listing
from mv_assets.tables.reach import earliest
from mv_assets.tables.times import FIRST
from mv_assets.views.bounds import check_extension
from mv_assets.views.errors import ExtendedTooFar, TooManyBuckets
from mv_assets.views.view import View


def first_data(listing: Listing) -> tuple[int, str] | None:
    """The first time of which a listing has anything, and what has it."""
    at = earliest(listing)
    found = [] if at is None else [(listing.starts[at], listing.names[at])]
    waits = [(stretch.start_ms, stretch.why) for stretch in listing.pending]
    return min([*found, *waits], default=None)


def reach_back(
    maps: Maps, view: View, snapshot: Snapshot, base: Listing, now: int
) -> tuple[Snapshot, str | None]:
    """The map with coverage from the first data on; and why not from there, if it is not."""
    found = first_data(base) if view.declared.start is None else None
    if found is None or found[0] >= snapshot.header.start:
        return snapshot, None
    first, name = found
    what = base.table if base.complete_through is not None else f"{base.table}: file {name}"
    if first <= FIRST:
        return snapshot, f"{what}: its times are not known, so where data begins is not; declare a `start`"
    if first < EARLIEST:
        return snapshot, f"{what}: it begins before {iso(EARLIEST)}, where no view can start; mend the file"
    start = view.buckets.floor(first)
    if start >= snapshot.header.start:
        return snapshot, None
    try:
        check_extension(view, start, snapshot.header.start, now)
    except (ExtendedTooFar, TooManyBuckets) as refused:
        return snapshot, f"{what}: {refused}"
    return maps.extend(replace(view.declaration, start=start), snapshot), None

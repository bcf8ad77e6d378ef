"""What listings tell of how they came about, held against these listings."""

from __future__ import annotations

from mv_assets.state.model import Segment
from mv_assets.tables.listing import Listing


class Told:
    """The last listings of one table, and how often a later one told how it differs from one of them."""

    def __init__(self) -> None:
        self._seen: list[tuple[Listing, list[Segment]]] = []
        self.times = 0

    def check(self, listing: Listing) -> None:
        for earlier, segments in self._seen:
            # They share columns with later ones.
            assert [*earlier.segments()] == segments
            changed = listing.history.since(earlier.history.origin)
            if changed is not None:
                differs = {*segments} ^ {*listing.segments()}
                assert {*changed} >= differs
                self.times += bool(differs)
        self._seen = [*self._seen[-5:], (listing, [*listing.segments()])]

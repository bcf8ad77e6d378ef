"""What listings tell of how they came about, held against these listings."""

from __future__ import annotations

from mv_assets.tables.listing import Listing


class Told:
    """The last listings of one table, and how often a later one told how it differs from one of them."""

    def __init__(self) -> None:
        self._seen: list[Listing] = []
        self.times = 0

    def check(self, listing: Listing) -> None:
        for earlier in self._seen:
            changed = listing.history.since(earlier.history.origin)
            if changed is not None:
                differs = {*earlier.segments()} ^ {*listing.segments()}
                assert {*changed} >= differs
                self.times += bool(differs)
        self._seen = [*self._seen[-5:], listing]

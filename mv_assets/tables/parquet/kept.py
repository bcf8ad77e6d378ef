"""The last listing of a folder, kept in this process: where nothing changed, the next is filled in from it.

A cache that can be thrown away at any time. A file is taken from it only if the walk found the same object.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mv_assets.state.model import Segment
from mv_assets.tables.listing import Listing
from mv_assets.tables.recent import Recent, is_due

_COLUMNS = ("crcs", "starts", "ends")
_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Kept:
    """A listing without broken files, and which of its files are too young to be sure of."""

    listing: Listing
    young: frozenset[str]
    # When the listing was made by nothing that was kept.
    whole_at: int


# By folder; so many files at most, some 250 bytes each.
KEPT: Recent[Kept] = Recent(4_000_000)


def kept(folder: Hashable, now: int) -> Kept | None:
    """What is kept of a folder, unless it was for long enough."""
    found = KEPT.get(folder)
    return None if found is None or is_due(found.whole_at, now) else found


@dataclass(slots=True)
class Carried:
    """The files of a new listing that are still the objects they were, filled in from the kept one."""

    kept: Kept
    # All other files of the new listing, with their places there; and the places of those of the kept one.
    left: dict[str, int]
    lost: list[int]

    @classmethod
    def into(cls, listing: Listing, kept: Kept) -> Carried:
        """Fill in the columns of a listing that has names and identities only."""
        before = kept.listing
        places = {name: at for at, name in enumerate(before.names) if name not in kept.young}
        found = np.fromiter((places.get(name, -1) for name in listing.names), np.int64, len(listing))
        # A listing's identities cover the content; the walk's do not.
        walked = np.append(_numbers(before, "identities") ^ _numbers(before, "crcs"), 0)
        same = (found >= 0) & (walked[found] == _numbers(listing, "identities"))
        for column in _COLUMNS:
            _numbers(listing, column)[same] = _numbers(before, column)[found[same]]
        identities = _numbers(listing, "identities")
        identities[same] ^= _numbers(listing, "crcs")[same]
        carried = np.zeros(len(before), bool)
        carried[found[same]] = True
        nulls = ((name, places.get(name)) for name in before.nulls)
        listing.nulls = {name: before.nulls[name] for name, at in nulls if at is not None and carried[at]}
        left = {listing.names[at]: at for at in np.flatnonzero(~same).tolist()}
        return cls(kept, left, np.flatnonzero(~carried).tolist())

    @property
    def gone(self) -> list[str]:
        """The files that are not there any more."""
        names = (self.kept.listing.names[at] for at in self.lost)
        return [name for name in names if name not in self.left]

    def changed(self, listing: Listing) -> set[Segment]:
        """The segments that came, went or changed, once those that were left are filled in too."""
        went = {self.kept.listing.segment(at) for at in self.lost}
        return went ^ {listing.segment(at) for at, name in enumerate(listing.names) if name in self.left}


def _numbers(listing: Listing, column: str) -> _Numbers:
    values = getattr(listing, column)
    return np.frombuffer(values, np.int64) if values else np.array([], np.int64)

"""The last listing of a folder, kept in this process: where nothing changed, the next is filled in from it.

A cache that can be thrown away at any time. A file is taken from it only if the walk found the same object.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mv_assets.state.model import Segment
from mv_assets.tables.listing import Listing
from mv_assets.tables.parts import Joined
from mv_assets.tables.recent import Recent, is_due

_COLUMNS = ("crcs", "starts", "ends")
_Numbers = npt.NDArray[np.int64]
Names = list[str] | Joined[str]


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
        before, identities = kept.listing, _numbers(listing, "identities")
        # A listing's identities cover the content; the walk's do not.
        walked = np.append(_numbers(before, "identities") ^ _numbers(before, "crcs"), 0)
        found = _places(before.names, walked[:-1], listing.names, identities)
        if kept.young:
            young = [at for at, name in enumerate(before.names) if name in kept.young]
            found[np.isin(found, young)] = -1
        same = (found >= 0) & (walked[found] == identities)
        for column in _COLUMNS:
            _numbers(listing, column)[same] = _numbers(before, column)[found[same]]
        identities[same] ^= _numbers(listing, "crcs")[same]
        carried = np.zeros(len(before), bool)
        carried[found[same]] = True
        lost = np.flatnonzero(~carried).tolist()
        # Those of files without rows in time are recalled with these.
        without = {before.names[at] for at in lost} | before.timeless
        listing.nulls = {name: count for name, count in before.nulls.items() if name not in without}
        left = {listing.names[at]: at for at in np.flatnonzero(~same).tolist()}
        return cls(kept, left, lost)

    @property
    def gone(self) -> list[str]:
        """The files that are not there any more."""
        names = (self.kept.listing.names[at] for at in self.lost)
        return [name for name in names if name not in self.left]

    def changed(self, listing: Listing) -> set[Segment]:
        """The segments that came, went or changed, once those that were left are filled in too."""
        went, size = {self.kept.listing.segment(at) for at in self.lost}, len(listing)
        places: Iterable[int] = self.left.values()
        if not all(at < size and listing.names[at] == name for name, at in self.left.items()):
            # Some were left out, being nowhere in time.
            places = (at for at, name in enumerate(listing.names) if name in self.left)
        return went ^ {listing.segment(at) for at in places}


def _places(before: Names, walked: _Numbers, names: Names, identities: _Numbers) -> _Numbers:
    """The places at which files were before, -1 for those that were not there.

    Folders are mostly walked in the same order: what is alike at both ends is not looked for by its name.
    """
    short = min(len(before), len(names))
    first = _alike(walked[:short], identities[:short])
    last = _alike(walked[first:][::-1][: short - first], identities[first:][::-1][: short - first])
    ends, stop = len(before) - last, len(names) - last
    if before[:first] != names[:first] or before[ends:] != names[stop:]:
        first, last, ends, stop = 0, 0, len(before), len(names)
    found = np.arange(len(names), dtype=np.int64)
    found[stop:] += ends - stop
    places = {before[at]: at for at in range(first, ends)}
    found[first:stop] = [places.get(names[at], -1) for at in range(first, stop)]
    return found


def _alike(some: _Numbers, others: _Numbers) -> int:
    """How many are the same before the first ones that differ."""
    unlike = some != others
    return int(unlike.argmax()) if unlike.any() else len(unlike)


def _numbers(listing: Listing, column: str) -> _Numbers:
    values = getattr(listing, column)
    return np.frombuffer(values, np.int64) if values else np.array([], np.int64)

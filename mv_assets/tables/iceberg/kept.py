"""How a listing of an Iceberg table differs from the last one that this process made: by their blocks.

A cache that can be thrown away: without it, a look compares every bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mv_assets.state.model import Segment
from mv_assets.tables.iceberg.blocks import Assembly, Block, Meaning
from mv_assets.tables.listing import Listing
from mv_assets.tables.recent import Recent

_COLUMNS = ("crcs", "starts", "ends")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A listing all of whose files are in blocks, and these by where they begin in it."""

    listing: Listing
    parts: Mapping[int, Block]


# So many files at most, some 60 bytes each beside those of the blocks.
KEPT: Recent[_Kept] = Recent(2_000_000)


def keep(table: str, meaning: Meaning, made: Assembly) -> None:
    """Know how a listing came about, and keep it for the next one."""
    key, listing = (table, meaning.text), made.listing
    if made.others or listing.broken:
        # What only the files themselves tell, or nobody, may change without a commit.
        KEPT.forget(key)
        return
    last, now = KEPT.get(key), _Kept(listing, made.parts)
    if last is not None:
        listing.history = last.listing.history.then({*_only(last, now)} ^ {*_only(now, last)})
    KEPT.put(key, now, len(listing))


def _only(some: _Kept, others: _Kept) -> Iterator[Segment]:
    """The segments of blocks that are not among others, and those that deletes left otherwise there."""
    places = {id(block): first for first, block in others.parts.items()}
    for first, block in some.parts.items():
        number = len(block.names)
        if id(block) in places:
            changed = _differing(some.listing, first, others.listing, places[id(block)], number)
            yield from (some.listing.segment(first + at) for at in changed)
        else:
            yield from map(some.listing.segment, range(first, first + number))


def _differing(one: Listing, first: int, other: Listing, second: int, number: int) -> list[int]:
    """Which of so many files, from some place on in each of two listings, are not the same in both."""
    if not number:
        return []
    unlike = np.zeros(number, bool)
    for column in _COLUMNS:
        values, before = (np.frombuffer(getattr(each, column), np.int64) for each in (one, other))
        unlike |= values[first : first + number] != before[second : second + number]
    found: list[int] = np.flatnonzero(unlike).tolist()
    return found

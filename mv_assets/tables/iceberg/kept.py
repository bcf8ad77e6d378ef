"""How a listing of an Iceberg table differs from the last one that this process made: by their blocks.

A cache that can be thrown away: without it, a look compares every bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mv_assets.state.model import Segment
from mv_assets.tables.iceberg.blocks import Assembly, Block, Meaning, Placed
from mv_assets.tables.listing import History
from mv_assets.tables.parts import Part
from mv_assets.tables.recent import Recent

_Blocks = Mapping[int, Placed]


@dataclass(frozen=True, slots=True)
class _Kept:
    """How a listing came about all of whose files are in blocks, none of them twice; these by their ids."""

    history: History
    blocks: _Blocks


# So many files at most, which are those of the blocks.
KEPT: Recent[_Kept] = Recent(2_000_000)


def known(table: str, meaning: Meaning) -> list[Block]:
    """Blocks that have no file twice, nor have two of them the same one."""
    last = KEPT.get((table, meaning.text))
    return [] if last is None else [placed.block for placed in last.blocks.values()]


def keep(table: str, meaning: Meaning, made: Assembly) -> None:
    """Know how a listing came about, and keep it for the next one."""
    key, listing = (table, meaning.text), made.listing
    if made.others or listing.broken:
        # What only the files themselves tell, or nobody, may change without a commit.
        KEPT.forget(key)
        return
    last, now = KEPT.get(key), {id(placed.block): placed for placed in made.placed}
    if last is not None:
        listing.history = last.history.then({*_only(last.blocks, now)} ^ {*_only(now, last.blocks)})
    KEPT.put(key, _Kept(listing.history, now), len(listing))


def _only(some: _Blocks, others: _Blocks) -> Iterator[Segment]:
    """The segments of blocks that are not among others, and those that deletes left otherwise there."""
    for block, placed in some.items():
        files = placed.files
        if block in others:
            yield from map(files.segment, _differing(files, others[block].files))
        else:
            yield from map(files.segment, range(len(files.names)))


def _differing(one: Part, other: Part) -> list[int]:
    """Which files of one block deletes left otherwise: that is in their checksums."""
    if one.crcs is other.crcs or not one.names:
        return []
    unlike = np.frombuffer(one.crcs, np.int64) != np.frombuffer(other.crcs, np.int64)
    found: list[int] = np.flatnonzero(unlike).tolist()
    return found

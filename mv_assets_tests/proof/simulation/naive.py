"""What is there and what follows from it, in the plainest words: production code is held against this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from mv_assets.state.model import Fingerprint, Inputs, Segment
from mv_assets.tables.fingerprint import fingerprint
from mv_assets.views.view import Window
from mv_assets_tests.proof.simulation.world import DIMENSION, Base, Data, Named, World, named
from mv_assets_tests.support.memory_table import (
    BASE,
    DAY,
    Contents,
    Files,
    of_table,
    overlapping,
    rows_in,
    segments,
)


def inputs(world: World, base: Base, definition: str, bucket: int) -> Inputs:
    """The inputs of a bucket: of each table the files that reach into its window."""

    def make() -> Inputs:
        dimension = fingerprint(segments(base.joined()))
        found = windowed(dict(base.files), world.windows, definition, bucket)
        return replace(found, dimensions=((DIMENSION, dimension),))

    return world.once((Inputs, base, definition, bucket), make)


def windowed(files: Files, windows: Sequence[Window], definition: str, bucket: int) -> Inputs:
    """The inputs of a bucket that is a day: the fingerprint of what reaches into each of its windows."""
    base, *further = (
        fingerprint(overlapping(segments(of_table(files, window.table)), *_bounds(window, bucket)))
        for window in windows
    )
    names = (window.table for window in windows[1:])
    return Inputs(base, definition, further=tuple(zip(names, further, strict=True)))


def _bounds(window: Window, bucket: int) -> tuple[int, int]:
    return bucket - window.before, bucket + DAY + window.after


def recorded(world: World, bucket: int) -> Data:
    """What a row says that its bucket was computed from."""
    return tuple((named(each.source, each.name), each.crc) for each in world.memory.segments[bucket])


def fingerprints(windows: Sequence[Window], data: Data) -> tuple[Fingerprint, ...]:
    """The fingerprint of files of each table."""
    return tuple(
        fingerprint(Segment(name.rpartition("/")[2], crc, 0, 0) for name, crc in _of(window, data))
        for window in windows
    )


def rows(windows: Sequence[Window], data: Data, bucket: int, contents: Contents) -> list[list[object]]:
    """The rows that files of each table have in the window of a bucket."""
    return [rows_in(_of(window, data), *_bounds(window, bucket), contents) for window in windows]


def _of(window: Window, data: Data) -> Data:
    return tuple(each for each in data if (each[0].rpartition("/")[0] or BASE) == window.table)


def pending(world: World, base: Base, bucket: int) -> bool:
    """Whether a bucket waits for an upstream one."""
    begin, end = _bounds(world.windows[0], bucket)
    return any(begin < other + DAY and other < end for other in base.waiting)


def missing(world: World, base: Base, bucket: int) -> bool:
    """Whether a file that a bucket was computed from is gone, and the view keeps what is gone."""
    there = dict(base.files).keys()
    recorded = world.memory.segments.get(bucket, ())
    gone = {named(each.source, each.name) for each in recorded} - there
    for table, told in base.rewrites:
        old, new = ({named(table, each.name) for each in part} for part in (told.removed, told.added))
        if gone & old:
            # What was put into other files is where these are.
            gone = (gone - old) | (new - there)
    return world.freezes and bool(gone)


def known_end(world: World, base: Base) -> int | None:
    """Where the buckets end of which all that is waited for is known to be there."""
    return end_of(dict(base.files), world.windows)


def end_of(files: Files, windows: Sequence[Window]) -> int | None:
    """The same, of files that all end before now."""
    ends = []
    for window in (each for each in windows if each.waits):
        own = of_table(files, window.table).values()
        if not own:
            return None
        ends.append(max(file.end for file in own) - window.after)
    return min(ends)


def reached(world: World, base: Base, bucket: int) -> bool:
    """Whether the tables reach the bucket's end, or stop in it and the clock has closed it."""
    end = known_end(world, base)
    if end is None or end < bucket:
        return False
    if end >= bucket + DAY - 1:
        return True
    return world.clock >= closes_at(world, bucket + DAY)


def closes_at(world: World, end: int) -> float:
    """When a bucket with that end is closed: so long after the last of what it waits for could be there."""
    if world.closes is None:
        return inf
    return end + max(window.after for window in world.windows if window.waits) + world.closes


def shown(world: World) -> Named:
    """Of each bucket that the definition in force was computed for, which commit it has, and where."""
    header = world.memory.header
    found = []
    for bucket in world.all_buckets():
        row = world.memory.rows.get(bucket)
        if row is None or row.inputs is None or row.content is None or row.generation is None:
            continue
        if header is not None and row.inputs.definition == header.definition:
            found.append((bucket, row.content, row.generation))
    return tuple(found)

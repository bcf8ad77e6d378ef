"""Files that a table rewrote with the same rows: what a bucket was computed from, as it is listed now. Pure.

A rewrite says that the rows of all its old files are those of all its new ones. So the rows of a window are
the same in the old files that reach into it and in the new ones that do: a bucket that was computed from all
of the former, each as it was when it was rewritten, might as well have been computed from the latter.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from mv_assets.buckets import Buckets
from mv_assets.state.model import Fingerprint, Segment
from mv_assets.tables.fingerprint import fingerprint_of
from mv_assets.tables.listing import Listing
from mv_assets.tables.reach import sweep
from mv_assets.views.view import Window

Files = dict[str, Segment]


class Step(NamedTuple):
    """Of one rewrite, what reaches into the window of one bucket."""

    removed: Files
    added: Files


class Followed(NamedTuple):
    """What a bucket was computed from, in the files that it is in now.

    For a view that freezes: those of them that are listed, and the names of what is gone.
    """

    segments: tuple[Segment, ...] = ()
    listed: tuple[Segment, ...] = ()
    missing: tuple[str, ...] = ()


def steps(
    listing: Listing, buckets: Buckets, window: Window, wanted: Container[int], first: int, end: int
) -> Iterator[tuple[int, Sequence[Step]]]:
    """For each bucket that is wanted in `[first, end)` the rewrites that reach into its window, in order.

    Without those that were taken back, as far as that is known.
    """
    told, parts = Listing(listing.table, "", 0), list[tuple[int, int]]()
    for number, rewrite in enumerate(listing.rewrites):
        for side, segments in enumerate((rewrite.removed, rewrite.added)):
            for segment in segments:
                told.add(segment)
                parts.append((number, side))
    # Neighbours that the same files reach into share them.
    members, found = tuple[int, ...](), list[Step]()
    for reach in sweep(told, buckets, first, end, window.before, window.after):
        if reach.bucket not in wanted:
            continue
        if reach.members is not members:
            members, found = reach.members, _standing(_by_rewrite(told, parts, reach.members))
        yield reach.bucket, found


def _by_rewrite(told: Listing, parts: Sequence[tuple[int, int]], members: Iterable[int]) -> list[Step]:
    found: dict[int, Step] = {}
    for at in sorted(members):
        number, side = parts[at]
        found.setdefault(number, Step({}, {}))[side][told.names[at]] = told.segment(at)
    return list(found.values())


def _standing(rewrites: Sequence[Step]) -> list[Step]:
    """Rewrites whose old files no later one removes again: these came back in between, as they were."""
    last = {
        (name, file.crc): at for at, (removed, _) in enumerate(rewrites) for name, file in removed.items()
    }
    return [
        step
        for at, step in enumerate(rewrites)
        if all(last[name, file.crc] == at for name, file in step.removed.items())
    ]


def followed(recorded: Iterable[Segment], now: Iterable[Segment], rewrites: Sequence[Step]) -> Files:
    """The files of a window that have the rows of the recorded ones; the same ones where nothing is proved.

    A rewrite that no recorded file went into adds files without rows of this window: they are a part of what
    was recorded if they are listed, and none if they are not.
    """
    files = _named(recorded)
    if not rewrites:
        return files
    listed, rowless = _named(now), set[str]()
    for removed, added in rewrites:
        if not _among(removed, files) or (removed and _among(removed, listed)):
            continue
        kept = {name: file for name, file in files.items() if name not in removed}
        # A table has no file twice: this rewrite is older than what was recorded.
        if not kept.keys().isdisjoint(added):
            continue
        if removed.keys() <= rowless:
            rowless.update(added)
        files = kept | added
    return {name: file for name, file in files.items() if name not in rowless or name in listed}


def missing(names: Iterable[str], listed: Container[str], rewrites: Iterable[Step]) -> list[str]:
    """Of a window's files those that are gone: neither listed, nor rewritten into files that are."""
    gone = {name for name in names if name not in listed}
    for removed, added in rewrites:
        if not gone.isdisjoint(removed):
            gone = (gone - removed.keys()) | {name for name in added if name not in listed}
    return sorted(gone)


def earlier(listing: Listing) -> frozenset[Fingerprint]:
    """What the fingerprint of a whole table was before it rewrote files that are still as they were then."""
    files, found = {segment.name: segment for segment in listing.segments()}, set[Fingerprint]()
    for rewrite in reversed(listing.rewrites):
        removed, added = _named(rewrite.removed), _named(rewrite.added)
        kept = {name: file for name, file in files.items() if name not in added}
        if _among(added, files) and kept.keys().isdisjoint(removed):
            files = kept | removed
            found.add(fingerprint_of((file.name, file.crc) for file in files.values()))
    return frozenset(found)


def _named(segments: Iterable[Segment]) -> Files:
    return {segment.name: segment for segment in segments}


def _among(some: Mapping[str, Segment], files: Mapping[str, Segment]) -> bool:
    """Whether all of some files are there, and none has changed: what is deleted of one changes its crc."""
    return all(name in files and files[name].crc == file.crc for name, file in some.items())

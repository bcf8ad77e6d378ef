"""What one look saw of a view: for each bucket its current inputs, and the files that they come from."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from mv_assets.observe import rewrites
from mv_assets.observe.rewrites import Followed, Step
from mv_assets.state import rules
from mv_assets.state.model import SCHEMA_OF, CurrentInputs, Fingerprint, Inputs, Segment
from mv_assets.tables.fingerprint import fingerprint, fingerprint_of, hashed
from mv_assets.tables.listing import Broken, Listing, Pending
from mv_assets.tables.parts import some
from mv_assets.tables.places import Place
from mv_assets.tables.reach import next_end, source_end, sweep
from mv_assets.views.view import View, Window

# More stretches of buckets than this are found by one sweep over all segments.
_STRETCHES = 256

# The segments that buckets were computed from.
Recorded = Mapping[int, Sequence[Segment]]

_HOLDS = "; which buckets its rows belong to is not known, so the watermark stays: restore it, or delete it"


@dataclass(frozen=True, slots=True)
class BucketInputs:
    """One bucket: its current inputs, and which of its files can't be read.

    `reached` has for each of the view's windows the places of its segments in that table's listing.
    """

    bucket: int
    current: CurrentInputs
    reached: tuple[tuple[int, ...], ...]
    errors: tuple[str, ...] = ()

    @property
    def has_files(self) -> bool:
        return any(self.reached)


@dataclass(frozen=True, slots=True)
class Ending:
    """How far the tables of a view reach.

    `table` is the one that ends first, counted without what its window asks for beyond the bucket: that is
    `source_end`. Its data really ends at `data_end`. `closed` is the end of the bucket in which `source_end`
    lies, if that bucket is closed.
    """

    source_end: int | None
    closed: int | None = None
    table: str | None = None
    data_end: int | None = None

    @property
    def cap(self) -> int | None:
        """Where a bucket ends at the latest that is complete; None if nothing is known."""
        return rules.complete(self.source_end, self.closed)


@dataclass(frozen=True, slots=True)
class _End:
    """One table's part in that."""

    window: Window
    listing: Listing
    data_end: int | None
    source_end: int | None


@dataclass(frozen=True, slots=True)
class Trace:
    """Which inputs of a view these were; not the listings themselves, which may be of a million files."""

    kind: Hashable
    others: tuple[tuple[str, Fingerprint], ...]
    # Of each listing what tells it from all others, and what was pending.
    listed: tuple[tuple[object, tuple[Pending, ...]], ...]


class ViewInputs:
    """A view's inputs as they were listed: a listing for each of its windows, and one a dimension."""

    def __init__(self, view: View, listings: Sequence[Listing], dimensions: Mapping[str, Listing]) -> None:
        self.view = view
        self.listings = tuple(listings)
        self.dimensions = dimensions
        self._windows = view.windows
        self._others = tuple(sorted(self._fingerprints()))
        broken = [
            f"dimension {name}: {file}"
            for name, listed in dimensions.items()
            for file in listed.broken.values()
        ]
        self._errors = (*broken, *self._refusals())
        self._broken = [
            {at for at, name in enumerate(listing.names) if name in listing.broken}
            if listing.broken
            else set()
            for listing in self.listings
        ]
        self._pending = [
            (window, listing.complete_through, _Stretches(listing.pending))
            for window, listing in zip(self._windows, self.listings, strict=True)
            if listing.pending
        ]
        # Whoever waits for nothing waits for this: without columns nothing can be computed.
        self.unknown = next((want for want in map(_wanted_of, self.listings) if want is not None), None)
        self._listed = [listing.listed() for listing in self.listings] if view.freezes else []

    @property
    def base(self) -> Listing:
        return self.listings[0]

    @property
    def dimension_inputs(self) -> tuple[tuple[str, Fingerprint], ...]:
        """What is recorded with each bucket of the dimensions, and of where the tables have their columns."""
        return self._others

    @property
    def version(self) -> str:
        """Says that all of these inputs are the same as at another time."""
        versions = [listing.version for listing in self.listings]
        dimensions = {name: listing.version for name, listing in self.dimensions.items()}
        return version_of(self.view, versions, dimensions)

    def over(self, first: int, end: int) -> Iterator[BucketInputs]:
        """The buckets that overlap `[first, end)`, in order."""
        view, closed = self.view, self._closed()
        sweeps = [
            sweep(listing, view.buckets, first, end, window.before, window.after)
            for window, listing in zip(self._windows, self.listings, strict=True)
        ]
        further = [window.table for window in self._windows[1:]]
        for base, *others in zip(*sweeps, strict=True):
            reached = (base.members, *(each.members for each in others))
            inputs = Inputs(
                base.fingerprint,
                view.definition,
                self._others,
                tuple((name, each.fingerprint) for name, each in zip(further, others, strict=True)),
            )
            waits_for = self._waits_for(base.bucket, closed)
            current = CurrentInputs(inputs) if waits_for is None else CurrentInputs(None, waits_for)
            yield BucketInputs(base.bucket, current, reached, self._errors_among(reached))

    def of(self, buckets: Iterable[int]) -> Iterator[BucketInputs]:
        """Some buckets, in order."""
        wanted, after = frozenset(buckets), self.view.buckets.next
        stretches = self.view.buckets.stretches(wanted)
        if len(stretches) > _STRETCHES:
            # Each would be looked for among all segments.
            whole = self.over(stretches[0][0], after(stretches[-1][-1]))
            yield from (each for each in whole if each.bucket in wanted)
            return
        for stretch in stretches:
            yield from self.over(stretch[0], after(stretch[-1]))

    @cached_property
    def trace(self) -> Trace:
        """What tells later how these inputs differ from others."""
        listed = tuple((listing.history.origin, listing.pending) for listing in self.listings)
        return Trace(self._kind, self._others, listed)

    def changed_since(self, before: Trace, first: int, end: int) -> set[int] | None:
        """The buckets of `[first, end)` that may have other inputs than `before`; None: any bucket may."""
        if (self._kind, self._others) != (before.kind, before.others):
            return None
        if self.view.closes is not None and (self._pending or any(waits for _, waits in before.listed)):
            # The clock has a say in what a bucket waits for.
            return None
        found: set[int] = set()
        for window, now, (origin, pending) in zip(self._windows, self.listings, before.listed, strict=True):
            segments = now.history.since(origin)
            if segments is None:
                return None
            spans = {(each.start_ms, each.end_ms) for each in segments}
            spans |= {(each.start_ms, each.end_ms - 1) for each in {*now.pending} ^ {*pending}}
            for span in spans:
                found.update(self._reached_by(span, window, first, end))
        return found

    @property
    def _kind(self) -> Hashable:
        """What of the view decides what is compared."""
        view = self.view
        return view.definition, view.buckets.text, self._windows, view.freezes, view.closes

    def _reached_by(self, span: tuple[int, int], window: Window, first: int, end: int) -> Iterator[int]:
        """The buckets of `[first, end)` into whose windows a segment of that time reaches."""
        buckets, (start, last) = self.view.buckets, span
        # Times that nobody's window reaches may be ones that no calendar has.
        start = max(start, buckets.shifted(first, -window.before))
        last = min(last, buckets.shifted(end, window.after))
        begin, stop = buckets.shifted(start, -window.after), buckets.shifted(last, window.before)
        return buckets.between(max(begin, first), min(stop + 1, end))

    def waits_for(self, bucket: int) -> str | None:
        """What of a view below has to be computed before a bucket can be."""
        return self._waits_for(bucket, self._closed())

    def segments(self, seen: BucketInputs) -> list[Segment]:
        """What a bucket is computed from, of each table."""
        return [
            segment if self.listings[0] is listing else replace(segment, source=listing.table)
            for listing, places in zip(self.listings, seen.reached, strict=True)
            for segment in listing.some(places)
        ]

    def ending(self, now: int) -> Ending:
        """Where the data ends by now that buckets are waiting for, and which of them are complete."""
        ends = [
            self._end(*each, now) for each in zip(self._windows, self.listings, strict=True) if each[0].waits
        ]
        unknown = next((each for each in ends if each.source_end is None), None)
        if unknown is not None:
            return Ending(None, table=unknown.window.table)
        first = min(ends, key=lambda each: each.source_end or 0)
        buckets = self.view.buckets
        # A table that has all of that bucket has no say in whether it is closed.
        last = buckets.next(buckets.floor(first.source_end or 0)) - 1
        stops = [each for each in ends if (each.source_end or 0) < last]
        closes = self.view.closes if all(each.listing.ends_there for each in stops) else None
        closed = rules.closed(buckets, first.source_end, closes, now)
        return Ending(first.source_end, closed, first.window.table, first.data_end)

    def _end(self, window: Window, listing: Listing, now: int) -> _End:
        data_end = source_end(listing, now)
        shifted = None if data_end is None else self.view.buckets.shifted(data_end + 1, -window.after) - 1
        return _End(window, listing, data_end, shifted)

    def recheck_at(self, now: int) -> int | None:
        """The time from which the same listings may mean something else."""
        rechecks = [
            listed.recheck_at + listed.behind(now)
            for listed in (*self.listings, *self.dimensions.values())
            if listed.recheck_at is not None
        ]
        begins = [begin for listing in self.listings if (begin := next_end(listing, now)) is not None]
        return min([*begins, *rechecks], default=None)

    @property
    def unplaced(self) -> bool:
        """Whether a file that can't be used may hold rows of any bucket."""
        return any(listing.unplaced for listing in self.listings)

    def broken(self) -> list[tuple[str, Broken]]:
        """Every file that can't be used, with its table."""
        tables = [*self.listings, *self.dimensions.values()]
        return [(table.table, broken) for table in tables for broken in table.broken.values()]

    def unusable(self) -> list[tuple[Broken, str]]:
        """The same in order and for people; with what follows if nobody knows where its rows belong."""
        found = sorted(self.broken(), key=lambda each: (each[0], each[1].name))
        return [(file, f"{table}: {file}{'' if file.ranged else _HOLDS}") for table, file in found]

    def lines(self, beyond: str | None) -> tuple[str, ...]:
        """The same without the files; first why some of the data is not covered that should be."""
        return (*([] if beyond is None else [beyond]), *(line for _, line in self.unusable()))

    @property
    def rewritten(self) -> bool:
        """Whether a table says that it replaced files by others with the same rows."""
        return any(listed.rewrites for listed in (*self.listings, *self.dimensions.values()))

    def follow(self, seen: Mapping[int, BucketInputs], recorded: Recorded) -> dict[int, Followed]:
        """What buckets were computed from, in the files in which the tables say that it is now."""
        known = {bucket: segments for bucket, segments in recorded.items() if bucket in seen}
        found = dict.fromkeys(known, Followed())
        for place, window in enumerate(self._windows):
            told = dict(self._rewrites(place, known))
            for bucket, segments in known.items():
                source = window.table if place else None
                mine = [segment for segment in segments if segment.source == source]
                now = map(self.listings[place].segment, seen[bucket].reached[place])
                steps = told.get(bucket, ())
                files = [
                    replace(each, source=source) for each in rewrites.followed(mine, now, steps).values()
                ]
                parts = self._missing(place, files, steps) if self.view.freezes else Followed(tuple(files))
                found[bucket] = Followed(*map(operator.add, found[bucket], parts))
        return found

    def carried(self, recorded: Inputs, segments: Sequence[Segment] | None, followed: Followed) -> Inputs:
        """Recorded inputs, with what the tables say to be the same rows in place of what was rewritten.

        `segments` are those that were found recorded; if these inputs are not of them, they are a peer's, and
        nothing follows.
        """
        ours = segments is not None and _windows(recorded, segments) == recorded.windows
        base, *further = _windows(recorded, followed.segments) if ours else recorded.windows
        others = dict(self._others)
        return Inputs(
            base,
            recorded.definition,
            tuple(
                (name, others[name] if name in others and found in self._earlier.get(name, ()) else found)
                for name, found in recorded.dimensions
            ),
            tuple((name, found) for (name, _), found in zip(recorded.further, further, strict=True)),
        )

    def with_recorded(self, seen: Mapping[int, BucketInputs], recorded: Recorded) -> dict[int, BucketInputs]:
        """For a view that freezes: which recorded segments are gone, and whether the rest is equal.

        A file that moved out of the bucket is not gone: it was changed. Nor is one that was rewritten.
        """
        found = dict(seen)
        for bucket, followed in self.follow(seen, recorded).items():
            current = seen[bucket].current
            if current.inputs is not None:
                rest = _windows(current.inputs, followed.listed) == current.inputs.windows
                gone = followed.missing
                current = replace(current, missing=gone, rest_equal=bool(gone) and rest)
                found[bucket] = replace(seen[bucket], current=current)
        return found

    def changed(self, seen: BucketInputs, now: int) -> list[int]:
        """When the files of a bucket's windows last changed, by our clock."""
        return [
            changed + listing.behind(now)
            for listing, places in zip(self.listings, seen.reached, strict=True)
            for changed in some(listing.changed, places)
        ]

    def newest(self, seen: BucketInputs, now: int) -> int | None:
        """When the newest of them came; None where the tables don't tell, as a view below does not."""
        times = (
            listing.changed[at] + listing.behind(now)
            for listing, places in zip(self.listings, seen.reached, strict=True)
            for at in places
            if listing.changed[at]
        )
        return max(times, default=None)

    def dimensions_changed(self, now: int, within: int) -> tuple[int, ...]:
        """When files of the dimensions changed, as far as that is not longer ago."""
        times = {t + listed.behind(now) for listed in self.dimensions.values() for t in listed.changed}
        return tuple(time for time in times if time > now - within)

    @cached_property
    def _earlier(self) -> dict[str, frozenset[Fingerprint]]:
        """Of dimensions, what their fingerprints were before their files were rewritten."""
        return {name: rewrites.earlier(listed) for name, listed in self.dimensions.items()}

    def _rewrites(self, place: int, wanted: Collection[int]) -> Iterator[tuple[int, Sequence[Step]]]:
        listing, window, buckets = self.listings[place], self._windows[place], self.view.buckets
        if not listing.rewrites or not wanted:
            return iter(())
        return rewrites.steps(listing, buckets, window, wanted, min(wanted), buckets.next(max(wanted)))

    def _missing(self, place: int, files: Sequence[Segment], steps: Sequence[Step]) -> Followed:
        listed = self._listed[place]
        gone = rewrites.missing((file.name for file in files), listed, steps)
        return Followed(tuple(files), tuple(file for file in files if file.name in listed), tuple(gone))

    def _closed(self) -> int | None:
        """The end of the bucket that the clock has closed, if that matters to what is waited for."""
        return self.ending(self.base.at).closed if self._pending else None

    def _waits_for(self, bucket: int, closed: int | None) -> str | None:
        for window, through, pending in self._pending:
            begin, stop = self.view.buckets.window(bucket, window.before, window.after)
            # What a view below never had there is not late in a bucket that is closed, nor where nobody waits
            # for it: it is not there.
            known = not window.waits or self.view.buckets.next(bucket) == closed
            found = pending.between(begin, stop, vacant_through=through if known else None)
            if found is not None:
                return found
        return None

    def _errors_among(self, reached: Sequence[Sequence[int]]) -> tuple[str, ...]:
        if not any(self._broken):
            return self._errors
        found = []
        for listing, places, broken in zip(self.listings, reached, self._broken, strict=True):
            of = "" if listing is self.base else f"{listing.table}: "
            found += [f"{of}{listing.broken[listing.names[at]]}" for at in places if at in broken]
        return (*found, *self._errors)

    def _refusals(self) -> Iterator[str]:
        """Columns that the view uses, and that would be read wrong."""
        for listed in {each.table: each for each in (*self.listings, *self.dimensions.values())}.values():
            yield from listed.refusals(self._mentioned(listed))

    def _mentioned(self, listed: Listing) -> frozenset[str] | None:
        """Names by which the view may mean columns of a table; None are all."""
        body, key = self.view.body, self.view.declared.keys.get(listed.table, ())
        return None if body.reads_all else body.mentioned.get(listed.table, frozenset()).union(key)

    def _fingerprints(self) -> Iterator[tuple[str, Fingerprint]]:
        for name, listed in self.dimensions.items():
            yield name, fingerprint(listed.segments())
        for listed in (*self.listings, *self.dimensions.values()):
            schema = _schema(listed, self._mentioned(listed))
            if schema is not None:
                yield f"{SCHEMA_OF}{listed.table}", schema


def _windows(inputs: Inputs, segments: Sequence[Segment]) -> tuple[Fingerprint, ...]:
    """The fingerprints that windows of these inputs' tables have, if they hold just these segments."""
    sources = (None, *(name for name, _ in inputs.further))
    return tuple(fingerprint(each for each in segments if each.source == source) for source in sources)


def version_of(view: View, versions: Sequence[str], dimensions: Mapping[str, str]) -> str:
    """One version for all inputs of a view: of its tables with a time in order, and of its dimensions.

    A key that was not declared at the last look has yet to be verified, and where the data begins be found.
    """
    keys = sorted(view.declared.keys.items())
    start = ["earliest"] if view.declared.start is None else []
    return f"{hashed(repr((*versions, sorted(dimensions.items()), *keys, *start)))}"


def _wanted_of(listing: Listing) -> str | None:
    """What would tell the columns of a table of which nothing does; of a view below, a STALE bucket does."""
    computed = any(not stretch.vacant for stretch in listing.pending)
    if listing.names or listing.timeless or listing.broken or listing.schema or computed:
        return None
    return f"a {'file' if listing.complete_through is None else 'bucket'} of {listing.table}"


def _schema(listed: Listing, mentioned: frozenset[str] | None) -> Fingerprint | None:
    """Where the table decides what its files' columns mean, that is an input as good as any file.

    None are all columns.
    """
    found = []
    for name, kind in listed.schema.items():
        if mentioned is None or name.lower() in mentioned:
            place = listed.details.columns.get(name, Place(name))
            found.append((f"{name}:{kind}:{_meaning(name, place)}", place.field_id or 0))
    return fingerprint_of(found) if found else None


def _meaning(name: str, place: Place) -> str | None:
    """What else decides a column's values; nothing, where its own name or its id finds it."""
    if place == Place(place.name, place.field_id, varies=place.varies):
        return None if place.field_id is not None or place.name == name else place.name
    return place.meaning


class _Stretches:
    """Pending stretches of time, which are disjoint and in order."""

    def __init__(self, pending: Sequence[Pending]) -> None:
        self._pending = pending
        self._starts = [stretch.start_ms for stretch in pending]

    def between(self, start: int, end: int, *, vacant_through: int | None = None) -> str | None:
        """What `[start, end)` waits for; not for what is vacant after a time, if that is given."""
        for at in range(max(bisect_right(self._starts, start) - 1, 0), len(self._pending)):
            stretch = self._pending[at]
            if stretch.start_ms >= end:
                return None
            empty = stretch.vacant and vacant_through is not None and stretch.start_ms > vacant_through
            if stretch.end_ms > start and not empty:
                return stretch.why
        return None

"""What one look saw of a view: for each bucket its current inputs, and the files that they come from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mv_assets.state import rules
from mv_assets.state.model import SCHEMA_OF, CurrentInputs, Fingerprint, Inputs, Segment
from mv_assets.tables.fingerprint import fingerprint, fingerprint_of, hashed
from mv_assets.tables.listing import Broken, Listing, Pending
from mv_assets.tables.reach import next_end, source_end, sweep
from mv_assets.views.view import View

_HOLDS = "; which buckets its rows belong to is not known, so the watermark stays: restore it, or delete it"


@dataclass(frozen=True, slots=True)
class BucketInputs:
    """One bucket: its current, the places of its segments in the base's listing, and which can't be read."""

    bucket: int
    current: CurrentInputs
    members: tuple[int, ...]
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How far a source is known to reach, and the end of the bucket in which that lies, if it is closed."""

    source_end: int | None
    closed: int | None = None

    @property
    def cap(self) -> int | None:
        """Where a bucket ends at the latest that is complete; None if nothing is known."""
        return rules.complete(self.source_end, self.closed)


class ViewInputs:
    """A view's inputs as they were listed."""

    def __init__(self, view: View, base: Listing, dimensions: Mapping[str, Listing]) -> None:
        self.view = view
        self.base = base
        self.dimensions = dimensions
        self._others = tuple(sorted(self._fingerprints()))
        self._errors = tuple(
            f"dimension {name}: {broken}"
            for name, listed in dimensions.items()
            for broken in listed.broken.values()
        )
        self._broken = {at for at, name in enumerate(base.names) if name in base.broken}
        self._listed = base.listed() if view.freezes else frozenset[str]()

    @property
    def version(self) -> str:
        """Says that all of these inputs are the same as at another time."""
        return version_of(self.base.version, {name: d.version for name, d in self.dimensions.items()})

    def over(self, first: int, end: int) -> Iterator[BucketInputs]:
        """The buckets that overlap `[first, end)`, in order."""
        pending = _Stretches(self.base.pending)
        through = self.base.complete_through
        closed = None if through is None else self.ending(self.base.at).closed
        for reach in sweep(self.base, self.view.buckets, first, end):
            stop = self.view.buckets.next(reach.bucket)
            # What a view below has not got there is not late in a bucket that is closed: it is not there.
            known = through + 1 if through is not None and stop == closed else stop
            waits_for = pending.between(reach.bucket, known)
            inputs = Inputs(reach.fingerprint, self.view.definition, self._others)
            current = CurrentInputs(inputs) if waits_for is None else CurrentInputs(None, waits_for)
            yield BucketInputs(reach.bucket, current, reach.members, self._errors_among(reach.members))

    def segments(self, seen: BucketInputs) -> list[Segment]:
        return [self.base.segment(at) for at in seen.members]

    def source_end(self, now: int) -> int | None:
        return source_end(self.base, now)

    def ending(self, now: int) -> Ending:
        """Where the source ends by now, and the buckets that are complete."""
        end = self.source_end(now)
        closes = self.view.declared.closes if self.base.ends_there else None
        return Ending(end, rules.closed(self.view.buckets, end, closes, now))

    def recheck_at(self, now: int) -> int | None:
        """The time from which the same listings may mean something else."""
        rechecks = [
            listed.recheck_at + listed.behind(now)
            for listed in (self.base, *self.dimensions.values())
            if listed.recheck_at is not None
        ]
        begins = next_end(self.base, now)
        return min(rechecks if begins is None else [begins, *rechecks], default=None)

    def broken(self) -> list[tuple[str, Broken]]:
        """Every file that can't be used, with its table."""
        tables = [self.base, *self.dimensions.values()]
        return [(table.table, broken) for table in tables for broken in table.broken.values()]

    def unusable(self) -> list[tuple[Broken, str]]:
        """The same in order and for people; with what follows if nobody knows where its rows belong."""
        found = sorted(self.broken(), key=lambda each: (each[0], each[1].name))
        return [(file, f"{table}: {file}{'' if file.ranged else _HOLDS}") for table, file in found]

    def with_recorded(self, seen: BucketInputs, recorded: Sequence[Segment]) -> BucketInputs:
        """For a view that freezes: which recorded segments are gone, and whether the rest is equal.

        A file that moved out of the bucket is not gone: it was changed.
        """
        if seen.current.inputs is None:
            return seen
        missing = tuple(sorted(s.name for s in recorded if s.name not in self._listed))
        rest = fingerprint(s for s in recorded if s.name in self._listed)
        equal = bool(missing) and rest == seen.current.inputs.base
        return replace(seen, current=replace(seen.current, missing=missing, rest_equal=equal))

    def dimensions_changed(self, now: int, within: int) -> tuple[int, ...]:
        """When files of the dimensions changed, as far as that is not longer ago."""
        times = {t + listed.behind(now) for listed in self.dimensions.values() for t in listed.changed}
        return tuple(time for time in times if time > now - within)

    def _errors_among(self, members: Sequence[int]) -> tuple[str, ...]:
        if not self._broken:
            return self._errors
        broken = (self.base.broken[self.base.names[at]] for at in members if at in self._broken)
        return (*map(str, broken), *self._errors)

    def _fingerprints(self) -> Iterator[tuple[str, Fingerprint]]:
        for name, listed in self.dimensions.items():
            yield name, fingerprint(listed.segments())
        for listed in (self.base, *self.dimensions.values()):
            schema = _schema(listed, self.view.sql.mentioned.get(listed.table, frozenset()))
            if schema is not None:
                yield f"{SCHEMA_OF}{listed.table}", schema


def version_of(base: str, dimensions: Mapping[str, str]) -> str:
    """One version for all inputs of a view."""
    return f"{hashed(repr((base, sorted(dimensions.items()))))}"


def _schema(listed: Listing, mentioned: frozenset[str]) -> Fingerprint | None:
    """Where the table decides what its files' columns mean, that is an input as good as any file."""
    details = listed.details
    columns = [
        (f"{name}:{kind}:{details.physical_names.get(name)}", details.field_ids.get(name, 0))
        for name, kind in listed.schema.items()
        if name.lower() in mentioned
    ]
    return fingerprint_of(columns) if columns else None


class _Stretches:
    """Pending stretches of time, which are disjoint and in order."""

    def __init__(self, pending: Sequence[Pending]) -> None:
        self._pending = pending
        self._starts = [stretch.start_ms for stretch in pending]

    def between(self, start: int, end: int) -> str | None:
        """What `[start, end)` waits for."""
        at = max(bisect_right(self._starts, start) - 1, 0)
        for stretch in self._pending[at : at + 2]:
            if stretch.start_ms < end and stretch.end_ms > start:
                return stretch.why
        return None

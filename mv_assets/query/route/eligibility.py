"""Which buckets of a view may be used: those whose rows are what the base table would give now, or lately."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mv_assets.observe import keys
from mv_assets.observe.coverage import first_data
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.observe.present import Present
from mv_assets.observe.rewrites import Followed
from mv_assets.query.match.matches import UniqueKey
from mv_assets.query.match.spans import AFTER, BEFORE, Span
from mv_assets.query.route.pinned import Pinned
from mv_assets.state import health, rules
from mv_assets.state.model import PartitionRow, Snapshot, State
from mv_assets.state.store import Store
from mv_assets.tables import upstream
from mv_assets.tables.listing import Listing, Pending
from mv_assets.tables.times import FIRST
from mv_assets.tables.types import INTEGERS
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View

Rows = dict[int, PartitionRow]


class Freshness(StrEnum):
    """What a query may rely on."""

    STRICT = "strict"
    BOUNDED = "bounded"
    OFF = "off"
    STORED = "stored"


class Eligibility:
    """Judges the buckets of views for one try of a query."""

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        pinned: Pinned,
        freshness: Freshness,
        max_staleness: int | None = None,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._pinned = pinned
        self._freshness = freshness
        self._max_staleness = max_staleness
        self._fit: dict[tuple[str, bool], Rows] = {}

    def rows(self, view: View, *, frozen: bool) -> Rows:
        """The map's rows of buckets that may be used; of frozen ones only if they are asked for."""
        key = view.name, frozen
        if key not in self._fit:
            self._fit[key] = self._judged(view, frozen=frozen)
        return self._fit[key]

    def with_keys(self, view: View, rows: Rows, wanted: Sequence[UniqueKey]) -> Rows:
        """Those of some rows that were computed from dimensions whose keys were verified just so."""
        known: dict[object, bool] = {}
        for row in rows.values():
            if row.inputs is not None and row.inputs.dimensions not in known:
                found = keys.unique(view, self._pinned.sources, row.inputs)
                known[row.inputs.dimensions] = all(_alike(each, found.get(each.table, {})) for each in wanted)
        return {bucket: row for bucket, row in rows.items() if row.inputs and known[row.inputs.dimensions]}

    def covered_from(self, view: View) -> int:
        """The time from which the view has all rows of its base table: what it is based on may begin late."""
        if view.declared.base.table in self._catalog.tables:
            return BEFORE
        below = self._catalog.views[view.declared.base.table]
        snapshot = self._pinned.snapshot(below.name)
        start = below.declared.start if snapshot is None else snapshot.header.start
        return max(AFTER if start is None else start, self.covered_from(below))

    def begins_late(self, view: View, snapshot: Snapshot) -> bool:
        """Whether a view that starts with its data lacks some: data has come before what it covers."""
        if view.declared.start is not None:
            return False
        name = view.declared.base.table
        if name in self._catalog.tables:
            found = first_data(self._pinned.tables.listing(name))
            return found is not None and found[0] < snapshot.header.start
        below = self._pinned.snapshot(name)
        late = below is not None and self.begins_late(self._catalog.views[name], below)
        return late or (below is not None and below.header.start < snapshot.header.start)

    def too_old(self, view: View, max_staleness: int | None = None) -> str | None:
        """Why the view is too old for a bounded query."""
        bounds = (max_staleness, self._max_staleness, view.declared.max_staleness)
        bound = next((each for each in bounds if each is not None), None)
        snapshot = self._pinned.snapshot(view.name)
        if bound is None:
            return "it declares no max_staleness"
        if snapshot is None or snapshot.look is None:
            return "nobody has looked at it yet"
        if health.lag(snapshot.header, self._pinned.at) > bound:
            return "it lags behind by more than max_staleness"
        if not -rules.ALIKE_MS <= self._pinned.at - snapshot.look.at <= bound:
            return "the last look is older than max_staleness, or of a clock that has been set back"
        return next((old for below in self._catalog.below(view) if (old := self.too_old(below, bound))), None)

    def _judged(self, view: View, *, frozen: bool) -> Rows:
        snapshot = self._pinned.snapshot(view.name)
        if snapshot is None or self._freshness is Freshness.OFF:
            return {}
        rows = {
            bucket: row
            for bucket, row in snapshot.rows.items()
            if rules.effective_state(row, snapshot.header) is State.VALID
            and row.inputs is not None
            and row.inputs.definition == view.definition
            and (frozen or not row.frozen)
        }
        if not rows:
            return {}
        if self._freshness is Freshness.BOUNDED:
            if self.too_old(view) is not None:
                return {}
            if not self._catalog.below(view):
                return rows
        return self._compared(view, snapshot, rows, frozen=frozen)

    def _compared(self, view: View, snapshot: Snapshot, rows: Rows, *, frozen: bool) -> Rows:
        """The rows whose recorded inputs are those that are there now."""
        present = Present(self._pinned.tables, EligibleViews(self._catalog, self._pinned, self, frozen))
        if not self._catalog.below(view) and self._unchanged(snapshot, present.version_of(view)):
            return rows
        view_inputs = present.inputs(view)
        fit: Rows = {}
        other: dict[int, BucketInputs] = {}
        for seen in view_inputs.over(min(rows), view.buckets.next(max(rows))):
            row = rows.get(seen.bucket)
            if row is not None and seen.current.inputs == row.inputs and not seen.errors:
                fit[seen.bucket] = row
            elif row is not None and seen.current.inputs is not None:
                other[seen.bucket] = seen
        lost = frozen and view.freezes
        if other and (lost or view_inputs.rewritten):
            fit |= {b: rows[b] for b in self._alike(view_inputs, other, rows, lost=lost)}
        return fit

    def _alike(
        self, view_inputs: ViewInputs, other: Mapping[int, BucketInputs], rows: Rows, *, lost: bool
    ) -> Iterator[int]:
        """Of buckets whose inputs differ, those whose rows are right all the same.

        Their files were only rewritten, with the same rows; or, where that is asked for, some have gone and
        nothing else has changed: a view that freezes stays.
        """
        recorded = self._store.recorded(view_inputs.view.name, other)
        followed = view_inputs.follow(other, recorded)
        frozen = view_inputs.with_recorded(other, recorded) if lost else other
        for bucket, seen in other.items():
            now, then = seen.current.inputs, rows[bucket].inputs
            if now is None or then is None:
                continue
            carried = view_inputs.carried(then, recorded.get(bucket), followed.get(bucket, Followed()))
            only_files = replace(now, base=carried.base, further=carried.further) == carried
            if (carried == now and not seen.errors) or (only_files and frozen[bucket].current.rest_equal):
                yield bucket

    def _unchanged(self, snapshot: Snapshot, version: str) -> bool:
        """Whether nothing at all has changed since a look compared everything."""
        look = snapshot.look
        # Files that could not be read, or were too young to be sure of, may hold rows of any bucket.
        sure = look is not None and not look.broken and look.recheck_at is None
        return sure and rules.idle(look, version, snapshot.header.version, self._pinned.at)


def _alike(wanted: UniqueKey, kinds: Mapping[str, str]) -> bool:
    """Whether unequal values of a key stay so where they are compared with those columns of the base.

    Texts compared with numbers would not: '1' and '01' are one number.
    """
    pairs = [(kinds.get(column), kind) for column, kind in zip(wanted.columns, wanted.kinds, strict=True)]
    return all(
        own is not None and (own == other or (own in INTEGERS and other in INTEGERS)) for own, other in pairs
    )


@dataclass(frozen=True, slots=True)
class EligibleViews:
    """Views as tables of which nothing is trusted but what is eligible itself."""

    catalog: Catalog
    pinned: Pinned
    eligibility: Eligibility
    frozen: bool

    def version(self, name: str) -> str:
        snapshot = self.pinned.snapshot(name)
        return "" if snapshot is None else upstream.version_of(snapshot.header)

    def listing(self, name: str) -> Listing:
        snapshot = self.pinned.snapshot(name)
        if snapshot is None:
            return Listing(name, "", self.pinned.at)
        view = self.catalog.views[name]
        rows = self.eligibility.rows(view, frozen=self.frozen)
        listing = upstream.listing_of(snapshot, self.pinned.at, rows)
        if self.eligibility.begins_late(view, snapshot):
            why = f"data of {name} that no look has seen yet"
            listing.pending = (Pending(FIRST, snapshot.header.start, why, vacant=True), *listing.pending)
        return listing


def spans_of(view: View, buckets: Collection[int]) -> list[Span]:
    """The time that buckets take."""
    return [(run[0], view.buckets.next(run[-1])) for run in view.buckets.stretches(buckets)]

"""One round of looks: every table listed once, every view compared with what its tables hold now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ParamSpec, TypeVar

from mv_assets.errors import MvError
from mv_assets.observe import additions as merging
from mv_assets.observe import consistency
from mv_assets.observe.additions import Addition
from mv_assets.observe.inputs import BucketInputs, ViewInputs, version_of
from mv_assets.observe.maps import ImaginedMaps, Maps
from mv_assets.observe.observation import (
    Limits,
    Observation,
    Observed,
    Unchanged,
    horizon,
    nothing_due,
)
from mv_assets.state import health, rules
from mv_assets.state.model import Pulse, Snapshot, State
from mv_assets.state.store import Store
from mv_assets.tables import upstream
from mv_assets.tables.listing import Glance, Listing, Progress, Table, unobserved
from mv_assets.views.bounds import check_start
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View

T = TypeVar("T")
P = ParamSpec("P")
# The progress of a listing, by the table's name.
Observer = Callable[[str], Progress]


class Watch:
    """Makes the looks of one round. What goes wrong with one view or table is an error of its views only."""

    def __init__(
        self,
        catalog: Catalog,
        tables: Mapping[str, Table],
        maps: Maps,
        clock: Callable[[], int],
        observer: Observer = lambda _table: unobserved,
    ) -> None:
        self._catalog = catalog
        self._tables = tables
        self._maps = maps
        self._clock = clock
        self._observer = observer
        self._pulses: dict[str, Pulse | MvError] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._glances: dict[str, Glance | MvError] = {}
        self._listings: dict[str, Listing | MvError] = {}

    def round(
        self,
        names: Iterable[str] | None = None,
        *,
        whole: bool = False,
        named: Mapping[str, frozenset[int]] | None = None,
    ) -> dict[str, Observed | MvError]:
        """Look at views, and at those they are based on, which come first.

        With `whole`, tables are listed even if nothing changed. Buckets that a person has `named`, by view,
        are planned even if they are not due.
        """
        for cache in (self._pulses, self._snapshots, self._glances, self._listings):
            cache.clear()
        views = self._catalog.with_upstream(names)
        # Maps before tables: a difference is then one that the table had later than the map.
        known = _tried(self._maps.pulses, [view.name for view in views])
        for view in views:
            self._pulses[view.name] = _tried(self._declared, view, known)
        asked = named or {}
        found = {
            view.name: _tried(self._observe, view, asked.get(view.name, frozenset()), whole=whole)
            for view in views
        }
        looks = {name: each if isinstance(each, MvError) else None for name, each in found.items()}
        rest = [name for name, each in found.items() if not isinstance(each, MvError) and each.at_rest]
        self._maps.end_round(looks, rest)
        return found

    def _declared(self, view: View, known: Mapping[str, Pulse] | MvError) -> Pulse:
        check_start(view, view.declared.start, self._clock())
        return self._maps.declare(view.declaration, _ok(known).get(view.name))

    def _observe(self, view: View, named: frozenset[int], *, whole: bool) -> Observed:
        pulse, limits, now = _ok(self._pulses[view.name]), self._limits(view), self._clock()
        base_version = self._version(view.declared.base)
        version = version_of(base_version, {name: self._version(name) for name in view.declared.dimensions})
        idle = rules.idle(pulse.look, version, pulse.header.version, now)
        if idle and not whole and not named and nothing_due(pulse, limits, now):
            return Unchanged(view, pulse.header, limits, now, health.broken(pulse))
        # Before the map: an attempt that ends in between is then seen by what it committed.
        alive = self._maps.alive(view.name)
        snapshot = self._snapshot(view.name)
        dimensions = {name: self._listing(name) for name in view.declared.dimensions}
        base = self._listing(view.declared.base)
        view_inputs = ViewInputs(view, base, dimensions)
        ending = view_inputs.ending(now)
        end = horizon(snapshot, limits, ending.cap, now, named)
        seen = {each.bucket: each for each in view_inputs.over(snapshot.header.start, end)}
        snapshot = health.looked(self._look(view, snapshot, pulse.header.version, view_inputs, seen, now))
        self._snapshots[view.name] = snapshot
        if view.freezes:
            seen = self._with_recorded(view, snapshot, view_inputs, seen)
        return Observation(
            view,
            limits,
            now,
            snapshot,
            view_inputs,
            seen,
            ending=ending,
            dimensions_changed=view_inputs.dimensions_changed(now, limits.settle_at_most),
            alive=alive,
            additions=self._additions(view, snapshot, view_inputs, seen),
            broken=tuple(line for _, line in view_inputs.unusable()),
            named=named,
        )

    def _look(
        self,
        view: View,
        snapshot: Snapshot,
        as_of: int,
        view_inputs: ViewInputs,
        seen: Mapping[int, BucketInputs],
        now: int,
    ) -> Snapshot:
        found = consistency.differing(snapshot, seen.values(), as_of)
        recorded = self._maps.recorded(view.name, consistency.needs_recorded(snapshot, found))
        look = consistency.look(snapshot, as_of, view_inputs, found, recorded, now)
        return self._maps.look(view.declaration, snapshot, look)

    def _with_recorded(
        self, view: View, snapshot: Snapshot, view_inputs: ViewInputs, seen: Mapping[int, BucketInputs]
    ) -> dict[int, BucketInputs]:
        """A frozen bucket waits for its files: a plan must know which of them are gone."""
        header = snapshot.header
        stale = [b for b, row in snapshot.rows.items() if rules.effective_state(row, header) is State.STALE]
        recorded = self._maps.recorded(view.name, stale)
        known = {b: view_inputs.with_recorded(seen[b], recorded.get(b, ())) for b in stale if b in seen}
        return {**seen, **known}

    def _additions(
        self, view: View, snapshot: Snapshot, view_inputs: ViewInputs, seen: Mapping[int, BucketInputs]
    ) -> dict[int, Addition]:
        table = self._catalog.tables.get(view.declared.base)
        if view.merging is None or getattr(table, "reader", "files") != "files":
            return {}
        recorded = self._maps.recorded(view.name, merging.candidates(snapshot, seen, view_inputs.base))
        found = {
            bucket: merging.addition(snapshot.rows[bucket], seen[bucket], segments, view_inputs.base)
            for bucket, segments in recorded.items()
        }
        return {bucket: each for bucket, each in found.items() if each is not None}

    def _limits(self, view: View) -> Limits:
        declared, tables = view.declared, self._catalog.tables
        # A view as base has nothing to settle; a dimension that it is joined with may have.
        used = [tables[name] for name in (declared.base, *declared.dimensions) if name in tables]
        return Limits(
            declared.max_buckets_per_run,
            declared.buffer,
            settle=max((table.settle for table in used), default=0),
            settle_at_most=max((table.settle_at_most for table in used), default=0),
            closes=declared.closes,
        )

    def _version(self, name: str) -> str:
        if name not in self._pulses:
            return self._glance(name).version
        header = self._snapshots[name].header if name in self._snapshots else _ok(self._pulses[name]).header
        return upstream.version_of(header)

    def _snapshot(self, name: str) -> Snapshot:
        _ok(self._pulses[name])
        if name not in self._snapshots:
            self._snapshots[name] = self._maps.snapshot(name)
        return self._snapshots[name]

    def _glance(self, name: str) -> Glance:
        if name not in self._glances:
            self._glances[name] = _tried(self._tables[name].glance)
        return _ok(self._glances[name])

    def _listing(self, name: str) -> Listing:
        if name in self._pulses:
            return upstream.listing_of(self._snapshot(name), self._clock())
        if name not in self._listings:
            self._listings[name] = _tried(self._list, name)
        return _ok(self._listings[name])

    def _list(self, name: str) -> Listing:
        listing = self._glance(name).listing(self._observer(name))
        if listing.unplaced:
            self._place_broken(listing)
        return listing

    def _place_broken(self, listing: Listing) -> None:
        """A broken file of unknown range may once have been read for a view: then that is its range."""
        unplaced = {broken.name: broken for broken in listing.unplaced}
        views = [view.name for view in self._catalog.views.values() if view.declared.base == listing.table]
        ranges: dict[str, tuple[int, int]] = {}
        for view in (name for name in views if isinstance(self._pulses.get(name), Pulse)):
            recorded = self._maps.recorded(view, self._snapshot(view).rows)
            for each in (segment for segments in recorded.values() for segment in segments):
                start, end = ranges.get(each.name, (each.start_ms, each.end_ms))
                ranges[each.name] = min(start, each.start_ms), max(end, each.end_ms)
        for name in unplaced.keys() & ranges.keys():
            listing.place(unplaced[name], ranges[name])


class ImaginedWatch(Watch):
    """Looks that nobody is told of: on copies of the maps, so that it can be imagined, too, what follows."""

    def __init__(
        self,
        catalog: Catalog,
        tables: Mapping[str, Table],
        store: Store | None,
        clock: Callable[[], int],
        observer: Observer = lambda _table: unobserved,
    ) -> None:
        self._copies = ImaginedMaps(store)
        super().__init__(catalog, tables, self._copies, clock, observer)

    def again(self, view: View) -> Observed | MvError:
        """What there is now of one view of the round, if the maps below it are others; nothing is listed."""
        return _tried(self._observe, view, frozenset(), whole=True)

    def map_of(self, view: str) -> Snapshot:
        return self._copies.snapshot(view)

    def imagine(self, snapshot: Snapshot) -> None:
        """Have the map of a view be another from now on."""
        self._copies.imagine(snapshot)
        self._snapshots[snapshot.header.view] = snapshot


def _tried(step: Callable[P, T], *given: P.args, **named: P.kwargs) -> T | MvError:
    try:
        return step(*given, **named)
    except MvError as error:
        return error


def _ok(found: T | MvError) -> T:
    if isinstance(found, MvError):
        raise found
    return found

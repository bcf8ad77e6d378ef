"""One round of looks: every table listed once, every view compared with what its tables hold now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from mv_assets.errors import MvError
from mv_assets.observe import additions as merging
from mv_assets.observe import consistency, keys, remembered
from mv_assets.observe.additions import Addition
from mv_assets.observe.coverage import reach_back
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.observe.maps import ImaginedMaps, Maps, RoundMaps
from mv_assets.observe.observation import (
    Limits,
    Observation,
    Observed,
    Unchanged,
    horizon,
    nothing_due,
)
from mv_assets.observe.present import Present, Tables, ok, tried
from mv_assets.observe.remembered import Remembered
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.state import health, rules
from mv_assets.state.model import MapSummary, Snapshot, State
from mv_assets.state.store import Store
from mv_assets.tables.listing import Listing, Table, TableVersion
from mv_assets.views.bounds import check_start
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View


class Watch:
    """Makes the looks of one round. What goes wrong with one view or table is an error of its views only."""

    def __init__(
        self,
        catalog: Catalog,
        tables: Mapping[str, Table],
        maps: Maps,
        clock: Callable[[], int],
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self._catalog = catalog
        self._tables = tables
        self._maps = maps
        self._clock = clock
        self._progress = progress
        self._begin()

    def round(
        self,
        names: Iterable[str] | None = None,
        *,
        whole: bool = False,
        named: Mapping[str, frozenset[int]] | None = None,
    ) -> dict[str, Observed | MvError]:
        """Look at views, and at those they are based on, which come first.

        With `whole`, tables are listed even if nothing changed, every bucket is compared, and its inputs are
        observed. Buckets that a person has `named`, by view, are planned even if they are not due.
        """
        self._begin()
        views = self._catalog.with_upstream(names)
        # Maps before tables: a difference is then one that the table had later than the map.
        known = tried(self._maps.summaries, [view.name for view in views])
        for view in views:
            self._round_maps.note(view.name, tried(self._declared, view, known))
        # What was settled by what looks remembered is compared in time even if nothing changes any more.
        due = self._maps.begin_round(self._round_maps.summaries, self._clock(), whole=whole)
        asked = named or {}
        found = {
            view.name: tried(
                self._observe, view, asked.get(view.name, frozenset()), whole=view.name in due, keep=whole
            )
            for view in views
        }
        looks = {name: each if isinstance(each, MvError) else None for name, each in found.items()}
        rest = [name for name, each in found.items() if not isinstance(each, MvError) and each.at_rest]
        self._maps.end_round(looks, rest)
        return found

    def _begin(self) -> None:
        """Forget the last round."""
        self._round_maps = RoundMaps(self._maps, self._clock)
        self._present = Present(Tables(self._tables, self._listed), self._round_maps)

    def _declared(self, view: View, known: Mapping[str, MapSummary] | MvError) -> MapSummary:
        if view.declared.start is not None:
            check_start(view, view.declared.start, self._clock())
        return self._maps.declare(view.declaration, ok(known).get(view.name))

    def _observe(self, view: View, named: frozenset[int], *, whole: bool, keep: bool) -> Observed:
        summary, limits, now = self._round_maps.summary(view.name), self._limits(view), self._clock()
        version = self._present.version_of(view)
        idle = rules.idle(summary.look, version, summary.header.version, now)
        if idle and not whole and not named and nothing_due(summary, limits, now):
            ends_first = None if summary.look is None else summary.look.ends_first
            return Unchanged(view, summary.header, limits, now, health.broken(summary), ends_first)
        # Before the map: an attempt that ends in between is then seen by what it committed.
        alive = self._maps.alive(view.name)
        snapshot = self._round_maps.snapshot(view.name)
        view_inputs = self._present.inputs(view)
        keys.verify(view_inputs, self._tables)
        snapshot, beyond = reach_back(self._maps, view, snapshot, view_inputs.base, now)
        ending = view_inputs.ending(now)
        end = horizon(snapshot, limits, ending.cap, now, named)
        last = None if whole else self._maps.remembered(view.name)
        compared = self._to_compare(last, snapshot, view_inputs, end, named)
        every = view_inputs.over(snapshot.header.start, end) if compared is None else view_inputs.of(compared)
        # Of very many buckets most have nothing to say.
        seen = {
            each.bucket: each
            for each in every
            if keep or each.bucket in named or not remembered.settled(snapshot, each)
        }
        as_of = summary.header.version
        # Of the look that this one goes on from, whatever other threads remember meanwhile.
        whole_at = now if compared is None or last is None else last.whole_at
        among = None if compared is None else seen.keys()
        looked = self._look(
            view, snapshot, as_of, view_inputs, seen, now, whole_at, among=among, beyond=beyond
        )
        snapshot = health.looked(looked)
        self._round_maps.put(snapshot)
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
            broken=view_inputs.lines(beyond),
            named=named,
        )

    def _to_compare(
        self,
        last: Remembered | None,
        snapshot: Snapshot,
        view_inputs: ViewInputs,
        end: int,
        named: frozenset[int],
    ) -> set[int] | None:
        """The buckets of which the last look can't have said all that this one could; None: any."""
        found = None if last is None else remembered.to_compare(last, snapshot, view_inputs, end)
        return None if found is None else found | {b for b in named if snapshot.header.start <= b < end}

    def _look(
        self,
        view: View,
        snapshot: Snapshot,
        as_of: int,
        view_inputs: ViewInputs,
        seen: Mapping[int, BucketInputs],
        now: int,
        whole_at: int,
        *,
        among: Collection[int] | None,
        beyond: str | None,
    ) -> Snapshot:
        found = consistency.differing(
            snapshot, seen.values(), as_of, freezes=view.freezes, rewritten=view_inputs.rewritten
        )
        recorded = self._maps.recorded(view.name, consistency.needs_recorded(snapshot, found))
        look = consistency.look(
            snapshot, as_of, view_inputs, found, recorded, now, whole_at=whole_at, among=among, beyond=beyond
        )
        looked = self._maps.look(view.declaration, snapshot, look)
        # Not before it is written: what was found and not said would be lost.
        still_open = remembered.still_open(snapshot, seen.values())
        self._maps.remember(Remembered(view_inputs.trace, snapshot, still_open, whole_at))
        return looked

    def _with_recorded(
        self, view: View, snapshot: Snapshot, view_inputs: ViewInputs, seen: Mapping[int, BucketInputs]
    ) -> dict[int, BucketInputs]:
        """A frozen bucket waits for its files: a plan must know which of them are gone."""
        header = snapshot.header
        stale = [b for b, row in snapshot.rows.items() if rules.effective_state(row, header) is State.STALE]
        recorded = self._maps.recorded(view.name, stale)
        return view_inputs.with_recorded(seen, recorded)

    def _additions(
        self, view: View, snapshot: Snapshot, view_inputs: ViewInputs, seen: Mapping[int, BucketInputs]
    ) -> dict[int, Addition]:
        table = self._catalog.tables.get(view.declared.base.table)
        if view.merging is None or getattr(table, "reader", "files") != "files":
            return {}
        recorded = self._maps.recorded(view.name, merging.candidates(snapshot, seen, view_inputs.base))
        # Of a map that is only imagined, what is recorded has not followed.
        followed = view_inputs.follow(seen, recorded)
        found = {
            bucket: merging.addition(snapshot.rows[bucket], seen[bucket], each.segments, view_inputs.base)
            for bucket, each in followed.items()
        }
        return {bucket: each for bucket, each in found.items() if each is not None}

    def _limits(self, view: View) -> Limits:
        declared, tables = view.declared, self._catalog.tables
        # A view as base has nothing to settle; a dimension that it is joined with may have.
        used = [tables[name] for name in declared.reads if name in tables]
        return Limits(
            declared.max_buckets_per_run,
            view.buffer,
            settle=max((table.settle for table in used), default=0),
            settle_at_most=max((table.settle_at_most for table in used), default=0),
            closes=view.closes,
        )

    def _listed(self, name: str, version: TableVersion) -> Listing:
        listing = version.listing(partial(self._progress.reading, name))
        if listing.unplaced:
            self._place_broken(listing)
        return listing

    def _place_broken(self, listing: Listing) -> None:
        """A broken file of unknown range may once have been read for a view: then that is its range."""
        unplaced = {broken.name: broken for broken in listing.unplaced}
        views = [view for view in self._catalog.views.values() if listing.table in view.declared.timed]
        ranges: dict[str, tuple[int, int]] = {}
        for view in (each for each in views if self._round_maps.is_declared(each.name)):
            recorded = self._maps.recorded(view.name, self._round_maps.snapshot(view.name).rows)
            source = None if view.declared.base.table == listing.table else listing.table
            for each in (s for segments in recorded.values() for s in segments if s.source == source):
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
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self._copies = ImaginedMaps(store, clock)
        super().__init__(catalog, tables, self._copies, clock, progress)

    def again(self, view: View) -> Observed | MvError:
        """What there is now of one view of the round, if the maps below it are others; nothing is listed."""
        return tried(self._observe, view, frozenset(), whole=True, keep=True)

    def map_of(self, view: str) -> Snapshot:
        return self._copies.snapshot(view)

    def imagine(self, snapshot: Snapshot) -> None:
        """Have the map of a view be another from now on."""
        self._copies.imagine(snapshot)
        self._round_maps.put(snapshot)

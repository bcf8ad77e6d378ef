"""Where a look's findings go: into the partition map, or, for plans that write nothing, into a copy of it.

What the looks of one round know of the maps is there too: views are the tables of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from mv_assets.errors import MvError
from mv_assets.observe import consistency
from mv_assets.observe.present import ok
from mv_assets.observe.remembered import REMEMBERED, Remembered
from mv_assets.state import rules
from mv_assets.state.errors import UnknownView
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Declaration, Doing, Look, MapSummary, Segment, Snapshot
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store
from mv_assets.state.troubles import Troubles
from mv_assets.tables import upstream
from mv_assets.tables.listing import Listing
from mv_assets.tables.recent import Recent, is_due

# Views as tables, as they were listed last, by database and view; so many rows of maps at most.
LISTED: Recent[upstream.Known] = Recent(1_000_000)


class Maps(Protocol):
    """The maps of all views, as looks and plans use them."""

    def begin_round(self, views: Mapping[str, MapSummary], now: int, *, whole: bool) -> frozenset[str]:
        """Looks at these views are about to be made: give those that are due to be looked at as a whole.

        With `whole` all are. Of these nothing is remembered any more.
        """
        ...

    def remembered(self, view: str) -> Remembered | None:
        """What an earlier look found out."""
        ...

    def remember(self, look: Remembered) -> None:
        """Keep what a look found out, for the next one."""
        ...

    def summaries(self, views: Iterable[str]) -> Mapping[str, MapSummary]:
        """Of the views that are known, what tells whether anything is to be done."""
        ...

    def declare(self, view: Declaration, known: MapSummary | None) -> MapSummary:
        """Put the declaration in force, unless what is known of the view says that it is.

        Raises:
            Fenced: a newer definition took over.

        """
        ...

    def snapshot(self, view: str) -> Snapshot:
        """The map of a view that was declared."""
        ...

    def extend(self, view: Declaration, before: Snapshot) -> Snapshot:
        """The map with coverage from the declared start on, which is an earlier one."""
        ...

    def look(self, view: Declaration, before: Snapshot, look: Look) -> Snapshot:
        """The map after a look."""
        ...

    def listing(self, snapshot: Snapshot, at: int) -> Listing:
        """The map of a view as the table of another."""
        ...

    def recorded(self, view: str, buckets: Iterable[int]) -> Mapping[int, tuple[Segment, ...]]:
        """The segments that buckets were computed from."""
        ...

    def alive(self, view: str) -> frozenset[str]:
        """Generations that are being staged now."""
        ...

    def end_round(self, looks: Mapping[str, MvError | None], at_rest: Iterable[str]) -> None:
        """A round is over: by view, the error that its look ended with; and the views with nothing to do."""
        ...


class StoredMaps:
    """The maps themselves: a look is written."""

    def __init__(self, store: Store, manager: PartitionManager) -> None:
        self._store = store
        self._manager = manager

    def begin_round(self, views: Mapping[str, MapSummary], now: int, *, whole: bool) -> frozenset[str]:
        due = frozenset(view for view, known in views.items() if whole or self._is_due(known, now))
        for view in due:
            REMEMBERED.forget(self._key(view))
            LISTED.forget(self._key(view))
        return due

    def _is_due(self, known: MapSummary, now: int) -> bool:
        """By what the database says, whoever looked and whatever became of that; and by what is remembered.

        A look that fails leaves it due. What is remembered here is checked though others have compared all.
        """
        record, last = known.look, self.remembered(known.header.view)
        if record is None or record.whole_at is None or is_due(record.whole_at, now):
            return True
        return last is not None and is_due(last.whole_at, now)

    def remembered(self, view: str) -> Remembered | None:
        return REMEMBERED.get(self._key(view))

    def remember(self, look: Remembered) -> None:
        REMEMBERED.put(self._key(look.snapshot.header.view), look, len(look.snapshot.rows))

    def _key(self, view: str) -> tuple[str, str]:
        return self._store.database.where, view

    def summaries(self, views: Iterable[str]) -> Mapping[str, MapSummary]:
        return self._store.summaries(views)

    def declare(self, view: Declaration, known: MapSummary | None) -> MapSummary:
        if known is not None and rules.in_force(known.header, view):
            return known
        self._manager.declare(view)
        return self._store.summary(view.view)

    def snapshot(self, view: str) -> Snapshot:
        last = self.remembered(view)
        return self._store.snapshot(view, known=None if last is None else last.snapshot)

    def extend(self, view: Declaration, before: Snapshot) -> Snapshot:
        self._manager.declare(view)
        return self._store.snapshot(view.view, known=before)

    def look(self, view: Declaration, before: Snapshot, look: Look) -> Snapshot:
        written = look.marks.keys() | look.follows.keys() if self._manager.look(view, look) else ()
        return self._store.snapshot(before.header.view, known=before, written=written)

    def listing(self, snapshot: Snapshot, at: int) -> Listing:
        key = self._key(snapshot.header.view)
        known = upstream.following(LISTED.get(key), snapshot, at)
        LISTED.put(key, known, len(snapshot.rows))
        return known.listing

    def recorded(self, view: str, buckets: Iterable[int]) -> Mapping[int, tuple[Segment, ...]]:
        return self._store.recorded(view, buckets)

    def alive(self, view: str) -> frozenset[str]:
        return Registry(self._store).alive(view)

    def end_round(self, looks: Mapping[str, MvError | None], at_rest: Iterable[str]) -> None:
        troubles = Troubles(self._store, self._manager.clock)
        # What kept somebody from work that a peer has done meanwhile keeps nobody from anything.
        troubles.note_all({Doing.LOOK: looks, Doing.WORK: dict.fromkeys(at_rest)})


class ImaginedMaps:
    """Copies of the maps: nothing is written. Without a store, the state is still empty."""

    def __init__(self, store: Store | None, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._maps: dict[str, Snapshot] = {}

    def begin_round(self, views: Mapping[str, MapSummary], now: int, *, whole: bool) -> frozenset[str]:  # noqa: ARG002
        """Nothing is remembered: what is compared at all is compared as a whole."""
        return frozenset(views) if whole else frozenset()

    def remembered(self, view: str) -> None:  # noqa: ARG002 - as above
        return None

    def remember(self, look: Remembered) -> None:
        """What is imagined is no reason to leave anything out."""

    def summaries(self, views: Iterable[str]) -> Mapping[str, MapSummary]:  # noqa: ARG002 - the maps tell
        return {}

    def declare(self, view: Declaration, known: MapSummary | None) -> MapSummary:  # noqa: ARG002 - as above
        imagined = self._declared(view)
        self._maps[view.view] = imagined
        return MapSummary(imagined.header, imagined.look)

    def snapshot(self, view: str) -> Snapshot:
        return self._maps[view]

    def extend(self, view: Declaration, before: Snapshot) -> Snapshot:
        header = rules.extend(before.header, view.start) or before.header
        rows = {**before.rows, **rules.brought_in(before.header, header)}
        self._maps[view.view] = replace(before, header=header, rows=rows)
        return self._maps[view.view]

    def look(self, view: Declaration, before: Snapshot, look: Look) -> Snapshot:
        self._maps[view.view] = consistency.imagined(before, look)
        return self._maps[view.view]

    def listing(self, snapshot: Snapshot, at: int) -> Listing:
        return upstream.listing_of(snapshot, at)

    def recorded(self, view: str, buckets: Iterable[int]) -> Mapping[int, tuple[Segment, ...]]:
        wanted = list(buckets)
        return {} if self._store is None or not wanted else self._store.recorded(view, wanted)

    def alive(self, view: str) -> frozenset[str]:
        return frozenset() if self._store is None else Registry(self._store).alive(view)

    def imagine(self, snapshot: Snapshot) -> None:
        """Have the map of a view be another from now on."""
        self._maps[snapshot.header.view] = snapshot

    def end_round(self, looks: Mapping[str, MvError | None], at_rest: Iterable[str]) -> None:
        """Who only imagines tells nobody."""

    def _declared(self, view: Declaration) -> Snapshot:
        if self._store is None:
            return self._new(view)
        try:
            before, history = self._store.snapshot(view.view), self._store.history(view.view)
        except UnknownView:
            return self._new(view)
        taken = rules.declare(before.header, history, view)
        if taken is not None:
            same_width = taken.width == before.header.width
            return Snapshot(taken, before.rows if same_width else {}, {}, None)
        return replace(before, header=rules.extend(before.header, view.start) or before.header)

    def _new(self, view: Declaration) -> Snapshot:
        return Snapshot(rules.start_view(view, self._clock()), {}, {}, None)


class RoundMaps:
    """The maps in one round, as its looks have left them so far; and views as tables by them."""

    def __init__(self, maps: Maps, clock: Callable[[], int]) -> None:
        self._maps = maps
        self._clock = clock
        self._summaries: dict[str, MapSummary | MvError] = {}
        self._snapshots: dict[str, Snapshot] = {}

    def note(self, view: str, found: MapSummary | MvError) -> None:
        """Know the map of a view that was declared, or why it could not be."""
        self._summaries[view] = found

    @property
    def summaries(self) -> dict[str, MapSummary]:
        """Of the views that are declared."""
        return {view: each for view, each in self._summaries.items() if isinstance(each, MapSummary)}

    def is_declared(self, view: str) -> bool:
        return isinstance(self._summaries.get(view), MapSummary)

    def summary(self, view: str) -> MapSummary:
        return ok(self._summaries[view])

    def snapshot(self, view: str) -> Snapshot:
        self.summary(view)
        if view not in self._snapshots:
            self._snapshots[view] = self._maps.snapshot(view)
        return self._snapshots[view]

    def put(self, snapshot: Snapshot) -> None:
        """Have the map of a view be another from now on."""
        self._snapshots[snapshot.header.view] = snapshot

    def version(self, name: str) -> str:
        known = self._snapshots.get(name) or self.summary(name)
        return upstream.version_of(known.header)

    def listing(self, name: str) -> Listing:
        return self._maps.listing(self.snapshot(name), self._clock())


@dataclass(frozen=True, slots=True)
class StoredViews:
    """Views as tables, by their maps as they are stored at the moment."""

    store: Store
    clock: Callable[[], int]

    def version(self, name: str) -> str:
        return upstream.version_of(self.store.summary(name).header)

    def listing(self, name: str) -> Listing:
        return upstream.listing_of(self.store.snapshot(name), self.clock())

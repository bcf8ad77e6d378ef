"""Where a look's findings go: into the partition map, or, for plans that write nothing, into a copy of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from mv_assets.errors import MvError, UnknownView
from mv_assets.observe import consistency
from mv_assets.state import rules
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Declaration, Doing, Look, Pulse, Segment, Snapshot
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store
from mv_assets.state.troubles import Troubles


class Maps(Protocol):
    """The maps of all views, as looks and plans use them."""

    def pulses(self, views: Iterable[str]) -> Mapping[str, Pulse]:
        """Of the views that are known, what tells whether anything is to be done."""
        ...

    def declare(self, view: Declaration, known: Pulse | None) -> Pulse:
        """Put the declaration in force, unless what is known of the view says that it is.

        Raises:
            Fenced: a newer definition took over.

        """
        ...

    def snapshot(self, view: str) -> Snapshot:
        """The map of a view that was declared."""
        ...

    def look(self, view: Declaration, before: Snapshot, look: Look) -> Snapshot:
        """The map after a look."""
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

    def pulses(self, views: Iterable[str]) -> Mapping[str, Pulse]:
        return self._store.pulses(views)

    def declare(self, view: Declaration, known: Pulse | None) -> Pulse:
        if known is not None and rules.in_force(known.header, view):
            return known
        self._manager.declare(view)
        return self._store.pulse(view.view)

    def snapshot(self, view: str) -> Snapshot:
        return self._store.snapshot(view)

    def look(self, view: Declaration, before: Snapshot, look: Look) -> Snapshot:
        self._manager.look(view, look)
        return self._store.snapshot(before.header.view, known=before)

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

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._maps: dict[str, Snapshot] = {}

    def pulses(self, views: Iterable[str]) -> Mapping[str, Pulse]:  # noqa: ARG002 - the maps tell
        return {}

    def declare(self, view: Declaration, known: Pulse | None) -> Pulse:  # noqa: ARG002 - as above
        imagined = self._declared(view)
        self._maps[view.view] = imagined
        return Pulse(imagined.header, imagined.look)

    def snapshot(self, view: str) -> Snapshot:
        return self._maps[view]

    def look(self, view: Declaration, before: Snapshot, look: Look) -> Snapshot:
        self._maps[view.view] = consistency.imagined(before, look)
        return self._maps[view.view]

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
            return _new(view)
        try:
            before, history = self._store.snapshot(view.view), self._store.history(view.view)
        except UnknownView:
            return _new(view)
        taken = rules.declare(before.header, history, view)
        if taken is not None:
            same_width = taken.width == before.header.width
            return Snapshot(taken, before.rows if same_width else {}, {}, None)
        return replace(before, header=rules.extend(before.header, view.start) or before.header)


def _new(view: Declaration) -> Snapshot:
    return Snapshot(rules.start_view(view), {}, {}, None)

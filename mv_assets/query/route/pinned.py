"""The tables and maps as one try of a query sees them: each listed, or pinned, once."""

from __future__ import annotations

from contextlib import ExitStack
from urllib.parse import unquote

from mv_assets.buckets import Buckets
from mv_assets.errors import UnknownView
from mv_assets.query.match.spans import AFTER, BEFORE, EVER, Span
from mv_assets.run.opened import OpenProject
from mv_assets.state.model import Snapshot
from mv_assets.tables.listing import ALWAYS, Glance, Listing, relisted, replaced
from mv_assets.wording import printable

# The last map that was read of each view, and its window.
Maps = dict[str, tuple[Span, Snapshot]]


class Pinned:
    """What is there now. Maps are pinned until `held` is closed, as far as they lie in the window."""

    def __init__(self, project: OpenProject, held: ExitStack, maps: Maps | None = None) -> None:
        self._project = project
        self._held = held
        self._maps = {} if maps is None else maps
        self._window = EVER
        self._glances: dict[str, Glance] = {}
        self._listings: dict[str, Listing] = {}
        self._snapshots: dict[str, Snapshot | None] = {}
        self._read: dict[str, set[str]] = {}
        self.at = project.clock()

    def limit(self, window: Span) -> None:
        """Have maps read in a window only, in whole buckets of every view."""
        self._window = _wide(window, [view.buckets for view in self._project.catalog.views.values()])

    def unread(self, table: str) -> bool:
        """Whether the table, as far as it was listed, has files that may hold rows of any time."""
        return table in self._listings and bool(self._listings[table].unread)

    def extent(self, table: str) -> Span | None:
        """From the first to after the last time of the files, as far as they were listed."""
        listing = self._listings.get(table)
        return None if not listing else (min(listing.starts), max(listing.ends) + 1)

    def version(self, table: str) -> str:
        return self._glance(table).version

    def listing(self, table: str) -> Listing:
        if table not in self._listings:
            self._listings[table] = self._glance(table).listing()
        return self._listings[table]

    def _glance(self, table: str) -> Glance:
        if table not in self._glances:
            self._glances[table] = self._project.tables[table].glance()
        return self._glances[table]

    def snapshot(self, view: str) -> Snapshot | None:
        """A view's map in the window; None while nobody has declared the view."""
        if view not in self._snapshots:
            start, end = (None if edge in (BEFORE, AFTER) else edge for edge in self._window)
            window, known = self._maps.get(view, (None, None))
            known = known if window == self._window else None
            try:
                pinned = self._held.enter_context(self._project.leases.pin(view, start, end, known))
            except UnknownView:
                self._snapshots[view] = None
            else:
                self._snapshots[view] = pinned.snapshot
                self._maps[view] = self._window, pinned.snapshot
        return self._snapshots[view]

    def note(self, table: str, files: set[str]) -> None:
        """Remember files that are read for the answer."""
        self._read.setdefault(table, set()).update(files)

    def named_in(self, said: str) -> tuple[str, str] | None:
        """The file that is read for the answer and that an error speaks of: its table and its name."""
        said = unquote(said)
        found = [
            (table, name)
            for table, files in self._read.items()
            for name in files
            if printable(name) in said or self.listing(table).path(name) in said
        ]
        # One name may be the end of another.
        return max(found, key=lambda each: len(each[1]), default=None)

    def span(self, table: str, file: str) -> Span | None:
        """From the first to the last time of a file, if that is known, and not any."""
        listing = self.listing(table)
        if file not in listing.names:
            return None
        at = listing.names.index(file)
        found = listing.starts[at], listing.ends[at]
        return None if found == ALWAYS else found

    def changed(self) -> tuple[str, str] | None:
        """A file that was read and is no longer the one that was listed: its table and its name."""
        for table, files in self._read.items():
            before = self.listing(table)
            now = relisted(self._project.tables[table], before)
            if now is before:
                continue
            # What has no range has no identity in a listing; when anything moved, it may be what did.
            unknown = files - set(before.names)
            gone = (replaced(before, now) & files) | (unknown if now.version != before.version else set())
            if gone:
                return table, min(gone)
        return None


def _wide(window: Span, widths: list[Buckets]) -> Span:
    """The window in whole buckets of every view: a bucket of one may take several of another."""
    start, end = window
    for _ in widths:
        start = start if start == BEFORE else min(buckets.floor(start) for buckets in widths)
        end = end if end == AFTER else max(buckets.ceil(end) for buckets in widths)
    return start, end

"""The tables and maps as one try of a query sees them: each listed, or pinned, once."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self
from urllib.parse import unquote

from mv_assets.observe.present import Tables, relisted
from mv_assets.query.match.spans import AFTER, BEFORE, EVER, Span
from mv_assets.run.opened import OpenProject
from mv_assets.state.errors import UnknownView
from mv_assets.state.model import Snapshot
from mv_assets.tables.listing import ALWAYS, replaced
from mv_assets.text import printable
from mv_assets.views.view import View

# The last map that was read of each view, and its window.
Maps = dict[str, tuple[Span, Snapshot]]


class Pinned:
    """What is there now. What the maps name in the window stays there while the block runs.

    Raises:
        LeaseExpired: at the end of the block, if a lease could not be kept; discard what was read.

    """

    def __init__(self, project: OpenProject, maps: Maps | None = None) -> None:
        self._project = project
        self._leases = ExitStack()
        self._maps = {} if maps is None else maps
        self._window = EVER
        self._snapshots: dict[str, Snapshot | None] = {}
        self._read: dict[str, set[str]] = {}
        self.sources = project.tables
        self.tables = Tables(project.tables)
        self.at = project.clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leases.__exit__(kind, error, trace)

    def limit(self, window: Span) -> None:
        """Have maps read in a window only, in whole buckets of every view."""
        self._window = _wide(window, list(self._project.catalog.views.values()))

    def unread(self, table: str) -> bool:
        """Whether the table, as far as it was listed, has files that may hold rows of any time."""
        listing = self.tables.known(table)
        return listing is not None and bool(listing.unread)

    def extent(self, table: str) -> Span | None:
        """From the first to after the last time of the files, as far as they were listed."""
        listing = self.tables.known(table)
        return None if not listing else (min(listing.starts), max(listing.ends) + 1)

    def snapshot(self, view: str) -> Snapshot | None:
        """A view's map in the window; None while nobody has declared the view."""
        if view not in self._snapshots:
            start, end = (None if edge in (BEFORE, AFTER) else edge for edge in self._window)
            window, known = self._maps.get(view, (None, None))
            known = known if window == self._window else None
            try:
                pinned = self._leases.enter_context(self._project.leases.pin(view, start, end, known))
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
            if printable(name) in said or self.tables.listing(table).path(name) in said
        ]
        # One name may be the end of another.
        return max(found, key=lambda each: len(each[1]), default=None)

    def span(self, table: str, file: str) -> Span | None:
        """From the first to the last time of a file, if that is known, and not any."""
        listing = self.tables.listing(table)
        if file not in listing.names:
            return None
        at = listing.names.index(file)
        found = listing.starts[at], listing.ends[at]
        return None if found == ALWAYS else found

    def changed(self) -> tuple[str, str] | None:
        """A file that was read and is no longer the one that was listed: its table and its name."""
        for table, files in self._read.items():
            before = self.tables.listing(table)
            now = relisted(Tables(self._project.tables), before)
            if now is before:
                continue
            # What has no range has no identity in a listing; when anything moved, it may be what did.
            unknown = files - set(before.names)
            gone = (replaced(before, now) & files) | (unknown if now.version != before.version else set())
            if gone:
                return table, min(gone)
        return None


def _wide(span: Span, views: list[View]) -> Span:
    """The time in whole buckets of every view, with their windows.

    A bucket of one may take several of another.
    """
    start, end = span
    for _ in views:
        start = start if start == BEFORE else min(_around(view, start)[0] for view in views)
        end = end if end == AFTER else max(_around(view, end - 1)[1] for view in views)
    return start, end


def _around(view: View, time: int) -> Span:
    """All that the bucket reads in which a time lies."""
    bucket = view.buckets.floor(time)
    spans = [view.buckets.window(bucket, window.before, window.after) for window in view.windows]
    return min(start for start, _ in spans), max(end for _, end in spans)

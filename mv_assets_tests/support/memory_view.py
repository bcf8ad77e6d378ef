"""Views over tables in memory, as the code that looks at views wants them: no file, no SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mv_assets.config import MaterializedView
from mv_assets.config.models import BaseTable, FurtherTable
from mv_assets.state.model import Declaration, Segment
from mv_assets.tables.listing import History, Listing, OnRead, Pending, Rewrite, unnoticed
from mv_assets.views.admission import ViewSql
from mv_assets.views.view import View, Window
from mv_assets_tests.support.memory_table import Files, segments

_NO_SQL = ViewSql("", "", (), None, aggregates=False, used={})


def memory_view(
    declaration: Declaration, windows: Sequence[Window], *, closes: int | None = None, freezes: bool = False
) -> View:
    """A view that reads these windows, the base's first."""
    base, *further = windows
    declared = MaterializedView.model_construct(
        name=declaration.view,
        base=BaseTable.model_construct(table=base.table, from_=base.before, to=base.after),
        with_=tuple(
            FurtherTable.model_construct(table=each.table, from_=each.before, to=each.after, wait=each.waits)
            for each in further
        ),
        dimensions=(),
        scope="bucket",
        bucket=declaration.width,
        start=declaration.start,
        buffer=0,
        closes=closes,
        on_base_delete="freeze" if freezes else "follow",
    )
    return View(declared, _NO_SQL, declaration.definition)


class KnownHistory(History):
    """That of a listing that can be held against any other one: its origin is all its segments."""

    def since(self, origin: object) -> list[Segment] | None:
        assert isinstance(origin, frozenset)
        assert isinstance(self.origin, frozenset)
        return list(origin ^ self.origin)


def listed(
    table: str,
    files: Files,
    version: str,
    at: int,
    pending: tuple[Pending, ...] = (),
    rewrites: tuple[Rewrite, ...] = (),
) -> Listing:
    """One complete listing of a table in memory."""
    listing = Listing(table, version, at, pending=pending, rewrites=rewrites)
    for segment in segments(files):
        listing.add(segment, identity=files[segment.name].identity)
    listing.history = KnownHistory(frozenset(listing.segments()))
    return listing


@dataclass(frozen=True)
class ListedTable:
    """A table that is, for now, what one listing says."""

    found: Listing

    @property
    def name(self) -> str:
        return self.found.table

    @property
    def version(self) -> str:
        return self.found.version

    def current(self) -> ListedTable:
        return self

    def listing(self, on_read: OnRead = unnoticed) -> Listing:  # noqa: ARG002 - nothing is read
        return self.found

    def columns(
        self,
        wanted: frozenset[str] = frozenset(),  # noqa: ARG002 - it has none
        *,
        everywhere: bool = False,  # noqa: ARG002
    ) -> dict[str, str] | None:
        return None

    def refused(self) -> Mapping[str, str]:
        return {}

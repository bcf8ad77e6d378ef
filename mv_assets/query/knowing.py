"""What is known of the tables that a query may read: their columns, and what views on them offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from sqlglot import exp

from mv_assets.query.canonical import NotPlain
from mv_assets.query.offers import Offer, offer_of
from mv_assets.query.present import Present
from mv_assets.query.ranges import TimeOf
from mv_assets.query.statement import Statement
from mv_assets.refresh.place import Place
from mv_assets.tables.times import Unit
from mv_assets.views.sql import Source
from mv_assets.views.view import View, unseen

_Key = tuple[str, str, frozenset[str]]


class Knowledge:
    """Kept from query to query, as long as the tables stay the same."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._columns: dict[_Key, dict[str, str]] = {}
        self._offers: dict[tuple[str, Source], Offer | NotPlain] = {}

    def columns(self, table: str, statement: Statement, present: Present) -> dict[str, str]:
        """The columns of a table with their types, at least those that the query mentions and any file has."""
        mentioned = frozenset(name.name.lower() for name in statement.tree.find_all(exp.Identifier))
        key = table, present.version(table), mentioned
        if key not in self._columns:
            self._columns[key] = self._place.tables[table].columns(mentioned) or {}
        return self._columns[key]

    def source(self, name: str, statement: Statement, present: Present) -> Source:
        """A table or view as its names are resolved."""
        catalog = self._place.catalog
        if name in catalog.views:
            view = catalog.views[name]
            return Source(name, dict.fromkeys(view.sql.columns), view.declared.time_column, grain=view.sql.grain)
        table = unseen(catalog.tables[name])
        columns = self.columns(name, statement, present)
        return Source(name, dict(columns) if columns else None, table.time_column, table.time_unit)

    def time(self, name: str, statement: Statement, present: Present) -> TimeOf | None:
        """The time column of a table or view; None if it has none that is known."""
        catalog = self._place.catalog
        if name in catalog.views:
            # A date and a timestamp at its midnight are compared alike.
            return TimeOf(name, catalog.views[name].declared.time_column, "timestamp_ntz")
        declared = catalog.tables[name]
        if declared.time_column is None:
            return None
        columns = {column.lower(): kind for column, kind in self.columns(name, statement, present).items()}
        kind = columns.get(declared.time_column.lower())
        unit = cast("Unit | None", declared.time_unit)
        return None if kind is None else TimeOf(name, declared.time_column, kind.lower(), unit)

    def candidates(self, table: str) -> list[View]:
        """Views on the table, and views on those."""
        found: list[View] = []
        for view in self._place.catalog.views.values():
            if view.declared.base == table or view.declared.base in {each.name for each in found}:
                found.append(view)
        return found

    def offer(self, view: View, time: TimeOf, sources: Mapping[str, Source]) -> Offer:
        """What a view offers to queries on its base.

        Raises:
            NotPlain: nothing, and why.

        """
        catalog = self._place.catalog
        known = {
            **{name: unseen(table) for name, table in catalog.tables.items()},
            **{
                name: Source(name, dict.fromkeys(each.sql.columns), each.declared.time_column)
                for name, each in catalog.views.items()
            },
            **sources,
        }
        below = None
        if view.declared.base in catalog.views:
            upstream = catalog.views[view.declared.base]
            try:
                below = self.offer(upstream, time, sources)
            except NotPlain as reason:
                raise NotPlain(f"it is based on {upstream.name}: {reason}") from None
        return offer_of(view, known, time, below)

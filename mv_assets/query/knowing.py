"""What is known of the tables that a query may read: their columns, and what views on them offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from mv_assets.query.memory import Memory
from mv_assets.query.offers import Offer, offer_of
from mv_assets.query.present import Present
from mv_assets.query.ranges import TimeOf
from mv_assets.query.relations import Schemas
from mv_assets.query.statement import Statement
from mv_assets.refresh.opened import OpenProject
from mv_assets.views.sql import Source
from mv_assets.views.sql.canonical import NotPlain
from mv_assets.views.view import View, unseen

_Key = tuple[str, str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Types of columns: those of every part, and those of the answer, under the answer's names."""

    parts: StructType
    answer: StructType


class Knowledge:
    """Kept from query to query, as long as the tables stay the same."""

    def __init__(self, project: OpenProject) -> None:
        self._project = project
        self._columns = Memory[_Key, dict[str, str]]()
        self._offers = Memory[object, Offer | str]()
        self._kinds = Memory[object, Kinds]()
        self.schemas: Schemas = Memory()

    def columns(self, table: str, statement: Statement, present: Present) -> dict[str, str]:
        """A table's columns and their types, as a few files tell; or many, where they were searched."""
        key = table, present.version(table), statement.mentioned
        return self._columns.get(key, lambda: self._project.tables[table].columns(statement.mentioned) or {})

    def searched(self, statement: Statement, present: Present) -> bool:
        """Look for what the query mentions in as many files as can be; whether that found more columns.

        Most of what a query mentions is no column: where all is known, nobody would want to wait for it.
        """
        more = False
        for table in (name for name in statement.names if name in self._project.catalog.tables):
            before, mentioned = self.columns(table, statement, present), statement.mentioned
            found = self._project.tables[table].columns(mentioned, everywhere=True) or {}
            if found.keys() - before.keys():
                self._columns.put((table, present.version(table), mentioned), before | found)
                more = True
        return more

    def needed(self, table: str, statement: Statement, present: Present) -> dict[str, str]:
        """The columns of a table that the query may need, in the table's order."""
        columns = self.columns(table, statement, present)
        if statement.takes_all:
            return columns
        mentioned = statement.mentioned
        time = self._project.catalog.tables[table].time_column
        wanted = {name: kind for name, kind in columns.items() if name.lower() in mentioned}
        # Rows that nothing is asked of still have to be counted.
        return wanted or {name: kind for name, kind in columns.items() if name == time} or columns

    def kinds(self, statement: Statement, present: Present, compute: Callable[[], Kinds]) -> Kinds:
        """The types of a query's answer, which follow from its text and the tables' columns."""
        needed = [tuple(self.needed(name, statement, present).items()) for name in statement.names]
        key = statement.text, tuple(needed)
        return self._kinds.get(key, compute)

    def source(self, name: str, statement: Statement, present: Present) -> Source:
        """A table or view as its names are resolved."""
        catalog = self._project.catalog
        if name in catalog.views:
            view = catalog.views[name]
            return Source(
                name, dict.fromkeys(view.sql.columns), view.declared.time_column, grain=view.sql.grain
            )
        table = unseen(catalog.tables[name])
        columns = self.columns(name, statement, present)
        return Source(name, dict(columns) if columns else None, table.time_column, table.time_unit)

    def time(self, name: str, statement: Statement, present: Present) -> TimeOf | None:
        """The time column of a table or view; None if it has none that is known."""
        catalog = self._project.catalog
        if name in catalog.views:
            # A date and a timestamp at its midnight are compared alike.
            return TimeOf(name, catalog.views[name].declared.time_column, "timestamp_ntz")
        declared = catalog.tables[name]
        if declared.time_column is None:
            return None
        columns = {column.lower(): kind for column, kind in self.columns(name, statement, present).items()}
        kind = columns.get(declared.time_column.lower())
        unit = declared.time_unit
        return None if kind is None else TimeOf(name, declared.time_column, kind.lower(), unit)

    def candidates(self, table: str) -> list[View]:
        """Views on the table, and views on those."""
        found: list[View] = []
        for view in self._project.catalog.views.values():
            if view.declared.base == table or view.declared.base in {each.name for each in found}:
                found.append(view)
        return found

    def offer(self, view: View, time: TimeOf, sources: Mapping[str, Source]) -> Offer:
        """What a view offers to queries on its base.

        Raises:
            NotPlain: nothing, and why.

        """
        columns = ((name, tuple((source.columns or {}).items())) for name, source in sources.items())
        key = view.name, time, tuple(columns)

        def find() -> Offer | str:
            try:
                return self._offer(view, time, sources)
            except NotPlain as reason:
                return str(reason)

        found = self._offers.get(key, find)
        if isinstance(found, str):
            raise NotPlain(found)
        return found

    def _offer(self, view: View, time: TimeOf, sources: Mapping[str, Source]) -> Offer:
        catalog = self._project.catalog
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

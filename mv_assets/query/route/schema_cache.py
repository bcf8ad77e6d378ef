"""What is known of tables that a query may read: their columns, and what views on them have for queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark.sql.types import StructType

from mv_assets.query.match.outline import Asked, Outline
from mv_assets.query.match.ranges import TimeOf
from mv_assets.query.match.request import Request
from mv_assets.query.match.statement import Statement
from mv_assets.query.match.view_columns import ViewColumns, view_columns_of
from mv_assets.query.route.pinned import Pinned
from mv_assets.refusal import Refusal
from mv_assets.run.opened import OpenProject
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.spark_sql.scope import Source
from mv_assets.tables.types import Sampled, unsure
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View, unseen

K = TypeVar("K")
V = TypeVar("V")
_MOST = 500
# So many ways to know a table's columns, as files come: each is another entry for its views.
_SETS_OF_COLUMNS = 4


class Cache(Generic[K, V]):
    """Forgets the oldest when there is too much. Threads may share it: at worst they find out twice."""

    def __init__(self, most: int = _MOST) -> None:
        self._known: dict[K, V] = {}
        self._most = most

    def get(self, key: K, find: Callable[[], V]) -> V:
        """What is known under the key, or is found now."""
        try:
            return self._known[key]
        except KeyError:
            found = find()
        self.put(key, found)
        return found

    def put(self, key: K, found: V) -> None:
        """Know something under the key from now on."""
        while len(self._known) >= self._most:
            self._known.pop(next(iter(self._known)), None)
        self._known[key] = found


# What queries give, by what tells that it is the same.
Schemas = Cache[tuple[str, str], StructType]
_Key = tuple[str, str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Types of columns: those of every part, and those of the answer, under the answer's names."""

    parts: StructType
    answer: StructType


class SchemaCache:
    """Kept from query to query, as long as the tables stay the same."""

    def __init__(self, project: OpenProject) -> None:
        self._project = project
        self._columns = Cache[_Key, dict[str, str]]()
        self._searched = Cache[_Key, bool]()
        self._index = _Index.of(project.catalog)
        # A view that was forgotten before its turn comes again would be read anew for each query.
        most = max(_MOST, _SETS_OF_COLUMNS * len(project.catalog.views))
        self._view_columns_of = Cache[object, ViewColumns | Refusal](most)
        self._outlines = Cache[object, Outline | None](most)
        self._kinds = Cache[object, Kinds]()
        self.of_queries: Schemas = Cache()

    def columns(self, table: str, statement: Statement, pinned: Pinned) -> dict[str, str]:
        """A table's columns and their types, as a few files tell; or many, where they were searched."""
        key = table, pinned.tables.version(table), statement.mentioned
        return self._columns.get(key, lambda: self._project.tables[table].columns(statement.mentioned) or {})

    def searched(self, statement: Statement, pinned: Pinned) -> bool:
        """Look for what the query mentions in as many files as can be; whether that found more columns.

        Most of what a query mentions is no column: where all is known, nobody would want to wait for it. Nor
        twice: what no file has, none has for the views and none for the base table.
        """
        more = False
        for table in (name for name in statement.names if name in self._project.catalog.tables):
            key = table, pinned.tables.version(table), statement.mentioned
            if self._searched.get(key, lambda: False):
                continue
            before = self.columns(table, statement, pinned)
            found = self._project.tables[table].columns(statement.mentioned, everywhere=True) or {}
            self._searched.put(key, found=True)
            if found.keys() - before.keys():
                self._columns.put(key, Sampled(before | found, unsure(before) | unsure(found)))
                more = True
        return more

    def needed(self, table: str, statement: Statement, pinned: Pinned) -> dict[str, str]:
        """The columns of a table that the query may need, in the table's order."""
        columns = self.columns(table, statement, pinned)
        if statement.takes_all:
            return columns
        mentioned = statement.mentioned
        time = self._project.catalog.tables[table].time_column
        wanted = {name: kind for name, kind in columns.items() if name.lower() in mentioned}
        # Rows that nothing is asked of still have to be counted.
        return wanted or {name: kind for name, kind in columns.items() if name == time} or columns

    def kinds(
        self, statement: Statement, asked: Request, pinned: Pinned, compute: Callable[[], Kinds]
    ) -> Kinds:
        """The types of a query's answer, which follow from its text and the tables' columns.

        Those of the parts follow from whether simpler aggregates are asked for in place of its own, too.
        """
        needed = [tuple(self.needed(name, statement, pinned).items()) for name in statement.names]
        key = statement.text, asked.simpler is None, tuple(needed)
        return self._kinds.get(key, compute)

    def source(self, name: str, statement: Statement, pinned: Pinned) -> Source:
        """A table or view as its names are resolved."""
        catalog = self._project.catalog
        if name in catalog.views:
            return catalog.views[name].source
        table = unseen(catalog.tables[name])
        columns = self.columns(name, statement, pinned)
        known = dict(columns) if columns else None
        return Source(name, known, table.time_column, table.time_unit, unsure=unsure(columns))

    def time(self, name: str, statement: Statement, pinned: Pinned) -> TimeOf | None:
        """The time column of a table or view; None if it has none that is known."""
        catalog = self._project.catalog
        if name in catalog.views:
            # A date and a timestamp at its midnight are compared alike.
            return TimeOf(name, catalog.views[name].declared.time_column, "timestamp_ntz")
        declared = catalog.tables[name]
        if declared.time_column is None:
            return None
        known = self.columns(name, statement, pinned)
        column = next((each for each in known if each.lower() == declared.time_column.lower()), None)
        if column is None:
            return None
        kind = known[column].lower()
        sampled = kind == "date" and column in unsure(known)
        return TimeOf(name, declared.time_column, kind, declared.time_unit, sampled=sampled)

    def candidates(self, table: str) -> Sequence[View]:
        """Views on the table, and views on those."""
        return self._index.on.get(table, ())

    def promising(self, asked: Request, sources: Mapping[str, Source]) -> list[View]:
        """The candidates that nothing speaks against at a glance."""
        wanted = Asked.of(asked)
        return [
            view
            for view in self.candidates(asked.time.table)
            if (outline := self._outline(view, asked, sources)) is not None and outline.may_answer(wanted)
        ]

    def _outline(self, view: View, asked: Request, sources: Mapping[str, Source]) -> Outline | None:
        def find() -> Outline | None:
            try:
                return Outline.of(self.view_columns(view, asked.time, sources), asked)
            except NotPlain:
                return None

        return self._outlines.get(self._key(view, asked.time, sources), find)

    def view_columns(self, view: View, time: TimeOf, sources: Mapping[str, Source]) -> ViewColumns:
        """What a view offers to queries on its base.

        Raises:
            NotPlain: nothing, and why.

        """

        def find() -> ViewColumns | Refusal:
            try:
                return self._view_columns(view, time, sources)
            except NotPlain as reason:
                return Refusal(str(reason))

        found = self._view_columns_of.get(self._key(view, time, sources), find)
        if isinstance(found, Refusal):
            raise NotPlain(found.reason)
        return found

    def _key(self, view: View, time: TimeOf, sources: Mapping[str, Source]) -> object:
        """What the view's columns mean follows from the columns of what it reads."""
        read = [(name, sources[name]) for name in self._index.reads[view.name] if name in sources]
        known = tuple((name, tuple((each.columns or {}).items()), each.unsure) for name, each in read)
        return view.name, time, known

    def _view_columns(self, view: View, time: TimeOf, sources: Mapping[str, Source]) -> ViewColumns:
        if view.by_bucket:
            raise NotPlain("it is meant bucket by bucket (`scope: bucket`); it can be asked by its own name")
        if view.buckets.zone is not None:
            raise NotPlain(f"its SQL is meant in {view.buckets.zone}; it can be asked by its own name")
        catalog, below = self._project.catalog, None
        known = {name: sources.get(name) or _source(catalog, name) for name in self._index.reads[view.name]}
        if view.declared.base.table in catalog.views:
            upstream = catalog.views[view.declared.base.table]
            try:
                below = self.view_columns(upstream, time, sources)
            except NotPlain as reason:
                raise NotPlain(f"it is based on {upstream.name}: {reason}") from None
        return view_columns_of(view, known, time, below)


def _source(catalog: Catalog, name: str) -> Source:
    return catalog.views[name].source if name in catalog.views else unseen(catalog.tables[name])


@dataclass(frozen=True, slots=True)
class _Index:
    """The views of a catalog by the tables that they come from, and what each reads, directly or not."""

    on: Mapping[str, Sequence[View]]
    reads: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, catalog: Catalog) -> _Index:
        on, reads = dict[str, list[View]](), dict[str, tuple[str, ...]]()
        bases = dict[str, tuple[str, ...]]()
        # Each view comes after those that it reads.
        for name, view in catalog.views.items():
            base = view.declared.base.table
            bases[name] = (base, *bases.get(base, ()))
            for each in bases[name]:
                on.setdefault(each, []).append(view)
            own = view.declared.reads
            reads[name] = tuple(
                dict.fromkeys([*own, *(more for each in own for more in reads.get(each, ()))])
            )
        return cls(on, reads)

"""A whole project made ready: every view's SQL analysed, and all mistakes at once if there are any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError
from pathlib import Path

from mv_assets.config import Draft, MaterializedView, Project, Table, in_order, read
from mv_assets.errors import Mistake, NotDeclared
from mv_assets.spark_sql.scope import Source
from mv_assets.views.admission import ViewSql, analyse
from mv_assets.views.view import View, definition_of, may_find_by_id, unseen


@dataclass(frozen=True, slots=True)
class Catalog:
    """The project's tables as declared, and its views, each after the one it is based on."""

    project: Project
    tables: Mapping[str, Table]
    views: Mapping[str, View]

    def view(self, name: str) -> View:
        """A view by its name.

        Raises:
            NotDeclared: there is none.

        """
        if name not in self.views:
            raise NotDeclared(name, list(self.views))
        return self.views[name]

    def root(self, name: str) -> str:
        """The table that a view comes from, directly or through others; a table's is itself."""
        while name in self.views:
            name = self.views[name].declared.base
        return name

    def with_dependants(self, name: str) -> list[str]:
        """A view, and after it those that are based on it, directly or through others."""
        found = [name]
        for each, view in self.views.items():
            if view.declared.base in found:
                found.append(each)
        return found

    def with_upstream(self, names: Iterable[str] | None = None) -> list[View]:
        """The named views, or all, with those they are based on before them."""
        wanted: set[str] = set()
        for name in self.views if names is None else names:
            view: View | None = self.view(name)
            while view is not None and view.name not in wanted:
                wanted.add(view.name)
                view = self.views.get(view.declared.base)
        return [view for name, view in self.views.items() if name in wanted]


def load(
    file: Path,
    *,
    schemas: bool,
    listed: bool = False,
    only: Sequence[str] = (),
    version: Path | None = None,
) -> Catalog:
    """Read a project file; with `schemas`, hold it against the real tables too: all, or those of some views.

    With `listed`, a table that can't be listed is a mistake as well. Otherwise that is for a look to say, of
    the views of that table and of no others. A `version` of the file may be elsewhere.

    Raises:
        ProjectError: with every mistake that was found.

    """
    return prepare(read(file, version=version), schemas=schemas, listed=listed, only=only)


def prepare(draft: Draft, *, schemas: bool, listed: bool = False, only: Sequence[str] = ()) -> Catalog:
    """Make a project ready.

    Raises:
        ProjectError: with every mistake that was found.

    """
    tables = {table.name: table for table in draft.project.tables}
    sources = {name: unseen(table) for name, table in tables.items()}
    views, mistakes = _views(draft.project, sources)
    if schemas:
        from mv_assets.views.schemas import known  # noqa: PLC0415 - what reads no table needs no Arrow

        # What the SQL mentions is known now, so only that much is asked of each table's files.
        mistakes, misread = [], set[str]()
        for name in _tables_of(draft.project, only) & tables.keys():
            sources[name], wrong = known(tables[name], _used(name, views), listed=listed)
            mistakes += wrong
            misread |= {name} if wrong else set()
        # Of a table whose time column is not known, a view's can't be judged.
        unjudged = {f"views.{view.name}.time_column" for view in draft.project.views if view.base in misread}
        views, wrong = _views(draft.project, sources)
        mistakes += [mistake for mistake in wrong if mistake.where not in unjudged]
    draft.add(mistakes)
    return Catalog(draft.finished(), tables, views)


def _views(project: Project, tables: Mapping[str, Source]) -> tuple[dict[str, View], list[Mistake]]:
    sources, views, mistakes = dict(tables), {}, []
    by_id = {table.name for table in project.tables if may_find_by_id(table)}
    for declared in _in_order(project.views):
        base = sources.get(declared.base)
        dimensions = [sources[name] for name in declared.dimensions if name in sources]
        if base is None or len(dimensions) < len(declared.dimensions):
            # That is a mistake of its own, which the file's reader has named.
            continue
        sql, wrong = analyse(
            declared.sql,
            base=base,
            dimensions=dimensions,
            time_column=declared.time_column,
            buckets=declared.buckets,
        )
        mistakes += [replace(mistake, where=f"views.{declared.name}.{mistake.where}") for mistake in wrong]
        if sql is not None:
            read = {declared.base, *declared.dimensions}
            definition = definition_of(declared, sql, base, project.spark.conf, by_id=bool(read & by_id))
            views[declared.name] = View(declared, sql, definition)
            sources[declared.name] = _as_source(declared, sql)
    return views, mistakes


def _tables_of(project: Project, only: Sequence[str]) -> set[str]:
    """The tables that some views read, through the views they are based on; of no views: all tables."""
    declared = {view.name: view for view in project.views}
    wanted, names = set[str](), list(only)
    while names:
        view = declared.pop(names.pop(), None)
        if view is not None:
            wanted |= {view.base, *view.dimensions}
            names.append(view.base)
    return wanted if only else {table.name for table in project.tables}


def _in_order(views: tuple[MaterializedView, ...]) -> list[MaterializedView]:
    try:
        return in_order(views)
    except CycleError:
        return list(views)


def _used(table: str, views: Mapping[str, View]) -> frozenset[str]:
    return frozenset[str]().union(*(view.sql.used.get(table, ()) for view in views.values()))


def _as_source(declared: MaterializedView, sql: ViewSql) -> Source:
    columns = dict.fromkeys(sql.columns)
    return Source(declared.name, columns, time_column=declared.time_column, grain=sql.grain)

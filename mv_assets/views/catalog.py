"""A whole project made ready: every view's SQL or function looked at, and all mistakes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError
from pathlib import Path
from typing import Any

from mv_assets.config import (
    DeclaredProject,
    Draft,
    Function,
    MaterializedView,
    Table,
    Target,
    in_order,
    read,
)
from mv_assets.config.errors import Mistake
from mv_assets.spark_sql.functions import not_to_declare
from mv_assets.spark_sql.scope import Source
from mv_assets.views import python
from mv_assets.views.admission import analyse
from mv_assets.views.errors import NotDeclared
from mv_assets.views.python import Loaded, NotLoaded, SqlFunction, ViewFunction
from mv_assets.views.view import Body, View, definition_of, may_find_by_id, unseen


@dataclass(frozen=True, slots=True)
class Catalog:
    """The project's tables as declared, its functions, and its views, each after the one it is based on."""

    project: DeclaredProject
    tables: Mapping[str, Table]
    views: Mapping[str, View]
    functions: Mapping[str, SqlFunction] = field(default_factory=dict)
    # The project file, and the lines of its fields; None if the project is declared in Python.
    file: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    def view(self, name: str) -> View:
        """A view by its name.

        Raises:
            NotDeclared: there is none.

        """
        if name not in self.views:
            raise NotDeclared(name, list(self.views))
        return self.views[name]

    def target(self, name: str) -> Target | None:
        """Where a view is published; None if nowhere. One that is not declared is where the others are."""
        declared = self.views[name].declared.publish if name in self.views else None
        if declared is False:
            return None
        return self.project.publish if declared is None else declared

    def root(self, name: str) -> str:
        """The table that a view comes from, directly or through others; a table's is itself."""
        while name in self.views:
            name = self.views[name].declared.base.table
        return name

    def below(self, view: View) -> list[View]:
        """The views that a view reads."""
        return [self.views[name] for name in view.declared.timed if name in self.views]

    def with_dependants(self, name: str) -> list[str]:
        """A view, and after it those that read it, directly or through others."""
        found = [name]
        for each, view in self.views.items():
            if not set(found).isdisjoint(view.declared.timed):
                found.append(each)
        return found

    def with_upstream(self, names: Iterable[str] | None = None) -> list[View]:
        """The named views, or all, with those they read before them."""
        wanted: set[str] = set()
        left = [self.view(name) for name in (self.views if names is None else names)]
        while left:
            view = left.pop()
            if view.name not in wanted:
                wanted.add(view.name)
                left += self.below(view)
        return [view for name, view in self.views.items() if name in wanted]


def admit(
    catalog: Catalog, declared: MaterializedView, sources: Mapping[str, Source]
) -> tuple[View | None, list[Mistake]]:
    """A view of SQL as if the project declared it, over tables of which some are known; or what is wrong."""
    known = {
        **{name: unseen(table) for name, table in catalog.tables.items()},
        **{name: view.source for name, view in catalog.views.items()},
        **sources,
    }
    code = _Code(tuple(catalog.functions), dict(catalog.functions))
    body, mistakes = _body(declared, known, code)
    return (None, mistakes) if body is None else (_view(declared, body, catalog.project, known, code), [])


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
    """Make a project ready. Python that it names is imported, and so is run.

    Raises:
        ProjectError: with every mistake that was found.

    """
    tables = {table.name: table for table in draft.project.tables}
    sources = {name: unseen(table) for name, table in tables.items()}
    code = _Code.of(draft)
    views, mistakes = _views(draft.project, sources, code)
    if schemas:
        from mv_assets.views.schemas import known  # noqa: PLC0415 - what reads no table needs no Arrow

        # What the SQL mentions is known now, so only that much is asked of each table's files.
        mistakes, misread = [], set[str]()
        for name in _tables_of(draft.project, only) & tables.keys():
            sources[name], wrong = known(
                tables[name], _used(name, views), _mentioned(name, views), listed=listed
            )
            mistakes += wrong
            misread |= {name} if wrong else set()
        # Of a table whose time column is not known, a view's can't be judged.
        unjudged = {
            f"views.{view.name}.time_column" for view in draft.project.views if view.base.table in misread
        }
        views, wrong = _views(draft.project, sources, code)
        mistakes += [mistake for mistake in wrong if mistake.where not in unjudged]
    draft.add([*code.mistakes, *mistakes])
    file = Path(draft.file).absolute() if draft.lines else None
    return Catalog(draft.finished(), tables, views, code.functions, file, draft.lines)


@dataclass(frozen=True, slots=True)
class _Code:
    """The Python of a project: functions that SQL may call, and those that views are made of."""

    # Of all functions that are declared, those too that can't be had.
    names: tuple[str, ...] = ()
    functions: dict[str, SqlFunction] = field(default_factory=dict)
    bodies: dict[str, ViewFunction] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    @classmethod
    def of(cls, draft: Draft) -> _Code:
        made = cls(tuple(function.name for function in draft.project.functions))
        for declared in draft.project.functions:
            made._function(declared, draft.folder)
        for view in draft.project.views:
            made._body(view, draft.folder)
        return made

    def _function(self, declared: Function, folder: Path | None) -> None:
        where = f"functions.{declared.name}"
        if (taken := not_to_declare(declared.name)) is not None:
            self.mistakes.append(Mistake(f"{where}.name", taken))
        loaded = self._loaded(declared.python, folder, f"{where}.python")
        if loaded is not None:
            self.functions[declared.name] = SqlFunction(declared, loaded)

    def _body(self, view: MaterializedView, folder: Path | None) -> None:
        if view.python is None:
            return
        where = f"views.{view.name}.python"
        loaded = self._loaded(view.python, folder, where)
        if loaded is not None:
            wrong = python.parameter_mistakes(loaded.function, view.reads)
            self.mistakes.extend(Mistake(where, what) for what in wrong)
            parameters = python.parameters_of(loaded.function)
            self.bodies[view.name] = ViewFunction(loaded, parameters, view.version)

    def _loaded(self, named: str | Callable[..., Any], folder: Path | None, where: str) -> Loaded | None:
        try:
            return python.load(named, folder)
        except NotLoaded as why:
            self.mistakes.append(Mistake(where, str(why)))
        return None


def _views(
    project: DeclaredProject, tables: Mapping[str, Source], code: _Code
) -> tuple[dict[str, View], list[Mistake]]:
    sources, views, mistakes = dict(tables), {}, []
    for declared in _in_order(project.views):
        if any(name not in sources for name in declared.reads):
            # That is a mistake of its own, which the file's reader has named.
            continue
        body, wrong = _body(declared, sources, code)
        mistakes += [replace(mistake, where=f"views.{declared.name}.{mistake.where}") for mistake in wrong]
        # A function that can't be had is a mistake of its own.
        if body is not None and body.calls <= code.functions.keys():
            views[declared.name] = view = _view(declared, body, project, sources, code)
            sources[declared.name] = view.source
    return views, mistakes


def _view(
    declared: MaterializedView,
    body: Body,
    project: DeclaredProject,
    sources: Mapping[str, Source],
    code: _Code,
) -> View:
    definition = definition_of(
        declared,
        body,
        [sources[name] for name in declared.timed],
        project.spark.conf,
        by_id=any(may_find_by_id(table) for table in project.tables if table.name in declared.reads),
        functions=code.functions,
    )
    return View(declared, body, definition)


def _body(
    declared: MaterializedView, sources: Mapping[str, Source], code: _Code
) -> tuple[Body | None, list[Mistake]]:
    if declared.sql is None:
        return code.bodies.get(declared.name), []
    base, *further = (sources[name] for name in declared.timed)
    return analyse(
        declared.sql,
        base=base,
        further=further,
        dimensions=[sources[name] for name in declared.joined],
        time_column=declared.time_column,
        buckets=declared.buckets,
        scope=declared.scope,
        functions=code.names,
    )


def _tables_of(project: DeclaredProject, only: Sequence[str]) -> set[str]:
    """The tables that some views read, through the views they are based on; of no views: all tables."""
    declared = {view.name: view for view in project.views}
    wanted, names = set[str](), list(only)
    while names:
        view = declared.pop(names.pop(), None)
        if view is not None:
            wanted |= set(view.reads)
            names += view.timed
    return wanted if only else {table.name for table in project.tables}


def _in_order(views: tuple[MaterializedView, ...]) -> list[MaterializedView]:
    try:
        return in_order(views)
    except CycleError:
        return list(views)


def _used(table: str, views: Mapping[str, View]) -> frozenset[str]:
    return frozenset[str]().union(*(view.body.used.get(table, ()) for view in views.values()))


def _mentioned(table: str, views: Mapping[str, View]) -> dict[str, frozenset[str] | None]:
    """Which columns of a table each view may mean that reads it; None are all."""
    return {
        name: None if view.body.reads_all else view.body.mentioned.get(table, frozenset())
        for name, view in views.items()
        if table in view.declared.reads
    }

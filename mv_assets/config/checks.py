"""What tables and views must say of each other. Mistakes are placed as `tables.NAME.field`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Any

from mv_assets.config.errors import Mistake
from mv_assets.config.models import DeclaredProject, MaterializedView, WarehouseFolder
from mv_assets.config.reserved import CHECKS
from mv_assets.config.storage import Storage, bucket_of
from mv_assets.config.targets import buckets_table


@dataclass(frozen=True, slots=True)
class Sketch:
    """As much of a table or view as others refer to; it can be had of one that is wrong otherwise."""

    name: str
    base: str | None = None
    further: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    timed: bool = False

    @classmethod
    def of(cls, declared: Mapping[str, Any]) -> Sketch | None:
        name = declared.get("name")
        if not isinstance(name, str):
            return None
        further = [_table(each) for each in _listed(declared.get("with") or declared.get("with_"))]
        dimensions = [_table(each) for each in _listed(declared.get("dimensions"))]
        return cls(
            name,
            _table(declared.get("base")),
            tuple(name for name in further if name is not None),
            tuple(name for name in dimensions if name is not None),
            declared.get("time_column") is not None,
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """The tables or views of which it reads a window."""
        return self.further if self.base is None else (self.base, *self.further)


def _listed(given: Any) -> list[Any] | tuple[Any, ...]:
    return given if isinstance(given, list | tuple) else ()


def _table(given: Any) -> str | None:
    """The name of a table, alone or with its window or key."""
    named = given.get("table") if isinstance(given, dict) else getattr(given, "table", given)
    return named if isinstance(named, str) else None


def check(
    tables: Sequence[Sketch], views: Sequence[Sketch], functions: Sequence[Sketch] = ()
) -> list[Mistake]:
    """All mistakes between declarations."""
    return [
        *_namesakes(functions),
        *_duplicates(tables, views),
        *_checks(tables, views),
        *(mistake for view in views for mistake in _references(view, tables, views)),
        *_circles(views),
    ]


def check_whole(project: DeclaredProject) -> Iterator[Mistake]:
    """What only a project that is right otherwise can be asked."""
    yield from _one_way_to_each_bucket(project)
    yield from _tables_of_buckets(project)


def _one_way_to_each_bucket(project: DeclaredProject) -> Iterator[Mistake]:
    """Two ways to one bucket are a mistake: Spark keeps the first that it is told, and takes it for both."""
    known: dict[str | None, tuple[str, Storage | None]] = {}
    for declared in (project.warehouse, *project.tables):
        bucket = bucket_of(declared.path or "")
        where, name = "warehouse", "the warehouse"
        if not isinstance(declared, WarehouseFolder):
            where, name = f"tables.{declared.name}", f"table {declared.name}"
        first, storage = known.setdefault(bucket, (name, declared.storage))
        if bucket is not None and storage != declared.storage:
            what = f"{name} and {first} reach bucket {bucket} in two ways, of which Spark can have one only"
            yield Mistake(f"{where}.storage", f"{what}; give both the same storage")


def _tables_of_buckets(project: DeclaredProject) -> Iterator[Mistake]:
    """A published view has a table of its buckets beside it, which another view must not be called like."""
    names = {view.name for view in project.views}
    for view in project.views:
        name, target = buckets_table(view.name), project.publish if view.publish is None else view.publish
        if target and name in names:
            what = f"view {view.name} is published, and its buckets as {name}; give this view another name"
            yield Mistake(f"views.{name}.name", what)


def in_order(views: Sequence[MaterializedView]) -> list[MaterializedView]:
    """Views with every view after those it reads."""
    named = {view.name: view for view in views}
    order = TopologicalSorter({view.name: view.timed for view in views}).static_order()
    return [named[name] for name in order if name in named]


def suggestion(name: str, names: Sequence[str]) -> str:
    """What a misspelt name may have meant; else what there is."""
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"there is {', '.join(names)}" if names else "there is none"


def _duplicates(tables: Sequence[Sketch], views: Sequence[Sketch]) -> Iterator[Mistake]:
    counts = Counter(sketch.name for sketch in [*tables, *views])
    for name, count in counts.items():
        if count > 1:
            kind = "views" if any(view.name == name for view in views) else "tables"
            what = f"{count} tables or views are called {name}; give each a name of its own"
            yield Mistake(f"{kind}.{name}.name", what)


def _namesakes(functions: Sequence[Sketch]) -> Iterator[Mistake]:
    """A function may be called as a table is, but not as another function."""
    for name, count in Counter(sketch.name for sketch in functions).items():
        if count > 1:
            what = f"{count} functions are called {name}; give each a name of its own"
            yield Mistake(f"functions.{name}.name", what)


def _checks(tables: Sequence[Sketch], views: Sequence[Sketch]) -> Iterator[Mistake]:
    """Dagster would refuse a name that the check of a view has there."""
    taken = {f"{view.name}_{name}": f"check {name} of view {view.name}" for view in views for name in CHECKS}
    for kind, sketches in (("tables", tables), ("views", views)):
        for name in dict.fromkeys(sketch.name for sketch in sketches if sketch.name in taken):
            what = f"in Dagster {name} is the {taken[name]}; choose another name"
            yield Mistake(f"{kind}.{name}.name", what)


def _references(view: Sketch, tables: Sequence[Sketch], views: Sequence[Sketch]) -> Iterator[Mistake]:
    where = f"views.{view.name}"
    named = {table.name: table for table in tables}
    others = [other.name for other in views]
    for name in view.sources:
        key = "base" if name == view.base else "with"
        table = named.get(name)
        if table is not None and not table.timed:
            what = f"table {name} has no time_column, so its rows belong to no bucket; declare one there"
            instead = "" if key == "base" else ", or make it one of `dimensions`"
            yield Mistake(f"{where}.{key}", what + instead)
        if table is None and name not in others:
            close = suggestion(name, [*named, *(other for other in others if other != view.name)])
            yield Mistake(f"{where}.{key}", f"there is no table or view {name}; {close}")
    for name in view.dimensions:
        if name in view.sources:
            role = "the base" if name == view.base else "one of `with`"
            yield Mistake(f"{where}.dimensions", f"{name} is {role} already; take it out of dimensions")
        elif name in others:
            yield Mistake(f"{where}.dimensions", f"{name} is a view; a dimension is a table")
        elif name not in named:
            close = suggestion(name, list(named))
            yield Mistake(f"{where}.dimensions", f"there is no table {name}; {close}")
        elif named[name].timed:
            # A table with times leaves out the files that have none, and a dimension may not.
            what = f"table {name} has a time_column, but a dimension is joined as a whole"
            instead = "read a window of it, with `with`, or declare it once more without one, by another name"
            yield Mistake(f"{where}.dimensions", f"{what}; {instead}")


def _circles(views: Sequence[Sketch]) -> Iterator[Mistake]:
    left = {view.name: view.sources for view in views}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            around = error.args[1]
            circle = " -> ".join(reversed(around))
            what = f"views are based on each other in a circle ({circle}); base one of them on a table"
            yield Mistake(f"views.{around[0]}.base", what)
            left = {name: bases for name, bases in left.items() if name not in around}
        else:
            return

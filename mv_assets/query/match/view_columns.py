"""What a view has to view_columns to queries on its base table, in terms of that table's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from mv_assets.query.match.joins import From, rows_of
from mv_assets.query.match.ranges import Range, TimeOf, range_of
from mv_assets.query.match.shape import Shape, shape_of
from mv_assets.query.match.truncation import time_inside, truncated_to, without_finer
from mv_assets.spark_sql.aggregates import Kind, aggregates, is_aggregate, partial_of
from mv_assets.spark_sql.calls import calls
from mv_assets.spark_sql.canonical import (
    NotPlain,
    bare,
    compared_with_text,
    refuse_neighbours,
    replaced,
    spelled,
    written_out,
)
from mv_assets.spark_sql.grain import BOUNDARIES, nested
from mv_assets.spark_sql.parse import Reading, read
from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Source
from mv_assets.spark_sql.spark_functions import GENERATORS, TIME_WINDOWS
from mv_assets.spark_sql.text import short
from mv_assets.tables.types import INTEGERS
from mv_assets.views.admission import ViewSql
from mv_assets.views.view import View

# What is equal is the same of these types, and of decimals.
_EXACT = INTEGERS | {"string", "date", "timestamp", "timestamp_ntz", "boolean"}


@dataclass(frozen=True, slots=True)
class Grained:
    """The view's column with the finest times, and what they are cut to; None: they are the base's own."""

    column: str
    grain: str | None


@dataclass(frozen=True, slots=True)
class ViewColumns:
    """A view as a source of the base table's rows, single or aggregated.

    `columns` and `values` are the view's columns by what they hold: expressions over the base's rows, and
    aggregates of them.
    """

    view: View
    source: From
    time: Grained
    columns: Mapping[str, str]
    # None where the view keeps single rows.
    values: Mapping[str, str] | None
    # Only rows that meet these conditions, and lie in this range, are in the view.
    conditions: Mapping[str, exp.Expr]
    range: Range
    # The same by the view's own columns, for views on this one.
    expressions: Mapping[str, exp.Expr]
    # Those of joined tables that it has as what they are joined with.
    alike: tuple[exp.Column, ...]
    # Declared keys of what it joins itself.
    keys: Mapping[str, tuple[str, ...]]


def view_columns_of(
    view: View, sources: Mapping[str, Source], time: TimeOf, below: ViewColumns | None = None
) -> ViewColumns:
    """What the view offers; with `below`, the view that it is based on, in terms of that one's base.

    Raises:
        NotPlain: nothing, as its rows are not those of the base in any way that can be told.

    """
    select = _select_of(view)
    base = sources[view.declared.base.table]
    resolver = Resolver(base, [sources[name] for name in view.declared.joined])
    resolver.query(select, {}, None)
    shape = shape_of(select, resolver.meaning, lenient=True)
    if shape.sets is not None:
        raise NotPlain("its GROUPING SETS repeat rows; it can be asked by its own name")
    if shape.having is not None or shape.distinct:
        raise NotPlain("its HAVING or DISTINCT leaves rows out; it can be asked by its own name")
    rows = rows_of(select, resolver.meaning, view.declared.base.table)
    if rows.opaque is not None:
        raise rows.opaque
    source, where = rows.source, list(rows.conditions)
    if below is not None:
        if source.joins:
            raise NotPlain(
                f"it joins {source.joins[0].table} to {source.base}; it can be asked by its own name"
            )
        shape, where, source = _through(shape, where, below)
    range_, others = range_of(where, time)
    _refuse_by_type([*others, *(join.on for join in source.joins if join.on is not None)], sources)
    found = _by_item(shape, time)
    found = {name: item for name, item in found.items() if not _by_type(item, sources)}
    columns = {spelled(expr): name for name, expr in found.items() if not aggregates(expr)}
    values = None
    if shape.keys is not None or (below is not None and below.values is not None):
        if below is not None and below.values is not None and shape.keys is None:
            raise NotPlain(f"it takes rows of {below.view.name} as they are; it can be asked by its own name")
        keys = {spelled(without_finer(key, time.is_time)) for key in shape.keys or ()}
        columns = {name: column for name, column in columns.items() if name in keys}
        values = _values(found)
    if below is not None:
        range_ = range_.and_(below.range)
    conditions = {spelled(each): each for each in others} | (dict(below.conditions) if below else {})
    grained = _finest(found, columns, time)
    alike = _alike(source, columns, sources)
    columns = {spelled(each): column for each, column in alike} | columns
    # What a view below has joined is in its own rows' inputs only.
    unique = view.declared.keys if below is None else {}
    return ViewColumns(
        view,
        source,
        grained,
        columns,
        values,
        conditions,
        range_,
        found,
        tuple(each for each, _ in alike),
        unique,
    )


def _select_of(view: View) -> exp.Select:
    """The one SELECT over the base's rows that a view is."""
    if view.by_bucket or not isinstance(view.body, ViewSql):
        raise NotPlain("it is meant bucket by bucket; it can be asked by its own name")
    reading = read(view.body.bare)
    if not isinstance(reading, Reading):
        raise NotPlain("its SQL can't be read")
    select = reading.tree
    if not isinstance(select, exp.Select):
        raise NotPlain(f"it is a {select.key.upper()}; it can be asked by its own name")
    refuse_neighbours(reading.tokens)
    called = {call.name for call in calls(reading.tokens)}
    if called & GENERATORS:
        raise NotPlain("it makes several rows of one; it can be asked by its own name")
    if called & TIME_WINDOWS:
        raise NotPlain("its windows of time repeat rows or leave them out; it can be asked by its own name")
    return select


def _refuse_by_type(conditions: Sequence[exp.Expr], sources: Mapping[str, Source]) -> None:
    for condition in conditions:
        if _by_type(condition, sources):
            raise NotPlain(f"what {short(condition.sql('spark'))} means depends on the types that files have")


def _by_type(expression: exp.Expr, sources: Mapping[str, Source]) -> bool:
    """Whether it means another thing where a file has the same value in another type.

    So it does if it writes out a value that is no text, or compares one with a text.
    """
    decisive = (*written_out(expression), *compared_with_text(expression))
    return any(_kind(column, sources) != "string" for column in decisive)


def _kind(column: exp.Column, sources: Mapping[str, Source]) -> str | None:
    known = sources[column.table].columns if column.table in sources else None
    return next((kind for name, kind in (known or {}).items() if name.lower() == column.name.lower()), None)


def _by_item(shape: Shape, time: TimeOf) -> dict[str, exp.Expr]:
    return {
        name: without_finer(item, time.is_time)
        for name, item in zip(shape.names, shape.items, strict=True)
        if name is not None
    }


def _values(found: Mapping[str, exp.Expr]) -> dict[str, str]:
    """Aggregates that can be merged, by what they are."""
    values: dict[str, str] = {}
    for name, item in found.items():
        try:
            values.setdefault(partial_of(bare(item)).spelled, name)
        except NotPlain:
            continue
    return values


def _finest(found: Mapping[str, exp.Expr], columns: Mapping[str, str], time: TimeOf) -> Grained:
    """The column that tells the most of a row's time."""
    kept = set(columns.values())
    times = [each for name, item in found.items() if name in kept for each in _grained(name, item, time)]
    if not times:
        raise NotPlain("its time can't be followed; it can be asked by its own name")
    best = times[0]
    for each in times[1:]:
        if best.grain is not None and (each.grain is None or nested(each.grain, best.grain)):
            best = each
    return best


def _alike(
    source: From, columns: Mapping[str, str], sources: Mapping[str, Source]
) -> list[tuple[exp.Column, str]]:
    """Columns of its rows that are another one of which it has a column; with that."""
    known, found = dict(columns), list[tuple[exp.Column, str]]()
    pairs = [pair for pair in source.equal() if _means_one_value(pair, sources)]
    for _ in pairs:
        for one, other in (*pairs, *(pair[::-1] for pair in pairs)):
            column = known.get(spelled(one))
            if column is not None and spelled(other) not in known:
                known[spelled(other)] = column
                found.append((other, column))
    return found


def _means_one_value(pair: tuple[exp.Column, exp.Column], sources: Mapping[str, Source]) -> bool:
    """Whether what is equal is the same: 0.0 equals -0.0, and a text another one if it is collated."""
    kinds = [_kind(column, sources) for column in pair]
    sure = all(
        column.name.lower() not in map(str.lower, sources[column.table].unsure)
        for column in pair
        if column.table in sources
    )
    exact = kinds[0] in _EXACT or str(kinds[0]).startswith("decimal")
    return sure and exact and kinds[0] == kinds[1]


def _grained(name: str, item: exp.Expr, time: TimeOf) -> list[Grained]:
    """A column as a time whose grains make up buckets; nothing if it is none."""
    item = bare(item)
    if time.is_time(item):
        return [Grained(name, None)]
    grain = truncated_to(item)
    return [Grained(name, grain)] if grain in BOUNDARIES and time.is_time(time_inside(item)) else []


_AGAIN = {
    Kind.SUM: (Kind.SUM, Kind.COUNT),
    Kind.MIN: (Kind.MIN,),
    Kind.MAX: (Kind.MAX,),
    Kind.AND: (Kind.AND,),
    Kind.OR: (Kind.OR,),
}


def _through(
    shape: Shape, where: Sequence[exp.Expr], below: ViewColumns
) -> tuple[Shape, list[exp.Expr], From]:
    """A SELECT on a view as one on that view's base.

    Sums of sums are sums, sums of counts are counts.
    """

    def replace(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Column):
            meant = _meant(below, node)
            if aggregates(meant):
                raise NotPlain(f"{node.name} is an aggregate of {below.view.name}")
            return meant.copy() if isinstance(meant, exp.Column) else exp.Paren(this=meant.copy())
        return None if below.values is None else _again(node, below)

    def tried(node: exp.Expr) -> exp.Expr:
        return replaced(node, replace)

    items, names = [], []
    for column, item in zip(shape.names, shape.items, strict=True):
        try:
            items.append(tried(item))
            names.append(column)
        except NotPlain:
            continue
    keys = None if shape.keys is None else tuple(tried(key) for key in shape.keys)
    made = Shape(tuple(names), tuple(items), keys)
    return made, [tried(each) for each in where], below.source


def _again(node: exp.Expr, below: ViewColumns) -> exp.Expr | None:
    """An aggregate of an aggregate; None for anything else."""
    if not isinstance(node, exp.Filter) and not is_aggregate(node):
        return None
    outer = partial_of(node)
    if outer.condition is not None or not isinstance(outer.argument, exp.Column):
        raise NotPlain(f"it aggregates rows of {below.view.name}, which are no single rows")
    meant = _meant(below, outer.argument)
    if not aggregates(meant):
        # Of a key it does not matter how often it is there.
        if outer.kind in (Kind.MIN, Kind.MAX, Kind.AND, Kind.OR):
            return None
        raise NotPlain(f"it aggregates rows of {below.view.name}, which are no single rows")
    inner = partial_of(bare(meant))
    if inner.kind not in _AGAIN.get(outer.kind, ()):
        raise NotPlain(f"it has the {outer.kind} of a {inner.kind}")
    return meant.copy()


def _meant(below: ViewColumns, column: exp.Column) -> exp.Expr:
    """What a column of the view below is made of."""
    for name, meant in below.expressions.items():
        if name.lower() == column.name.lower():
            return meant
    raise NotPlain(f"{column.name} of {below.view.name} can't be followed")

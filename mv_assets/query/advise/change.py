"""A view's SQL with what it lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from mv_assets.query.match.joins import conjuncts
from mv_assets.query.match.lack import Lack, plain
from mv_assets.query.match.truncation import time_inside, truncated_to
from mv_assets.spark_sql.aggregates import Partial
from mv_assets.spark_sql.canonical import NotPlain, expanded, spelled
from mv_assets.spark_sql.parse import Reading, read
from mv_assets.spark_sql.resolve import Resolver, output_names
from mv_assets.spark_sql.scope import Source

_LONGEST_NAME = 40


def changed(sql: str, lack: Lack, sources: Mapping[str, Source], base: str) -> str:
    """The SQL of a view on the base with all that lacks; the admission and the match judge it anew.

    Raises:
        NotPlain: there is no such SQL.

    """
    reading = read(sql)
    if not isinstance(reading, Reading) or not isinstance(reading.tree, exp.Select):
        raise NotPlain("its SQL is no plain SELECT")
    select = reading.tree
    if lack.joins:
        raise NotPlain(f"it does not join {', '.join(lack.joins)}")
    _without(select, lack, sources, base)
    if lack.grains:
        _cut(select, lack)
    added = _Added(select, base)
    for key in (*lack.keys, *(exp.column(name, table=base, quoted=True) for name in lack.columns)):
        added.key(key)
    for partial in lack.aggregates:
        added.aggregate(partial)
    return select.sql("spark", pretty=True)


def _without(select: exp.Select, lack: Lack, sources: Mapping[str, Source], base: str) -> None:
    if not lack.conditions:
        return
    resolver = Resolver(sources[base], [each for name, each in sources.items() if name != base])
    resolver.query(select, {}, None)
    gone = {spelled(each) for each in lack.conditions}
    kept = [each for each in conjuncts(select) if spelled(expanded(each, resolver.meaning)) not in gone]
    select.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)


def _cut(select: exp.Select, lack: Lack) -> None:
    if lack.grain is None:
        raise NotPlain("its times can't be cut so that all of it can be asked")
    for node in [each for each in select.walk() if truncated_to(each) in lack.cut]:
        unit = exp.var(lack.grain.upper())
        node.replace(exp.TimestampTrunc(this=time_inside(node).copy(), unit=unit))


class _Added:
    """Further output columns of a SELECT, each under a name of its own."""

    def __init__(self, select: exp.Select, base: str) -> None:
        self._select = select
        tables = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
        # Beside other tables a column's name alone may mean theirs.
        self._called = {each.name.lower(): each.alias_or_name for each in tables} if len(tables) > 1 else {}
        self._base = base
        self._taken = {name.lower() for item in select.expressions for name in output_names(item)}

    def key(self, key: exp.Expr) -> None:
        """A column; the rows are grouped by it too, if they are grouped."""
        made = self._written(key)
        self._select.select(self._named(made, _slug(key.name)), copy=False)
        group = self._select.args.get("group")
        if group is not None and not group.args.get("all"):
            group.append("expressions", made.copy())

    def aggregate(self, partial: Partial) -> None:
        parts = (partial.argument, partial.condition)
        argument, condition = (None if each is None else self._written(each) for each in parts)
        written = Partial(partial.kind, argument, condition, partial.settings)
        made: exp.Expr = exp.maybe_parse(written.sql, dialect="spark")
        names = [c.name for each in parts if each is not None for c in each.find_all(exp.Column)]
        self._select.select(
            self._named(made, _slug("_".join([partial.kind, *(names or ["rows"])]))), copy=False
        )

    def _written(self, node: exp.Expr) -> exp.Expr:
        made = node.copy()
        for column in made.find_all(exp.Column):
            if column.table in self._called:
                column.set("table", exp.to_identifier(self._called[column.table], quoted=True))
        return plain(made, self._base)

    def _named(self, node: exp.Expr, name: str) -> exp.Expr:
        number, free = 2, name
        while free in self._taken:
            free, number = f"{name}_{number}", number + 1
        self._taken.add(free)
        if isinstance(node, exp.Column) and node.name.lower() == free:
            return node
        return exp.alias_(node, free)


def _slug(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:_LONGEST_NAME].strip("_")
    return name if name and name[0].isalpha() else f"c_{name}"

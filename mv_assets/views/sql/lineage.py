"""Which columns of the tables an output column is made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from mv_assets.views.sql.columns import output_names
from mv_assets.views.sql.scope import Found

Column = tuple[str, str]


def lineage(select: exp.Select, meaning: Mapping[int, Found | exp.Expr]) -> dict[str, tuple[Column, ...]]:
    """By output column: table and column, each once, in the order of their mention."""
    return {
        name: tuple(dict.fromkeys(_columns(item, meaning)))
        for item in select.expressions
        for name in output_names(item)
    }


def _columns(node: exp.Expr, meaning: Mapping[int, Found | exp.Expr]) -> Iterator[Column]:
    for each in node.walk():
        meant = meaning.get(id(each))
        if isinstance(meant, exp.Expr):
            yield from _columns(meant, meaning)
        elif meant is not None and meant.relation.source is not None:
            yield meant.relation.source.name, meant.column

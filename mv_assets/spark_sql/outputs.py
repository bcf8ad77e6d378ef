"""What output columns are made from, and which of them may come out differently each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from mv_assets.spark_sql.calls import calls
from mv_assets.spark_sql.resolve import output_names
from mv_assets.spark_sql.scope import Found
from mv_assets.spark_sql.spark_functions import names

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


# approx_count_distinct and count_min_sketch are not among them: their parts add up the same in any order.
APPROXIMATE = names(
    """
    approx_percentile percentile_approx histogram_numeric hll_sketch_agg hll_union_agg theta_sketch_agg
    theta_union_agg theta_intersection_agg tuple_sketch_agg_double tuple_sketch_agg_integer
    tuple_union_agg_double tuple_union_agg_integer tuple_intersection_agg_double
    tuple_intersection_agg_integer
    """
)
# By the id of a Column node, as the resolver found it.
Meaning = Mapping[int, Found | exp.Expr]


def approximate_columns(select: exp.Select, tokens: Sequence[Token], meaning: Meaning) -> frozenset[str]:
    """The output columns that an approximate function has a part in.

    All of them where it is called anywhere else too: there it may decide which rows there are.
    """
    called = sum(call.name in APPROXIMATE for call in calls(tokens))
    if not called:
        return frozenset()
    touched = [item for item in select.expressions if _touched(item, meaning)]
    own = [node for item in touched for node in _own(item) if _is_approximate(node)]
    clauses = [select.args.get(key) for key in ("having", "qualify", "group")]
    decides = select.args.get("distinct") or any(_touched(clause, meaning) for clause in clauses)
    chosen = select.expressions if decides or len(own) < called else touched
    return frozenset(name for item in chosen for name in output_names(item))


def _touched(node: exp.Expr | None, meaning: Meaning) -> bool:
    """Whether an approximate function is called in an expression or in one that it refers to by name."""
    return node is not None and any(
        _is_approximate(each)
        or (isinstance(alias := meaning.get(id(each)), exp.Expr) and _touched(alias, meaning))
        for each in _own(node)
    )


def _own(node: exp.Expr) -> list[exp.Expr]:
    """The nodes of an expression, without those of its subqueries."""
    return [
        each
        for each in node.walk(prune=lambda inner: isinstance(inner, exp.Query))
        if not isinstance(each, exp.Query)
    ]


def _is_approximate(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and node.name.lower() in APPROXIMATE
    return named or isinstance(node, exp.ApproxQuantile)

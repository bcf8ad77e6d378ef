"""What output columns are made from, and which of them may come out differently each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from mv_assets.spark_sql.calls import calls
from mv_assets.spark_sql.scope import Found, Output
from mv_assets.spark_sql.spark_functions import names

Column = tuple[str, str]


# By the id of a Column node, as the resolver found it.
Meaning = Mapping[int, Found | exp.Expr]


def lineage(outputs: Sequence[Output], meaning: Meaning) -> dict[str, tuple[Column, ...]]:
    """By output column: table and column, each once, in the order of their mention.

    A column that is made of something whose origin can't be told is left out.
    """
    known: dict[int, dict[Column, None] | None] = {}
    found = {each.name: _columns(each.items, meaning, known) for each in outputs}
    return {name: tuple(columns) for name, columns in found.items() if columns is not None}


def _columns(
    items: Sequence[exp.Expr], meaning: Meaning, known: dict[int, dict[Column, None] | None]
) -> dict[Column, None] | None:
    """The columns that some expressions are made from; `known` are those that were asked for before."""
    found: dict[Column, None] = {}
    for item in items:
        if id(item) not in known:
            known[id(item)] = _columns_of(item, meaning, known)
        columns = known[id(item)]
        if columns is None:
            return None
        found |= columns
    return found if items else None


def _columns_of(
    item: exp.Expr, meaning: Meaning, known: dict[int, dict[Column, None] | None]
) -> dict[Column, None] | None:
    found: dict[Column, None] = {}
    for each in item.walk():
        meant = meaning.get(id(each))
        if isinstance(meant, Found) and meant.relation.source is not None:
            found[meant.relation.source.name, meant.column] = None
        elif meant is not None:
            inner = _columns(meant.items if isinstance(meant, Found) else (meant,), meaning, known)
            if inner is None:
                return None
            found |= inner
    return found


# approx_count_distinct and count_min_sketch are not among them: their parts add up the same in any order.
APPROXIMATE = names(
    """
    approx_percentile percentile_approx histogram_numeric hll_sketch_agg hll_union_agg theta_sketch_agg
    theta_union_agg theta_intersection_agg tuple_sketch_agg_double tuple_sketch_agg_integer
    tuple_union_agg_double tuple_union_agg_integer tuple_intersection_agg_double
    tuple_intersection_agg_integer
    """
)


def approximate_columns(
    tree: exp.Query, outputs: Sequence[Output], tokens: Sequence[Token], meaning: Meaning
) -> frozenset[str]:
    """The output columns that an approximate function has a part in.

    All of them where it is called anywhere else too, as inside a subquery: there it may decide which rows
    there are.
    """
    called = sum(call.name in APPROXIMATE for call in calls(tokens))
    if not called:
        return frozenset()
    touched = {
        each.name: each.items for each in outputs if any(_touched(item, meaning) for item in each.items)
    }
    items = {id(item): item for some in touched.values() for item in some}
    own = [node for item in items.values() for node in _own(item) if _is_approximate(node)]
    every = _decides(tree, meaning) or len(own) < called
    return frozenset(each.name for each in outputs) if every else frozenset(touched)


def _decides(tree: exp.Query, meaning: Meaning) -> bool:
    """Whether an approximate value may decide which rows there are."""
    keys = ("having", "qualify", "group", *(("order",) if tree.args.get("limit") else ()))
    return (
        not isinstance(tree, exp.Select)
        or bool(tree.args.get("distinct"))
        or any(_touched(tree.args.get(key), meaning) for key in keys)
    )


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

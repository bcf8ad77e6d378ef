"""Windows and lists whose result depends on the order in which rows arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from mv_assets.errors import Mistake
from mv_assets.views.sql.spark_functions import names
from mv_assets.views.sql.wording import short

_BY_PLACE = names(
    """
    row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value counter_diff
    first first_value last last_value any_value
    """
)


def refused_orders(select: exp.Select) -> list[Mistake]:
    return [Mistake("sql", what) for what in (*_windows(select), *_lists(select))]


def _windows(select: exp.Select) -> Iterator[str]:
    for call in select.find_all(exp.Window):
        # One of a WINDOW clause matters where it is used.
        if not call.args.get("over"):
            continue
        parts = [call, *_named(call)]
        # Rows that tie in an ORDER BY may still swap; whether its keys are unique can't be told from SQL.
        if not any(map(_is_ordered, parts)) and (_function(call) in _BY_PLACE or any(map(_is_cut, parts))):
            what = f"the window of {short(call.this.sql('spark'))} depends on the order in which rows arrive"
            yield f"{what}; give it an ORDER BY on columns"


def _named(call: exp.Window) -> list[exp.Window]:
    around = call.find_ancestor(exp.Select)
    windows = around.args.get("windows") or () if around else ()
    return [window for window in windows if call.alias and window.name.lower() == call.alias.lower()]


def _is_ordered(window: exp.Window) -> bool:
    order = window.args.get("order")
    return isinstance(order, exp.Order) and order.find(exp.Column) is not None


def _is_cut(window: exp.Window) -> bool:
    """Whether its frame is only a part of the partition."""
    spec = window.args.get("spec")
    return spec is not None and (spec.args.get("start"), spec.args.get("end")) != ("UNBOUNDED", "UNBOUNDED")


def _function(call: exp.Window) -> str:
    function = call.this
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    if isinstance(function, exp.Anonymous):
        return str(function.name).lower()
    return function.sql_name().lower() if isinstance(function, exp.Func) else ""


def _lists(select: exp.Select) -> Iterator[str]:
    for call in select.find_all(exp.GroupConcat):
        order = call.this
        if not isinstance(order, exp.Order):
            continue
        listed = order.this.expressions[0] if isinstance(order.this, exp.Distinct) else order.this
        keys = [key.this for key in order.expressions]
        if not _follows(_folded(listed), [_folded(key) for key in keys]):
            ties = ", ".join(key.sql("spark") for key in keys)
            what = f"listagg lists rows that tie in {short(ties)} in the order in which they arrive"
            yield f"{what}; add {short(listed.sql('spark'))} to its ORDER BY"


def _follows(value: exp.Expr, keys: Sequence[exp.Expr]) -> bool:
    """Whether rows with the same keys have the same value."""
    return value in keys or (
        not isinstance(value, exp.Column) and all(_follows(part, keys) for part in value.iter_expressions())
    )


def _folded(value: exp.Expr) -> exp.Expr:
    """The expression with its names in lower case, as Spark compares them."""
    return value.copy().transform(
        lambda node: exp.to_identifier(node.name.lower()) if isinstance(node, exp.Identifier) else node
    )

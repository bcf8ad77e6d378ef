"""Orders: rows that tie in one come as they like, and what depends on that is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from mv_assets.config.errors import Mistake
from mv_assets.spark_sql.aggregates import is_aggregate
from mv_assets.spark_sql.calls import calls
from mv_assets.spark_sql.canonical import Meaning, NotPlain
from mv_assets.spark_sql.keys import follows, group_keys, placed, spelled, two_meanings, unnamed
from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Found, Output
from mv_assets.spark_sql.spark_functions import generates, names
from mv_assets.spark_sql.text import listed, short

_BY_PLACE = names(
    """
    row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value counter_diff
    first first_value last last_value any_value
    """
)


def refused_orders(tree: exp.Expr, resolver: Resolver, besides: Container[int]) -> list[Mistake]:
    """Every order in which rows may tie where that matters, but for LIMIT in queries `besides`."""
    found = (*_windows(tree), *_lists(tree), *_limits(tree, resolver, besides))
    return [Mistake("sql", what) for what in found]


def _windows(tree: exp.Expr) -> Iterator[str]:
    for call in tree.find_all(exp.Window):
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
    """Whether it has an order, and that by more than what all its rows have in common."""
    order, same = window.args.get("order"), window.args.get("partition_by") or ()
    return isinstance(order, exp.Order) and any(
        key.find(exp.Column) is not None and key.this not in same for key in order.expressions
    )


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


def _lists(tree: exp.Expr) -> Iterator[str]:
    for call in tree.find_all(exp.GroupConcat):
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


# Those that pick a row, by what sqlglot makes of them.
_PICKS: Mapping[type[exp.Expr], str] = {
    exp.First: "first",
    exp.FirstValue: "first_value",
    exp.Last: "last",
    exp.LastValue: "last_value",
    exp.AnyValue: "any_value",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
}


def settled(tree: exp.Expr, tokens: Sequence[Token], meaning: Meaning) -> frozenset[str]:
    """The functions that pick a row, of which every call gives the same whichever row it picks."""
    # By the text too: what the tree does not show is not settled.
    written = Counter(call.name for call in calls(tokens))
    found = [(_PICKS[type(node)], node) for node in tree.find_all(*_PICKS) if type(node) in _PICKS]
    seen = Counter(name for name, _ in found)
    open_ = {name for name, node in found if not _is_settled(node, meaning)}
    return frozenset(name for name in seen.keys() - open_ if seen[name] == written[name])


def _is_settled(call: exp.Expr, meaning: Meaning) -> bool:
    """Whether the value is the same in all rows that a call picks from.

    It is if it is made of the group's keys; or, as max_by and min_by pick from rows that tie in what they are
    by, of that.
    """
    windowed, compares = _is_windowed(call), isinstance(call, (exp.ArgMax, exp.ArgMin))
    if windowed and not compares:
        # It picks by the window's order, which is looked at for itself.
        return True
    keys = set() if windowed else _group_of(call, meaning)
    by = call.args.get("expression")
    if compares and (not isinstance(by, exp.Expr) or call.args.get("count")):
        return False
    if compares and isinstance(by, exp.Expr):
        keys |= {spelled(unnamed(part), meaning) for part in _parts(unnamed(by))}
    return isinstance(call.this, exp.Expr) and follows(call.this, keys, meaning)


def _is_windowed(call: exp.Expr) -> bool:
    around = call.parent
    while isinstance(around, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        around = around.parent
    return isinstance(around, exp.Window)


def _group_of(call: exp.Expr, meaning: Meaning) -> set[str]:
    """The keys of the groups that an aggregate is computed for."""
    select = call.find_ancestor(exp.Select)
    try:
        return {spelled(key, meaning) for key in group_keys(select)} if select is not None else set()
    except NotPlain:
        return set()


def _parts(value: exp.Expr) -> list[exp.Expr]:
    """The parts of a struct, which are equal where it is; or the value itself."""
    if not isinstance(value, (exp.Struct, exp.Tuple)):
        return [value]
    return [each.expression if isinstance(each, exp.PropertyEQ) else each for each in value.expressions]


def _limits(tree: exp.Expr, resolver: Resolver, besides: Container[int]) -> Iterator[str]:
    for query in tree.find_all(exp.Select, exp.SetOperation, exp.Subquery):
        words = [key.upper() for key in ("limit", "offset") if query.args.get(key)]
        # EXISTS asks how many rows there are, not which.
        if not words or id(query) in besides or isinstance(query.parent, exp.Exists):
            continue
        outputs, what = (
            resolver.outputs.get(id(query)),
            f"{words[0]} keeps whichever rows come first where they tie",
        )
        missing = None if outputs is None else _untold(query, outputs, resolver)
        if missing is None:
            yield f"{what}; name its columns, and order by them"
        elif missing:
            yield f"{what}; add {listed(missing)} to its ORDER BY"


def _untold(query: exp.Expr, outputs: Sequence[Output], resolver: Resolver) -> list[str]:
    """What ORDER BY lacks: rows that tie in it may differ there."""
    order = query.args.get("order")
    keys = [each.this for each in order.expressions] if isinstance(order, exp.Order) else []
    if any(isinstance(key, exp.Var) and key.name.upper() == "ALL" for key in keys):
        return []
    if isinstance(query, exp.Select):
        return _untold_of_rows(query, outputs, keys, resolver)
    places = {_place(key, outputs, resolver.meaning) for key in keys}
    return [each.name for place, each in enumerate(outputs) if place not in places]


def _place(key: exp.Expr, outputs: Sequence[Output], meaning: Meaning) -> int | None:
    """Which of the columns that a set operation gives a key is."""
    meant = meaning.get(id(key))
    if isinstance(meant, Found) and not meant.fields:
        names = [each.name.lower() for each in outputs]
        return names.index(meant.column.lower()) if meant.column.lower() in names else None
    return int(key.name) - 1 if isinstance(key, exp.Literal) and key.is_int else None


def _untold_of_rows(
    select: exp.Select, outputs: Sequence[Output], keys: Sequence[exp.Expr], resolver: Resolver
) -> list[str]:
    meaning, items = resolver.meaning, [item for each in outputs for item in each.items]
    try:
        ordered = {spelled(unnamed(placed(key, items)), meaning) for key in keys}
    except NotPlain:
        ordered = set()
    shown = [
        each.name or short(item.sql("spark"))
        for each, item in zip(outputs, items, strict=True)
        if not follows(item, ordered, meaning)
    ]
    groups = _groups(select, resolver)
    if groups is None:
        return shown
    named = {spelled(unnamed(item), meaning): each.name for each, item in zip(outputs, items, strict=True)}
    hidden = {spelled(key, meaning): short(key.sql("spark")) for key in groups}
    return [named.get(key) or text for key, text in hidden.items() if key not in ordered] if shown else []


def _groups(select: exp.Select, resolver: Resolver) -> list[exp.Expr] | None:
    """The keys of which a SELECT gives a row each; None if it does not, or nobody can tell."""
    own = list(select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query)))
    grouped = select.args.get("group") is not None or any(map(is_aggregate, own))
    if not grouped or any(generates(node) for item in select.expressions for node in item.walk()):
        return None
    used = {column for columns in resolver.used.values() for column in columns}
    try:
        keys = group_keys(select)
    except NotPlain:
        return None
    return None if two_meanings(keys, resolver.meaning, used) else keys

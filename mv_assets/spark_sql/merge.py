"""Whether rows made of further files can be merged into a view's stored rows, and how, column by column."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from mv_assets.refusal import Refusal
from mv_assets.spark_sql.aggregates import Kind, Partial, called, is_aggregate, partial_of
from mv_assets.spark_sql.canonical import Meaning, NotPlain
from mv_assets.spark_sql.keys import follows, group_keys, spelled, two_meanings, unnamed
from mv_assets.spark_sql.resolve import output_names
from mv_assets.spark_sql.scope import Found
from mv_assets.spark_sql.spark_functions import generates
from mv_assets.spark_sql.text import short

# Any other clause picks or changes rows by what else is in their bucket.
_CLAUSES = frozenset({"with_", "hint", "expressions", "from_", "joins", "laterals", "where", "group"})
_INTEGERS = frozenset({exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT})
_INEXACT_KINDS = frozenset({"float", "double", "string"})
_INEXACT = (exp.Div, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow)
_FLOATS = frozenset({exp.DType.FLOAT, exp.DType.DOUBLE})


@dataclass(frozen=True, slots=True)
class Merging:
    """What is done with rows of the same bucket that were made of different files.

    Of a view that `groups`, rows that are equal in all columns but `aggregates` become one; others are put
    side by side. `floats` are sums whose last digits depend on the order in which files come.
    """

    groups: bool = False
    aggregates: Mapping[str, Partial] = field(default_factory=dict)
    floats: frozenset[str] = frozenset()


def merging_of(
    select: exp.Select, meaning: Meaning, used: Container[str], *, aggregates: bool
) -> Merging | Refusal:
    """How to merge; or why a bucket has to be computed from all of its files.

    Each row comes from one row of the base table, which no subquery reads: a view must be so. `used` are
    the columns of tables that it mentions, in lower case.
    """
    try:
        _refuse_clauses(select)
        return _of_groups(select, meaning, used) if aggregates else Merging()
    except NotPlain as why:
        return Refusal(str(why))


def _refuse_clauses(select: exp.Select) -> None:
    for key, value in select.args.items():
        if value and key not in _CLAUSES:
            raise NotPlain(f"{key.strip('_').upper()} depends on all rows of a bucket")
    if select.find(exp.Window):
        raise NotPlain("a window function depends on all rows of a bucket")
    if any(called(node) == "session_window" for node in select.find_all(exp.Anonymous)):
        raise NotPlain(
            "a further row makes one session of two, so session_window depends on all rows of a bucket"
        )


def _of_groups(select: exp.Select, meaning: Meaning, used: Container[str]) -> Merging:
    found, floats = dict[str, Partial](), set[str]()
    keys = group_keys(select)
    _refuse_hidden_keys(select, keys, meaning, used)
    told_apart = {spelled(key, meaning) for key in keys}
    for item in select.expressions:
        if isinstance(item, exp.Aliases) or any(map(generates, item.walk())):
            raise NotPlain(f"{short(item.sql('spark'))} makes several rows of a group")
        if _aggregates(item, meaning):
            [name] = output_names(item)
            found[name] = partial_of(unnamed(item))
            if found[name].kind is Kind.SUM and _rounds(found[name].argument, meaning):
                floats.add(name)
        elif not follows(item, told_apart, meaning):
            # Whatever it is, it is not known to be the same for all rows of a group.
            raise NotPlain(f"{short(item.sql('spark'))} is not made of keys of GROUP BY")
    return Merging(groups=True, aggregates=found, floats=frozenset(floats))


def _refuse_hidden_keys(
    select: exp.Select, keys: Sequence[exp.Expr], meaning: Meaning, used: Container[str]
) -> None:
    """Groups are told apart by what is stored of them."""
    items = [unnamed(item) for item in select.expressions]
    shown, unclear = {spelled(item, meaning) for item in items}, two_meanings(keys, meaning, used)
    for key in keys:
        if any(key is item for item in items):
            continue
        if any(key is each for each in unclear) or spelled(key, meaning) not in shown:
            raise NotPlain(f"{short(key.sql('spark'))} is a key of GROUP BY but no output column")


def _aggregates(node: exp.Expr, meaning: Meaning) -> bool:
    """Whether an item aggregates, itself or by another's name."""
    return any(is_aggregate(each) for each in _followed(node, meaning))


def _rounds(argument: exp.Expr | None, meaning: Meaning) -> bool:
    """Whether a value is known to be of floating point; of columns without a known type Spark will tell."""
    found = [] if argument is None else list(_followed(argument, meaning, prune=_is_exact))
    asked = {id(node) for each in found if isinstance(each, exp.If) for node in each.this.walk()}
    nodes = [node for node in found if id(node) not in asked]
    kinds = {kind for node in nodes if (kind := _kind(node, meaning))}
    return (
        not kinds.isdisjoint(_INEXACT_KINDS)
        or any(isinstance(node, exp.Cast) and node.to.this in _FLOATS for node in nodes)
        or any(_is_float(node) for node in nodes)
        or ("decimal" not in kinds and any(isinstance(node, _INEXACT) for node in nodes))
    )


def _is_float(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and "e" in node.name.lower()


def _is_exact(node: exp.Expr) -> bool:
    """Whether a value is exact whatever it is made of."""
    return isinstance(node, exp.Cast) and node.to.this in _INTEGERS | {exp.DType.DECIMAL}


def _kind(node: exp.Expr, meaning: Meaning) -> str | None:
    meant = meaning.get(id(node))
    if not isinstance(meant, Found) or meant.fields:
        return None
    kind = meant.relation.type_of(meant.column)
    return None if kind is None else kind.lower().partition("(")[0].partition(" ")[0]


def _followed(
    node: exp.Expr, meaning: Meaning, prune: Callable[[exp.Expr], bool] = lambda _: False
) -> Iterator[exp.Expr]:
    """The nodes of an expression, and of those that it refers to by name."""
    for each in node.walk(prune=prune):
        yield each
        meant = meaning.get(id(each))
        if isinstance(meant, exp.Expr):
            yield from _followed(meant, meaning, prune)

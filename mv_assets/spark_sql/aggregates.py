"""Aggregates: what is one, which come in parts, and how the whole is made of those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from mv_assets.spark_sql.canonical import NotPlain, bare, counts_rows, spelled
from mv_assets.spark_sql.spark_functions import AGGREGATES
from mv_assets.spark_sql.text import short


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node aggregates rows; a window function keeps them."""
    call = node.parent
    while isinstance(call, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        call = call.parent
    if isinstance(call, exp.Window):
        return False
    if isinstance(node, exp.Any):
        return not isinstance(node.parent, (exp.Like, exp.ILike))
    return isinstance(node, exp.AggFunc) or (
        isinstance(node, exp.Anonymous) and str(node.name).lower() in AGGREGATES
    )


def aggregates(node: exp.Expr) -> bool:
    """Whether an expression aggregates rows."""
    return any(map(is_aggregate, node.walk()))


class Kind(StrEnum):
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AND = "bool_and"
    OR = "bool_or"
    SKETCH = "hll_sketch_agg"
    THETA = "theta_sketch_agg"
    BITMAP = "bitmap_construct_agg"


# Sketches, and what makes a number of them: put together of parts they have other bytes, and the same number.
ESTIMATES = {
    Kind.SKETCH: "hll_sketch_estimate",
    Kind.THETA: "theta_sketch_estimate",
    Kind.BITMAP: "bitmap_count",
}


@dataclass(frozen=True, slots=True)
class Partial:
    """An aggregate as one part computes it. No argument: all rows are counted."""

    kind: Kind
    argument: exp.Expr | None
    condition: exp.Expr | None = None
    # Further arguments of a sketch.
    settings: tuple[exp.Expr, ...] = ()
    # What to compute of single rows: the same values as the argument's, and no overflow.
    instead: exp.Expr | None = None

    @property
    def sql(self) -> str:
        argument = self.instead or self.argument
        inside = ["*"] if argument is None else [argument.sql("spark")]
        call = f"{self.kind}({', '.join([*inside, *(each.sql('spark') for each in self.settings)])})"
        return call if self.condition is None else f"{call} FILTER (WHERE {self.condition.sql('spark')})"

    @property
    def spelled(self) -> str:
        parts = (self.argument, self.condition, *self.settings)
        return f"{self.kind}({', '.join('' if part is None else spelled(part) for part in parts)})"

    def merged(self, column: str, kind: str) -> str:
        """The whole from the parts, in the type that the whole has, as Spark writes it.

        Raises:
            NotPlain: parts of that type don't add up to what the base table would give.

        """
        match self.kind:
            case Kind.COUNT:
                return f"coalesce(sum({column}), 0L)"
            case Kind.SUM if kind.startswith("decimal"):
                # The sum of sums has more digits than the sum.
                return f"CAST(sum({column}) AS {kind})"
            case Kind.SUM if kind in ("bigint", "double"):
                return f"sum({column})"
            case Kind.SUM:
                raise NotPlain(f"sums of {kind} are answered by the base table only")
            case Kind.SKETCH:
                return f"hll_union_agg({column}, true)"
            case Kind.THETA:
                settings = [each.sql("spark") for each in self.settings]
                return f"theta_union_agg({', '.join([column, *settings])})"
            case Kind.BITMAP:
                return f"bitmap_or_agg({column})"
        return f"{self.kind}({column})"


_KINDS: Mapping[type[exp.Expr], Kind] = {
    exp.Sum: Kind.SUM,
    exp.Min: Kind.MIN,
    exp.Max: Kind.MAX,
    exp.LogicalAnd: Kind.AND,
    exp.LogicalOr: Kind.OR,
    exp.Any: Kind.OR,
    exp.BitmapConstructAgg: Kind.BITMAP,
}
_NAMES = {"every": Kind.AND, "some": Kind.OR}


def partial_of(node: exp.Expr, condition: exp.Expr | None = None) -> Partial:
    """An aggregate whose parts can be merged.

    Raises:
        NotPlain: it is none.

    """
    if isinstance(node, exp.Filter):
        return partial_of(node.this, node.expression.this)
    if isinstance(node, exp.CountIf) and condition is None and not isinstance(node.this, exp.Distinct):
        return Partial(Kind.COUNT, None, node.this)
    if isinstance(node, exp.Count) and counts_rows(node):
        return Partial(Kind.COUNT, None, condition)
    if isinstance(node, exp.Count) and not node.args.get("expressions"):
        return _where_given(Kind.COUNT, argument_of(node), condition)
    if called(node) in (Kind.SKETCH, Kind.THETA) and node.expressions:
        value, *settings = node.expressions
        return Partial(Kind(called(node)), value, condition, tuple(settings))
    kind = _KINDS.get(type(node)) or _NAMES.get(called(node))
    further = node.expressions[1:] if isinstance(node, exp.Anonymous) else node.expressions
    if kind is None or further:
        raise NotPlain(f"{short(node.sql('spark'))} does not come in parts that can be merged")
    return _where_given(kind, argument_of(node), condition)


def _where_given(kind: Kind, value: exp.Expr, condition: exp.Expr | None) -> Partial:
    """An aggregate of values that are null unless a condition holds, as one of the rows that meet it."""
    value, condition = only_where(value, condition)
    if kind is Kind.COUNT and isinstance(bare(value), exp.Literal):
        return Partial(kind, None, condition)
    return Partial(kind, value, condition)


def only_where(value: exp.Expr, condition: exp.Expr | None) -> tuple[exp.Expr, exp.Expr | None]:
    """CASE WHEN c THEN x END, which aggregates skip where c does not hold, as x and c."""
    chosen = choice(value)
    if chosen is None or not (chosen[2] is None or isinstance(bare(chosen[2]), exp.Null)):
        return value, condition
    when, then, _ = chosen
    both = when if condition is None else exp.And(this=_inside(condition), expression=_inside(when))
    return only_where(then, both)


def choice(value: exp.Expr) -> tuple[exp.Expr, exp.Expr, exp.Expr | None] | None:
    """The condition, and the values if it holds and if not, of what chooses between two."""
    value = bare(value)
    if isinstance(value, exp.Case) and value.this is None and len(value.args["ifs"]) == 1:
        one = value.args["ifs"][0]
        return one.this, one.args["true"], value.args.get("default")
    if isinstance(value, exp.If):
        return value.this, value.args["true"], value.args.get("false")
    return None


def _inside(condition: exp.Expr) -> exp.Expr:
    return exp.Paren(this=condition.copy())


def argument_of(node: exp.Expr) -> exp.Expr:
    """The one argument of an aggregate.

    Raises:
        NotPlain: it has none, or takes it in ways that don't come in parts.

    """
    given = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
    value: exp.Expr | None = next(iter(given), None)
    if value is None or isinstance(value, (exp.Distinct, exp.Star)) or aggregates(value):
        raise NotPlain(f"{short(node.sql('spark'))} does not come in parts that can be merged")
    return value


def called(node: exp.Expr | None) -> str:
    """The name of a function that sqlglot has no class for."""
    return str(node.name).lower() if isinstance(node, exp.Anonymous) else ""

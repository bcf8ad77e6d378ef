"""Aggregates: what is one, which come in parts, and how the whole is made of those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from mv_assets.spark_sql.canonical import NotPlain, counts_rows, spelled
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


@dataclass(frozen=True, slots=True)
class Partial:
    """An aggregate as one part computes it. No argument: all rows are counted."""

    kind: Kind
    argument: exp.Expr | None
    condition: exp.Expr | None = None
    # Further arguments of a sketch.
    settings: tuple[exp.Expr, ...] = ()

    @property
    def sql(self) -> str:
        inside = ["*"] if self.argument is None else [self.argument.sql("spark")]
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
        return f"{self.kind}({column})"


_KINDS: Mapping[type[exp.Expr], Kind] = {
    exp.Sum: Kind.SUM,
    exp.Min: Kind.MIN,
    exp.Max: Kind.MAX,
    exp.LogicalAnd: Kind.AND,
    exp.LogicalOr: Kind.OR,
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
        return Partial(Kind.COUNT, argument_of(node), condition)
    if called(node) == Kind.SKETCH and node.expressions:
        value, *settings = node.expressions
        return Partial(Kind.SKETCH, value, condition, tuple(settings))
    kind = _KINDS.get(type(node)) or _NAMES.get(called(node))
    further = node.expressions[1:] if isinstance(node, exp.Anonymous) else node.expressions
    if kind is None or further:
        raise NotPlain(f"{short(node.sql('spark'))} does not come in parts that can be merged")
    return Partial(kind, argument_of(node), condition)


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

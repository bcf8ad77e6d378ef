"""Sums as expressions of simpler aggregates, which views more often have."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto

from sqlglot import exp

from mv_assets.spark_sql.aggregates import choice, only_where
from mv_assets.spark_sql.canonical import bare, replaced


class Likeness(Enum):
    """How what is made of simpler aggregates is like the sum: of its type, or of one with the same values.

    Of a `LINEAR` one, floating point is rounded elsewhere.
    """

    SAME = auto()
    SAME_VALUES = auto()
    LINEAR = auto()


@dataclass(frozen=True, slots=True)
class Simpler:
    expression: exp.Expr
    likeness: Likeness


def simpler_inside(node: exp.Expr) -> exp.Expr:
    """An expression with its sums made simpler, as far as that leaves their types alone."""

    def replace(each: exp.Expr) -> exp.Expr | None:
        found = simpler(each)
        return found.expression if found is not None and found.likeness is Likeness.SAME else None

    return replaced(node, replace)


def simpler(node: exp.Expr) -> Simpler | None:
    """A sum made simpler; None if it is no such sum."""
    node, condition = bare(node), None
    if isinstance(node, exp.Filter):
        node, condition = bare(node.this), node.expression.this
    if not isinstance(node, exp.Sum) or isinstance(node.this, exp.Distinct):
        return None
    value, condition = only_where(node.this, condition)
    counted = _whole(value)
    if counted is not None:
        return Simpler(_if_any(_rows(condition), _times(counted, _rows(condition))), Likeness.SAME)
    return _or_nothing(value, condition) or _linear_sum(value, condition)


def _or_nothing(value: exp.Expr, condition: exp.Expr | None) -> Simpler | None:
    """The sum of what is chosen by a condition, else 0; or of 0, else what is chosen."""
    chosen = choice(value)
    if chosen is None or chosen[2] is None:
        return None
    when, then = chosen[:2] if _whole(chosen[2]) == 0 else (_not_true(chosen[0]), chosen[2])
    if 0 not in (_whole(chosen[1]), _whole(chosen[2])):
        return None
    both = when if condition is None else exp.and_(condition, when)
    counted = _whole(then)
    if counted is not None:
        return Simpler(_if_any(_rows(condition), _times(counted, _rows(both))), Likeness.SAME)
    # Rows that add something: those of the 0, and those whose value is not null.
    added = exp.Add(
        this=exp.Sub(this=_rows(condition), expression=_rows(both)),
        expression=_filtered(exp.Count(this=then.copy()), both),
    )
    total = exp.Coalesce(this=_filtered(exp.Sum(this=then.copy()), both), expressions=[_number(Decimal(0))])
    return Simpler(_if_any(added, total), Likeness.SAME_VALUES)


def _not_true(condition: exp.Expr) -> exp.Expr:
    """That a condition is false, or null."""
    return exp.Not(this=exp.Is(this=exp.Paren(this=condition.copy()), expression=exp.true()))


def _linear_sum(value: exp.Expr, condition: exp.Expr | None) -> Simpler | None:
    found = _linear(value)
    if found is None or (found.factor, found.plus) == (Decimal(1), Decimal(0)):
        return None
    total = _times(found.factor, _filtered(exp.Sum(this=found.of.copy()), condition))
    if found.plus:
        count = _filtered(exp.Count(this=found.of.copy()), condition)
        total = exp.Add(this=total, expression=_times(found.plus, count))
    return Simpler(total, Likeness.LINEAR)


@dataclass(frozen=True, slots=True)
class _Linear:
    """factor * of + plus."""

    factor: Decimal
    of: exp.Expr
    plus: Decimal

    def times(self, number: Decimal) -> _Linear:
        return _Linear(self.factor * number, self.of, self.plus * number)

    def add(self, number: Decimal) -> _Linear:
        return _Linear(self.factor, self.of, self.plus + number)


def _linear(value: exp.Expr) -> _Linear | None:
    value = bare(value)
    match value:
        case exp.Neg():
            inner = _linear(value.this)
            return None if inner is None else inner.times(Decimal(-1))
        case exp.Add() | exp.Sub() | exp.Mul():
            return _of_two(value)
    return _Linear(Decimal(1), value, Decimal(0)) if value.find(exp.Column) else None


def _of_two(value: exp.Binary) -> _Linear | None:
    left, right = _decimal(value.this), _decimal(value.expression)
    if left is None and right is None:
        return _Linear(Decimal(1), value, Decimal(0))
    inner = _linear(value.expression if right is None else value.this)
    number = left if right is None else right
    if inner is None or number is None:
        return None
    match value:
        case exp.Mul():
            return inner.times(number)
        case exp.Add():
            return inner.add(number)
    return inner.times(Decimal(-1)).add(number) if right is None else inner.add(-number)


def _whole(value: exp.Expr) -> Decimal | None:
    """A whole number that is written out."""
    found = _decimal(value)
    return found if found is not None and found.as_tuple().exponent == 0 else None


def _decimal(value: exp.Expr) -> Decimal | None:
    value = bare(value)
    if isinstance(value, exp.Neg):
        inner = _decimal(value.this)
        return None if inner is None else -inner
    if not isinstance(value, exp.Literal) or value.is_string or "e" in value.name.lower():
        return None
    return Decimal(value.name)


def _number(number: Decimal) -> exp.Expr:
    literal = exp.Literal.number(f"{abs(number):f}")
    return exp.Paren(this=exp.Neg(this=literal)) if number < 0 else literal


def _times(number: Decimal, value: exp.Expr) -> exp.Expr:
    return exp.Mul(this=_number(number), expression=value)


def _rows(condition: exp.Expr | None) -> exp.Expr:
    return _filtered(exp.Count(this=exp.Star()), condition)


def _filtered(aggregate: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    if condition is None:
        return aggregate
    return exp.Filter(this=aggregate, expression=exp.Where(this=condition.copy()))


def _if_any(count: exp.Expr, value: exp.Expr) -> exp.Expr:
    """The sum of nothing is null."""
    return exp.If(
        this=exp.GT(this=exp.Paren(this=count), expression=_number(Decimal(0))), true=value, false=exp.Null()
    )

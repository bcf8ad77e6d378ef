"""Constants as values of the column that they are compared with, in the order in which Spark compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from math import ceil, floor
from typing import Any

from sqlglot import exp

from mv_assets.buckets import DAY
from mv_assets.query.match.implication.value_sets import ANYTHING, NOTHING, ValueSet
from mv_assets.query.match.ranges import moment
from mv_assets.spark_sql.canonical import bare

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
# What some files have as whole numbers others may have with digits after the point, and as days as times.
_NUMBER, _DAY_OR_TIME = "number", "day or time"
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz", _DAY_OR_TIME})
# A decimal has no more digits.
_MOST_DIGITS = 38
_EXACT_IN_DOUBLE = 1 << 53
_INT, _LONG = 1 << 31, 1 << 63
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# A BIGINT as a decimal.
_OF_WHOLE = 20, 0
_DAY_US = DAY * 1_000

# False and true are 0 and 1.
_TRUTHS = ValueSet.any_of([ValueSet.whole(0), ValueSet.whole(1)])

Compare = Callable[[Any], ValueSet]
# What `column op value` keeps, where values have no next one, and where they are whole numbers.
_KEPT: dict[type[exp.Expr], Compare] = {
    exp.EQ: ValueSet.of,
    exp.NEQ: lambda value: ValueSet.of(value).others(),
    exp.LT: ValueSet.below,
    exp.LTE: lambda value: ValueSet.below(value, included=True),
    exp.GT: ValueSet.above,
    exp.GTE: lambda value: ValueSet.above(value, included=True),
}
_KEPT_WHOLE: dict[type[exp.Expr], Compare] = {
    exp.EQ: lambda value: ValueSet.whole(int(value)) if value == int(value) else NOTHING,
    exp.NEQ: lambda value: _KEPT_WHOLE[exp.EQ](value).others(),
    exp.LT: lambda value: ValueSet.below(ceil(value)),
    exp.LTE: lambda value: ValueSet.below(floor(value) + 1),
    exp.GT: lambda value: ValueSet.above(floor(value) + 1, included=True),
    exp.GTE: lambda value: ValueSet.above(ceil(value), included=True),
}
COMPARISONS = frozenset(_KEPT)


def sampled(kind: str | None) -> str | None:
    """What a type is to be taken for, where some files may have a wider one."""
    if kind in _WHOLE:
        return _NUMBER
    return _DAY_OR_TIME if kind == "date" else kind


def kept(operator: type[exp.Expr], kind: str | None, constant: exp.Expr) -> ValueSet | None:
    """What a comparison keeps of a column of that type; None if it can't be told."""
    value = _value(kind, constant)
    if value is None:
        return None
    whole = kind in _WHOLE or kind in _TIMES or kind == "boolean"
    return (_KEPT_WHOLE if whole else _KEPT)[operator](value).and_(possible(kind))


def possible(kind: str | None) -> ValueSet:
    """All values of a type, and null."""
    return replace(_TRUTHS, null=True) if kind == "boolean" else ANYTHING


def listed(kind: str | None, constants: Sequence[exp.Expr]) -> ValueSet | None:
    """What an IN keeps of a column of that type: Spark compares all of its values in one type."""
    points = [kept(exp.EQ, kind, each) for each in constants]
    found = [each for each in points if each is not None]
    if len(found) < len(points) or not _in_one_type(kind, constants):
        return None
    return ValueSet.any_of(found)


def _in_one_type(kind: str | None, constants: Sequence[exp.Expr]) -> bool:
    """Whether each is compared as it would be alone.

    Without ANSI mode, times beside a text become texts, of which a date has one spelling.
    """
    texts = [bare(each).name for each in constants if isinstance(bare(each), exp.Literal)]
    if kind in _TIMES:
        return all(kind == "date" and _DAY.fullmatch(text) for text in texts)
    numbers = [number for each in constants if (number := _number(each)) is not None]
    return kind in ("double", _NUMBER) or not numbers or _is_exact(kind, numbers)


def _value(kind: str | None, constant: exp.Expr) -> Any:
    constant = bare(constant)
    if kind in _TIMES:
        return _time(str(kind), constant)
    if kind == "string":
        text = isinstance(constant, exp.Literal) and constant.is_string
        return constant.name if text else None
    if kind == "boolean":
        return int(bool(constant.this)) if isinstance(constant, exp.Boolean) else None
    number = _number(constant)
    if number is None:
        return None
    if kind == "double":
        # Both sides become doubles: what they become is compared.
        rounded = number == int(number) and abs(number) > _EXACT_IN_DOUBLE
        return None if rounded else float(number)
    if kind == _NUMBER:
        # As a double, and as a decimal of any digits, it is the same.
        same = abs(number) < _EXACT_IN_DOUBLE and Decimal(float(number)) == number
        return number if same else None
    if kind in _WHOLE and not -_LONG <= number <= _LONG - 1:
        # Beyond all BIGINTs, Spark takes a comparison for true or false, of a NULL too.
        return None
    return number if _is_exact(kind, [number]) else None


def _is_exact(kind: str | None, numbers: Sequence[Decimal]) -> bool:
    """Whether Spark, which compares decimals in one type that holds all, has one with enough digits."""
    found = _DECIMAL.fullmatch(str(kind))
    if found is None and kind not in _WHOLE:
        return False
    precision, scale = (int(found[1]), int(found[2])) if found else _OF_WHOLE
    points = [-int(number.as_tuple().exponent) for number in numbers]
    wholes = [len(number.as_tuple().digits) - point for number, point in zip(numbers, points, strict=True)]
    return max(precision - scale, *wholes) + max(scale, *points) <= _MOST_DIGITS


def _time(kind: str, constant: exp.Expr) -> Any:
    """A date in days, a time in microseconds: both are whole numbers."""
    if kind not in ("date", _DAY_OR_TIME):
        return moment(constant, kind, None, days=False)
    at = moment(constant, "date", None, days=True)
    if at is None or at % _DAY_US:
        return None
    return at // _DAY_US if kind == "date" else at


def _number(node: exp.Expr) -> Decimal | None:
    """A number as it is written, or worked out of whole ones that fit an INT; no double, which rounds."""
    node = bare(node)
    match node:
        case exp.Neg():
            inner = _number(node.this)
            return None if inner is None else -inner
        case exp.Add() | exp.Sub() | exp.Mul():
            return _worked_out(node)
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    digits = node.name.replace(".", "", 1)
    return Decimal(node.name) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


def is_usual(constant: exp.Literal) -> bool:
    """Whether it is a text, or a number as BIGINTs are."""
    number = _number(constant)
    return constant.is_string or (number is not None and abs(number) < _LONG)


def _worked_out(node: exp.Binary) -> Decimal | None:
    left, right = _number(node.this), _number(node.expression)
    if left is None or right is None:
        return None
    found = {exp.Add: left + right, exp.Sub: left - right, exp.Mul: left * right}[type(node)]
    whole = all(each.as_tuple().exponent == 0 and abs(each) < _INT for each in (left, right, found))
    return found if whole else None

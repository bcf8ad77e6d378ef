"""Dates that are written as sums: `DATE '1998-12-01' - INTERVAL 90 DAYS` is a day as any."""

from __future__ import annotations

import calendar
import re
from datetime import date, timedelta

from sqlglot import exp

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,6}", re.ASCII)
_MONTHS = {"MONTH": 1, "MONTHS": 1, "YEAR": 12, "YEARS": 12}
_DAYS = frozenset({"DAY", "DAYS"})


def worked_out(node: exp.Expr) -> exp.Expr | None:
    """A day written out, in place of one that is counted from such a day; None for anything else."""
    try:
        found = _counted(node)
    except (ValueError, OverflowError):
        # Before the year 1, or after 9999.
        return None
    if found is None:
        return None
    return exp.Cast(this=exp.Literal.string(found.isoformat()), to=exp.DataType.build("date"))


def _counted(node: exp.Expr) -> date | None:
    match node:
        case exp.TsOrDsToDate() if not node.args.get("format"):
            return _text(node.this)
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            # Of `- INTERVAL 2 DAYS 12 HOURS` sqlglot makes two sums: of those none is worked out.
            return _moved(_day(node.this), node.expression, -1 if isinstance(node, exp.Sub) else 1)
        case exp.TsOrDsAdd():
            day, days = _day(node.this) or _text(node.this), _whole(node.expression)
            return None if day is None or days is None else day + timedelta(days=days)
        case exp.AddMonths():
            day, months = _day(node.this), _whole(node.expression)
            return None if day is None or months is None else _months_later(day, months)
    return None


def _day(node: exp.Expr) -> date | None:
    is_date = isinstance(node, exp.Cast) and node.args["to"].this is exp.DType.DATE
    return _text(node.this) if is_date else None


def _text(node: exp.Expr) -> date | None:
    written = isinstance(node, exp.Literal) and node.is_string and _DAY.fullmatch(node.name)
    return date.fromisoformat(node.name) if written else None


def _moved(day: date | None, interval: exp.Interval, sign: int) -> date | None:
    unit, count = interval.args.get("unit"), interval.this
    if day is None or not isinstance(unit, exp.Var) or not isinstance(count, exp.Literal):
        return None
    if not _NUMBER.fullmatch(count.name):
        return None
    name, number = unit.name.upper(), sign * int(count.name)
    if name in _DAYS:
        return day + timedelta(days=number)
    return _months_later(day, number * _MONTHS[name]) if name in _MONTHS else None


def _months_later(day: date, months: int) -> date:
    """The same day of a month, or its last one."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _whole(node: exp.Expr) -> int | None:
    """A whole number; of date_sub(day, 3) sqlglot makes 3 * -1."""
    match node:
        case exp.Neg():
            inner = _whole(node.this)
            return None if inner is None else -inner
        case exp.Mul():
            left, right = _whole(node.this), _whole(node.expression)
            return None if left is None or right is None else left * right
        case exp.Literal() if not node.is_string and _NUMBER.fullmatch(node.name):
            return int(node.name)
    return None

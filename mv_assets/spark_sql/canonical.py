"""Expressions in one spelling: names resolved to the tables' columns, so that equal ones can be told.

Only syntax that sqlglot reads and writes without loss takes part; whatever else a query has, Spark gets as it
was written, on the base table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mv_assets.spark_sql.dates import worked_out
from mv_assets.spark_sql.scope import Found
from mv_assets.spark_sql.text import short

Meaning = Mapping[int, Found | exp.Expr]
Replace = Callable[[exp.Expr], exp.Expr | None]


class NotPlain(Exception):
    """Why a part of a query can't be matched with views."""


# Functions that are matched by their names.
_NAMED = frozenset(
    {"weekday", "timestamp_seconds", "timestamp_millis", "timestamp_micros", "every", "some", "mean", "std"}
)
_SKETCHES = frozenset({"hll_sketch_agg", "hll_sketch_estimate", "theta_sketch_agg", "theta_sketch_estimate"})
_PLAIN: tuple[type[exp.Expr], ...] = (
    exp.Abs, exp.Add, exp.And, exp.Any, exp.Avg, exp.Between, exp.BitmapBitPosition,
    exp.BitmapBucketNumber, exp.BitmapConstructAgg, exp.BitmapCount, exp.Boolean, exp.Case, exp.Cast,
    exp.Ceil, exp.Coalesce, exp.Column, exp.Concat, exp.Count, exp.CountIf, exp.DataType,
    exp.DataTypeParam, exp.DateTrunc, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear,
    exp.Distinct, exp.Div, exp.EQ, exp.Filter, exp.Floor, exp.GT, exp.GTE, exp.Greatest, exp.Grouping,
    exp.GroupingId, exp.Hour, exp.Identifier, exp.If, exp.In, exp.IntDiv, exp.Is, exp.LT, exp.LTE,
    exp.LastDay, exp.Least, exp.Length, exp.Like, exp.Literal, exp.LogicalAnd, exp.LogicalOr, exp.Lower,
    exp.Max, exp.Min, exp.Minute, exp.Mod, exp.Month, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null,
    exp.NullSafeEQ, exp.Nullif, exp.Or, exp.Paren, exp.Quarter, exp.Round, exp.Star, exp.Stddev,
    exp.StddevPop, exp.StddevSamp, exp.Sub, exp.Substring, exp.Sum, exp.TimestampTrunc, exp.TryCast,
    exp.TsOrDsToDate, exp.Upper, exp.Var, exp.Variance, exp.VariancePop, exp.WeekOfYear, exp.Where,
    exp.Year,
)  # fmt: skip


def _of_day(part: type[exp.Func]) -> Callable[[exp.Expr], exp.Expr]:
    return lambda time: part(this=exp.TsOrDsToDate(this=time))


def _of_time(part: type[exp.Func]) -> Callable[[exp.Expr], exp.Expr]:
    return lambda time: part(this=time)


# EXTRACT by what it extracts, as the functions that sqlglot reads of the same.
_EXTRACTED: Mapping[str, Callable[[exp.Expr], exp.Expr]] = {
    "YEAR": _of_day(exp.Year), "QUARTER": _of_time(exp.Quarter), "MONTH": _of_day(exp.Month),
    "WEEK": _of_day(exp.WeekOfYear), "DAY": _of_day(exp.Day), "DOW": _of_day(exp.DayOfWeek),
    "DAYOFWEEK": _of_day(exp.DayOfWeek), "DOY": _of_day(exp.DayOfYear), "HOUR": _of_time(exp.Hour),
    "MINUTE": _of_time(exp.Minute),
}  # fmt: skip
# Those that sqlglot writes as it reads them; it makes a timestamp of a TIME.
_TYPES = frozenset(
    {
        exp.DType.BOOLEAN, exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT,
        exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.DATE, exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ, exp.DType.TEXT,
        exp.DType.BINARY,
    }
)  # fmt: skip
_COMPARING = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Like, exp.In, exp.Between, exp.Is,
)  # fmt: skip
_TEXTUAL = (exp.Concat, exp.Length, exp.Like, exp.Lower, exp.Substring, exp.Upper)
# Types that tell which type a value had before.
_WRITTEN = exp.DataType.TEXT_TYPES | {exp.DType.BINARY}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T]00:00(:00(\.0+)?)?)?")
# What a value may end with; a word that is also a type or a function's name is taken for none.
_ENDING = frozenset(
    {
        TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN,
        TokenType.R_BRACKET, TokenType.END, TokenType.NULL, TokenType.TRUE, TokenType.FALSE,
        TokenType.CURRENT_DATE, TokenType.CURRENT_TIMESTAMP,
    }
)  # fmt: skip
_ODD_TEXT = ("\\", "'", "\n", "\r", "\x00")


def refuse_neighbours(tokens: Sequence[Token]) -> None:
    """Refuse what sqlglot reads otherwise than Spark, as the tokens side by side tell.

    Of texts, Spark reads 'it' 's' as its and 'it''s' as it's, sqlglot both as one thing. Of a text, +name
    makes a number; sqlglot leaves the sign out.

    Raises:
        NotPlain: there is some.

    """
    kinds = [token.token_type for token in tokens]
    if any(one is other is TokenType.STRING for one, other in pairwise(kinds)):
        raise NotPlain("text with quotes in it is answered by the base table only")
    for before, one, other in zip((None, *kinds), kinds, kinds[1:], strict=False):
        # Of a cast, as 10L is one too, the type comes last.
        if other is TokenType.PLUS and one not in _ENDING and before is not TokenType.DCOLON:
            raise NotPlain("a plus sign before a value is left to Spark")


def expanded(node: exp.Expr, meaning: Meaning) -> exp.Expr:
    """A copy in which every column has the name of its table, and an alias is what it stands for.

    Raises:
        NotPlain: it has something that can't be matched.

    """
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return _column(node, meaning)
    if isinstance(node, exp.Alias):
        return expanded(node.this, meaning)
    if isinstance(node, exp.Extract) and node.name.upper() in _EXTRACTED:
        return expanded(_EXTRACTED[node.name.upper()](node.expression), meaning)
    day = worked_out(node)
    if day is not None:
        return day
    _check(node)
    return _rebuilt(node, lambda child: expanded(child, meaning))


def _column(column: exp.Column, meaning: Meaning) -> exp.Expr:
    meant = meaning.get(id(column))
    if isinstance(meant, exp.Expr) and len(column.parts) > 1:
        raise NotPlain(f"{short(column.sql('spark'))} may be a field of an output")
    if isinstance(meant, exp.Expr):
        inner = expanded(meant, meaning)
        return inner if isinstance(inner, (exp.Column, exp.Literal, exp.Paren)) else exp.Paren(this=inner)
    return of_table(column, meaning)


def of_table(node: exp.Expr, meaning: Meaning) -> exp.Column:
    """The column of a table that a name means.

    Raises:
        NotPlain: it means none, or nobody knows which.

    """
    meant = meaning.get(id(node))
    if not isinstance(meant, Found) or meant.fields or meant.relation.source is None:
        raise NotPlain(f"{short(node.sql('spark'))} is no column of a table")
    return exp.column(
        exp.to_identifier(meant.column, quoted=True),
        table=exp.to_identifier(meant.relation.source.name, quoted=True),
    )


def _check(node: exp.Expr) -> None:
    if isinstance(node, exp.Anonymous):
        if str(node.name).lower() not in _NAMED | _SKETCHES:
            raise NotPlain(f"{str(node.name).lower()}() is answered by the base table only")
    elif not isinstance(node, _PLAIN) or node.args.get("format"):
        # Formats sqlglot leaves out, or writes its own way.
        raise NotPlain(f"`{short(node.sql('spark'))}` is answered by the base table only")
    elif isinstance(node, exp.Literal) and node.is_string and any(odd in node.name for odd in _ODD_TEXT):
        raise NotPlain("text with quotes or backslashes in it is answered by the base table only")
    elif isinstance(node, exp.Star) and not means_rows(node):
        raise NotPlain("`*` is answered by the base table only")
    elif isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest")):
        raise NotPlain("IN (SELECT ...) is answered by the base table only")
    elif isinstance(node, exp.Like) and not isinstance(node.expression, exp.Literal):
        raise NotPlain("LIKE with a computed pattern is answered by the base table only")
    elif isinstance(node, exp.DataType) and node.this not in _TYPES:
        raise NotPlain(f"{node.sql('spark')} is answered by the base table only")
    elif isinstance(node, _COMPARING) and any(
        isinstance(child, (*_COMPARING, exp.Not)) for child in node.iter_expressions()
    ):
        # Spark reads a = b = c from the left, sqlglot some such chains from the right.
        raise NotPlain("comparisons of comparisons are matched with parentheses only")


def _rebuilt(node: exp.Expr, build: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    made = type(node)()
    for key, value in node.args.items():
        if isinstance(value, list):
            made.set(key, [build(each) if isinstance(each, exp.Expr) else each for each in value])
        else:
            made.set(key, build(value) if isinstance(value, exp.Expr) else value)
    return made


def replaced(node: exp.Expr, replace: Replace) -> exp.Expr:
    """A copy with what `replace` gives in place of the outermost nodes that it has an answer for."""
    instead = replace(node)
    if instead is not None:
        return instead
    return _rebuilt(node, lambda child: replaced(child, replace))


def written_out(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns whose values are made text of, or are taken for text."""
    for each in node.walk():
        text = isinstance(each, (exp.Cast, exp.TryCast)) and each.args["to"].this in _WRITTEN
        if text or isinstance(each, _TEXTUAL):
            yield from each.find_all(exp.Column)
        else:
            # Without ANSI mode, a number beside a text becomes one.
            values = _alternatives(each)
            if any(map(_is_text, values)):
                yield from (column for value in values for column in value.find_all(exp.Column))


def compared_with_text(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns whose types decide what a text beside them means.

    A date is not among such texts: to dates it says the same as to times.
    """
    for each in node.walk():
        if isinstance(each, _COMPARING) and not isinstance(each, (exp.Like, exp.Is)):
            sides = list(each.iter_expressions())
            if any(_is_text(side) and not _DATE.fullmatch(bare(side).name) for side in sides):
                yield from (column for side in sides for column in side.find_all(exp.Column))


def _alternatives(node: exp.Expr) -> list[exp.Expr]:
    """The expressions of which one is the value, and which Spark therefore gives one type."""
    match node:
        case exp.Coalesce() | exp.Greatest() | exp.Least() | exp.Nullif() | exp.In():
            return list(node.iter_expressions())
        case exp.Case():
            values = [*(branch.args.get("true") for branch in node.args["ifs"]), node.args.get("default")]
            return [value for value in values if value is not None]
        case exp.If():
            return [value for value in (node.args.get("true"), node.args.get("false")) if value is not None]
    return []


def _is_text(node: exp.Expr) -> bool:
    node = bare(node)
    return isinstance(node, exp.Literal) and node.is_string


def bare(node: exp.Expr) -> exp.Expr:
    """An expression without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def spelled(node: Any) -> str:
    """Equal for expressions that mean the same value of the same rows, as far as that is easily told."""
    node = _simplest(node) if isinstance(node, exp.Expr) else node
    match node:
        case exp.Column(this=exp.Identifier()):
            return f"{node.table}.{node.name}".lower()
        case exp.Literal():
            return repr(node.name) if node.is_string else node.name
        case exp.DataType():
            return node.sql("spark").upper()
        case exp.Var() | exp.Identifier():
            return node.name.upper()
        case exp.Anonymous():
            return f"{str(node.name).lower()}({', '.join(map(spelled, node.expressions))})"
        case exp.Expr():
            args = (f"{key}={_value(value)}" for key, value in sorted(node.args.items()) if value)
            name = (
                "Cast" if isinstance(node, exp.TryCast) and not node.args.get("safe") else type(node).__name__
            )
            return f"{name}({', '.join(args)})"
    return repr(node)


def _value(value: Any) -> str:
    return f"[{', '.join(map(spelled, value))}]" if isinstance(value, list) else spelled(value)


def _simplest(node: exp.Expr) -> exp.Expr:
    node = bare(node)
    if isinstance(node, exp.Count) and counts_rows(node):
        return exp.Count(this=exp.Star())
    return node


def means_rows(star: exp.Expr) -> bool:
    """The star of COUNT(*); in COUNT(* EXCEPT (a)) and COUNT(*, a) it means all columns."""
    alone = isinstance(star, exp.Star) and not any(star.args.values())
    return alone and isinstance(star.parent, exp.Count) and not star.parent.expressions


def counts_rows(count: exp.Count) -> bool:
    """COUNT(*), or of a number, which is never null."""
    counted = bare(count.this)
    number = isinstance(counted, exp.Literal) and not counted.is_string
    return means_rows(counted) or (number and not count.expressions)

"""Functions of time that do not change over a whole grain: truncated times do for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from mv_assets.spark_sql.grain import DATE_GRAINS, UNITS, nested

# The grain over which a part of a time does not change.
_PARTS: Mapping[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.LastDay: "month",
    exp.WeekOfYear: "week",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "day",
    exp.DayOfYear: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
}


def truncated_to(node: exp.Expr) -> str | None:
    """The grain that the outermost function cuts its argument to, if it does nothing else."""
    match node:
        case exp.TimestampTrunc():
            return _unit(node)
        case exp.DateTrunc():
            grain = _unit(node)
            return grain if grain in DATE_GRAINS else None
        case exp.Cast() | exp.TryCast() if node.args["to"].this is exp.DType.DATE:
            return "day"
        case exp.TsOrDsToDate() if not node.args.get("format"):
            return "day"
    return None


def stays_over(node: exp.Expr) -> str | None:
    """The grain of time over which a function of a time does not change."""
    grain = truncated_to(node) or _PARTS.get(type(node))
    if grain is None and isinstance(node, exp.Anonymous) and str(node.name).lower() == "weekday":
        return "day"
    return grain


def time_inside(node: exp.Expr) -> exp.Expr:
    """The argument of a function of time, without parentheses and without the date that sqlglot makes of it.

    Of a part of a date it is all the same; the hour of a date is another one.
    """
    inner: exp.Expr = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    while isinstance(inner, exp.Paren) or (
        _PARTS.get(type(node), "hour") not in ("hour", "minute")
        and isinstance(inner, exp.TsOrDsToDate)
        and not inner.args.get("format")
    ):
        inner = inner.this
    return inner


def without_finer(node: exp.Expr, is_time: Callable[[exp.Expr], bool]) -> exp.Expr:
    """The day of the hour of the time is its day; of other values that is not known."""
    grain, inner = truncated_to(node), node
    finer = grain
    while grain is not None and finer is not None and nested(finer, grain):
        inner = time_inside(inner)
        finer = truncated_to(inner)
    if grain is None or not is_time(inner):
        return node
    made = node.copy()
    made.set("this", inner.copy())
    return made


def _unit(node: exp.Expr) -> str | None:
    unit = node.args.get("unit")
    return UNITS.get(unit.name.lower()) if isinstance(unit, exp.Expr) else None

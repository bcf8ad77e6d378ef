"""The clock in a query, read once: `at >= current_date() - INTERVAL 7 DAYS` is then a range as any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace as dataclass_replace

from sqlglot import exp

from mv_assets.query.match.statement import Statement
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.canonical import replaced
from mv_assets.spark_sql.parse import parse

# From SQL to its type and its value as text, all of them at one moment.
Evaluate = Callable[[Sequence[str]], Sequence[tuple[str, str | None]]]
_CLOCK = (exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp)
CLOCK = frozenset({"now", "curdate", "current_timestamp", "current_date", "localtimestamp"})
_LITERALS = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ"}


def without_clock(statement: Statement, evaluate: Evaluate) -> Statement | None:
    """The query at the moment of `evaluate`; None if its conditions do not read the clock."""
    where = statement.tree.args.get("where")
    if where is None or where.find(exp.Query) or not any(map(reads_clock, where.walk())):
        return None
    outermost = _outermost(where)
    if not all(map(_reads_back, outermost)):
        return None
    found = list(dict.fromkeys(map(_text, outermost)))
    values = dict(zip(found, evaluate(found), strict=True))
    if any(kind not in _LITERALS or value is None for kind, value in values.values()):
        return None

    def literal(node: exp.Expr) -> exp.Expr | None:
        kind, value = values.get(_text(node), (None, None))
        if kind is None or value is None:
            return None
        to = exp.DataType.build(_LITERALS[kind], dialect="spark")
        return exp.Cast(this=exp.Literal.string(value), to=to)

    tree = statement.tree.copy()
    tree.set("where", replaced(where, literal))
    # The text stays as it was: what Spark reads as it is written goes by its own clock.
    return dataclass_replace(statement, tree=tree)


def _text(node: exp.Expr) -> str:
    return node.sql("spark", comments=False)


def _reads_back(node: exp.Expr) -> bool:
    """Whether Spark would evaluate what was written.

    Of `- INTERVAL 2 DAYS 12 HOURS` sqlglot makes `- INTERVAL '2' DAYS + INTERVAL '12' HOURS`; formats it
    writes its own way.
    """
    parsed = parse(_text(node))
    same = not isinstance(parsed, Refusal) and parsed.statement == node
    return same and not any(each.args.get("format") for each in node.walk())


def _outermost(where: exp.Expr) -> list[exp.Expr]:
    """The largest expressions that depend on the clock alone."""
    found: list[exp.Expr] = []

    def visit(node: exp.Expr) -> None:
        if not any(map(reads_clock, node.walk())):
            return
        if isinstance(node, (exp.Predicate, exp.Connector, exp.Where, exp.Not, exp.Query)) or node.find(
            exp.Column
        ):
            for child in node.iter_expressions():
                visit(child)
        else:
            found.append(node)

    visit(where)
    return found


def reads_clock(node: exp.Expr) -> bool:
    """Whether it is another thing at another time."""
    return isinstance(node, _CLOCK) or (isinstance(node, exp.Anonymous) and str(node.name).lower() in CLOCK)

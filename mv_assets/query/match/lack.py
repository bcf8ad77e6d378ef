"""What a view lacks to answer a query, all of it: said in a line that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from mv_assets.spark_sql.aggregates import Partial
from mv_assets.spark_sql.canonical import NotPlain, spelled
from mv_assets.spark_sql.grain import GRAINS, nested

A = TypeVar("A")
B = TypeVar("B")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Lack:
    """What would have to be otherwise; each expression is over the base's rows."""

    # Of the view's own, those that need not be true of the rows that are asked for.
    conditions: tuple[exp.Expr, ...] = ()
    # Tables that only the query joins, of whose columns it asks what single rows alone can tell.
    joins: tuple[str, ...] = ()
    keys: tuple[exp.Expr, ...] = ()
    aggregates: tuple[Partial, ...] = ()
    # Of a view of single rows.
    columns: tuple[str, ...] = ()
    # What its times are cut to, and what grains are asked for.
    cut: tuple[str, ...] = ()
    grains: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))

    def and_(self, other: Lack) -> Lack:
        """All that one of both lacks, each thing once."""
        names = [each.name for each in fields(self)]
        both: dict[str, Any] = {name: _once(getattr(self, name) + getattr(other, name)) for name in names}
        return Lack(**both)

    @property
    def grain(self) -> str | None:
        """The coarsest grain of which everything that is asked for, and what is there, consists."""
        if not self.grains:
            return None
        wanted = (*self.cut, *self.grains)
        return next((each for each in reversed(GRAINS) if all(nested(each, one) for one in wanted)), None)

    def said(self, base: str) -> str:
        """What to do, in a line."""
        return "; ".join(part for part in (self._filter(base), self._finer(), self._more(base)) if part)

    def _filter(self, base: str) -> str:
        if not self.conditions:
            return ""
        condition = " AND ".join(plainly(each, base) for each in self.conditions)
        ways = f"ask with WHERE {condition}, or take it out of the view"
        return f"its filter {condition} is not implied: {ways}"

    def _finer(self) -> str:
        if not self.cut:
            return ""
        return f"its times are cut to the {self.cut[0]}: cut them to the {self.grain or 'second'}"

    def _more(self, base: str) -> str:
        parts = [f"join {', '.join(self.joins)} in it"] if self.joins else []
        if self.keys:
            parts.append(f"add {_listed(self.keys, base)} to its keys (GROUP BY)")
        if self.aggregates:
            parts.append(f"add {_listed(self.aggregates, base)} to the view")
        if self.columns:
            parts.append(f"add {', '.join(self.columns)} to its columns")
        return " and ".join(parts)


class Lacking(NotPlain):
    """A view that would answer, if only it had more."""

    def __init__(self, lack: Lack, base: str) -> None:
        super().__init__(lack, base)
        self.lack = lack
        self._base = base

    def __str__(self) -> str:
        return self.lack.said(self._base)


class Noted:
    """Makes one thing after the other, and notes what lacks instead of ending with the first."""

    def __init__(self, base: str, lack: Lack) -> None:
        self._base = base
        self._lack = lack

    def all(self, make: Callable[[A], B], parts: Iterable[A]) -> tuple[B, ...]:
        made = []
        for part in parts:
            try:
                made.append(make(part))
            except Lacking as why:
                self._lack = self._lack.and_(why.lack)
        return tuple(made)

    def refuse(self) -> None:
        """Raise Lacking, if anything lacks."""
        if self._lack:
            raise Lacking(self._lack, self._base)


def plainly(part: exp.Expr | Partial, base: str) -> str:
    """SQL as a person would write it in a view on the base: names without quotes where they need none."""
    if isinstance(part, Partial):
        part = Partial(
            part.kind,
            None if part.argument is None else plain(part.argument, base),
            None if part.condition is None else plain(part.condition, base),
            tuple(plain(each, base) for each in part.settings),
        )
        return part.sql
    return plain(part, base).sql("spark")


def plain(node: exp.Expr, base: str) -> exp.Expr:
    """The same expression, its names as a person would write them in a view on the base."""
    made = node.copy()
    for column in made.find_all(exp.Column):
        if column.table == base:
            column.set("table", None)
    for name in made.find_all(exp.Identifier):
        if _PLAIN_NAME.fullmatch(name.name) and name.name.upper() not in Spark.Tokenizer.KEYWORDS:
            name.set("quoted", None)
    return made


def _listed(parts: Sequence[exp.Expr | Partial], base: str) -> str:
    return ", ".join(plainly(each, base) for each in parts)


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    named = {each.spelled if isinstance(each, Partial) else spelled(each): each for each in values}
    return tuple(named.values())

"""What can be told at a glance: most views that can't answer a query are never held against it.

A view that passes may still not answer. One that does not pass is matched only where a person asks why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from sqlglot import exp

from mv_assets.query.match.aggregation import Aggregation
from mv_assets.query.match.implication.known import Fact, Known, fact_of
from mv_assets.query.match.request import Request
from mv_assets.query.match.view_columns import ViewColumns
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.aggregates import ESTIMATES, Kind, Partial, partial_of
from mv_assets.spark_sql.canonical import bare


class Column(NamedTuple):
    table: str
    name: str


Columns = frozenset[Column]


@dataclass(frozen=True, slots=True)
class Part:
    """An aggregate, by its kind and the columns that it is made of; `where`: those of its FILTER."""

    kind: Kind
    of: Columns
    where: Columns

    @classmethod
    def made_of(cls, partial: Partial) -> Self:
        return cls(partial.kind, _columns(partial.argument), _columns(partial.condition))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a view has to have for a query."""

    known: Known
    # Of each table, what it is joined by.
    joined: Mapping[str, Columns]
    # Nothing where single rows alone can answer.
    parts: tuple[Part, ...] | None
    keys: Columns
    filtered: Columns
    # The base's own, for views of single rows.
    used: Columns

    @classmethod
    def of(cls, asked: Request) -> Self:
        base, anything = asked.source.base, Known((), asked.known.kinds)
        joined = {join.table: _columns(join.on) for join in asked.source.joins}
        grouped = isinstance(asked.aggregation, Aggregation) and asked.opaque is None
        aggregation = None if isinstance(asked.aggregation, Refusal) else asked.aggregation
        keys = () if aggregation is None else (*aggregation.keys, *aggregation.extras)
        parts = () if aggregation is None else tuple(map(Part.made_of, aggregation.partials))
        return cls(
            asked.known,
            joined,
            parts if grouped else None,
            _columns(*keys),
            _columns(*(each for each in asked.filters if not anything.proves(each))),
            frozenset(Column(base, name) for name in asked.used),
        )


@dataclass(frozen=True, slots=True)
class Outline:
    """What a view has for queries."""

    base: str
    # The tables that it joins, and those of them that a query must join too.
    joined: frozenset[str]
    needed: frozenset[str]
    # What its rows tell, and what its conditions speak of.
    told: Columns
    bound: Columns
    conditions: tuple[Fact, ...]
    # Nothing where it keeps single rows.
    parts: frozenset[tuple[Kind, Columns]] | None

    @classmethod
    def of(cls, view: ViewColumns, asked: Request) -> Self:
        joins, by_name = view.source.joins, view.expressions
        kept = [by_name[name] for name in view.columns.values()]
        parts = None
        if view.values is not None:
            made = (Part.made_of(partial_of(bare(by_name[name]))) for name in view.values.values())
            parts = frozenset((each.kind, each.of | each.where) for each in made)
        return cls(
            view.source.base,
            frozenset(join.table for join in joins),
            frozenset(join.table for join in joins if join.side != "LEFT" or not view.keys.get(join.table)),
            _columns(*kept, *view.alike),
            _columns(*view.conditions.values()),
            tuple(fact_of(each, asked.known.kinds) for each in view.conditions.values()),
            parts,
        )

    def may_answer(self, asked: Asked) -> bool:
        """Whether nothing speaks against it at a glance."""
        if not self.needed <= asked.joined.keys() or not all(map(asked.known.proves_fact, self.conditions)):
            return False
        if self.parts is None and asked.used <= self.told:
            return True
        return asked.parts is not None and self._has_groups(asked, asked.parts)

    def _has_groups(self, asked: Asked, parts: Iterable[Part]) -> bool:
        further = [by for table, by in asked.joined.items() if table not in self.joined]
        return (
            all(map(self._tells, (asked.keys, *further)))
            and self._tells(asked.filtered - self.bound)
            and all(map(self._adds_up_to, parts))
        )

    def _tells(self, columns: Columns) -> bool:
        """Whether its rows tell such values; those of what it does not join are told by the join."""
        return columns <= self.told or all(
            column in self.told or (column.table != self.base and column.table not in self.joined)
            for column in columns
        )

    def _adds_up_to(self, part: Part) -> bool:
        kept = self.parts or frozenset()
        if (part.kind, part.of | part.where) in kept:
            return True
        if not self._tells(part.where):
            return False
        return (part.kind, part.of) in kept or (part.kind not in ESTIMATES and self._tells(part.of))


def _columns(*parts: exp.Expr | None) -> Columns:
    found = (column for part in parts if part is not None for column in part.find_all(exp.Column))
    return frozenset(Column(column.table.lower(), column.name.lower()) for column in found)

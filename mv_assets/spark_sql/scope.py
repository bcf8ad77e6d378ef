"""Which column a name means: the relations in current of one SELECT, and those around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.errors import SqlglotError


@dataclass(frozen=True, slots=True)
class Source:
    """A table as the SQL may use it.

    `columns` maps each column to its Spark SQL type, None for a type that is not known; it is None as a whole
    where the schema is not known: a table without files yet, or one not looked at. `time_unit` is "s", "ms",
    "us" or "ns" for a time column that counts since 1970. `grain` is what the time column's values are
    truncated to, where that is known because the table is another view; None means raw instants. `zone` is
    the time zone of that view, by whose clocks it truncates. `unsure` are the columns that may have wider
    types in some files.
    """

    name: str
    columns: Mapping[str, str | None] | None = None
    time_column: str | None = None
    time_unit: str | None = None
    grain: str | None = None
    zone: str | None = None
    unsure: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a query gives, and what its values are made by.

    That is one expression, or one for each part of a set operation; none where it is not known. Without a
    name, Spark makes one up.
    """

    name: str
    items: tuple[exp.Expr, ...] = ()


# What a query gives, in its order; None where that is not known.
Outputs = tuple[Output, ...] | None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, CTE, derived table or generator under the name that the SQL gives it."""

    name: str
    outputs: Outputs
    source: Source | None = None
    # The outputs by name in lower case.
    columns: Mapping[str, Output] | None = field(init=False)

    def __post_init__(self) -> None:
        by_name = None if self.outputs is None else {each.name.lower(): each for each in self.outputs}
        object.__setattr__(self, "columns", by_name)

    @classmethod
    def of(cls, name: str, source: Source) -> Relation:
        return cls(name, None if source.columns is None else tuple(map(Output, source.columns)), source)

    def column(self, name: str) -> str | None:
        """The column in its own spelling, if it is known to exist."""
        if self.columns is not None:
            return self.columns[name.lower()].name if name and name.lower() in self.columns else None
        time_column = self.source.time_column if self.source else None
        return time_column if time_column is not None and time_column.lower() == name.lower() else None

    def might_have(self, name: str) -> bool:
        return self.columns is None or self.column(name) is not None

    def type_of(self, column: str) -> str | None:
        known = self.source.columns if self.source else None
        return known.get(column) if known else None


@dataclass(frozen=True, slots=True)
class Found:
    """A column of a relation, and fields read inside of it; `sure` unless the schema is not known."""

    relation: Relation
    column: str
    fields: tuple[str, ...]
    sure: bool

    @property
    def items(self) -> tuple[exp.Expr, ...]:
        """What a query inside of this one makes the column by; none if it is a table's, or nobody knows."""
        known = self.relation.columns or {}
        return known[self.column.lower()].items if self.column.lower() in known else ()


@dataclass(frozen=True, slots=True)
class Cte:
    """A query that WITH gives a name; inside of itself, a recursive one is not known."""

    query: exp.Expr | None = None
    outputs: Outputs = None


@dataclass(slots=True)
class Scope:
    """The relations of one SELECT, in the order of its FROM clause."""

    ctes: Mapping[str, Cte]
    outer: Scope | None = None
    relations: list[Relation] = field(default_factory=list)
    # Columns that USING or NATURAL made one of two; None is in it where nobody knows which those are.
    merged: set[str | None] = field(default_factory=set)

    def find(self, parts: Sequence[str]) -> list[Found]:
        """Every column that the name may mean; `t.a` is column a of t before it is field a of column t."""
        first, *rest = parts
        qualified = rest and self.named(first)
        found = [
            Found(
                relation, relation.column(rest[0]) or rest[0], tuple(rest[1:]), relation.columns is not None
            )
            for relation in self.named(first)
            if rest and relation.might_have(rest[0])
        ] or [
            Found(relation, relation.column(first) or first, tuple(rest), relation.column(first) is not None)
            for relation in self.relations
            if (relation.column(first) if qualified else relation.might_have(first))
        ]
        return [one for one in found if one.sure] or found

    def named(self, name: str) -> list[Relation]:
        return [relation for relation in self.relations if relation.name.lower() == name.lower()]

    def is_merged(self, column: str) -> bool:
        return None in self.merged or column.lower() in self.merged


def missing_field(type_text: str | None, fields: Sequence[str]) -> str | None:
    """Why the fields can't be read from a value of that type, or None if they can or nobody knows."""
    if type_text is None or not fields:
        return None
    try:
        kind: exp.Expr | None = exp.DataType.build(type_text, dialect="spark")
    except (SqlglotError, ValueError):
        return None
    for name in fields:
        while isinstance(kind, exp.DataType) and kind.this is exp.DType.ARRAY:
            kind = kind.expressions[0] if kind.expressions else None
        if not isinstance(kind, exp.DataType) or kind.this in _OPEN:
            return None
        if kind.this is not exp.DType.STRUCT:
            return f"is {kind.sql('spark').lower()}, which has no field {name}"
        members = {member.name.lower(): member.args.get("kind") for member in kind.expressions}
        if name.lower() not in members:
            return f"has no field {name}, only {', '.join(members)}"
        kind = members[name.lower()]
    return None


_OPEN = (exp.DType.MAP, exp.DType.VARIANT, exp.DType.USERDEFINED, exp.DType.UNKNOWN, exp.DType.OBJECT)

"""Which tables a view reads, and whether they are those that it declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from mv_assets.config.errors import Mistake
from mv_assets.spark_sql.scope import Source
from mv_assets.spark_sql.text import closest


@dataclass(frozen=True, slots=True)
class Sources:
    """The tables that a view declares."""

    base: Source
    further: tuple[Source, ...]
    dimensions: tuple[Source, ...]

    @property
    def others(self) -> tuple[Source, ...]:
        return (*self.further, *self.dimensions)

    def mistakes(self, tables: Sequence[exp.Table], *, by_bucket: bool) -> list[Mistake]:
        """`tables` are those that the SQL reads, names of CTEs left out."""
        read = [table for table in tables if isinstance(table.this, exp.Identifier) and not table.db]
        names = {table.name.lower() for table in read}
        odd = [table for table in tables if not isinstance(table.this, exp.Identifier) or table.db]
        return [
            *map(_odd_table, odd),
            *(_listed_columns(table) for table in read if _lists_columns(table)),
            *self._unknown(names, by_bucket=by_bucket),
            *self._not_read(names),
        ]

    def _unknown(self, names: set[str], *, by_bucket: bool) -> Iterator[Mistake]:
        known = {source.name.lower() for source in (self.base, *self.others)}
        what, key = f"is neither the base {self.base.name} nor a dimension", "`dimensions`"
        if by_bucket:
            what, key = f"{what} nor in `with`", "`dimensions` or `with`"
        for name in sorted(names - known):
            meant = closest(name, known)
            question = f"did you mean {meant}? Otherwise add" if meant else "add"
            yield Mistake("sql", f"{name} {what}; {question} it to {key}")

    def _not_read(self, names: set[str]) -> Iterator[Mistake]:
        if self.base.name.lower() not in names:
            yield Mistake("sql", f"the base {self.base.name} is not read; write FROM {self.base.name}")
        for key, declared in (("with", self.further), ("dimensions", self.dimensions)):
            for source in declared:
                if source.name.lower() not in names:
                    what = f"{source.name} is not used by the SQL"
                    yield Mistake(key, f"{what}; join it there, or remove it from `{key}`")


def _odd_table(table: exp.Table) -> Mistake:
    text = table.sql("spark")
    if isinstance(table.this, exp.Identifier):
        right = "write the plain name of the base or of a dimension"
        return Mistake("sql", f"{text} names a table outside the project; {right}")
    return Mistake(
        "sql", f"{text} is a table function, not a table of the project; declare a table and join it"
    )


def _lists_columns(table: exp.Table) -> bool:
    node: exp.Expr | None = table
    while isinstance(node, (exp.Table, exp.Subquery)):
        if node.alias_column_names:
            return True
        node = node.parent
    return False


def _listed_columns(table: exp.Table) -> Mistake:
    what = f"the columns of {table.name} are renamed by their place, which changes when it gets another"
    return Mistake("sql", f"{what}; use its own names, with AS in a SELECT")

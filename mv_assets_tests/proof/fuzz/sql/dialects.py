"""SQL in two dialects, made from one structure: for Spark as a person may write it, for DuckDB plainly."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

_COLUMN = re.compile(r"\$(\w+)")
# What a dimension is asked for, and the columns that have it.
_DIMENSION = {"borough": "borough", "rank": "rank", "place": "zone"}


@dataclass(frozen=True)
class Both:
    """An expression; `$name` stands for a column."""

    spark: str
    duck: str

    def __str__(self) -> str:
        return self.spark


def same(text: str) -> Both:
    return Both(text, text)


def both(spark: str, duck: str | None = None) -> Both:
    return Both(spark, spark if duck is None else duck)


def put(pattern: str, *parts: Both) -> Both:
    """`pattern` with the parts in place of {0}, {1} ..."""
    return Both(pattern.format(*(p.spark for p in parts)), pattern.format(*(p.duck for p in parts)))


@dataclass(frozen=True)
class Naming:
    """How a query calls its table and columns."""

    table: str
    alias: str | None
    qualified: float
    shouting: float
    joined: str | None = None

    @property
    def qualifier(self) -> str:
        return self.alias or self.table

    def column(self, name: str) -> str:
        """The column that a name stands for."""
        return _DIMENSION.get(name, name) if self.joined is not None else name

    def spark(self, text: str, pick: random.Random) -> str:
        def column(found: re.Match[str]) -> str:
            name = found[1]
            of_dimension = self.joined is not None and name in _DIMENSION
            written = self.column(name)
            written = written.upper() if pick.random() < self.shouting else written
            if of_dimension:
                return f"{self.joined}.{written}"
            must = self.joined is not None and name == "zone"
            return f"{self.qualifier}.{written}" if must or pick.random() < self.qualified else written

        return _COLUMN.sub(column, text)

    def duck(self, text: str) -> str:
        dimension = _DIMENSION if self.joined is not None else {}

        def column(found: re.Match[str]) -> str:
            name = found[1]
            return f'z."{dimension[name]}"' if name in dimension else f'e."{name}"'

        return _COLUMN.sub(column, text)


def naming(pick: random.Random, table: str, *, joined: bool) -> Naming:
    """Some way of naming."""
    written = pick.choice((table, table, table, table.upper(), f"`{table}`"))
    alias = pick.choice((None, "e", "T1"))
    zones = None
    if joined:
        zones = pick.choice(("z", "zones"))
        alias = pick.choice((None, "e", "ev"))
    return Naming(written, alias, pick.choice((0.0, 0.0, 0.5, 1.0)), pick.choice((0.0, 0.0, 0.0, 0.4)), zones)

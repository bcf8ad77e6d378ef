"""One SELECT in two dialects: for Spark with all that SQL allows, for DuckDB with everything said."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mv_assets_tests.proof.fuzz.sql.dialects import Both, Naming

_ALIASES = ("k", "value", "`My col`", "N", "total", "`größe`")
# A column, or a cast of it, which has its name.
_NAMED = re.compile(r"(?:cast\()?\$(\w+)(?:::\w+| AS \w+\))?", re.IGNORECASE)
_SHADOWS = ("zone", "kind", "fare", "x", "at")


@dataclass(frozen=True)
class Query:
    """`ordered`: places of the columns that the rows are sorted by."""

    spark: str
    duck: str
    ordered: tuple[int, ...] = ()
    # So many rows of those that DuckDB gives, after so many; which of them is open.
    some: tuple[int, int] | None = None
    # DuckDB means something else by it: Spark alone answers, without views.
    by_spark: bool = False


@dataclass
class Select:
    """A SELECT in the making."""

    pick: random.Random
    called: Naming
    source: Both
    items: list[Both] = field(default_factory=list)
    keys: list[Both] = field(default_factory=list)
    hidden: list[Both] = field(default_factory=list)
    where: list[Both] = field(default_factory=list)
    having: list[Both] = field(default_factory=list)
    grouped: bool = True
    distinct: bool = False
    by_spark: bool = False

    def query(self) -> Query:
        aliases = self._aliases()
        rolled = self._rolled()
        spark = [
            self._spark(item) + (f" AS {a}" if a else "") for item, a in zip(self.items, aliases, strict=True)
        ]
        duck = [f"{self.called.duck(item.duck)} AS c{at}" for at, item in enumerate(self.items)]
        head = "SELECT DISTINCT" if self.distinct else "SELECT"
        texts = [
            f"{head} {', '.join(spark)} FROM {self.source.spark}",
            f"{head} {', '.join(duck)} FROM {self.source.duck}",
        ]
        self._add(texts, "WHERE", self.where)
        if self.grouped and (self.keys or self.hidden):
            # In parentheses: sqlglot reads no comparison in a CUBE without.
            keys = rolled.format(", ".join(f"({self._spark(key)})" for key in self.keys))
            texts[0] += f" GROUP BY {keys or self._group(aliases)}"
            grouped = [self.called.duck(each.duck) for each in (*self.keys, *self.hidden)]
            texts[1] += f" GROUP BY {', '.join(grouped)}"
        self._add(texts, "HAVING", self.having)
        ordered, complete = self._order(texts, aliases)
        some = None
        # Where only Spark can say what is meant, which rows it leaves out has to be said too.
        open_ended = 0.0 if self.by_spark else 0.06
        if self.pick.random() < (0.4 if complete else open_ended):
            limit, offset = self.pick.choice((0, 1, 3, 10)), self.pick.choice((0, 0, 1, 4))
            clause = f" LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
            texts[0] += clause
            some = None if complete else (limit, offset)
            texts[1] += clause if complete else ""
        return Query(texts[0], texts[1], () if some else ordered, some, self.by_spark)

    def _spark(self, each: Both) -> str:
        return self.called.spark(each.spark, self.pick)

    def _add(self, texts: list[str], word: str, conditions: Sequence[Both]) -> None:
        if conditions:
            texts[0] += f" {word} " + " AND ".join(map(self._spark, conditions))
            texts[1] += f" {word} " + " AND ".join(self.called.duck(each.duck) for each in conditions)

    def _aliases(self) -> list[str | None]:
        pick, shadow = self.pick, self.pick.random() < 0.06
        self.by_spark |= shadow
        named = (_NAMED.fullmatch(item.spark) for item in self.items)
        columns = {self.called.column(found[1]) for found in named if found is not None}
        found: list[str | None] = []
        for at in range(len(self.items)):
            alias = None if pick.random() < 0.5 else f"{pick.choice(_ALIASES)}"
            if alias is not None:
                alias = f"`{alias.strip('`')}{at}`" if "`" in alias else f"{alias}{at}"
            alias = pick.choice(_SHADOWS) if shadow and pick.random() < 0.5 else alias
            # Which of two columns of one name is meant, Spark decides in ways of its own.
            found.append(None if alias in found or alias in columns else alias)
        return found

    def _rolled(self) -> str:
        """Seldom several groupings at once. Of no rows DuckDB makes a total, which Spark does not."""
        if not self.keys or self.hidden or not self.grouped or self.pick.random() > 0.05:
            return ""
        self.by_spark = True
        return self.pick.choice(("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))

    def _group(self, aliases: Sequence[str | None]) -> str:
        places = {item: at for at, item in enumerate(self.items)}
        style = self.pick.choice(("all", "ordinals", "names", "expressions", "mixed"))
        plain = not self.hidden and all(key in places for key in self.keys)
        if style == "all" and plain:
            return self.pick.choice(("ALL", "all"))
        made = []
        for key in (*self.keys, *self.hidden):
            place = places.get(key)
            way = self.pick.choice(("ordinals", "names", "expressions")) if style == "mixed" else style
            if place is not None and way in ("ordinals", "all"):
                made.append(str(place + 1))
            elif place is not None and way == "names" and aliases[place]:
                made.append(str(aliases[place]))
            else:
                made.append(self._spark(key))
        self.pick.shuffle(made)
        return ", ".join(made)

    def _order(self, texts: list[str], aliases: Sequence[str | None]) -> tuple[tuple[int, ...], bool]:
        """ORDER BY; the places it sorts by, and whether that leaves nothing open."""
        pick, places = self.pick, list(range(len(self.items)))
        if pick.random() < 0.5:
            return (), False
        complete = pick.random() < 0.6
        pick.shuffle(places)
        places = places if complete else places[: pick.randint(1, len(places))]
        spark, duck = [], []
        for place in places:
            item, alias = self.items[place], aliases[place]
            ways = [str(place + 1), str(place + 1), alias or str(place + 1)]
            # Above HAVING, Spark knows nothing but the output's columns.
            if not self.by_spark and not self.distinct and not self.having:
                ways.append(self._spark(item))
            down = pick.choice(("", "", " ASC", " DESC", " desc"))
            nulls = pick.choice(("", "", "", " NULLS FIRST", " NULLS LAST"))
            spark.append(pick.choice(ways) + down + nulls)
            default = " NULLS LAST" if down.strip().upper() == "DESC" else " NULLS FIRST"
            duck.append(f"{place + 1}{down or ' ASC'}{nulls or default}")
        texts[0] += f" ORDER BY {', '.join(spark)}"
        texts[1] += f" ORDER BY {', '.join(duck)}"
        return tuple(places), complete

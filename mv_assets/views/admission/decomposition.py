"""Whether a view's SELECT, run on each bucket alone, gives what it gives on the whole table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from mv_assets.buckets import Buckets
from mv_assets.config.errors import Mistake
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.aggregates import is_aggregate
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.spark_sql.grain import TO_TIMESTAMP, Time, common, fits, fitting, follow
from mv_assets.spark_sql.keys import group_keys, placed, rolls_up
from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Found, Source
from mv_assets.spark_sql.text import closest, listed, short

_INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "long", "short", "byte"})

UNREADABLE = Refusal("timestamp_nanos gives a type that PySpark can't read")


@dataclass(frozen=True, slots=True)
class Decomposition:
    """One SELECT, what its names mean, and the buckets it is to be cut into."""

    select: exp.Select
    resolver: Resolver
    base: Source
    buckets: Buckets
    # What columns of queries inside are, by the id of what makes them.
    inner: dict[int, Time | Refusal] = field(default_factory=dict)

    @property
    def aggregates(self) -> bool:
        """Whether it makes one row of several."""
        return (
            bool(self.select.args.get("group") or self.select.args.get("distinct")) or self._calls_aggregates
        )

    @property
    def _calls_aggregates(self) -> bool:
        return any(map(is_aggregate, self._own()))

    def time(self, place: int, time_column: str) -> tuple[Time | None, list[Mistake]]:
        """What the view's time column is, and every reason why its rows may not stay in their bucket."""
        time = self.followed(place)
        if time is None:
            return None, []
        if isinstance(time, Time) and time.nanos:
            time = UNREADABLE
        name = f"{self.base.name}.{self.base.time_column}"
        if isinstance(time, Refusal):
            example = self._example()
            what = f"{time_column} must be {name} or a truncation of it, but {time}"
            return None, [Mistake("time_column", f"{what}; write {example} AS {time_column}")]
        grains = [grain for grain in dict.fromkeys(time.steps) if not fits(grain, self.buckets)]
        mistakes = [
            Mistake(
                "time_column",
                f"{time_column} has the grain {grain}, and a {self.buckets.width} bucket does not hold whole "
                f"{grain}s; truncate to {fitting(self.buckets)}" + _wider(grain),
            )
            for grain in grains
        ]
        return time, mistakes

    def followed(self, place: int) -> Time | Refusal | None:
        """What an output makes of the base's time; None if that can't be asked, as was said elsewhere."""
        outputs = self.resolver.outputs.get(id(self.select)) or ()
        if place >= len(outputs):
            # There is a star, or this part of a set operation gives too few.
            return None
        [item] = outputs[place].items
        if any(id(column) not in self.resolver.meaning for column in item.find_all(exp.Column)):
            # The resolver has said which name means nothing.
            return None
        return self._follow(item)

    def windows(self) -> list[Mistake]:
        """Window functions that look at rows of other buckets."""
        named = {window.name.lower(): window for window in self.select.args.get("windows") or ()}
        calls = [node for node in self._own() if isinstance(node, exp.Window) and node.args.get("over")]
        found = []
        for call in calls:
            keys = _partition(call, named)
            if not any(self._stays(key) for key in keys):
                unsure = [short(key.sql("spark")) for key in keys if self._is_unsure(key)]
                looks = "may look" if unsure else "looks"
                why = f": {unsure[0]} means a column of that name, if a table has one" if unsure else ""
                what = f"the window of {short(call.this.sql('spark'))} {looks} across buckets{why}"
                found.append(Mistake("sql", f"{what}; add {self._example()} to its PARTITION BY"))
        return found

    def _stays(self, key: exp.Expr) -> bool:
        if self._is_unsure(key):
            # It may be another column, and then the window's rows are those of any bucket.
            return False
        return self._keeps_apart(key)

    def _keeps_apart(self, key: exp.Expr) -> bool:
        """Whether rows of different buckets differ in it."""
        time = self._follow(key)
        return isinstance(time, Time) and all(fits(grain, self.buckets) for grain in time.steps)

    def _is_unsure(self, key: exp.Expr) -> bool:
        return any(id(node) in self.resolver.unsure for node in key.walk())

    def grouping(self, time: Time | None, time_column: str) -> list[Mistake]:
        """Groups that span buckets."""
        group = self.select.args.get("group")
        if group is None or rolls_up(group):
            return self._one_for_all(group, time_column)
        if time is None or group.args.get("all") or any(self._is_key(key, time) for key in group.expressions):
            return []
        shadowed = time_column.lower() == str(self.base.time_column).lower() and bool(time.steps)
        hint = (
            f"; GROUP BY {time_column} means the base column of that name, so give the output another"
            if shadowed
            else ""
        )
        what = f"the time column {time_column} is not a key of GROUP BY, so a group may span buckets"
        return [Mistake("sql", f"{what}; add its expression to GROUP BY{hint}")]

    def inner_grouping(self) -> list[Mistake]:
        """The same of a SELECT inside of the view's: that some key keeps buckets apart is enough."""
        group = self.select.args.get("group")
        if group is None or rolls_up(group):
            return self._one_for_all(group, self._example())
        try:
            keys = group_keys(self.select)
        except NotPlain:
            keys = []
        if any(self._keeps_apart(key) for key in keys):
            return []
        what = "the GROUP BY of a subquery or CTE makes groups that may span buckets"
        return [Mistake("sql", f"{what}; add {self._example()} to it")]

    def _one_for_all(self, group: exp.Group | None, time: str) -> list[Mistake]:
        if group is not None:
            what = "GROUPING SETS, CUBE and ROLLUP sum over all buckets where they leave out the time column"
            return [Mistake("sql", f"{what}; use a plain GROUP BY")]
        what = "an aggregate without GROUP BY gives one row for all buckets"
        return [Mistake("sql", f"{what}; add GROUP BY {time}")] if self._calls_aggregates else []

    def _is_key(self, key: exp.Expr, time: Time) -> bool:
        try:
            return self._follow(placed(key, self.select.expressions)) == time
        except NotPlain:
            return False

    def _follow(self, expression: exp.Expr) -> Time | Refusal:
        return follow(expression, self._lookup, self.base.time_unit)

    def _lookup(self, column: exp.Column) -> Time | exp.Expr | Refusal | None:
        meaning = self.resolver.meaning.get(id(column))
        if not isinstance(meaning, Found):
            # A field of an output is another value.
            return meaning if len(column.parts) == 1 else None
        if meaning.items and not meaning.fields:
            return self._inner(meaning)
        ours = meaning.relation.source is self.base and not meaning.fields
        if not ours or meaning.column.lower() != str(self.base.time_column).lower():
            return None
        kind = meaning.relation.type_of(meaning.column)
        unit_missing = self.base.time_unit is None and str(kind).lower() in _INTEGERS
        return Time(epoch=None if unit_missing else self.base.time_unit is not None)

    def _inner(self, column: Found) -> Time | Refusal:
        """What a query inside of this one makes of the base's time, whichever of its parts a row is of."""
        if id(column.items) not in self.inner:
            self.inner[id(column.items)] = common([self._follow(item) for item in column.items])
        return self.inner[id(column.items)]

    def _example(self) -> str:
        time = str(self.base.time_column)
        if self.base.time_unit in TO_TIMESTAMP:
            time = f"{TO_TIMESTAMP[self.base.time_unit]}({time})"
        if self.base.time_unit == "ns":
            time = f"CAST({time} AS TIMESTAMP)"
        return f"date_trunc('{fitting(self.buckets).split(', ')[-1]}', {time})"

    def _own(self) -> Iterable[exp.Expr]:
        """The nodes of this SELECT, without those of subqueries."""
        return self.select.walk(prune=lambda node: node is not self.select and isinstance(node, exp.Query))


def _partition(call: exp.Window, named: dict[str, exp.Window]) -> list[exp.Expr]:
    window = named.get(call.alias.lower(), call) if call.alias else call
    return [*(call.args.get("partition_by") or ()), *(window.args.get("partition_by") or ())]


def no_such_output(time_column: str, names: Sequence[str]) -> Mistake:
    meant = closest(time_column, names)
    question = f"did you mean {meant}? " if meant else ""
    return Mistake(
        "time_column", f"{time_column} is not an output column; {question}the SQL gives {listed(names)}"
    )


def _wider(grain: str) -> str:
    widths = " or ".join(width for width in ("1h", "1d", "1w", "1mo") if fits(grain, Buckets.of(width)))
    return f", or make the bucket {widths}" if widths else ""

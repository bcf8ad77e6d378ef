"""Aggregates that come in parts: what is asked of each part, and how the parts are merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pyspark.sql.types import DataType, DecimalType, LongType
from sqlglot import exp

from mv_assets.query.match.shape import Shape
from mv_assets.query.match.simpler import Likeness, simpler, simpler_inside
from mv_assets.spark_sql.aggregates import (
    ESTIMATES,
    Kind,
    Partial,
    aggregates,
    argument_of,
    called,
    is_aggregate,
    only_where,
    partial_of,
)
from mv_assets.spark_sql.canonical import NotPlain, bare, replaced, spelled
from mv_assets.spark_sql.text import short
from mv_assets.tables.types import INTEGERS

T = TypeVar("T")
KEY, EXTRA, PART, MERGED = "_mv_key", "_mv_distinct", "_mv_part", "_mv_merged"
GROUPING, GROUPING_ID = "_mv_grouping", "_mv_grouping_id"
MOST_DIGITS = 38
# What Spark adds to the digits of a decimal when it sums, and when it averages.
_SUM_DIGITS, _AVERAGE_DIGITS = 10, 4
_LEAST_SCALE = 6
# Up to here Spark averages decimals as doubles, and a double holds every whole number.
_DIGITS_IN_DOUBLE, _EXACT_IN_DOUBLE = 15, 1 << 53


@dataclass(frozen=True, slots=True)
class Average:
    """A mean, of the sum and the count of the same values: by their places among the partials."""

    total: int
    count: int

    def merged(self, partials: Sequence[Partial], kinds: Sequence[DataType]) -> str:
        kind = kinds[self.total]
        total = partials[self.total].merged(f"{PART}{self.total}", kind.simpleString())
        count = f"sum({PART}{self.count})"
        if not isinstance(kind, DecimalType):
            return f"CAST({total} AS DOUBLE) / nullif({count}, 0L)"
        if kind.precision >= MOST_DIGITS:
            raise NotPlain("averages of decimals with so many digits are answered by the base table only")
        digits = min(kind.precision - _SUM_DIGITS + _AVERAGE_DIGITS, MOST_DIGITS)
        scale = min(kind.scale + _AVERAGE_DIGITS, MOST_DIGITS)
        if digits <= _DIGITS_IN_DOUBLE:
            return _by_double(total, count, kind.scale, f"DECIMAL({digits}, {scale})")
        # A quotient is rounded twice here, once by Spark. With fewer rows than this it can't be seen.
        spare = _quotient_scale(kind.precision, kind.scale) - scale
        quotient = f"CAST({total} / nullif({count}, 0L) AS DECIMAL({digits}, {scale}))"
        if spare < 1:
            raise NotPlain("averages of decimals with so many digits are answered by the base table only")
        if spare >= len(str((1 << 63) - 1)):
            return quotient
        too_many = "raise_error('too many rows for an average of decimals from parts')"
        return f"IF({count} < {10**spare}L, {quotient}, {too_many})"


def _by_double(total: str, count: str, scale: int, kind: str) -> str:
    """A mean as Spark computes those of few digits: the unscaled values as doubles, which shows in ties."""
    unscaled = f"CAST({total} * {10**scale}BD AS DOUBLE)"
    quotient = f"CAST({unscaled} / CAST(nullif({count}, 0L) AS DOUBLE) / {10**scale}D AS {kind})"
    too_large = "raise_error('too large a sum for an average of decimals from parts')"
    return f"IF({total} IS NULL OR abs({total}) < {_EXACT_IN_DOUBLE // 10**scale}BD, {quotient}, {too_large})"


def _quotient_scale(precision: int, scale: int) -> int:
    """The scale that Spark gives a decimal divided by a bigint, which is a decimal of 20 digits."""
    digits = 20
    wanted = max(_LEAST_SCALE, scale + digits + 1)
    whole = precision - scale
    if whole + wanted <= MOST_DIGITS:
        return wanted
    return max(MOST_DIGITS - whole, min(wanted, _LEAST_SCALE))


@dataclass(frozen=True, slots=True)
class Distinct:
    """A count of distinct values, which are further keys of the parts."""

    extras: tuple[int, ...]

    def merged(self) -> str:
        return f"count(DISTINCT {', '.join(f'{EXTRA}{at}' for at in self.extras)})"


# By the names and classes of the functions: whether a root is drawn, and of a sample or of all.
SPREADS: Mapping[type[exp.Expr] | str, tuple[bool, bool]] = {
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    "std": (True, True),
    exp.StddevPop: (True, False),
    exp.Variance: (False, True),
    exp.VariancePop: (False, False),
}
_SQUARED_SCALE = 6
# Of values that lie closer together than this, Spark's doubles tell too few digits: these it is asked for.
_TELLS_APART = "1e-10D"
_TOO_CLOSE = "raise_error('values too close together for their spread to be told from parts')"
_FLOATING_SPREAD = "the spread of floating point numbers is answered by the base table only"


@dataclass(frozen=True, slots=True)
class Spread:
    """A variance or its root, of the sum, the count and the sum of squares: by their places.

    Only of exact sums: of floating point ones nothing may be left when the one is taken from the other.
    """

    function: tuple[bool, bool]
    total: int
    count: int
    squares: int

    def merged(self, partials: Sequence[Partial], kinds: Sequence[DataType]) -> str:
        scales = [_scale(kinds[at]) for at in (self.total, self.squares)]
        if scales[1] != 2 * scales[0] or scales[1] > _SQUARED_SCALE:
            raise NotPlain("the spread of such numbers is answered by the base table only")
        total, squares = (
            f"CAST({partials[at].merged(f'{PART}{at}', kinds[at].simpleString())} "
            f"AS DECIMAL({MOST_DIGITS}, {scale}))"
            for at, scale in zip((self.total, self.squares), scales, strict=True)
        )
        count, (root, sample) = f"sum({PART}{self.count})", self.function
        whole = f"CAST({count} * {squares} AS DOUBLE)"
        apart = f"CAST({count} * {squares} - {total} * {total} AS DOUBLE)"
        spread = f"{apart} / CAST({count} AS DOUBLE) / CAST({count} - {int(sample)} AS DOUBLE)"
        told = f"{apart} = 0D OR {apart} > {whole} * {_TELLS_APART}"
        found = f"IF({told}, {f'sqrt({spread})' if root else spread}, {_TOO_CLOSE})"
        return f"IF({count} > {int(sample)}, {found}, NULL)"


def _scale(kind: DataType) -> int:
    match kind:
        case DecimalType():
            return kind.scale
        case LongType():
            return 0
    raise NotPlain(_FLOATING_SPREAD)


Merge = int | Average | Distinct | Spread


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregating SELECT: keys and partials of every part, and what is made of the merged ones."""

    keys: tuple[exp.Expr, ...]
    extras: tuple[exp.Expr, ...]
    partials: tuple[Partial, ...]
    merges: tuple[Merge, ...]
    # Over the columns KEY<n> and MERGED<n>, and those that tell grouping sets apart.
    items: tuple[exp.Expr, ...]
    having: exp.Expr | None
    order: tuple[exp.Ordered, ...]
    limit: int | None
    offset: int | None
    distinct: bool
    # The places of the keys that each grouping set has.
    sets: tuple[tuple[int, ...], ...] | None = None
    # The places of items that are made of simpler aggregates, and may have other types.
    simpler: Mapping[int, Likeness] = field(default_factory=dict)

    def merging(self, parts: str, kinds: Sequence[DataType]) -> str:
        """The parts, which have those types, put together."""
        keys = [f"{KEY}{at}" for at in range(len(self.keys))]
        merged = [f"{self._merged(each, kinds)} AS {MERGED}{at}" for at, each in enumerate(self.merges)]
        told_apart = [] if self.sets is None else _told_apart(keys)
        columns = ", ".join([*keys, *told_apart, *merged]) or "1"
        by = f" GROUP BY {', '.join(keys)}" if keys else ""
        if self.sets is not None:
            sets = (f"({', '.join(keys[at] for at in places)})" for places in self.sets)
            by += f" GROUPING SETS ({', '.join(sets)})"
        return f"SELECT {columns} FROM {parts} AS _mv_parts{by}"

    def _merged(self, merge: Merge, kinds: Sequence[DataType]) -> str:
        match merge:
            case Average() | Spread():
                return merge.merged(self.partials, kinds)
            case Distinct():
                return merge.merged()
        return self.partials[merge].merged(f"{PART}{merge}", kinds[merge].simpleString())

    def finishing(self, merged: str, names: Sequence[str], casts: Mapping[int, str]) -> str:
        """The result, under the given names; some items in other types."""
        items = [item.sql("spark") for item in self.items]
        items = [f"CAST({item} AS {casts[at]})" if at in casts else item for at, item in enumerate(items)]
        chosen = (f"{item} AS `{name.replace('`', '``')}`" for item, name in zip(items, names, strict=True))
        clauses = [
            f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(chosen)} FROM ({merged}) AS _mv_all"
        ]
        if self.having is not None:
            clauses.append(f"WHERE {self.having.sql('spark')}")
        if self.order:
            clauses.append(f"ORDER BY {', '.join(each.sql('spark') for each in self.order)}")
        if self.limit is not None:
            clauses.append(f"LIMIT {self.limit}")
        if self.offset is not None:
            clauses.append(f"OFFSET {self.offset}")
        return " ".join(clauses)


def _told_apart(keys: Sequence[str]) -> list[str]:
    """What tells a key that a grouping set leaves out from one that is NULL."""
    return [
        *(f"grouping({key}) AS {GROUPING}{at}" for at, key in enumerate(keys)),
        f"grouping_id() AS {GROUPING_ID}",
    ]


def aggregation_of(shape: Shape, kinds: Mapping[str, str | None]) -> Aggregation:
    """The SELECT as parts and their merging; `kinds` are the types of columns.

    Raises:
        NotPlain: it has an aggregate that does not come in parts, or none at all.

    """
    if shape.keys is None and not shape.distinct:
        raise NotPlain("it asks for single rows")
    # DISTINCT rows without aggregates are groups by all their columns.
    keys = shape.keys if shape.keys is not None else _varying(shape.items)
    if any(aggregates(key) for key in keys):
        raise NotPlain("an aggregate can't be a key")
    taken = _Taken({spelled(key): at for at, key in enumerate(keys)}, kinds, sets=shape.sets is not None)
    items = tuple(taken.above(item) for item in shape.items)
    places = {spelled(item): at for at, item in reversed(list(enumerate(shape.items)))}
    having = None if shape.having is None else taken.above(shape.having)
    if not keys and not taken.merges:
        raise NotPlain("it aggregates nothing")
    return Aggregation(
        keys=keys,
        having=having,
        order=tuple(_ordered(each, places, taken.above) for each in shape.order),
        items=items,
        extras=tuple(taken.extras.values()),
        partials=tuple(taken.partials.values()),
        merges=tuple(taken.merges.values()),
        limit=shape.limit,
        offset=shape.offset,
        distinct=shape.distinct and shape.keys is not None,
        sets=shape.sets,
    )


def simpler_aggregation_of(shape: Shape, kinds: Mapping[str, str | None]) -> Aggregation | None:
    """The same of simpler aggregates; None if there are none."""
    whole = {
        at: found
        for at, item in enumerate(shape.items)
        if (found := simpler(item)) is not None
        and not (found.likeness is Likeness.LINEAR and _is_floating(item, kinds))
    }
    items = tuple(
        whole[at].expression if at in whole else simpler_inside(item) for at, item in enumerate(shape.items)
    )
    places = {spelled(item): at for at, item in reversed(list(enumerate(shape.items)))}
    order = tuple(
        exp.Ordered(
            this=items[places[spelled(each.this)]]
            if spelled(each.this) in places
            else simpler_inside(each.this),
            **{name: value for name, value in each.args.items() if name != "this"},
        )
        for each in shape.order
    )
    having = None if shape.having is None else simpler_inside(shape.having)
    if (items, having, order) == (shape.items, shape.having, shape.order):
        return None
    try:
        made = aggregation_of(replace(shape, items=items, having=having, order=order), kinds)
    except NotPlain:
        return None
    changed = {at: found.likeness for at, found in whole.items() if found.likeness is not Likeness.SAME}
    return replace(made, simpler=changed)


def _varying(items: Sequence[exp.Expr]) -> tuple[exp.Expr, ...]:
    found = {spelled(item): item for item in items if item.find(exp.Column)}
    if not found:
        raise NotPlain("it asks for constants")
    return tuple(found.values())


def _ordered(
    each: exp.Ordered, places: Mapping[str, int], above: Callable[[exp.Expr], exp.Expr]
) -> exp.Ordered:
    """By the place of an output column where it is one: DISTINCT allows nothing else."""
    place = places.get(spelled(each.this))
    by = above(each.this) if place is None else exp.Literal.number(place + 1)
    return exp.Ordered(this=by, desc=each.args.get("desc"), nulls_first=each.args.get("nulls_first"))


@dataclass(slots=True)
class _Taken:
    """What has been found in a SELECT so far, each thing once."""

    keys: Mapping[str, int]
    kinds: Mapping[str, str | None]
    extras: dict[str, exp.Expr] = field(default_factory=dict)
    partials: dict[str, Partial] = field(default_factory=dict)
    merges: dict[Merge, Merge] = field(default_factory=dict)
    sets: bool = False

    def above(self, node: exp.Expr) -> exp.Expr:
        """An expression over keys and aggregates, which become columns of the merged parts."""
        return replaced(node, self._column)

    def _column(self, node: exp.Expr) -> exp.Expr | None:
        key = self.keys.get(spelled(node))
        if key is not None:
            return exp.column(f"{KEY}{key}")
        if isinstance(node, exp.Column):
            raise NotPlain(f"{node.name} is neither a key nor inside an aggregate")
        if isinstance(node, (exp.Grouping, exp.GroupingId)):
            return self._told_apart(node)
        if isinstance(node, exp.Filter) or is_aggregate(node):
            merge = self._merge(node)
            if isinstance(merge, int):
                self._refuse_bytes(merge, node)
            self.merges.setdefault(merge, merge)
            return exp.column(f"{MERGED}{list(self.merges).index(merge)}")
        return None

    def _refuse_bytes(self, at: int, node: exp.Expr) -> None:
        wanted = ESTIMATES.get(list(self.partials.values())[at].kind)
        above = node.parent
        while isinstance(above, (exp.Paren, exp.Filter)):
            above = above.parent
        found = "bitmap_count" if isinstance(above, exp.BitmapCount) else called(above)
        if wanted is not None and found != wanted:
            raise NotPlain("a sketch put together of parts has other bytes")

    def _told_apart(self, node: exp.Expr) -> exp.Expr:
        """grouping(key), or grouping_id() of all keys in order: Spark allows nothing else."""
        places = [self.keys.get(spelled(key)) for key in node.expressions]
        if self.sets and isinstance(node, exp.Grouping) and len(places) == 1 and places[0] is not None:
            return exp.column(f"{GROUPING}{places[0]}")
        if self.sets and isinstance(node, exp.GroupingId) and places in ([], list(range(len(self.keys)))):
            return exp.column(GROUPING_ID)
        raise NotPlain(f"{short(node.sql('spark'))} is left to Spark")

    def _merge(self, node: exp.Expr) -> Merge:
        condition = None
        if isinstance(node, exp.Filter):
            condition, node = node.expression.this, node.this
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct):
            counted = [_if(condition, each) for each in node.this.expressions]
            return Distinct(tuple(_place(self.extras, spelled(each), each) for each in counted))
        if isinstance(node, exp.Avg) or called(node) == "mean":
            value, condition = only_where(argument_of(node), condition)
            return Average(*self._sum_and_count(value, condition))
        spread = SPREADS.get(type(node)) or SPREADS.get(called(node))
        if spread is not None:
            value, condition = only_where(argument_of(node), condition)
            if _is_floating(value, self.kinds):
                raise NotPlain(_FLOATING_SPREAD)
            squares = Partial(Kind.SUM, _square(value), condition, instead=self._wide_square(value))
            return Spread(spread, *self._sum_and_count(value, condition), self._partial(squares))
        return self._partial(partial_of(node, condition))

    def _sum_and_count(self, value: exp.Expr, condition: exp.Expr | None) -> tuple[int, int]:
        total = self._partial(Partial(Kind.SUM, value, condition))
        return total, self._partial(Partial(Kind.COUNT, value, condition))

    def _wide_square(self, value: exp.Expr) -> exp.Expr | None:
        """The square of an integer as one that does not overflow."""
        if self.kinds.get(spelled(value)) not in INTEGERS:
            return None
        return _square(exp.cast(value.copy(), "bigint"))

    def _partial(self, partial: Partial) -> int:
        return _place(self.partials, partial.spelled, partial)


def _is_floating(value: exp.Expr, kinds: Mapping[str, str | None]) -> bool:
    """Whether it is known to be a floating point number; where it is not, its type will tell."""
    cast = bare(value).find(exp.Cast, exp.TryCast)
    if cast is not None:
        return cast is bare(value) and cast.args["to"].this in (exp.DType.FLOAT, exp.DType.DOUBLE)
    found = {kinds.get(spelled(column)) for column in value.find_all(exp.Column)}
    return not found.isdisjoint({"float", "double"})


def _square(value: exp.Expr) -> exp.Expr:
    return exp.Mul(this=exp.Paren(this=value.copy()), expression=exp.Paren(this=value.copy()))


def _if(condition: exp.Expr | None, value: exp.Expr) -> exp.Expr:
    return value if condition is None else exp.If(this=condition, true=value, false=exp.Null())


def _place(known: dict[str, T], name: str, value: T) -> int:
    known.setdefault(name, value)
    return list(known).index(name)

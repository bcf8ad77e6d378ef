"""What a SELECT makes of its rows."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import TypeVar

from sqlglot import exp

from mv_assets.spark_sql.aggregates import aggregates
from mv_assets.spark_sql.canonical import Meaning, NotPlain, bare, expanded, spelled
from mv_assets.spark_sql.resolve import output_names

T = TypeVar("T")
# Any other clause picks, repeats or orders rows in ways that are not looked into.
_CLAUSES = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct"}
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a SELECT makes of the rows that its WHERE leaves. No keys: single rows are its result."""

    names: tuple[str | None, ...]
    items: tuple[exp.Expr, ...]
    keys: tuple[exp.Expr, ...] | None
    having: exp.Expr | None = None
    order: tuple[exp.Ordered, ...] = ()
    limit: int | None = None
    offset: int | None = None
    distinct: bool = False
    # Of GROUPING SETS, CUBE and ROLLUP: the places of the keys that each set groups by.
    sets: tuple[tuple[int, ...], ...] | None = None


def shape_of(
    select: exp.Select, meaning: Meaning, known: Container[str] = (), *, lenient: bool = False
) -> Shape:
    """What is made of the rows; `lenient` leaves out items and keys that can't be matched.

    `known` are the names of the tables' columns.

    Raises:
        NotPlain: with something that can't be matched with views.

    """
    for key, value in select.args.items():
        if value and key not in _CLAUSES:
            raise NotPlain(f"{key.strip('_').upper()} is answered by the base table only")
    if any(item.is_star for item in select.expressions):
        raise NotPlain("`*` is answered by the base table only")
    items = [_expanded(item, meaning, lenient=lenient) for item in select.expressions]
    names = [next(iter(output_names(item)), None) for item in select.expressions]
    kept = [at for at, item in enumerate(items) if item is not None]
    keys, sets = _grouping(select, items, meaning, lenient=lenient)
    having = select.args.get("having")
    _refuse_two_meanings(having, meaning, known)
    return Shape(
        tuple(names[at] for at in kept),
        tuple(item for item in items if item is not None),
        keys,
        None if having is None else expanded(having.this, meaning),
        tuple(_order(select, items, meaning)),
        _number(select.args.get("limit")),
        _number(select.args.get("offset")),
        _distinct(select),
        sets,
    )


def _refuse_two_meanings(having: exp.Expr | None, meaning: Meaning, known: Container[str]) -> None:
    """Where an alias is a column's name too, Spark's HAVING takes now the one, now the other."""
    for column in having.find_all(exp.Column) if having is not None else ():
        if isinstance(meaning.get(id(column)), exp.Expr) and column.parts[0].name.lower() in known:
            raise NotPlain(
                f"{column.name} in HAVING is an alias and a column; the base table only answers that"
            )


def _expanded(item: exp.Expr, meaning: Meaning, *, lenient: bool) -> exp.Expr | None:
    try:
        return expanded(item, meaning)
    except NotPlain:
        if not lenient:
            raise
        return None


_Keys = tuple[exp.Expr, ...]
_Sets = tuple[tuple[int, ...], ...]
_ANALYTICS = {"rollup": exp.Rollup, "cube": exp.Cube, "grouping_sets": exp.GroupingSets}
# Some key of no rows is no group; Spark would take a number for an item's place.
_ONE_GROUP = exp.cast(exp.Literal.number(0), "int")


def _grouping(
    select: exp.Select, items: Sequence[exp.Expr | None], meaning: Meaning, *, lenient: bool
) -> tuple[_Keys | None, _Sets | None]:
    group = select.args.get("group")
    if group is None:
        grouped = select.args.get("having") or any(map(aggregates, select.expressions))
        return (() if grouped else None), None
    if group.args.get("totals"):
        raise NotPlain("WITH TOTALS is answered by the base table only")
    if any(group.args.get(key) for key in _ANALYTICS) or any(map(_is_analytic, group.expressions)):
        return _Analytics(items, meaning).grouping(group)
    return _keys(group, items, meaning, lenient=lenient), None


def _is_analytic(node: exp.Expr) -> bool:
    return isinstance(node, tuple(_ANALYTICS.values()))


class _Analytics:
    """GROUPING SETS, CUBE and ROLLUP written out: the keys, in order, and those of each set."""

    def __init__(self, items: Sequence[exp.Expr | None], meaning: Meaning) -> None:
        self._items = items
        self._meaning = meaning
        self._keys: dict[str, exp.Expr] = {}

    def grouping(self, group: exp.Expr) -> tuple[_Keys, _Sets]:
        behind = [each for key in _ANALYTICS for each in group.args.get(key) or ()]
        if not behind:
            parts = [self._sets(each) for each in group.expressions]
            if sum(map(len, (set(chain(*part)) for part in parts))) > len(self._keys):
                raise NotPlain("a key that is grouped by twice is answered by the base table only")
            made = [tuple(chain(*chosen)) for chosen in product(*parts)]
        else:
            given = [self._key(each) for each in group.expressions]
            made = [one for each in behind for one in self._behind(each, given)]
            if len(behind) > 1 or (given and len(self._keys) > len(given)):
                raise NotPlain("such GROUPING SETS are answered by the base table only")
        self._refuse_odd(made)
        return tuple(self._keys.values()), tuple(made)

    def _behind(self, node: exp.Expr, given: Sequence[int]) -> list[tuple[int, ...]]:
        """The sets of GROUP BY a, b WITH ROLLUP, and of GROUP BY a, b GROUPING SETS (...)."""
        if node.expressions:
            return self._sets(node)
        return list(map(tuple, _prefixes(given) if isinstance(node, exp.Rollup) else _subsets(given)))

    def _sets(self, node: exp.Expr) -> list[tuple[int, ...]]:
        if isinstance(node, exp.GroupingSets):
            return [one for each in node.expressions for one in self._sets(each)]
        if not _is_analytic(node):
            return [self._together(node)]
        units = [self._together(each) for each in node.expressions]
        if len(set(chain(*units))) < len(list(chain(*units))):
            raise NotPlain("a key that is grouped by twice is answered by the base table only")
        ways = _prefixes(units) if isinstance(node, exp.Rollup) else _subsets(units)
        return [tuple(chain(*way)) for way in ways]

    def _together(self, node: exp.Expr) -> tuple[int, ...]:
        """The keys of a list in parentheses, or one."""
        if isinstance(node, exp.Tuple):
            return tuple(self._key(each) for each in node.expressions)
        return (self._key(node.this if isinstance(node, exp.Paren) else node),)

    def _key(self, node: exp.Expr) -> int:
        key = _meant(node, self._items, self._meaning)
        if key is None or not key.find(exp.Column):
            raise NotPlain("a constant in GROUPING SETS is answered by the base table only")
        self._keys.setdefault(spelled(key), bare(key))
        return list(self._keys).index(spelled(key))

    def _refuse_odd(self, sets: Sequence[tuple[int, ...]]) -> None:
        if not any(sets):
            # Of no rows Spark makes one row or none of these.
            raise NotPlain("GROUPING SETS without any key are answered by the base table only")
        # A key may be NULL where another that is made of the same column is not.
        columns = [{spelled(each) for each in key.find_all(exp.Column)} for key in self._keys.values()]
        if any(one & other for one, other in combinations(columns, 2)):
            raise NotPlain(
                "GROUPING SETS of keys made of the same column are answered by the base table only"
            )


def _prefixes(units: Sequence[T]) -> Iterator[Sequence[T]]:
    return (units[:count] for count in range(len(units), -1, -1))


def _subsets(units: Sequence[T]) -> Iterator[Sequence[T]]:
    return chain.from_iterable(combinations(units, count) for count in range(len(units), -1, -1))


def _keys(
    group: exp.Expr, items: Sequence[exp.Expr | None], meaning: Meaning, *, lenient: bool
) -> tuple[exp.Expr, ...]:
    if group.args.get("all"):
        found = [item for item in items if item is None or not aggregates(item)]
    else:
        found = [_meant(key, items, meaning, lenient=lenient) for key in group.expressions]
    keys = [key for key in found if key is not None]
    # A constant groups nothing; without any other key it still makes one group less of no rows.
    varying = [key for key in keys if key.find(exp.Column)] or ([_ONE_GROUP.copy()] if keys else [])
    return tuple({spelled(key): key for key in varying}.values())


def _meant(
    key: exp.Expr, items: Sequence[exp.Expr | None], meaning: Meaning, *, lenient: bool = False
) -> exp.Expr | None:
    """A key, or the item whose place it is."""
    if isinstance(key, exp.Literal) and key.is_int:
        place = int(key.name) - 1
        if not 0 <= place < len(items):
            raise NotPlain(f"there is no item {key.name}")
        return items[place]
    return _expanded(key, meaning, lenient=lenient)


def _order(select: exp.Select, items: Sequence[exp.Expr | None], meaning: Meaning) -> list[exp.Ordered]:
    clause = select.args.get("order")
    found = []
    for each in clause.expressions if clause is not None else ():
        if not isinstance(each, exp.Ordered) or each.args.get("with_fill"):
            raise NotPlain("ORDER BY is not plain")
        if isinstance(each.this, exp.Var):
            raise NotPlain("ORDER BY ALL is answered by the base table only")
        first = {key: each.args.get(key) for key in ("desc", "nulls_first")}
        found.append(exp.Ordered(this=_meant(each.this, items, meaning), **first))
    return found


def _number(clause: exp.Expr | None) -> int | None:
    if clause is None:
        return None
    value = clause.args.get("expression") or clause.args.get("this")
    if (
        not isinstance(clause, (exp.Limit, exp.Offset))
        or not isinstance(value, exp.Literal)
        or not value.is_int
    ):
        raise NotPlain("LIMIT and OFFSET are matched as plain numbers only")
    return int(value.name)


def _distinct(select: exp.Select) -> bool:
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise NotPlain("DISTINCT ON is answered by the base table only")
    return distinct is not None

"""Where the rows of a SELECT come from, and which of them: a base table, what is joined, and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from mv_assets.spark_sql.canonical import Meaning, NotPlain, bare, expanded, of_table, spelled
from mv_assets.spark_sql.text import short

_KINDS = frozenset({"", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"})
# The sides of inner joins, with equalities of two tables and without.
_INNER = frozenset({"", "CROSS"})


@dataclass(frozen=True, slots=True)
class Joined:
    """One table that is joined."""

    table: str
    side: str
    on: exp.Expr | None

    @property
    def inner(self) -> bool:
        return self.side in _INNER

    @property
    def conditions(self) -> dict[str, exp.Expr]:
        """What it joins by, each in one spelling."""
        return {_spelled_condition(each): each for each in flat(self.on)}

    def equal_columns(self) -> dict[str, exp.Expr]:
        """Its columns that a row which matches has, and not null, equal to what is joined with them."""
        found: dict[str, exp.Expr] = {}
        for each in flat(self.on):
            if isinstance(each, exp.EQ):
                for one, other in ((each.this, each.expression), (each.expression, each.this)):
                    if isinstance(one, exp.Column) and one.table == self.table and not _of(other, self.table):
                        found.setdefault(one.name.lower(), other)
        return found

    def reading(self, relation: str) -> str:
        """As SQL that reads another relation in the table's place."""
        words = f"{self.side} JOIN `{relation}` AS `{self.table}`".strip()
        return words if self.on is None else f"{words} ON {self.on.sql('spark')}"


@dataclass(frozen=True, slots=True)
class Beyond:
    """How what a query joins differs from what a view joins."""

    # What only the query joins, and what only the view does.
    further: tuple[Joined, ...]
    fewer: tuple[Joined, ...]
    # What the view joins LEFT and the query INNER; and the other way round.
    narrower: tuple[Joined, ...] = ()
    wider: tuple[Joined, ...] = ()
    # Equalities that inner joins of the query have besides those of the view.
    equalities: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class From:
    """The base table, and what is joined to it."""

    base: str
    joins: tuple[Joined, ...] = ()

    def beyond(self, other: From) -> Beyond:
        """How this, a query's, differs from that, a view's.

        Raises:
            NotPlain: the rows do not come from the same tables.

        """
        if self.base != other.base:
            raise NotPlain("its rows do not come from the same table")
        theirs = {join.table: join for join in other.joins}
        own = {join.table: join for join in self._in_order_of([*theirs])}
        both = own.keys() & theirs.keys()
        narrower, wider, equalities = list[Joined](), list[Joined](), list[exp.Expr]()
        for table in sorted(both):
            mine, its = own[table], theirs[table]
            more = mine.conditions.keys() - its.conditions.keys()
            if its.conditions.keys() - mine.conditions.keys() or (more and not mine.inner):
                raise NotPlain(f"it joins {table} otherwise than the query: join it in the same way")
            # Of an inner join, they are left to be met.
            equalities += [each for name, each in mine.conditions.items() if name in more]
            match mine.side, its.side:
                case "", "LEFT":
                    narrower.append(its)
                case "LEFT", "":
                    wider.append(its)
                case one, another if one != another and not (mine.inner and its.inner):
                    raise NotPlain(f"it joins {table} otherwise than the query: join it in the same way")
        return Beyond(
            tuple(join for table, join in own.items() if table not in both),
            tuple(join for table, join in theirs.items() if table not in both),
            tuple(narrower),
            tuple(wider),
            tuple(equalities),
        )

    def equal(self) -> list[tuple[exp.Column, exp.Column]]:
        """The columns that inner joins make equal, and not null."""
        sides = (
            [bare(side) for side in (each.this, each.expression)]
            for join in self.joins
            if join.inner
            for each in map(bare, flat(join.on))
        )
        return [
            (one, other)
            for one, other in sides
            if isinstance(one, exp.Column) and isinstance(other, exp.Column)
        ]

    def _in_order_of(self, tables: Sequence[str]) -> tuple[Joined, ...]:
        """The joins in the order of those tables, as far as inner ones can be moved, of the same rows.

        An equality belongs to the last of its two tables, so which that is depends on the order.
        """
        place = {table: at for at, table in enumerate(tables)}
        joins = sorted(self.joins, key=lambda join: place.get(join.table, len(place)))
        order = [self.base, *(join.table for join in joins)]
        inner = {join.table: list[exp.Expr]() for join in joins if join.inner}
        for each in (each for join in self.joins if join.inner for each in flat(join.on)):
            last = order[max(map(order.index, _linked(each)))]
            if last not in inner:
                return self.joins
            inner[last].append(each)
        return tuple(_inner(join.table, inner[join.table]) if join.table in inner else join for join in joins)


@dataclass(frozen=True, slots=True)
class Rows:
    """Where rows come from, the conditions that they meet besides, and the equalities that join them.

    Inner joins have no other conditions than equalities of two tables' columns: whether ON or WHERE has
    them, they say the same.
    """

    source: From
    conditions: tuple[exp.Expr, ...]
    equalities: tuple[exp.Expr, ...]
    # Why one of the conditions can't be matched.
    opaque: NotPlain | None


def rows_of(select: exp.Select, meaning: Meaning, base: str | None = None) -> Rows:
    """Where the rows come from; where all joins are inner ones, from any table as the base.

    Raises:
        NotPlain: from something else than a table and plain joins, each table once.

    """
    order, nodes = tables_of(select), select.args.get("joins") or ()
    written = dict(zip(order[1:], nodes, strict=True))
    free = {table for table, join in written.items() if _is_free(join)}
    if base in free and len(free) == len(written):
        order = [base, *(table for table in order if table != base)]
        free = {*order[1:]}
    linking: dict[str, list[exp.Expr]] = {table: [] for table in free}
    conditions, opaque = list[exp.Expr](), None
    inner = {table: join for table, join in written.items() if _is_free(join)}
    met = [each for table, join in inner.items() for each in _using(join, table, meaning)]
    loose = [each for join in inner.values() for each in flat(join.args.get("on"))]
    for each in (*loose, *conjuncts(select)):
        try:
            met.append(expanded(each, meaning))
        except NotPlain as reason:
            opaque = reason
    for condition in met:
        linked = max(map(order.index, _linked(condition)), default=0)
        linking.get(order[linked], conditions).append(condition)
    joins = (
        _inner(table, linking[table]) if table in free else _joined(written[table], table, meaning)
        for table in order[1:]
    )
    together = tuple(each for table in linking for each in linking[table])
    return Rows(From(order[0], tuple(joins)), tuple(conditions), together, opaque)


def _is_free(join: exp.Join) -> bool:
    """Whether it is an inner join, by conditions that might as well stand in WHERE."""
    return not join.side and join.kind in ("", "INNER", "CROSS")


def _linked(condition: exp.Expr) -> set[str]:
    """The two tables whose columns an equality links."""
    condition = bare(condition)
    if not isinstance(condition, exp.EQ):
        return set()
    sides = bare(condition.this), bare(condition.expression)
    tables = {side.table for side in sides if isinstance(side, exp.Column)}
    return tables if len(tables) == len(sides) else set()


def _inner(table: str, linking: Sequence[exp.Expr]) -> Joined:
    if not linking:
        return Joined(table, "CROSS", None)
    return Joined(table, "", exp.and_(*linking))


def tables_of(select: exp.Select) -> list[str]:
    """The tables that the rows come from, base first.

    Raises:
        NotPlain: from something else than a table and plain joins, each table once.

    """
    clause = select.args.get("from_")
    if clause is None:
        raise NotPlain("there is no FROM")
    found = [_table(clause.this)]
    for join in select.args.get("joins") or ():
        if join.method or join.kind not in _KINDS or join.side not in ("", "LEFT"):
            words = " ".join(word for word in (join.method, join.side, join.kind, "JOIN") if word)
            raise NotPlain(f"{words} is answered by the base table only")
        found.append(_table(join.this))
    if len(set(found)) < len(found):
        raise NotPlain("a table is joined with itself")
    return found


def _table(node: exp.Expr) -> str:
    plain = isinstance(node, exp.Table) and not {k for k, v in node.args.items() if v} - {"this", "alias"}
    if not plain or node.alias_column_names:
        raise NotPlain(f"FROM {short(node.sql('spark'))} is not a plain table")
    return node.name.lower()


def _joined(join: exp.Join, table: str, meaning: Meaning) -> Joined:
    side = {"CROSS": "CROSS", "SEMI": "LEFT SEMI", "ANTI": "LEFT ANTI"}.get(join.kind, join.side)
    on = join.args.get("on")
    by = _using(join, table, meaning) if on is None else [expanded(on, meaning)]
    return Joined(table, side, exp.and_(*by) if by else None)


def _using(join: exp.Join, table: str, meaning: Meaning) -> list[exp.Expr]:
    """What USING says of two columns."""
    names = join.args.get("using") or ()
    return [
        exp.EQ(
            this=of_table(name, meaning),
            expression=exp.column(
                exp.to_identifier(name.name.lower(), quoted=True), table=exp.to_identifier(table, quoted=True)
            ),
        )
        for name in names
    ]


def conjuncts(select: exp.Select) -> list[exp.Expr]:
    """The conditions that a row has to meet, all of them."""
    where = select.args.get("where")
    return flat(None if where is None else where.this)


def flat(condition: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that one is made of by AND."""
    match condition:
        case None:
            return []
        case exp.Paren():
            return flat(condition.this)
        case exp.And():
            return [*flat(condition.this), *flat(condition.expression)]
    return [condition]


def _of(expression: exp.Expr, table: str) -> bool:
    return any(column.table == table for column in expression.find_all(exp.Column))


def _spelled_condition(condition: exp.Expr) -> str:
    if isinstance(condition, exp.EQ):
        return _equality(spelled(condition.this), spelled(condition.expression))
    return spelled(condition)


def _equality(one: str, other: str) -> str:
    return " = ".join(sorted((one, other)))

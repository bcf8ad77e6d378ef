"""Whether a view can answer a part of what is asked, and with which of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from mv_assets.query.match.aggregation import Aggregation
from mv_assets.query.match.implication.known import Known, unproved
from mv_assets.query.match.joins import Joined
from mv_assets.query.match.lack import Lack, Lacking, Noted
from mv_assets.query.match.ranges import TimeOf
from mv_assets.query.match.request import Request
from mv_assets.query.match.truncation import stays_over, time_inside
from mv_assets.query.match.view_columns import ViewColumns
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.aggregates import ESTIMATES, Kind, Partial
from mv_assets.spark_sql.canonical import NotPlain, replaced, spelled, written_out
from mv_assets.spark_sql.grain import nested
from mv_assets.tables.types import INTEGERS

# What the view's rows are called, beside what they are joined with.
ROWS = "_mv_rows"


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A dimension's key, and the types of the columns of the base that it is joined by, in the same order."""

    table: str
    columns: tuple[str, ...]
    kinds: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A view in place of its base: all expressions are over its columns, and those of what is joined."""

    view_columns: ViewColumns
    # Of single rows: the view's columns by those of the base that they hold.
    rows: tuple[tuple[str, str], ...] | None
    # The keys that must have been unique when a bucket was computed.
    relies: tuple[UniqueKey, ...] = ()
    # Of groups: what the query joins and the view does not.
    joins: tuple[Joined, ...] = ()
    filters: tuple[exp.Expr, ...] = ()
    keys: tuple[exp.Expr, ...] = ()
    extras: tuple[exp.Expr, ...] = ()
    values: tuple[exp.Expr, ...] = ()

    @property
    def columns(self) -> set[str]:
        """Which of the view's columns are read."""
        read = {self.view_columns.time.column}
        if self.rows is not None:
            return read | {column for _, column in self.rows}
        joined = (join.on for join in self.joins if join.on is not None)
        parts = (*self.filters, *self.keys, *self.extras, *self.values, *joined)
        return read | {column.name for part in parts for column in own_columns(part)}


def own_columns(expression: exp.Expr) -> Iterator[exp.Column]:
    """The columns of the view in an expression of a match."""
    return (column for column in expression.find_all(exp.Column) if column.table == ROWS)


def match(asked: Request, view_columns: ViewColumns) -> Match:
    """How the view answers.

    Raises:
        Lacking: it does not, as some things lack: all of them.
        NotPlain: it does not, and why.

    """

    def noted() -> Noted:
        conditions = tuple(unproved(view_columns.conditions, asked.known))
        return Noted(asked.source.base, Lack(conditions=conditions))

    if view_columns.values is not None:
        return _groups(asked, view_columns, noted())
    try:
        return _single_rows(asked, view_columns, noted())
    except NotPlain as reason:
        try:
            # A row is a group of one.
            return _groups(asked, view_columns, noted())
        except NotPlain:
            raise reason from None


def _unique_keys(asked: Request, view_columns: ViewColumns, joins: Sequence[Joined]) -> tuple[UniqueKey, ...]:
    """What must be unique for these joins of the view to lose no row of the base, and double none.

    A LEFT JOIN loses none, and by all columns of a unique key it finds at most one.
    """
    return tuple(_unique_key(asked, view_columns, join) for join in joins)


def _unique_key(asked: Request, view_columns: ViewColumns, join: Joined) -> UniqueKey:
    key, base = view_columns.keys.get(join.table, ()), asked.source.base
    if join.side != "LEFT":
        words = f"{join.side} JOIN".strip()
        raise NotPlain(
            f"its {words} {join.table} may lose rows: join {join.table} in the query as well, "
            f"or LEFT JOIN it in the view by a declared key: {{table: {join.table}, key: ...}}"
        )
    by = join.equal_columns()
    if not key:
        declare = f"declare its unique key: {{table: {join.table}, key: ...}}"
        raise NotPlain(f"its JOIN {join.table} may double rows; {declare}")
    columns = [by.get(column) for column in key]
    if not all(isinstance(column, exp.Column) and column.table == base for column in columns):
        by_key = f"it does not join {join.table} by its key {', '.join(key)} and columns of {base}"
        raise NotPlain(f"{by_key}: join {join.table} in the query as well")
    return UniqueKey(join.table, key, tuple(asked.kinds.get(spelled(c)) for c in columns if c is not None))


def _matched(asked: Request, view_columns: ViewColumns, join: Joined) -> exp.Expr:
    """A condition that leaves of rows joined LEFT those which found a match."""
    columns = [exp.column(name, table=join.table) for name in join.equal_columns()]
    if not columns:
        raise NotPlain(f"rows without a match in {join.table} are in it, too; it can't tell them")
    kept = [column for column in columns if spelled(column) in view_columns.columns]
    if not kept:
        raise Lacking(Lack(keys=(columns[0],)), asked.source.base)
    return _not_null(kept[0])


def _never_null(asked: Request, join: Joined, filters: Sequence[exp.Expr]) -> bool:
    """Whether the query takes only rows that found a match: where there is none, all columns are null.

    By its conditions alone: what inner joins are joined by, a view's rows without a match do not meet.
    """
    met = Known((*asked.conditions, *filters), asked.known.kinds)
    columns = [c for each in filters for c in each.find_all(exp.Column) if c.table == join.table]
    return any(met.proves(_not_null(column)) for column in columns)


def _not_null(column: exp.Column) -> exp.Expr:
    return exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))


def _single_rows(asked: Request, view_columns: ViewColumns, noted: Noted) -> Match:
    if asked.by_clock:
        # They would be asked with the query as it is written, by another clock.
        raise NotPlain("single rows by the clock are answered by the base table only")
    if asked.source.base != view_columns.source.base:
        raise NotPlain("its rows do not come from the same table")
    if any(
        column.table != asked.source.base
        for each in view_columns.conditions.values()
        for column in each.find_all(exp.Column)
    ):
        # Only of what is joined alike the query says the same as the view.
        asked.source.beyond(view_columns.source)
    # What the query joins is joined to these rows, whatever the view has joined to them.
    relies = _unique_keys(asked, view_columns, view_columns.source.joins)
    base = asked.source.base
    # Rows of which nothing is asked still have to be counted.
    used = asked.used or {asked.time.column.lower()}

    def held(column: str) -> tuple[str, str]:
        name = view_columns.columns.get(f"{base}.{column}".lower())
        if name is None:
            raise Lacking(Lack(columns=(column,)), base)
        return column, name

    rows = noted.all(held, sorted(used))
    noted.refuse()
    return Match(view_columns, rows, relies)


def _groups(asked: Request, view_columns: ViewColumns, noted: Noted) -> Match:
    """Groups of rows. The rows of a group are joined alike, so the group can be joined in their place."""
    beyond, aggregation = asked.source.beyond(view_columns.source), asked.aggregation
    if isinstance(aggregation, Refusal):
        raise NotPlain(f"it keeps no single rows, and {aggregation}")
    if asked.opaque is not None:
        raise NotPlain(f"it keeps no single rows, and {asked.opaque}")
    further, asked_for = beyond.further, (*asked.filters, *beyond.equalities)
    for join in beyond.wider:
        if not _never_null(asked, join, asked_for):
            raise NotPlain(
                f"rows without a match in {join.table} are not in it: LEFT JOIN {join.table} in the view, "
                "or ask only for rows with a match"
            )
    relies = _unique_keys(asked, view_columns, beyond.fewer)
    over = _Over(view_columns, asked.time, frozenset(join.table for join in further), asked.kinds)
    _refuse_unlike_keys(
        asked, aggregation, (*beyond.equalities, *(join.on for join in further if join.on is not None))
    )
    kept = Known(view_columns.conditions.values(), asked.known.kinds)
    filters = [each for each in asked_for if not kept.proves(each)]
    narrower = [join for join in beyond.narrower if not _never_null(asked, join, asked_for)]
    filters += noted.all(lambda join: _matched(asked, view_columns, join), narrower)
    made = Match(
        view_columns,
        None,
        relies,
        noted.all(over.join, further),
        noted.all(over.expression, filters),
        noted.all(over.expression, aggregation.keys),
        noted.all(over.expression, aggregation.extras),
        noted.all(over.wanted, aggregation.partials),
    )
    noted.refuse()
    return made


def _refuse_unlike_keys(asked: Request, aggregation: Aggregation, joined: Sequence[exp.Expr]) -> None:
    """Values that are one key may still differ: minus zero is zero, and collated strings are alike."""
    of_parts = [each for p in aggregation.partials for each in (p.argument, p.condition) if each is not None]
    for expression in (*asked.filters, *aggregation.keys, *aggregation.extras, *of_parts, *joined):
        for column in written_out(expression):
            kind = asked.kinds.get(spelled(column))
            # Arrays and structs may have them inside.
            if kind is None or "float" in kind or "double" in kind:
                raise NotPlain(f"the text of {column.name} is answered by single rows only")
        for column in expression.find_all(exp.Column):
            if column is not expression and " collate " in (asked.kinds.get(spelled(column)) or ""):
                what = f"what is made of {column.name}, a collated string,"
                raise NotPlain(f"{what} is answered by single rows only")


class _Over:
    """Expressions over base rows as ones over the view's; the columns of some tables stay what they are."""

    def __init__(
        self,
        view_columns: ViewColumns,
        time: TimeOf,
        joined: frozenset[str],
        kinds: Mapping[str, str | None],
    ) -> None:
        self._kinds = kinds
        self._view_columns = view_columns
        self._time = time
        self._joined = joined

    def join(self, join: Joined) -> Joined:
        """A join to the view's rows."""
        return replace(join, on=None if join.on is None else self.expression(join.on))

    def expression(self, node: exp.Expr) -> exp.Expr:
        lack = Lack()

        def replace_or_note(each: exp.Expr) -> exp.Expr | None:
            nonlocal lack
            try:
                return self._replace(each)
            except Lacking as why:
                lack = lack.and_(why.lack)
                return each

        made = replaced(node, replace_or_note)
        if lack:
            raise Lacking(lack, self._view_columns.source.base)
        return made

    def _replace(self, node: exp.Expr) -> exp.Expr | None:
        column = self._view_columns.columns.get(spelled(node))
        if column is not None:
            return _column(column)
        grain = stays_over(node)
        if grain is not None and self._time.is_time(time_inside(node)):
            return self._of_time(node, grain)
        if isinstance(node, exp.Column):
            if node.table in self._joined:
                return node.copy()
            raise Lacking(Lack(keys=(node,)), self._view_columns.source.base)
        return None

    def _of_time(self, node: exp.Expr, grain: str) -> exp.Expr:
        finest = self._view_columns.time
        if finest.grain is not None and not nested(finest.grain, grain):
            lack = Lack(cut=(finest.grain,), grains=(grain,))
            raise Lacking(lack, self._view_columns.source.base)
        kind = self._time.kind if self._time.unit is None and not self._time.sampled else "timestamp"
        made = node.copy()
        cast = exp.Cast(this=_column(finest.column), to=exp.DataType.build(kind, dialect="spark"))
        if isinstance(node, exp.Anonymous):
            made.set("expressions", [cast])
        else:
            made.set("this", cast)
        return made

    def wanted(self, partial: Partial) -> exp.Expr:
        """A partial aggregate; without it, the view would be as good with just this one."""
        try:
            return self.value(partial)
        except NotPlain:
            parts = (partial.argument, partial.condition)
            tables = {c.table for each in parts if each is not None for c in each.find_all(exp.Column)}
            lack = Lack(joins=tuple(sorted(tables & self._joined)), aggregates=(partial,))
            raise Lacking(lack, self._view_columns.source.base) from None

    def value(self, partial: Partial) -> exp.Expr:
        """A partial aggregate of the rows that one row of the view stands for."""
        values = self._view_columns.values or {}
        exact = values.get(partial.spelled)
        if exact is not None:
            return _column(exact)
        value = self._unconditional(partial)
        if partial.condition is None:
            return value
        nothing = exp.Literal.number(0) if partial.kind is Kind.COUNT else exp.Null()
        return exp.If(this=self.expression(partial.condition), true=value, false=nothing)

    def _unconditional(self, partial: Partial) -> exp.Expr:
        if self._view_columns.values is None:
            return self._of_row(partial)
        values = self._view_columns.values
        plain = Partial(partial.kind, partial.argument, None, partial.settings)
        kept = values.get(plain.spelled)
        if kept is not None:
            return _column(kept)
        rows = values.get(Partial(Kind.COUNT, None).spelled)
        if partial.argument is not None and partial.kind in (Kind.MIN, Kind.MAX, Kind.AND, Kind.OR):
            return self._of_keys(partial)
        if partial.argument is not None and partial.kind is Kind.COUNT and rows is not None:
            value = exp.Is(this=exp.Paren(this=self._of_keys(partial)), expression=exp.Null())
            return exp.If(this=value, true=exp.Literal.number(0), false=_column(rows))
        if partial.kind is Kind.SUM and rows is not None and self._adds_exactly(partial.argument):
            return exp.Mul(this=exp.Paren(this=self._of_keys(partial)), expression=_column(rows))
        raise NotPlain(f"it has no {plain.sql}")

    def _of_row(self, partial: Partial) -> exp.Expr:
        """A partial aggregate of one row."""
        if partial.kind in ESTIMATES:
            raise NotPlain("it keeps no sketches")
        one = exp.Literal.number(1)
        if partial.argument is None:
            return one
        value = self.expression(partial.argument)
        if partial.kind is not Kind.COUNT:
            return value
        return exp.If(
            this=exp.Is(this=exp.Paren(this=value), expression=exp.Null()),
            true=exp.Literal.number(0),
            false=one,
        )

    def _adds_exactly(self, argument: exp.Expr | None) -> bool:
        """Whether a number of the same values is as much as the value so many times."""
        kind = None if argument is None else self._kinds.get(spelled(argument))
        return kind is not None and (kind in INTEGERS or kind.startswith("decimal"))

    def _of_keys(self, partial: Partial) -> exp.Expr:
        """The argument, where it is the same for all the rows that a row of the view stands for."""
        try:
            return self.expression(partial.argument or exp.Null())
        except NotPlain:
            raise NotPlain(f"it has no {Partial(partial.kind, partial.argument).sql}") from None


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=ROWS)

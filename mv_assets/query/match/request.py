"""What a query asks of one base table: from where, of which time, which rows, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from mv_assets.query.match.aggregation import Aggregation, aggregation_of, simpler_aggregation_of
from mv_assets.query.match.clock import CLOCK
from mv_assets.query.match.implication.constants import sampled
from mv_assets.query.match.implication.known import Known
from mv_assets.query.match.joins import From, conjuncts, rows_of, tables_of
from mv_assets.query.match.ranges import Range, TimeOf, range_of
from mv_assets.query.match.shape import shape_of
from mv_assets.query.match.statement import Statement
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.canonical import NotPlain, expanded, refuse_neighbours
from mv_assets.spark_sql.functions import BARE, refusal, refused_functions
from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Source

# To Spark a column comes first, sqlglot makes no columns of them.
_NO_NAMES = frozenset({"all", *(name for name, kind in BARE.items() if kind is not None)})


@dataclass(frozen=True, slots=True)
class Request:
    """A SELECT on a base table that views on it may answer.

    `aggregation` is the reason why it has none, where only single rows can answer it; `opaque` the reason
    why a condition can't be checked on anything but single rows.
    """

    source: From
    time: TimeOf
    range: Range
    # All conditions but those of joins, what is known of rows that meet them all, and those that say more
    # than a range of time.
    conditions: tuple[exp.Expr, ...]
    known: Known
    filters: tuple[exp.Expr, ...]
    opaque: Refusal | None
    # Columns of the base that are used at all.
    used: frozenset[str]
    aggregation: Aggregation | Refusal
    # Types of the tables' columns, by table.column.
    kinds: Mapping[str, str | None]
    by_clock: bool = False
    # The same of other aggregates, where no view has these.
    simpler: Aggregation | None = None

    @property
    def ways(self) -> tuple[Request, ...]:
        """It as it is; and where it has any, by simpler aggregates."""
        if self.simpler is None:
            return (self,)
        return self, replace(self, aggregation=self.simpler, simpler=None)


def request_of(
    statement: Statement, sources: Mapping[str, Source], time: TimeOf, *, by_clock: bool = False
) -> Request:
    """What is asked of the base table of the statement's FROM; `by_clock`: the clock was read for it.

    Raises:
        NotPlain: something that no view can be held against.

    """
    select = statement.tree
    if not isinstance(select, exp.Select):
        raise NotPlain(f"{select.key.upper()} is answered by the base table only")
    if select.args.get("with_") or len(list(select.find_all(exp.Query))) > 1:
        raise NotPlain("subqueries and WITH are answered by the base table only")
    refuse_neighbours(statement.tokens)
    known = {name.lower() for each in sources.values() for name in each.columns or ()}
    for name in sorted(known & statement.mentioned & _NO_NAMES):
        raise NotPlain(f"{name} is a column here; the base table only answers that")
    read_already = {refusal(name) for name in CLOCK} if by_clock else set()
    refused = [each for each in refused_functions(select, statement.tokens) if each not in read_already]
    if refused:
        raise NotPlain(refused[0].what.split(";")[0])
    others = [source for name, source in sources.items() if name != time.table]
    resolver = Resolver(sources[time.table], others)
    resolver.query(select, {}, None)
    if resolver.complaints:
        raise NotPlain(next(iter(resolver.complaints)))
    rows = rows_of(select, resolver.meaning, time.table)
    if rows.source.base != time.table:
        raise NotPlain(f"FROM begins with {rows.source.base}")
    kinds = {
        f"{name}.{column}".lower(): kind
        for name, each in sources.items()
        for column, kind in (each.columns or {}).items()
    }
    # How the values of a column are ordered; where it may have a wider type, no whole number is the next one.
    unsure = {f"{name}.{column}".lower() for name, each in sources.items() for column in each.unsure}
    compared = {name: sampled(kind) if name in unsure else kind for name, kind in kinds.items()}
    found, filters = range_of(rows.conditions, time)
    try:
        shape = shape_of(select, resolver.meaning, known)
        aggregation: Aggregation | Refusal = aggregation_of(shape, kinds)
        simpler = simpler_aggregation_of(shape, kinds)
    except NotPlain as reason:
        aggregation, simpler = Refusal(str(reason)), None
    columns = {column.lower() for column in sources[time.table].columns or ()}
    # What an output's name may hide counts too: Spark finds it in the base, and must find it in a view.
    used = columns if statement.takes_all else columns & resolver.mentioned.get(time.table, set())
    used |= resolver.used.get(time.table, {}).keys()
    return Request(
        rows.source,
        time,
        found,
        rows.conditions,
        Known((*rows.conditions, *rows.equalities), compared),
        tuple(filters),
        None if rows.opaque is None else Refusal(str(rows.opaque)),
        frozenset(used),
        aggregation,
        kinds,
        by_clock,
        simpler,
    )


def range_asked(statement: Statement, sources: Mapping[str, Source], time: TimeOf) -> Range:
    """The time that the outermost WHERE leaves of a table that is read once; all, if nobody can tell."""
    select = statement.tree
    names = [table.name.lower() for table in statement.tables]
    if not isinstance(select, exp.Select) or names.count(time.table) > 1:
        return Range()
    try:
        # UNPIVOT, or an alias with columns, may call another column by the time's name.
        if time.table not in tables_of(select):
            return Range()
    except NotPlain:
        return Range()
    resolver = Resolver(sources[time.table], [s for name, s in sources.items() if name != time.table])
    resolver.query(select, {}, None)
    found = Range()
    for each in conjuncts(select):
        try:
            found = found.and_(range_of([expanded(each, resolver.meaning)], time)[0])
        except NotPlain:
            continue
    return found

"""A view's SQL at project load: what it gives, or every mistake in it at once.

A bucket is computed by running the SQL on the rows of its windows alone. Of `scope: bucket` that is what the
view means. Of `scope: table` the SQL must give bucket by bucket what it gives on the whole table. Either must
give the same on every run.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from sqlglot import exp

from mv_assets.buckets import Buckets
from mv_assets.config.errors import Mistake
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.calls import calls
from mv_assets.spark_sql.canonical import NotPlain, refuse_neighbours
from mv_assets.spark_sql.functions import refused_functions
from mv_assets.spark_sql.grain import GRAINS, Time, coarser, common, fits, holds_whole
from mv_assets.spark_sql.merge import Merging, merging_of
from mv_assets.spark_sql.outputs import Column, approximate_columns, lineage
from mv_assets.spark_sql.parse import SQLGLOT_ERRORS, Reading, read
from mv_assets.spark_sql.resolve import Resolver, output_names
from mv_assets.spark_sql.scope import Source
from mv_assets.spark_sql.text import one_line, short
from mv_assets.tables.recent import Recent
from mv_assets.views.admission.base_rows import BaseRows, parts_of
from mv_assets.views.admission.clauses import refused_clauses, refused_literals, refused_parameters
from mv_assets.views.admission.decomposition import UNREADABLE, Decomposition, no_such_output
from mv_assets.views.admission.orders import refused_orders, settled
from mv_assets.views.admission.sources import Sources

_RESERVED = "_mv"
Scope = Literal["table", "bucket"]
_WITHOUT_ZONE = ("date", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class ViewSql:
    """A view's SQL that may be computed bucket by bucket.

    `sql` is the same text for SQL that differs only in whitespace, comments and the case of keywords; it is
    there to be compared, as by the definition's hash. `bare` is what the executor runs: the SQL as declared,
    but for its comments. `grain` is what the output time column is truncated to, None for raw instants.
    `used` has the columns mentioned of each table read, in the schema's spelling; a name that several tables
    of unknown schema may have counts for each. `mentioned` has, in lower case, every name by which Spark may
    find a column there, and is the same whether schemas are known or not: what is read, and what counts as an
    input, must not depend on that. `approximate` are the output columns in which another run may differ.
    `lineage` has, for each output column, the tables' columns that it is made from, where that can be told.
    `merging` is how rows made of further files are merged into what is stored, or why they can't be.
    `reaches_inside` says whether it names parts of a column, and is the same whether schemas are known or
    not. `calls` are the functions of the project that it calls.
    """

    sql: str
    bare: str = field(compare=False)
    columns: tuple[str, ...]
    grain: str | None
    aggregates: bool
    used: Mapping[str, frozenset[str]]
    mentioned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    approximate: frozenset[str] = frozenset()
    lineage: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)
    merging: Merging | Refusal = field(default=Refusal("it was not looked into"), compare=False)
    reaches_inside: bool = False
    calls: frozenset[str] = frozenset()
    # It says itself which columns it reads.
    reads_all: ClassVar[bool] = False


# By a hash of all that an analysis depends on; so many at most, some 20 kB each.
ANALYSED: Recent[tuple[ViewSql | None, list[Mistake]]] = Recent(2_000)


def analyse(
    sql: str,
    *,
    base: Source,
    further: Sequence[Source] = (),
    dimensions: Sequence[Source],
    time_column: str,
    buckets: Buckets,
    scope: Scope = "table",
    functions: Collection[str] = (),
) -> tuple[ViewSql | None, list[Mistake]]:
    """What the SQL gives; None where there is a mistake, with every mistake that was found.

    `functions` are the names of those that the project declares. A process that loads a project again, as
    it was edited, takes what it knows of SQL that is the same on sources that are.
    """
    sources = Sources(base, tuple(further), tuple(dimensions))
    declared = frozenset(name.lower() for name in functions)
    asked = repr((sql, sources, time_column, buckets, scope, sorted(declared)))
    key = hashlib.blake2b(asked.encode(), digest_size=16).digest()
    found = ANALYSED.get(key)
    if found is None:
        found = _analysed(sql, sources, time_column, buckets, scope, declared)
        ANALYSED.put(key, found, 1)
    view, mistakes = found
    return view, [*mistakes]


def _analysed(
    sql: str,
    sources: Sources,
    time_column: str,
    buckets: Buckets,
    scope: Scope,
    declared: frozenset[str],
) -> tuple[ViewSql | None, list[Mistake]]:
    reading = read(sql)
    view, mistakes = None, []
    if isinstance(reading, Mistake):
        mistakes = [reading]
    else:
        try:
            analysis = Analysis(reading, sources, time_column, buckets, declared)
            view, mistakes = analysis.by_bucket() if scope == "bucket" else analysis.by_table()
        except SQLGLOT_ERRORS:
            lost = "the SQL can't be understood; write it with fewer levels and plainer syntax"
            mistakes = [Mistake("sql", lost)]
    return view, [replace(mistake, what=one_line(mistake.what)) for mistake in mistakes]


class Analysis:
    """One reading of a view's SQL, which may be judged by either scope."""

    def __init__(
        self,
        reading: Reading,
        sources: Sources,
        time_column: str,
        buckets: Buckets,
        functions: frozenset[str],
    ) -> None:
        self._reading = reading
        self._tree = reading.tree
        self._sources = sources
        self._time_column = time_column
        self._buckets = buckets
        self._functions = functions
        self._resolver = Resolver(sources.base, sources.others)
        self._outputs = self._resolver.query(reading.tree, {}, None)
        self._times: dict[int, Time | Refusal] = {}

    def by_bucket(self) -> tuple[ViewSql | None, list[Mistake]]:
        """As SQL over the rows of each bucket's windows."""
        mistakes = [
            *self._anyhow(()),
            *refused_parameters(self._tree, by_bucket=True),
            *self._sources.mistakes(self._resolver.tables, by_bucket=True),
            *(
                mistake
                for source in (self._sources.base, *self._sources.further)
                for mistake in without_zone(source, self._buckets)
            ),
            *self._no_time(),
        ]
        if mistakes:
            return None, list(dict.fromkeys(mistakes))
        aggregates = self._aggregates(self._tree.find_all(exp.Select))
        why = Refusal("what `scope: bucket` makes of a bucket's rows depends on all of them")
        return self._view(grain=None, aggregates=aggregates, merging=why), []

    def by_table(self) -> tuple[ViewSql | None, list[Mistake]]:
        """As SQL over the whole table, which each bucket has its part of."""
        way = BaseRows(self._resolver, self._sources.base)
        way.follow(self._tree)
        time, time_mistakes = self._time()
        mistakes = [
            *self._anyhow(way.passed),
            *refused_parameters(self._tree, by_bucket=False),
            *self._sources.mistakes(self._resolver.tables, by_bucket=False),
            *way.mistakes,
            *self._groups(way),
            *(mistake for select in way.selects for mistake in self._cut(select).windows()),
            *(
                without_zone(self._sources.base, self._buckets)
                or _base_grain(self._sources.base, self._buckets)
            ),
            *time_mistakes,
        ]
        if mistakes or time is None:
            return None, self._advised(list(dict.fromkeys(mistakes)), time)
        aggregates = self._aggregates(way.selects, way.passed)
        merging = self._merging(way, aggregates=aggregates)
        grain = coarser(self._sources.base.grain, time.grain)
        return self._view(grain=grain, aggregates=aggregates, merging=merging), []

    def _advised(self, mistakes: list[Mistake], time: Time | None) -> list[Mistake]:
        """The mistakes; of SQL that may be meant bucket by bucket, the first says so."""
        first, *others = mistakes
        unfit = [*_base_grain(self._sources.base, self._buckets), *self._unfit(time)]
        # Rows that leave their bucket leave it whatever the SQL is meant over.
        if unfit or self.by_bucket()[0] is None:
            return mistakes
        advice = "with `scope: bucket` it would be allowed, and mean the rows of each bucket alone"
        advice = f"{advice}, whose {self._time_column} must lie in it"
        return [replace(first, what=f"{first.what}; {advice}"), *others]

    def _unfit(self, time: Time | None) -> list[str]:
        return [] if time is None else [grain for grain in time.steps if not fits(grain, self._buckets)]

    def _anyhow(self, besides: Container[int]) -> list[Mistake]:
        """What is wrong whatever the SQL is meant over, but for LIMIT in queries `besides`."""
        tree, tokens, resolver = self._tree, self._reading.tokens, self._resolver
        fine = settled(tree, tokens, resolver.meaning)
        return [
            *refused_clauses(tree, resolver.expanded),
            *refused_functions(tree, tokens, declared=self._functions, settled=fine),
            *refused_literals(tokens),
            *refused_orders(tree, resolver, besides),
            *_unreached(tree, resolver),
            *(Mistake("sql", complaint) for complaint in resolver.complaints),
            *self._name_mistakes(),
        ]

    def _view(self, *, grain: str | None, aggregates: bool, merging: Merging | Refusal) -> ViewSql:
        reading, resolver, outputs = self._reading, self._resolver, self._outputs or ()
        called = {call.name for call in calls(reading.tokens)}
        return ViewSql(
            sql=reading.text,
            bare=reading.bare,
            columns=tuple(each.name for each in outputs),
            grain=grain,
            aggregates=aggregates,
            used={table: frozenset(columns.values()) for table, columns in resolver.used.items()},
            mentioned={table: frozenset(names) for table, names in resolver.mentioned.items()},
            approximate=approximate_columns(self._tree, outputs, reading.tokens, resolver.meaning),
            lineage=lineage(outputs, resolver.meaning),
            merging=merging,
            reaches_inside=_reaches_inside(self._tree),
            calls=self._functions & called,
        )

    def _cut(self, select: exp.Select) -> Decomposition:
        return Decomposition(select, self._resolver, self._sources.base, self._buckets, self._times)

    def _aggregates(self, selects: Iterable[exp.Select], queries: Container[int] | None = None) -> bool:
        """Whether rows are put together anywhere on their way; of `queries` only, if those are given."""
        sets = [each for each in self._tree.find_all(exp.SetOperation) if each.args.get("distinct")]
        return any(self._cut(select).aggregates for select in selects) or any(
            queries is None or id(each) in queries for each in sets
        )

    def _place(self) -> tuple[int | None, list[Mistake]]:
        """Where among the outputs the time column is."""
        names = self._names()
        folded = [name.lower() for name in names]
        if self._time_column.lower() in folded:
            return folded.index(self._time_column.lower()), []
        return None, [no_such_output(self._time_column, [name for name in names if name])]

    def _no_time(self) -> list[Mistake]:
        """Why the time column can't tell of any row in which bucket it is."""
        place, mistakes = self._place()
        if place is None:
            return mistakes
        found = [self._cut(part).followed(place) for part in parts_of(self._tree)]
        if any(isinstance(time, Time) and time.nanos for time in found):
            return [Mistake("time_column", f"{UNREADABLE}; write CAST(... AS TIMESTAMP)")]
        return []

    def _time(self) -> tuple[Time | None, list[Mistake]]:
        """What the time column is in every part of the view, and why its rows may leave their bucket."""
        place, mistakes = self._place()
        if place is None:
            return None, mistakes
        found = [self._cut(part).time(place, self._time_column) for part in parts_of(self._tree)]
        mistakes = [mistake for _, some in found for mistake in some]
        times = [time for time, _ in found if time is not None]
        if not found or len(times) < len(found):
            return None, mistakes
        time = common(times)
        if isinstance(time, Refusal):
            return None, [*mistakes, Mistake("time_column", f"{self._time_column}: {time}; make them alike")]
        return time, mistakes

    def _groups(self, way: BaseRows) -> list[Mistake]:
        """Groups that span buckets."""
        place, _ = self._place()
        parts = {id(part) for part in parts_of(self._tree)}
        mistakes = []
        for select in way.selects:
            cut = self._cut(select)
            if id(select) in parts:
                time = None if place is None else cut.time(place, self._time_column)[0]
                mistakes += cut.grouping(time, self._time_column)
            else:
                mistakes += cut.inner_grouping()
        return mistakes

    def _merging(self, way: BaseRows, *, aggregates: bool) -> Merging | Refusal:
        select = self._tree
        if not isinstance(select, exp.Select) or len(way.selects) > 1:
            return Refusal("its rows come through a subquery, a CTE or a UNION")
        used = {column for columns in self._resolver.used.values() for column in columns}
        try:
            if aggregates:
                # Keys that are not the same could look so.
                refuse_neighbours(self._reading.tokens)
        except NotPlain as why:
            return Refusal(str(why))
        return merging_of(select, self._resolver.meaning, used, aggregates=aggregates)

    def _names(self) -> list[str]:
        """The output columns, as far as they are known."""
        if self._outputs is not None:
            return [each.name for each in self._outputs]
        return [name for item in self._items() for name in output_names(item)]

    def _items(self) -> list[exp.Expr]:
        """What the output columns have their names from."""
        parts = parts_of(self._tree)
        return parts[0].expressions if parts else []

    def _name_mistakes(self) -> list[Mistake]:
        names = [name for name in self._names() if name]
        items = [item for item in self._items() if not output_names(item) and not item.is_star]
        unnamed = [short(item.sql("spark")) for item in items]
        twice = [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
        reserved = [name for name in names if name.lower().startswith(_RESERVED)]
        return [
            *(Mistake("sql", f"{text} has no name; write {text} AS name") for text in unnamed),
            *(
                Mistake("sql", f"two output columns are called {name}; give one another name with AS")
                for name in twice
            ),
            *(
                Mistake("sql", f"{name} starts with {_RESERVED}, which is kept for mv_assets; rename it")
                for name in reserved
            ),
        ]


def _reaches_inside(tree: exp.Expr) -> bool:
    """Whether the SQL names parts of columns, as by s.x, l[0], a lambda or a generator.

    A name before a point that is a table's is taken for it.
    """
    named = tree.find_all(exp.Table, exp.Subquery, exp.CTE)
    tables = {each.alias_or_name.lower() for each in named}

    def inside(node: exp.Expr) -> bool:
        if isinstance(node, exp.Column):
            first, *others = (part.name.lower() for part in node.parts)
            return len(others) > (1 if first in tables else 0)
        return isinstance(node, (exp.Dot, exp.Bracket, exp.Lambda, exp.UDTF))

    return any(inside(node) for node in tree.walk())


def _unreached(tree: exp.Expr, resolver: Resolver) -> list[Mistake]:
    """Tables in a place that nobody looked at; a hint only names what is read elsewhere."""
    return [
        Mistake("sql", f"{table.sql('spark')} is read in a place where no table belongs; join it in FROM")
        for table in tree.find_all(exp.Table)
        if id(table) not in resolver.seen and not table.find_ancestor(exp.Hint)
    ]


def _base_grain(base: Source, buckets: Buckets) -> list[Mistake]:
    if base.grain is None or holds_whole(buckets, base.grain, base.zone):
        return []
    what = f"a {buckets.text} bucket does not hold whole {base.grain}s, which are the times of {base.name}"
    if base.zone != buckets.zone:
        where = f"{what}, by the clocks of {base.zone or 'UTC'}"
        return [Mistake("bucket", f"{where}; use that timezone, or a base with finer times")]
    widths = ("1d", "1w", "1mo") if buckets.zone else ("1h", "1d", "1w", "1mo")
    fine = " or ".join(width for width in widths if fits(base.grain, Buckets.of(width)))
    right = f"use {fine}" if fine and base.grain in GRAINS else "use another base"
    return [Mistake("bucket", f"{what}; {right}")]


def without_zone(source: Source, buckets: Buckets) -> list[Mistake]:
    """That a table's times can't be put into the days of a zone: without one they count as UTC's."""
    kinds = {name.lower(): kind for name, kind in (source.columns or {}).items()}
    kind = kinds.get(str(source.time_column).lower())
    if buckets.zone is None or kind not in _WITHOUT_ZONE:
        return []
    what = (
        f"{source.name}.{source.time_column} is a {kind}, which is no moment that has a day in {buckets.zone}"
    )
    return [Mistake("timezone", f"{what}; use a column of timestamps, or take timezone out")]

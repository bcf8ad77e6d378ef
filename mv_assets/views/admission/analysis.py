"""A view's SQL at project load: what it gives, or every mistake in it at once.

A bucket is computed by running the SQL on the base rows of its time window alone, so the SQL must give
bucket by bucket what it gives on the whole table, and the same on every run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from mv_assets.buckets import Buckets
from mv_assets.errors import Mistake
from mv_assets.spark_sql.canonical import NotPlain, refuse_neighbours
from mv_assets.spark_sql.functions import refused_functions
from mv_assets.spark_sql.grain import GRAINS, fits
from mv_assets.spark_sql.merging import Merging, merging_of
from mv_assets.spark_sql.outputs import Column, approximate_columns, lineage
from mv_assets.spark_sql.parse import SQLGLOT_ERRORS, Reading, read
from mv_assets.spark_sql.resolve import Resolver, output_names
from mv_assets.spark_sql.scope import Source
from mv_assets.spark_sql.wording import one_line, short
from mv_assets.views.admission.base_rows import table_mistakes
from mv_assets.views.admission.clauses import refused_clauses, refused_literals, refused_orders
from mv_assets.views.admission.decomposition import Decomposition

_RESERVED = "_mv"


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
    `lineage` has, for each output column, the tables' columns that it is made from. `merging` is how rows
    made of further files are merged into what is stored, or why they can't be. `reaches_inside` says whether
    it names parts of a column, and is the same whether schemas are known or not.
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
    merging: Merging | str = field(default="it was not looked into", compare=False)
    reaches_inside: bool = False


def analyse(
    sql: str, *, base: Source, dimensions: Sequence[Source], time_column: str, buckets: Buckets
) -> tuple[ViewSql | None, list[Mistake]]:
    """What the SQL gives; None where there is a mistake, with every mistake that was found."""
    reading = read(sql)
    view, mistakes = None, []
    if isinstance(reading, Mistake):
        mistakes = [reading]
    else:
        try:
            view, mistakes = _analyse(reading, base, dimensions, time_column, buckets)
        except SQLGLOT_ERRORS:
            lost = "the SQL can't be understood; write it with fewer levels and plainer syntax"
            mistakes = [Mistake("sql", lost)]
    return view, [replace(mistake, what=one_line(mistake.what)) for mistake in mistakes]


def _analyse(
    reading: Reading, base: Source, dimensions: Sequence[Source], time_column: str, buckets: Buckets
) -> tuple[ViewSql | None, list[Mistake]]:
    select = reading.select
    resolver = Resolver(base, dimensions)
    resolver.query(select, {}, None)
    cut = Decomposition(select, resolver, base, buckets)
    time, time_mistakes = cut.time(time_column)
    mistakes = [
        *refused_clauses(select),
        *refused_functions(select, reading.tokens),
        *refused_literals(reading.tokens),
        *refused_orders(select),
        *table_mistakes(select, resolver.tables, base, dimensions),
        *_unreached(select, resolver),
        *(Mistake("sql", complaint) for complaint in resolver.complaints),
        *_name_mistakes(select),
        *_base_grain(base, buckets),
        *time_mistakes,
        *cut.grouping(time, time_column),
        *cut.windows(),
    ]
    if mistakes or time is None:
        return None, list(dict.fromkeys(mistakes))
    return ViewSql(
        sql=reading.text,
        bare=reading.bare,
        columns=tuple(_output_columns(select)),
        grain=cut.output_grain(time),
        aggregates=cut.aggregates,
        used={table: frozenset(columns.values()) for table, columns in resolver.used.items()},
        mentioned={table: frozenset(names) for table, names in resolver.mentioned.items()},
        approximate=approximate_columns(select, reading.tokens, resolver.meaning),
        lineage=lineage(select, resolver.meaning),
        merging=_merging(reading, resolver, aggregates=cut.aggregates),
        reaches_inside=_reaches_inside(select),
    ), []


def _merging(reading: Reading, resolver: Resolver, *, aggregates: bool) -> Merging | str:
    used = {column for columns in resolver.used.values() for column in columns}
    try:
        if aggregates:
            # Keys that are not the same could look so.
            refuse_neighbours(reading.tokens)
    except NotPlain as why:
        return str(why)
    return merging_of(reading.select, resolver.meaning, used, aggregates=aggregates)


def _reaches_inside(select: exp.Select) -> bool:
    """Whether the SQL names parts of columns, as by s.x, l[0], a lambda or a generator.

    A name before a point that is a table's is taken for it.
    """
    named = select.find_all(exp.Table, exp.Subquery, exp.CTE)
    tables = {each.alias_or_name.lower() for each in named}

    def inside(node: exp.Expr) -> bool:
        if isinstance(node, exp.Column):
            first, *others = (part.name.lower() for part in node.parts)
            return len(others) > (1 if first in tables else 0)
        return isinstance(node, (exp.Dot, exp.Bracket, exp.Lambda, exp.UDTF))

    return any(inside(node) for node in select.walk())


def _unreached(select: exp.Select, resolver: Resolver) -> list[Mistake]:
    """Tables in a place that nobody looked at; a hint only names what is read elsewhere."""
    return [
        Mistake("sql", f"{table.sql('spark')} is read in a place where no table belongs; join it in FROM")
        for table in select.find_all(exp.Table)
        if id(table) not in resolver.seen and not table.find_ancestor(exp.Hint)
    ]


def _output_columns(select: exp.Select) -> list[str]:
    return [name for item in select.expressions for name in output_names(item)]


def _name_mistakes(select: exp.Select) -> list[Mistake]:
    names = _output_columns(select)
    unnamed = [
        short(item.sql("spark")) for item in select.expressions if not output_names(item) and not item.is_star
    ]
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


def _base_grain(base: Source, buckets: Buckets) -> list[Mistake]:
    if base.grain is None or fits(base.grain, buckets):
        return []
    fine = " or ".join(width for width in ("1h", "1d", "1w", "1mo") if fits(base.grain, Buckets.of(width)))
    what = f"a {buckets.width} bucket does not hold whole {base.grain}s, which are the times of {base.name}"
    right = f"use {fine}" if fine and base.grain in GRAINS else "use another base"
    return [Mistake("bucket", f"{what}; {right}")]

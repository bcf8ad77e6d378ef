"""A routed query as one frame: the parts of the views and of the base table, put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame

from mv_assets.query.execute import rewrite as rewriting
from mv_assets.query.execute.relations import Files, Relations, alike
from mv_assets.query.match.aggregation import Aggregation
from mv_assets.query.match.joins import Joined
from mv_assets.query.match.request import Request
from mv_assets.query.match.statement import Statement
from mv_assets.query.route.assignment import Assignment, Part
from mv_assets.query.route.pinned import Pinned
from mv_assets.query.route.schema_cache import Kinds, SchemaCache
from mv_assets.spark.read.files import quoted


class Composer:
    """Makes the frame of one try of a query. `ansi`: whether Spark raises an error where a sum overflows."""

    def __init__(self, cache: SchemaCache, pinned: Pinned, relations: Relations, *, ansi: bool) -> None:
        self._cache = cache
        self._pinned = pinned
        self._relations = relations
        self._ansi = ansi

    def compose(
        self, statement: Statement, asked: Request, assignment: Assignment
    ) -> tuple[DataFrame, Files]:
        """The answer's frame, and what of the base is read for it.

        Raises:
            NotPlain: what the parts have does not go together.

        """
        base, nulls = asked.source.base, not asked.range.rejects_null
        single = [part for part in assignment.parts if part.match.rows is not None]
        groups = [part for part in assignment.parts if part.match.rows is None]
        columns = self._cache.needed(base, statement, self._pinned)
        reads = self._relations.reads(base, assignment.base, nulls=nulls)
        if isinstance(asked.aggregation, Aggregation) and not single and not reads:
            answer = self._of_views_alone(statement, asked, asked.aggregation, groups)
            if answer is not None:
                return answer, Files(0, 0)
        rows, files = self._relations.empty(columns), Files(0, 0)
        if reads:
            rows, files = self._relations.base(base, columns, assignment.base, nulls=nulls)
        names = self._names(statement, asked, self._with_single_rows(rows, single))
        answer = self._relations.sql(statement.reading(names))
        if not groups or not isinstance(asked.aggregation, Aggregation):
            return answer, files
        own = rewriting.of_base(asked, asked.aggregation, names)
        kinds = Kinds(self._relations.sql(own).schema, answer.schema)
        # What was read just now may be wider than what the table's columns are thought to be.
        read = {f"{base}.{field.name}".lower(): field.dataType for field in rows.schema} if reads else {}
        types = self._relations.types(asked.kinds) | read
        parts = [*self._of_views(asked.aggregation, groups, kinds, types, names), own]
        return self._merged(asked.aggregation, parts, kinds), files

    def _of_views_alone(
        self, statement: Statement, asked: Request, aggregation: Aggregation, groups: Sequence[Part]
    ) -> DataFrame | None:
        """The answer where nothing of the base is to be read; None if the views have no rows either."""

        def kinds() -> Kinds:
            columns = self._cache.needed(asked.source.base, statement, self._pinned)
            names = self._names(statement, asked, self._relations.empty(columns))
            own = self._relations.sql(rewriting.of_base(asked, aggregation, names))
            return Kinds(own.schema, self._relations.sql(statement.reading(names)).schema)

        known = self._cache.kinds(statement, asked, self._pinned, kinds)
        joined = {join.table for part in groups for join in part.match.joins}
        names = self._joined(statement, [join for join in asked.source.joins if join.table in joined])
        parts = self._of_views(aggregation, groups, known, self._relations.types(asked.kinds), names)
        return self._merged(aggregation, parts, known) if parts else None

    def _of_views(
        self,
        aggregation: Aggregation,
        groups: Sequence[Part],
        kinds: Kinds,
        base: rewriting.Types,
        names: Mapping[str, str],
    ) -> list[str]:
        if not self._ansi:
            rewriting.refuse_without_ansi(aggregation, kinds.parts)
        found = (
            rewriting.of_view(self._relations, aggregation, part, kinds.parts, base, names, ansi=self._ansi)
            for part in groups
        )
        return [part for part in found if part is not None]

    def _merged(self, aggregation: Aggregation, parts: Sequence[str], kinds: Kinds) -> DataFrame:
        return rewriting.merged(self._relations, aggregation, parts, kinds.parts, kinds.answer)

    def _with_single_rows(self, rows: DataFrame, single: Sequence[Part]) -> DataFrame:
        """The base's rows and those that views keep of it."""
        found = (rewriting.single_rows(self._relations, part) for part in single)
        frames = [frame for frame in found if frame is not None]
        if not frames:
            return rows
        used = {column for column, _ in single[0].match.rows or ()}
        # In the base's own order, which `*` shows.
        names = [quoted(column) for column in rows.columns if column.lower() in used]
        return alike([each.selectExpr(*names) for each in (rows, *frames)])

    def _names(self, statement: Statement, asked: Request, rows: DataFrame) -> dict[str, str]:
        """The relations that the query reads: the rows given, and what is joined to them."""
        return {
            asked.source.base: self._relations.name(rows),
            **self._joined(statement, asked.source.joins),
        }

    def _joined(self, statement: Statement, joins: Iterable[Joined]) -> dict[str, str]:
        """Joined tables as relations."""
        names = {}
        for join in joins:
            columns = self._cache.needed(join.table, statement, self._pinned)
            rows, _ = self._relations.base(join.table, columns, None, nulls=True)
            names[join.table] = self._relations.name(rows)
        return names

"""Advice on a query: on the whole of it, or on each SELECT inside that stands alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mv_assets.query.advise.advisor import Advisor
from mv_assets.query.advise.proposal import Advice, Proposal
from mv_assets.query.execute.relations import Relations
from mv_assets.query.match.clock import without_clock
from mv_assets.query.match.inner import Inner, inner_selects
from mv_assets.query.match.request import request_of
from mv_assets.query.match.statement import Statement, place_of, statement_of
from mv_assets.query.route.pinned import Pinned
from mv_assets.query.route.schema_cache import SchemaCache
from mv_assets.run.opened import OpenProject
from mv_assets.spark_sql.canonical import NotPlain


def advise(project: OpenProject, text: str) -> Advice:
    """The views that would answer a query; or why there are none.

    Raises:
        QueryRefused: it is no SELECT over the project's tables and views.

    """
    catalog = project.catalog
    statement = statement_of(text, [*catalog.tables, *catalog.views], catalog.functions)
    with Pinned(project) as pinned:
        return _Asking(project, pinned).advice(statement)


class _Asking:
    def __init__(self, project: OpenProject, pinned: Pinned) -> None:
        self._project = project
        self._catalog = project.catalog
        self._pinned = pinned
        self._cache = SchemaCache(project)

    def advice(self, statement: Statement) -> Advice:
        try:
            return self._on(statement)
        except NotPlain as why:
            reason = str(why)
        known = [*self._catalog.tables, *self._catalog.views]
        selects = inner_selects(statement, known)
        found = list(self._inside(selects))
        # Two SELECTs may want one view.
        proposals = {each.yaml: each for advice in found for each in advice.proposals}
        reasons = [each.reason for each in found if each.reason]
        if not proposals:
            return Advice(reason=next(iter(reasons), reason))
        return Advice(
            tuple(proposals.values()), left=reason if self._reads_around(selects, statement) else None
        )

    def _reads_around(self, selects: Sequence[Inner], statement: Statement) -> bool:
        """Whether a table that views are on is read outside of the SELECTs, too."""
        return any(
            self._timed(table.name.lower())
            and not any(each.start <= place_of(table)[0] < each.end for each in selects)
            for table in statement.tables
        )

    def _inside(self, selects: Sequence[Inner]) -> Iterator[Advice]:
        for inner in selects:
            try:
                if inner.statement is not None:
                    yield self._on(inner.statement)
                    continue
            except NotPlain:
                pass
            yield from self._inside(inner.inside)

    def _on(self, statement: Statement) -> Advice:
        advisor = self._advisor(statement)
        answering = advisor.answering()
        if answering is not None:
            return Advice(reason=f"view {answering} answers it already, as far as its buckets are VALID")
        best: Proposal = advisor.best()
        return Advice((best,))

    def _advisor(self, statement: Statement) -> Advisor:
        tables = [table.name.lower() for table in statement.tables]
        # As a query would find its views; where there are none, the first that has a time can have one.
        views_on = [name for name in tables if self._cache.candidates(name)]
        first = next(iter([*views_on, *(name for name in tables if self._timed(name))]), tables[0])
        views = [name for name in statement.names if name in self._catalog.views]
        if views:
            raise NotPlain(f"it asks view {views[0]} by its own name")
        time = self._cache.time(first, statement, self._pinned)
        if time is None:
            raise NotPlain(f"{first} has no time column, and a view needs one")
        sources = {name: self._cache.source(name, statement, self._pinned) for name in statement.names}
        at_once = without_clock(statement, self._values)
        asked = request_of(at_once or statement, sources, time, by_clock=at_once is not None)
        return Advisor(self._catalog, self._cache, asked, sources)

    def _timed(self, name: str) -> bool:
        return name in self._catalog.tables and self._catalog.tables[name].time_column is not None

    def _values(self, expressions: Sequence[str]) -> list[tuple[str, str | None]]:
        """Only a query that reads the clock needs Spark."""
        with (
            self._project.engine.session() as spark,
            Relations(self._project, self._pinned, spark, self._cache.of_queries) as relations,
        ):
            return relations.values(expressions)

"""A query answered: planned, read, and handed out only once nothing that was read had changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from mv_assets.buckets import iso
from mv_assets.errors import (
    FileInTheWay,
    JobFailed,
    LeaseExpired,
    QueryRefused,
    ReadFailed,
    SourceMoving,
)
from mv_assets.query.execute.planner import Planned, Planner
from mv_assets.query.execute.served import Served
from mv_assets.query.match.statement import Statement, statement_of
from mv_assets.query.route.eligibility import Freshness
from mv_assets.query.route.pinned import Maps, Pinned
from mv_assets.query.route.schema_cache import SchemaCache
from mv_assets.run.opened import OpenProject
from mv_assets.spark.failures import names_no_column, spark_errors
from mv_assets.spark.keeping import kept
from mv_assets.spark_sql.canonical import NotPlain

_TRIES = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows, kept by Spark and needing no file any more, and what they came from."""

    frame: DataFrame
    served: Served


@dataclass(frozen=True, slots=True)
class Question:
    """A query, and how fresh its answer has to be. `max_staleness` in place of what the views declare."""

    text: str
    freshness: Freshness = Freshness.STRICT
    max_staleness: int | None = None


class Answers:
    """Answers queries on a project."""

    def __init__(self, project: OpenProject) -> None:
        self._project = project
        self._cache = SchemaCache(project)
        self._maps: Maps = {}

    def answer(self, question: Question, spark: SparkSession | None = None) -> Answer:
        """The answer that the base tables would give, as far as the freshness promises.

        Raises:
            QueryRefused: it is no SELECT over the project's tables and views.
            JobFailed: Spark can't compute it, on the base tables either.
            SourceMoving: files changed under it each time it was tried.

        """
        statement = self._statement(question)
        with self._session(spark) as own:
            return self._tried(question, statement, own)

    def explain(self, question: Question, spark: SparkSession | None = None) -> Served:
        """What the answer would be made from."""
        statement = self._statement(question)
        with self._session(spark) as own, ExitStack() as held:
            pinned = self.pinned(held)
            try:
                with self._advised(statement, pinned):
                    return self._planned(question, statement, pinned, own, held).served
            except JobFailed as failed:
                if not self._searched(failed, statement, pinned):
                    raise
                return self._planned(question, statement, self.pinned(held), own, held).served

    def pinned(self, held: ExitStack) -> Pinned:
        """The tables and maps as they are from now until `held` is closed."""
        return Pinned(self._project, held, self._maps)

    def _statement(self, question: Question) -> Statement:
        catalog = self._project.catalog
        statement = statement_of(question.text, [*catalog.tables, *catalog.views])
        tables = [name for name in statement.names if name in catalog.tables]
        if question.freshness is Freshness.STORED and tables:
            raise QueryRefused(
                f"{tables[0]} is a base table, of which nothing is stored; ask a view by its name, or leave "
                "out `stored`"
            )
        return statement

    def _session(self, spark: SparkSession | None) -> AbstractContextManager[SparkSession]:
        return self._project.engine.session() if spark is None else nullcontext(spark)

    def _tried(self, question: Question, statement: Statement, spark: SparkSession) -> Answer:
        moved: _Moved | LeaseExpired | None = None
        for _ in range(_TRIES):
            try:
                with ExitStack() as held:
                    return self._once(question, statement, spark, held)
            except (_Moved, LeaseExpired) as reason:
                moved = reason
        if isinstance(moved, _Moved):
            raise SourceMoving(moved.table, moved.file, _TRIES) from moved
        raise moved or AssertionError("not tried at all")

    def _once(self, question: Question, statement: Statement, spark: SparkSession, held: ExitStack) -> Answer:
        pinned = self.pinned(held)
        planned: Planned | None = None
        try:
            with self._advised(statement, pinned):
                planned = self._planned(question, statement, pinned, spark, held)
                with spark_errors():
                    frame = kept(planned.frame)
        except (JobFailed, NotPlain) as failed:
            _refuse_moved(pinned)
            if self._searched(failed, statement, pinned):
                return self._once(question, statement, spark, held)
            if question.freshness is Freshness.OFF or not self._on_base_tables(statement):
                raise
            # What the views could not answer the base table may, and if not, it says why.
            base = replace(question, freshness=Freshness.OFF)
            found = self._once(base, statement, spark, held)
            return replace(
                found, served=replace(found.served, reason=f"the views could not answer: {failed}")
            )
        _refuse_moved(pinned)
        return Answer(frame, planned.served)

    def _searched(self, failed: Exception, statement: Statement, pinned: Pinned) -> bool:
        """Whether it failed by a column that only few files have, and that is known now."""
        return names_no_column(failed) and self._cache.searched(statement, pinned)

    @contextmanager
    def _advised(self, statement: Statement, pinned: Pinned) -> Iterator[None]:
        """One file that can't be read is no reason to be left without any answer: say what is one."""
        try:
            yield
        except ReadFailed as failed:
            found = pinned.named_in(str(failed))
            if found is None:
                raise
            (table, _), span = found, pinned.span(*found)
            raise FileInTheWay(
                str(failed),
                table,
                None if span is None else (iso(span[0]), iso(span[1])),
                self._stored_instead(statement),
                timed=self._project.catalog.tables[table].time_column is not None,
            ) from failed

    def _stored_instead(self, statement: Statement) -> list[str]:
        """The views that were asked, or might be in place of a base table."""
        catalog, names = self._project.catalog, statement.names
        if len(names) > 1 or names[0] in catalog.views:
            return names if all(name in catalog.views for name in names) else []
        return [view.name for view in self._cache.candidates(names[0])][:1]

    def _on_base_tables(self, statement: Statement) -> bool:
        return all(name in self._project.catalog.tables for name in statement.names)

    def _planned(
        self, question: Question, statement: Statement, pinned: Pinned, spark: SparkSession, held: ExitStack
    ) -> Planned:
        with spark_errors():
            planner = Planner(
                self._project,
                self._cache,
                pinned,
                spark,
                held,
                question.freshness,
                question.max_staleness,
            )
            return planner.plan(statement)


class _Moved(Exception):
    """A file that was read is no longer the one that was listed."""

    def __init__(self, table: str, file: str) -> None:
        super().__init__(file)
        self.table = table
        self.file = file


def _refuse_moved(pinned: Pinned) -> None:
    changed = pinned.changed()
    if changed is not None:
        raise _Moved(*changed)

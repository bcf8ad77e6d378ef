"""A query answered: planned, read, and handed out only once nothing that was read had changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from mv_assets.buckets import iso
from mv_assets.config.values import duration_of
from mv_assets.errors import Refused
from mv_assets.query.errors import FileInTheWay, QueryRefused, SourceMoving
from mv_assets.query.execute.planner import Planned, Planner
from mv_assets.query.execute.relations import Relations
from mv_assets.query.execute.served import Served
from mv_assets.query.match.statement import Statement, statement_of
from mv_assets.query.route.eligibility import Freshness
from mv_assets.query.route.pinned import Maps, Pinned
from mv_assets.query.route.schema_cache import SchemaCache
from mv_assets.run.opened import OpenProject
from mv_assets.spark.connect import is_client
from mv_assets.spark.errors import JobFailed, ReadFailed
from mv_assets.spark.failures import names_no_column, spark_errors
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.state.errors import LeaseExpired

_TRIES = 3
_MS = timedelta(milliseconds=1)


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

    @classmethod
    def of(cls, text: str, freshness: str, max_staleness: str | timedelta | None) -> Self:
        """A query as people ask it.

        Raises:
            Refused: an argument has no such value.

        """
        if freshness not in list(Freshness):
            known = ", ".join(each.value for each in Freshness)
            raise Refused(f"freshness {freshness!r} is not known; it is one of {known}")
        if max_staleness is not None and freshness != Freshness.BOUNDED:
            raise Refused("max_staleness is for freshness='bounded'; leave it out")
        return cls(text, Freshness(freshness), None if max_staleness is None else _bound(max_staleness))


def _bound(max_staleness: str | timedelta) -> int:
    try:
        bound = max_staleness // _MS if isinstance(max_staleness, timedelta) else duration_of(max_staleness)
    except ValueError as error:
        raise Refused(f"max_staleness: {error}") from None
    if bound <= 0:
        raise Refused("max_staleness is no time at all; for an answer that is not stale, ask strict")
    return bound


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
        with self._session(spark) as own, self.pinned() as pinned:
            try:
                with self._advised(statement, pinned):
                    return self._served(question, statement, pinned, own)
            except JobFailed as failed:
                if not self._searched(failed, statement, pinned):
                    raise
            with self.pinned() as again:
                return self._served(question, statement, again, own)

    def _served(
        self, question: Question, statement: Statement, pinned: Pinned, spark: SparkSession
    ) -> Served:
        with self._planned(question, statement, pinned, spark, explained=True) as planned:
            return planned.served

    def pinned(self) -> Pinned:
        """The tables and maps as they are from now on, for one try."""
        return Pinned(self._project, self._maps)

    def _statement(self, question: Question) -> Statement:
        catalog = self._project.catalog
        statement = statement_of(question.text, [*catalog.tables, *catalog.views], catalog.functions)
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
                return self._once(question, statement, spark)
            except (_Moved, LeaseExpired) as reason:
                moved = reason
        if isinstance(moved, _Moved):
            raise SourceMoving(moved.table, moved.file, _TRIES) from moved
        raise moved or AssertionError("not tried at all")

    def _once(self, question: Question, statement: Statement, spark: SparkSession) -> Answer:
        with self.pinned() as pinned:
            try:
                answer = self._computed(question, statement, pinned, spark)
            except (JobFailed, NotPlain) as failed:
                _refuse_moved(pinned)
                if self._searched(failed, statement, pinned):
                    return self._once(question, statement, spark)
                if question.freshness is Freshness.OFF or not self._on_base_tables(statement):
                    raise
                # What the views could not answer the base table may, and if not, it says why.
                found = self._once(replace(question, freshness=Freshness.OFF), statement, spark)
                reason = f"the views could not answer: {failed}"
                return replace(found, served=replace(found.served, reason=reason))
            _refuse_moved(pinned)
            return answer

    def _computed(
        self, question: Question, statement: Statement, pinned: Pinned, spark: SparkSession
    ) -> Answer:
        with self._advised(statement, pinned), self._planned(question, statement, pinned, spark) as planned:
            return Answer(_kept(planned.frame), planned.served)

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

    @contextmanager
    def _planned(
        self,
        question: Question,
        statement: Statement,
        pinned: Pinned,
        spark: SparkSession,
        *,
        explained: bool = False,
    ) -> Iterator[Planned]:
        """The plan of one try; its frame can be computed while the block runs."""
        relations = Relations(self._project, pinned, spark, self._cache.of_queries)
        with relations, spark_errors():
            freshness, max_staleness = question.freshness, question.max_staleness
            planner = Planner(
                self._project, self._cache, pinned, relations, freshness, max_staleness, explained=explained
            )
            yield planner.plan(statement)


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


def _kept(frame: DataFrame) -> DataFrame:
    """The rows of a frame, computed now, and independent of the files that they were read from."""
    made = frame.localCheckpoint()
    if is_client(frame):
        # PySpark looks for them in the session that was made first, where a server does not have them.
        own = frame.sparkSession
        made._session = own  # noqa: SLF001
        made._plan._spark_session = own  # type: ignore[attr-defined]  # noqa: SLF001
    return made

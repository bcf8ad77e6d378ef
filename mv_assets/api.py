"""`mv_assets.sql`: a query answered in the caller's own Spark."""

from __future__ import annotations

import os
import weakref
from datetime import timedelta
from pathlib import Path
from threading import Lock

from pyspark.sql import DataFrame, SparkSession

from mv_assets.config import Spark
from mv_assets.project import Project, file_named
from mv_assets.query.errors import QueryRefused
from mv_assets.query.execute.answer import Question
from mv_assets.query.execute.planner import UTC
from mv_assets.query.match.statement import statement_of
from mv_assets.query.route.eligibility import Freshness
from mv_assets.spark.connect import is_client
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.session import Engine, borrowed
from mv_assets.views.catalog import Catalog

# With other values than these, Spark reads a query otherwise than views are matched with it.
_READING = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
}
_ZONE, _ANSI, _CASE = "spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive"


# By the Spark, the project file, and which state of that file it was.
_READY: dict[tuple[str, str], tuple[tuple[int, int], Project]] = {}
_LOCK = Lock()


def sql(
    spark: SparkSession,
    query: str,
    project: str | os.PathLike[str] | None = None,
    freshness: str = "strict",
    max_staleness: str | timedelta | None = None,
) -> DataFrame:
    """Answer a SELECT over the tables and views of a project.

    The rows, names and types are those that the base tables give; views are read where they can be trusted,
    and only make it faster. With `strict`, that is as of a listing taken for this query; with `bounded`, the
    views' part may be as old as `max_staleness` ("2h", or what each view declares); `off` reads no view;
    `stored` gives the rows of a view as they were last committed. Nothing is lazy: when this returns, the
    rows are computed, kept by Spark, and no file that was read had changed meanwhile.

    The query means what it means in the caller's session. Views are computed in UTC, with the project's ANSI
    mode, and regardless of case; a session that is set otherwise is answered from the base tables, and
    can't ask a view by its name, except for what is `stored`.

    Nothing is changed in the caller's session: the frame belongs to a session of its own. On a Connect server
    it can be collected, written and transformed, but not joined with frames of the caller's session.

    Args:
        spark: the caller's session, on a Spark in this process or on a Connect server.
        query: one SELECT, in Spark SQL, over the project's tables and views by their plain names.
        project: the project file; by default the one that MV_ASSETS_PROJECT names.
        freshness: strict, bounded, off or stored.
        max_staleness: for `bounded`, in place of what the views declare.

    Raises:
        Refused: no project is named, or an argument has no such value.
        ProjectError: the project file has mistakes.
        QueryRefused: the query is no SELECT over the project's tables and views.
        JobFailed: Spark can't compute it.
        SourceMoving: files changed under it each time it was tried.

    """
    # Before a project is opened for what can't be answered.
    Question.of(query, freshness, max_staleness)
    ready = _ready(spark, file_named(project))
    declared = ready.catalog.project.spark
    with spark_errors():
        _refuse_other_readings(spark)
        otherwise = _otherwise(spark, declared)
    if not otherwise:
        return ready.query(query, freshness=freshness, max_staleness=max_staleness).frame
    asked = _on_base_tables(query, freshness, ready.catalog, otherwise)
    # Never used again: the next query would set its zone, under the frame that this one hands out.
    with Engine(declared, start=borrowed(spark)).session() as own:
        with spark_errors():
            for key, value in otherwise.items():
                own.conf.set(key, value)
        return ready.query(query, freshness=asked, session=own).frame


def _on_base_tables(query: str, freshness: str, catalog: Catalog, otherwise: dict[str, str]) -> str:
    """How fresh an answer is asked for in a session that is set otherwise than the views'."""
    statement = statement_of(query, [*catalog.tables, *catalog.views], catalog.functions)
    views = [name for name in statement.names if name in catalog.views]
    if views and freshness != Freshness.STORED:
        key, value = next(iter(otherwise.items()))
        raise QueryRefused(
            f"view {views[0]} is not computed with {key} = {value}, as the session has it; ask in a session "
            "with the project's settings (the zone is UTC), or ask for what is stored"
        )
    return freshness if views else Freshness.OFF.value


def _refuse_other_readings(spark: SparkSession) -> None:
    for key, value in _READING.items():
        found = str(spark.conf.get(key))
        if found.lower() != value.lower():
            raise QueryRefused(
                f"the session has {key} = {found}, with which the query may mean something else than here; "
                f"set it to {value}, or ask Spark itself"
            )


def _otherwise(spark: SparkSession, declared: Spark) -> dict[str, str]:
    """What the caller's session has set that gives a query another meaning than a view's SQL has."""
    wanted = {_ANSI: declared.conf.get(_ANSI, "true").strip().lower(), _CASE: "false"}
    found = {key: str(spark.conf.get(key)) for key in (_ZONE, *wanted)}
    same = [key for key, value in wanted.items() if found[key].lower() == value]
    if found[_ZONE].lower() in UTC:
        same.append(_ZONE)
    return found if len(same) < len(found) else {}


def _ready(spark: SparkSession, file: Path) -> Project:
    """The project as its file is now; made ready once."""
    key = _identity(spark), str(file)
    try:
        known = file.stat()
        state = known.st_mtime_ns, known.st_size
    except OSError:
        # Its reader says what is wrong with it.
        state = 0, 0
    with _LOCK:
        replaced = _READY.get(key)
        if replaced is not None and replaced[0] == state:
            return replaced[1]
        _READY[key] = state, Project.open(file, spark=spark, who="mv_assets.sql")
        if is_client(spark):
            weakref.finalize(spark, _forget, key)
        if replaced is not None:
            # Queries that still run on it keep the connections that they have.
            replaced[1].close_state()
        return _READY[key][1]


def _forget(key: tuple[str, str]) -> None:
    """Let go of what was made ready for a session that is gone; frames of it keep what they need."""
    ready = _READY.pop(key, None)
    if ready is not None:
        ready[1].close_state()


def _identity(spark: SparkSession) -> str:
    with spark_errors():
        if is_client(spark):
            return str(spark.session_id)  # type: ignore[attr-defined]
        return str(spark.sparkContext.applicationId)

"""A view ready for use: what was declared, its SQL as analysed, and the hash that defines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from mv_assets.buckets import Buckets
from mv_assets.config import MaterializedView, Table
from mv_assets.spark_sql.merging import Merging
from mv_assets.spark_sql.scope import Source
from mv_assets.state import health
from mv_assets.state.model import Declaration, Snapshot
from mv_assets.state.store import Store
from mv_assets.views.admission import ViewSql

# Raise it when the engine would compute other rows from the same SQL and the same files.
ENGINE_FORMAT = 1
# The same for SQL that reaches inside columns of tables which may find these by id: it was given nulls.
INSIDE_FORMAT = 2


@dataclass(frozen=True, slots=True)
class View:
    """A declared view and its definition."""

    declared: MaterializedView
    sql: ViewSql
    definition: str

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def buckets(self) -> Buckets:
        return self.declared.buckets

    @property
    def declaration(self) -> Declaration:
        return Declaration(self.name, self.definition, self.declared.bucket, self.declared.start)

    @property
    def merging(self) -> Merging | None:
        """How files that only came are merged into what is stored, if they are."""
        found = self.sql.merging
        if isinstance(found, str) or (found.floats and not self.declared.merge_floats):
            return None
        return found

    @property
    def freezes(self) -> bool:
        return self.declared.on_base_delete == "freeze"

    def wrong(self, snapshot: Snapshot, now: int) -> health.Wrong:
        """What is wrong with it, by its map."""
        return health.wrong(snapshot, self.declared.buffer, self.declared.stall_after, now)

    def kept_in(self, store: Store, now: int) -> tuple[Snapshot, health.Wrong]:
        """Its map, and what is wrong by that: as of the last look, and whether this project may write it.

        Raises:
            UnknownView: nobody refreshed it yet.

        """
        snapshot, history = store.snapshot(self.name), store.history(self.name)
        fenced = health.fenced(snapshot.header, history, self.declaration)
        return snapshot, self.wrong(snapshot, now).met(fenced)


def unseen(table: Table) -> Source:
    """A table as declared, its columns not looked at."""
    return Source(table.name, None, table.time_column, table.time_unit)


def may_find_by_id(table: Table) -> bool:
    """Whether its files' columns may be found by id: of a Delta table, only its log knows."""
    return table.format in ("delta", "iceberg")


# Settings of Spark SQL that say how fast, or where, but not what.
_NO_MATTER = (
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.catalog",
    "spark.sql.codegen.",
    "spark.sql.execution.",
    "spark.sql.extensions",
    "spark.sql.files.",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.shuffle.",
    "spark.sql.ui.",
    "spark.sql.warehouse.",
)


def definition_of(
    declared: MaterializedView,
    sql: ViewSql,
    base: Source,
    conf: Mapping[str, str] | None = None,
    *,
    by_id: bool = False,
) -> str:
    """The hash of all that decides which rows a bucket has, but the inputs themselves.

    A table counts by its name: where its files are is no matter, what they hold is in the fingerprints.
    Types of columns are inputs too, as they can go back to what they were, which a definition can't.
    `by_id`: a table of the view may find its columns by id.
    """
    parts = {
        "engine": INSIDE_FORMAT if by_id and sql.reaches_inside else ENGINE_FORMAT,
        "sql": sql.sql,
        "columns": sql.columns,
        "bucket": declared.bucket,
        "time_column": declared.time_column,
        "base": [base.name, base.time_column, base.time_unit],
        "dimensions": sorted(declared.dimensions),
        "on_base_delete": declared.on_base_delete,
        "conf": sorted((key, value) for key, value in (conf or {}).items() if _matters(key)),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _matters(key: str) -> bool:
    return key.startswith("spark.sql.") and not key.startswith(_NO_MATTER)

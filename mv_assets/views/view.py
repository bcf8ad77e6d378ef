"""A view ready for use: what was declared, its SQL or function, and the hash that defines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mv_assets.buckets import Buckets
from mv_assets.config import MaterializedView, Table
from mv_assets.config.models import BaseTable, FurtherTable
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.merge import Merging
from mv_assets.spark_sql.scope import Source
from mv_assets.state import health
from mv_assets.state.model import Declaration, Snapshot
from mv_assets.state.store import Store
from mv_assets.views.admission import ViewSql
from mv_assets.views.python import SqlFunction, ViewFunction

# What computes a view.
Body = ViewSql | ViewFunction
# Raise it when the engine would compute other rows from the same SQL and the same files.
ENGINE_FORMAT = 1
# The same for SQL that reaches inside columns of tables which may find these by id: it was given nulls.
INSIDE_FORMAT = 2


@dataclass(frozen=True, slots=True)
class Window:
    """A table of which a bucket reads a stretch around its own time.

    `waits` if the bucket is not due before that stretch is known to be there.
    """

    table: str
    before: int = 0
    after: int = 0
    waits: bool = True

    @property
    def is_bucket(self) -> bool:
        """Whether the stretch is the bucket itself."""
        return not (self.before or self.after)


@dataclass(frozen=True, slots=True)
class View:
    """A declared view and its definition."""

    declared: MaterializedView
    body: Body
    definition: str

    @property
    def name(self) -> str:
        return self.declared.name

    @property
    def buckets(self) -> Buckets:
        return self.declared.buckets

    @property
    def declaration(self) -> Declaration:
        return Declaration(self.name, self.definition, self.buckets.text, self.declared.start)

    @property
    def select(self) -> ViewSql:
        """Its SQL as analysed; only views that have one are asked for it."""
        if isinstance(self.body, ViewFunction):
            raise TypeError(f"view {self.name} is a function")
        return self.body

    @property
    def source(self) -> Source:
        """What the SQL of others knows of it."""
        columns = None if self.body.columns is None else dict.fromkeys(self.body.columns)
        time, zone = self.declared.time_column, self.buckets.zone
        return Source(self.name, columns, time, grain=self.body.grain, zone=zone)

    @property
    def windows(self) -> tuple[Window, ...]:
        """What a bucket reads of each table with a time; the base's first."""
        base = self.declared.base
        further = (Window(each.table, each.from_, each.to, each.wait) for each in self.declared.with_)
        return (Window(base.table, base.from_, base.to), *further)

    @property
    def buffer(self) -> int:
        """How long after its end a bucket is first computed: once all that it waits for can be there."""
        return self.declared.buffer + max(window.after for window in self.windows if window.waits)

    @property
    def closes(self) -> int | None:
        """How long after its end a bucket counts as complete although the data stops before."""
        closes = self.declared.closes
        return None if closes is None else closes + self.buffer - self.declared.buffer

    @property
    def by_bucket(self) -> bool:
        """Whether it is meant over the rows of each bucket's windows, not over the whole table."""
        return self.declared.scope == "bucket"

    @property
    def merging(self) -> Merging | None:
        """How files that only came are merged into what is stored, if they are."""
        found = self.body.merging
        if isinstance(found, Refusal) or (found.floats and not self.declared.merge_floats):
            return None
        return found

    @property
    def freezes(self) -> bool:
        return self.declared.on_base_delete == "freeze"

    def wrong(self, snapshot: Snapshot, now: int) -> health.Wrong:
        """What is wrong with it, by its map."""
        return health.wrong(snapshot, self.buffer, self.declared.stall_after, now)

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
    body: Body,
    sources: Sequence[Source],
    conf: Mapping[str, str] | None = None,
    *,
    by_id: bool = False,
    functions: Mapping[str, SqlFunction] | None = None,
) -> str:
    """The hash of all that decides which rows a bucket has, but the inputs themselves.

    A table counts by its name: where its files are is no matter, what they hold is in the fingerprints.
    Types of columns are inputs too, as they can go back to what they were, which a definition can't.
    `by_id`: a table of the view may find its columns by id.
    """
    base, *further = sources
    parts: dict[str, Any] = {
        "engine": INSIDE_FORMAT if by_id and body.reaches_inside else ENGINE_FORMAT,
        **_defining(body),
        "bucket": declared.bucket,
        "time_column": declared.time_column,
        "base": [base.name, base.time_column, base.time_unit],
        "dimensions": sorted(declared.joined),
        "on_base_delete": declared.on_base_delete,
        "conf": sorted((key, value) for key, value in (conf or {}).items() if _matters(key)),
    }
    # What is not given is left out: views that never had it keep their definitions.
    if declared.scope == "bucket":
        windows = [[*_window(declared.base)], *([*_window(each)] for each in declared.with_)]
        times = [[source.name, source.time_column, source.time_unit] for source in further]
        parts |= {"scope": "bucket", "windows": windows, "with": times}
    if declared.timezone != "UTC":
        parts |= {"timezone": declared.timezone}
    if body.calls:
        parts |= {"functions": [(functions or {})[name].definition for name in sorted(body.calls)]}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _defining(body: Body) -> dict[str, Any]:
    if isinstance(body, ViewFunction):
        return {"python": body.code, "version": body.version}
    return {"sql": body.sql, "columns": body.columns}


def _window(declared: BaseTable | FurtherTable) -> tuple[str, int, int]:
    return declared.table, declared.from_, declared.to


def _matters(key: str) -> bool:
    return key.startswith("spark.sql.") and not key.startswith(_NO_MATTER)

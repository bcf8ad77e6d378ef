"""A lake whose views Spark really computes, checked by an engine of another make."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sqlglot

from mv_assets.config import Spark
from mv_assets.local_days import LocalDays
from mv_assets.observe.observation import Observed
from mv_assets.plan import planner
from mv_assets.plan.planner import Work
from mv_assets.plan.scope import Scope
from mv_assets.run import executor
from mv_assets.run.opened import OpenProject
from mv_assets.run.refresher import Refresher, Report
from mv_assets.run.staging import Staging
from mv_assets.run.warehouse import Contents, Warehouse
from mv_assets.spark.session import Engine
from mv_assets.state import rules
from mv_assets.state.model import BUCKET, CurrentInputs, Outcome, SecondLook, State
from mv_assets.views.python import ViewFunction
from mv_assets.views.view import View
from mv_assets_tests.support.lake import EPOCH, Lake, observation_of
from mv_assets_tests.support.memory_table import DAY


@dataclass
class SparkLake(Lake):
    """A lake with Spark and a warehouse."""

    engine: Engine = field(default_factory=lambda: Engine(Spark()))
    # The views' SQL for DuckDB, where it can't be translated.
    oracle: Mapping[str, str] = field(default_factory=dict)

    # What happens while a job runs: before it reads, and after it wrote.
    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None
    # What happens while a refresh waits.
    idle: Callable[[], None] | None = None
    house: type[Eventful] = field(default_factory=lambda: Eventful)
    storehouse: str = "warehouse"

    @property
    def warehouse(self) -> Warehouse:
        return self.house(str(self.folder / self.storehouse), self)

    def open(self) -> OpenProject:
        return OpenProject(
            self.catalog, self.tables, self.store, self.manager, self.engine, self.warehouse, self.clock
        )

    def run(self, *names: str, scope: Scope | None = None) -> dict[str, Report]:
        """What `mv-assets refresh` does; any waiting moves the clock."""

        def sleep(seconds: float) -> None:
            self.clock.now += int(seconds * 1000) + 1
            _happen(self.idle)

        reports = Refresher(self.open(), scope, sleep=sleep).run(names or None)
        return {report.view.name: report for report in reports}

    def outcomes(self, name: str = "v", scope: Scope | None = None) -> dict[int, str]:
        """A refresh; what became of each day of one view."""
        report = self.run(name, scope=scope)[name]
        if report.error is not None:
            raise report.error
        return {bucket // DAY: result.outcome.value for bucket, result in sorted(report.results.items())}

    def carry_out(self, observed: Observed) -> dict[int, Outcome | str]:
        done = executor.carry_out(self.open(), observed, planner.plan(observed))
        return {result.bucket // DAY: _said(result.outcome) for _, results in done for result in results}

    def compute(
        self,
        observed: Observed,
        work: Work,
        inputs_now: Callable[[], Mapping[int, CurrentInputs]] | None = None,
    ) -> dict[int, Outcome | str]:
        observation, version = observation_of(observed), observed.header.version
        project = self.open()
        with Staging(
            project, observation, project.second_looks(observation.view_inputs), version, work
        ) as staging:
            if inputs_now is not None:
                staging._look_again = lambda buckets: SecondLook({b: inputs_now()[b] for b in buckets})  # type: ignore[method-assign]
            staging.stage()
            return {result.bucket // DAY: result.outcome for result in staging.commit()}

    def stored(self, name: str = "v", *, only_valid: bool = True) -> pa.Table:
        """The rows of a view as its map names them, read without Spark."""
        snapshot, tables = self.store.snapshot(name), []
        named: dict[str, list[int]] = {}
        for bucket, row in snapshot.rows.items():
            if row.generation is not None and (
                not only_valid or rules.effective_state(row, snapshot.header) is State.VALID
            ):
                named.setdefault(row.generation, []).append(bucket)
        for generation, files in self.store.files(name, named).items():
            for file in files:
                with self.warehouse.open(file.path) as opened:
                    rows = pq.read_table(opened)
                kept = pc.is_in(rows[BUCKET], pa.array(named[generation], pa.int64()))
                tables.append(rows.filter(kept).drop_columns([BUCKET]))
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})

    def check(self, *, complete: bool = True, but: Container[str] = ()) -> None:
        """Every VALID bucket of every view has the rows that DuckDB computes from the same files.

        With `complete`, every bucket that should have rows is VALID too.
        """
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name in self.tables:
                self.tell(connection, name)
            for view in self.catalog.views.values():
                sql = self.duckdb(view)
                if sql is None or view.name in but or (not complete and not self._valid(view)):
                    continue
                if view.by_bucket:
                    rows = sorted(self.store.snapshot(view.name).rows.items())
                    # Where there is nothing, nothing is computed, whatever the SQL would give.
                    filled = [b for b, row in rows if row.inputs and not row.inputs.empty]
                    sql = self.bucket_by_bucket(view, sql, filled)
                # As a table: views on it may be in another zone.
                kind = "VIEW" if view.buckets.zone is None else "TABLE"
                connection.execute(f"SET TimeZone = '{view.declared.timezone}'")
                connection.execute(f"CREATE {kind} {view.name} AS {sql}")
                expected = connection.sql(f"SELECT * FROM {view.name}").to_arrow_table()
                self._compare(view, by_bucket(view, expected), expected.column_names, complete=complete)

    def tell(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Have DuckDB know what a table holds."""
        files = [str(path) for path in sorted((self.folder / name).rglob("*.parquet")) if _readable(path)]
        if files:
            read = f"read_parquet({files}, union_by_name = true)"
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {read}")

    def duckdb(self, view: View) -> str | None:
        """A view as DuckDB computes it; of a function, only the test can say how."""
        if view.name in self.oracle or isinstance(view.body, ViewFunction):
            return self.oracle.get(view.name)
        return sqlglot.transpile(view.select.bare, "spark", "duckdb")[0]

    def bucket_by_bucket(self, view: View, sql: str, filled: Sequence[int]) -> str:
        """A view that is meant bucket by bucket, as one query: each bucket's over the rows of its windows."""
        parts = []
        for bucket in filled or [view.declared.start or 0]:
            end = view.buckets.next(bucket)
            read = []
            for window in view.windows:
                span = view.buckets.window(bucket, window.before, window.after)
                inside = " AND ".join(
                    f'"{self._time_of(window.table)}" {sign} {timestamp(edge)}'
                    for sign, edge in zip((">=", "<"), span, strict=True)
                )
                read.append(f"{window.table} AS (SELECT * FROM main.{window.table} WHERE {inside})")
            query = sql.replace("$bucket_start", timestamp(bucket)).replace("$bucket_end", timestamp(end))
            time = f'"{view.declared.time_column}"'
            here = f"{time} >= {timestamp(bucket)} AND {time} < {timestamp(end)}"
            parts.append(f"(WITH {', '.join(read)} SELECT * FROM ({query}) WHERE {here})")
        return " UNION ALL ".join(parts)

    def _time_of(self, table: str) -> str:
        if table in self.catalog.views:
            return self.catalog.view(table).declared.time_column
        return self.catalog.tables[table].time_column or ""

    def _valid(self, view: View) -> set[int]:
        """Buckets that agree with the files; frozen ones and those of another definition need not."""
        if view.name not in self.store.views():
            return set()
        header, rows = (snapshot := self.store.snapshot(view.name)).header, snapshot.rows.values()
        if header.definition != view.definition:
            return set()
        found = {r.bucket for r in rows if rules.effective_state(r, header) is State.VALID and not r.frozen}
        for window in view.windows:
            below = self.catalog.views.get(window.table)
            if below is not None:
                # What an upstream bucket is now has not come down here yet.
                valid, start = self._valid(below), below.declared.start or 0
                spans = {b: view.buckets.window(b, window.before, window.after) for b in found}
                parts = {
                    b: below.buckets.between(max(first, start), end) for b, (first, end) in spans.items()
                }
                found = {bucket for bucket in found if valid.issuperset(parts[bucket])}
        return found

    def _compare(
        self, view: View, expected: Mapping[int, Counter[Any]], columns: Sequence[str], *, complete: bool
    ) -> None:
        found = by_bucket(view, self.stored(view.name), columns)
        snapshot = self.store.snapshot(view.name)
        valid = self._valid(view)
        wrong = {
            view.buckets.key(b): (dict(expected.get(b, {})), dict(found.get(b, {})))
            for b in sorted(valid)
            if not same(expected.get(b, Counter()), found.get(b, Counter()))
        }
        assert not wrong, f"{view.name}: expected, found: {wrong}"
        counted = {b: sum(rows.values()) for b, rows in found.items() if b in valid}
        recorded = {b: snapshot.rows[b].rows for b in valid if snapshot.rows[b].rows}
        assert counted == recorded, f"{view.name}: rows found and rows recorded"
        if complete:
            start, end = snapshot.header.start, 1 + (snapshot.header.source_end or -1)
            due = [b for b in expected if start <= b and view.buckets.next(b) <= end]
            missing = [view.buckets.key(bucket) for bucket in due if bucket not in valid]
            assert not missing, f"{view.name}: not VALID: {missing}"


@dataclass(frozen=True)
class Eventful(Warehouse):
    """A warehouse in which things happen when a job begins and when it has written."""

    lake: SparkLake

    def place(self, view: str, generation: str) -> str:
        _happen(self.lake.before)
        return super().place(view, generation)

    def contents(self, view: str, generation: str) -> Contents:
        found = Warehouse(self.root).contents(view, generation)
        _happen(self.lake.after)
        return found


def timestamp(time: int) -> str:
    """A time as DuckDB reads it."""
    return f"TIMESTAMPTZ '{EPOCH + timedelta(milliseconds=time)}'"


def _readable(path: Path) -> bool:
    """Whether a file is whole; what VALID buckets hold does not come from those that are not."""
    try:
        pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError):
        return False
    return True


def _happen(event: Callable[[], None] | None) -> None:
    if event is not None:
        event()


def _said(outcome: Outcome) -> Outcome | str:
    return outcome.value if outcome in (Outcome.FAILED, Outcome.REVERTED) else outcome


def by_bucket(view: View, rows: pa.Table, columns: Sequence[str] | None = None) -> dict[int, Counter[Any]]:
    """Rows as a multiset for each bucket, their columns in some order."""
    found: dict[int, Counter[Any]] = {}
    time = view.declared.time_column
    names = list(view.body.columns or columns or rows.column_names)
    for row in rows.to_pylist():
        plain = {name: plainly(row[name]) for name in names}
        at = math.floor(plain[time])
        if view.buckets.zone is not None and not isinstance(row[time], datetime):
            at = LocalDays(view.buckets.zone).start(at // DAY)
        found.setdefault(view.buckets.floor(at), Counter())[tuple(plain.values())] += 1
    return found


def plainly(value: Any) -> Any:
    """A value as both engines would write it: times as milliseconds, numbers by value."""
    match value:
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=EPOCH.tzinfo)
            return (aware - EPOCH).total_seconds() * 1_000
        case date():
            return (value - EPOCH.date()).days * DAY
        case Decimal():
            return value.normalize()
        case dict():
            return tuple((key, plainly(inner)) for key, inner in value.items())
        case list() | tuple():
            return tuple(map(plainly, value))
    return value


def same(expected: Counter[Any], found: Counter[Any]) -> bool:
    """Whether two multisets of rows are equal; floats to nine digits."""
    if expected == found:
        return True
    left, right = (sorted(rows.elements(), key=repr) for rows in (expected, found))
    return len(left) == len(right) and all(map(_alike, left, right))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return bool(one == other)

"""A lake of real Parquet files with views on it, looked at and refreshed step by step; all but Spark."""

from __future__ import annotations

import itertools
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.config import DeclaredProject, Function, MaterializedView, ParquetTable
from mv_assets.config.file import Draft
from mv_assets.config.tables import FORMATS
from mv_assets.errors import MvError
from mv_assets.observe.maps import ImaginedMaps, StoredMaps
from mv_assets.observe.observation import Observation, Observed
from mv_assets.observe.watch import Watch
from mv_assets.plan import planner
from mv_assets.plan.planner import Plan, Work
from mv_assets.state import rules
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import (
    Attempt,
    CurrentInputs,
    Outcome,
    PartitionRow,
    SecondLook,
    Segment,
    Snapshot,
    Staged,
    State,
)
from mv_assets.state.rules import Due
from mv_assets.state.store import Store
from mv_assets.tables.listing import Listing, OnRead, Rewrite, Table, unnoticed
from mv_assets.tables.open import open_table
from mv_assets.tables.parquet.table import ParquetFiles, ParquetTableVersion
from mv_assets.views.catalog import Catalog, prepare
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.memory_table import DAY

_ids = itertools.count(1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOURLY = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY ALL"


def day(number: int, hour: float = 12) -> datetime:
    """A time on the given day after the epoch."""
    return EPOCH + timedelta(days=number, hours=hour)


def through(first: int, last: int | None = None) -> list[datetime]:
    """Times from the first to the last millisecond of some days."""
    end = day((first if last is None else last) + 1, 0) - timedelta(milliseconds=1)
    return [day(first, 0), end]


def view(name: str = "v", **given: Any) -> MaterializedView:
    defaults = {"base": "events", "sql": HOURLY, "time_column": "hour", "bucket": "1d", "start": "1970-01-01"}
    return MaterializedView.model_validate({"name": name, **defaults, **given})


@dataclass(frozen=True, slots=True)
class RewritingTable(ParquetFiles):
    """A Parquet folder that says, as table formats do, which files were replaced without a change of rows."""

    rewrites: list[Rewrite] = field(default_factory=list)

    @staticmethod
    def of(table: Table, rewrites: list[Rewrite]) -> RewritingTable:
        assert isinstance(table, ParquetFiles)
        known = {each.name: getattr(table, each.name) for each in fields(ParquetFiles)}
        return RewritingTable(**known, rewrites=rewrites)

    def current(self) -> RewritingVersion:
        found = ParquetFiles.current(self)
        known = {each.name: getattr(found, each.name) for each in fields(found)}
        return RewritingVersion(**known, rewrites=tuple(self.rewrites))


@dataclass(frozen=True, slots=True)
class RewritingVersion(ParquetTableVersion):
    rewrites: tuple[Rewrite, ...] = ()

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        return replace(ParquetTableVersion.listing(self, on_read), rewrites=self.rewrites)


@dataclass
class Lake:
    """One deployment over `events` and other tables. All files are old by its clock."""

    folder: Path
    store: Store
    views: Sequence[MaterializedView] = field(default_factory=lambda: [view()])
    dimensions: Sequence[str] = ()
    # Further tables with a time.
    further: Sequence[str] = ()
    functions: Sequence[Function] = ()
    # Where the packages are that views and functions name.
    code: Path | None = None
    table: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=lambda: Clock(time.time_ns() // 1_000_000 + 3_600_000))

    def __post_init__(self) -> None:
        self.manager = PartitionManager(self.store, clock=self.clock, who="test")
        # What each table tells of; a test may have it forget.
        self.rewrites: defaultdict[str, list[Rewrite]] = defaultdict(list)
        for name in ("events", *self.further, *self.dimensions):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.declare(*self.views)

    def declare(self, *views: MaterializedView) -> None:
        """Declare other views instead, as a new deployment would."""
        given = {"name": "events", "path": str(self.folder / "events"), "time_column": "at", **self.table}
        events = FORMATS[self.table.get("format", "parquet")].model_validate(given)
        timed = [
            ParquetTable(name=name, path=str(self.folder / name), time_column="at") for name in self.further
        ]
        others = [ParquetTable(name=name, path=str(self.folder / name)) for name in self.dimensions]
        self.project = DeclaredProject(
            tables=(events, *timed, *others), views=tuple(views), functions=tuple(self.functions)
        )
        self.catalog: Catalog = prepare(Draft("test", self.project, folder=self.code), schemas=False)
        self.tables = {
            name: open_table(table, self.store.database, self.clock)
            for name, table in self.catalog.tables.items()
        }
        for name in self.rewrites:
            self.tables[name] = RewritingTable.of(self.tables[name], self.rewrites[name])

    def write(self, name: str, times: Iterable[datetime], value: int = 0, table: str = "events") -> Path:
        """Write a file anew, as a writer that replaces it."""
        path = self.folder / table / name
        path.parent.mkdir(parents=True, exist_ok=True)
        listed = list(times)
        columns = {"at": pa.array(listed, pa.timestamp("us", "UTC")), "x": [value] * len(listed)}
        pq.write_table(pa.table(columns), path.with_suffix(".tmp~"))
        path.with_suffix(".tmp~").replace(path)
        return path

    def days(self, *numbers: int, table: str = "events") -> None:
        """A file of its own for each day."""
        for number in numbers:
            self.write(f"day-{number}.parquet", through(number), number, table)

    def compact(self, names: Sequence[str], *into: str, table: str = "events") -> None:
        """Put the rows of files into others, in the order of their times, and have the table say so."""
        folder = self.folder / table
        rows = pa.concat_tables([pq.read_table(folder / name) for name in names])
        if "at" in rows.column_names:
            rows = rows.sort_by("at")
        each = -(-len(rows) // len(into))
        self.replace(names, {name: rows.slice(at * each, each) for at, name in enumerate(into)}, table)

    def replace(self, names: Sequence[str], by: Mapping[str, pa.Table], table: str = "events") -> None:
        """Put other files in the place of some, and have the table say that their rows are the same."""
        before = self._segments(table)
        for name in names:
            self.remove(name, table)
        for name, rows in by.items():
            pq.write_table(rows, self.folder / table / name)
        after = self._segments(table)
        told = Rewrite(tuple(before[name] for name in names), tuple(after[name] for name in by))
        if table not in self.rewrites:
            self.tables[table] = RewritingTable.of(self.tables[table], self.rewrites[table])
        self.rewrites[table].append(told)

    def _segments(self, table: str) -> dict[str, Segment]:
        return {each.name: each for each in self.tables[table].current().listing().segments()}

    def remove(self, name: str, table: str = "events") -> bytes:
        path = self.folder / table / name
        content = path.read_bytes()
        path.unlink()
        return content

    def damage(self, name: str, table: str = "events") -> None:
        """Cut a file off in the middle."""
        path = self.folder / table / name
        os.truncate(path, path.stat().st_size // 2)

    def spoil(self, name: str, column: str) -> None:
        """Damage the values of one column; the footer and all other columns stay whole."""
        path = self.folder / "events" / name
        group = pq.ParquetFile(path).metadata.row_group(0)
        chunks = [group.column(at) for at in range(group.num_columns)]
        chunk = next(each for each in chunks if each.path_in_schema == column)
        start, size = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
        content = bytearray(path.read_bytes())
        content[start : start + size] = b"\xff" * size
        path.write_bytes(content)

    def watch(self) -> Watch:
        return Watch(self.catalog, self.tables, StoredMaps(self.store, self.manager), self.clock)

    def look(self, name: str = "v", *, whole: bool = False) -> Observed:
        """One round; what was observed of a view."""
        observed = self.watch().round(whole=whole)[name]
        if isinstance(observed, MvError):
            raise observed
        return observed

    def dry(self, name: str = "v", named: frozenset[int] = frozenset()) -> Observed:
        """A round that writes nothing."""
        watch = Watch(self.catalog, self.tables, ImaginedMaps(self.store, self.clock), self.clock)
        observed = watch.round(whole=True, named={name: named})[name]
        if isinstance(observed, MvError):
            raise observed
        return observed

    def planned(self, name: str = "v") -> list[tuple[str, list[int]]]:
        """A look, and the plan as (operation, days)."""
        return operations_of(planner.plan(self.look(name, whole=True)))

    def refresh(self, name: str | None = None) -> dict[int, Outcome | str]:
        """A round and all that its plans ask for, outcomes by day; of all views or of one."""
        outcomes: dict[int, Outcome | str] = {}
        for each in self.catalog.views:
            observed = self.look(each)
            if name in (None, each):
                outcomes = self.carry_out(observed)
        return outcomes

    def carry_out(self, observed: Observed) -> dict[int, Outcome | str]:
        plan, outcomes = planner.plan(observed), dict[int, Outcome | str]()
        for failing in plan.failing:
            attempt = Attempt(f"g{next(_ids)}", plan.version, (failing.planned,))
            self.manager.register(observed.view.declaration, attempt)
            self.manager.fail(observed.view.declaration, attempt, {failing.planned.bucket: failing.error})
            outcomes[failing.planned.bucket // DAY] = "failed"
        for work in plan.work:
            if work.operation is Due.REVERT:
                view_inputs = {p.bucket: CurrentInputs(p.inputs) for p in work.buckets}
                reverted = self.manager.revert(observed.view.declaration, view_inputs)
                outcomes |= {bucket // DAY: "reverted" for bucket in reverted}
            else:
                outcomes |= self.compute(observed, work)
        return outcomes

    def compute(
        self,
        observed: Observed,
        work: Work,
        inputs_now: Callable[[], Mapping[int, CurrentInputs]] | None = None,
    ) -> dict[int, Outcome | str]:
        """Register, stage (by counting files), look again and commit."""
        observation, name = observation_of(observed), observed.view.name
        attempt = Attempt(f"g{next(_ids)}", observation.snapshot.header.version, work.buckets)
        self.manager.register(observed.view.declaration, attempt)
        staged = {
            b: Staged(
                len(s := observation.view_inputs.segments(observation.buckets[b])), 100 * len(s), 1, tuple(s)
            )
            for b in attempt.buckets
        }

        def look_again() -> SecondLook:
            now = inputs_now() if inputs_now else current_inputs_of(self.dry(name, observation.named))
            return SecondLook({b: now[b] for b in attempt.buckets})

        decided = self.manager.commit(observed.view.declaration, attempt, staged, look_again)
        return {bucket // DAY: decision.outcome for bucket, decision in decided.items()}

    def converge(self) -> None:
        """Refresh until a whole round finds nothing to do."""
        for _ in range(50):
            before = [self.snapshot(name).header.version for name in self.catalog.views if self._known(name)]
            self.refresh()
            if before == [self.snapshot(name).header.version for name in self.catalog.views]:
                return
        raise AssertionError("the lake never comes to rest")

    def snapshot(self, name: str = "v") -> Snapshot:
        return self.store.snapshot(name)

    def row(self, number: int, name: str = "v") -> PartitionRow | None:
        return self.snapshot(name).rows.get(number * DAY)

    def state(self, number: int, name: str = "v") -> State:
        snapshot = self.snapshot(name)
        return rules.effective_state(snapshot.rows.get(number * DAY), snapshot.header)

    def states(self, *numbers: int, name: str = "v") -> str:
        """One letter a day: V, S or -."""
        letters = {State.VALID: "V", State.STALE: "S", State.VACANT: "-"}
        return "".join(letters[self.state(number, name)] for number in numbers)

    def reason(self, number: int, name: str = "v") -> str | None:
        row = self.row(number, name)
        return None if row is None else row.reason

    def watermark(self, name: str = "v") -> int:
        """W in whole days."""
        return self.snapshot(name).header.watermark // DAY

    def version(self, name: str = "v") -> int:
        return self.snapshot(name).header.version

    def _known(self, name: str) -> bool:
        return name in self.store.views()


def observation_of(observed: Observed) -> Observation:
    """What a look that listed its tables saw."""
    assert isinstance(observed, Observation)
    return observed


def current_inputs_of(observed: Observed) -> dict[int, CurrentInputs]:
    return {bucket: seen.current for bucket, seen in observation_of(observed).buckets.items()}


def operations_of(plan: Plan) -> list[tuple[str, list[int]]]:
    """A plan as (operation, days)."""
    return [(work.operation.value, [p.bucket // DAY for p in work.buckets]) for work in plan.work]

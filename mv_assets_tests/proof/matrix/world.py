"""A lake, its state and its warehouse, put back before each combination; and what must hold after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine, insert, inspect, text

from mv_assets.buckets import DAY
from mv_assets.config import MaterializedView
from mv_assets.state import rules
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Event, GenerationState, Operation, State
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store, schema
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.warehouse_lake import DuckDbLake
from mv_assets_tests.unit.state.faults import Dump, dump

JOINED = """
    WITH paid AS (SELECT count(*) AS n FROM payments)
    SELECT date_trunc('hour', events.at) AS hour, count(*) AS n, count(names.x) AS named, max(paid.n) AS paid
    FROM events LEFT JOIN names ON events.x = names.x CROSS JOIN paid GROUP BY date_trunc('hour', events.at)
"""
PAYMENTS = {"table": "payments", "from": "1d"}
DAYS = 4
VIEWS = (
    view(),
    view("j", sql=JOINED, dimensions=["names"], scope="bucket", **{"with": [PAYMENTS]}),
)
_COMMITS = (Operation.APPEND, Operation.OVERWRITE, Operation.DELETE)
_OF_ALL = (Operation.TAKE_OVER, Operation.ADOPT, Operation.DROP)
_LATE = 25 * 3_600_000


@dataclass
class World:
    """Two views over a few days; the second has a dimension, and reads two days of a further table."""

    folder: Path
    url: str
    clock: Clock
    views: tuple[MaterializedView, ...] = VIEWS
    _kept: tuple[Dump, int] | None = field(default=None, init=False)

    @property
    def _template(self) -> Path:
        return self.folder.with_name("kept")

    def keep(self) -> None:
        """What `restore` brings back."""
        shutil.rmtree(self._template, ignore_errors=True)
        shutil.copytree(self.folder, self._template)
        self._kept = dump(self.url), self.clock.now

    def restore(self) -> None:
        """Everything as it was kept; files are new files with the old content."""
        assert self._kept is not None
        shutil.rmtree(self.folder)
        shutil.copytree(self._template, self.folder)
        rows, self.clock.now = self._kept
        engine = create_engine(self.url)
        with engine.begin() as connection:
            for table in reversed(schema.schema.metadata.sorted_tables):
                connection.execute(table.delete())
            for table in schema.schema.metadata.sorted_tables:
                names = [column.name for column in table.columns]
                if rows[table.name]:
                    connection.execute(
                        insert(table), [dict(zip(names, row, strict=True)) for row in rows[table.name]]
                    )
        engine.dispose()

    def clear(self) -> None:
        """No state and no data, as on the first day."""
        shutil.rmtree(self.folder / "lake" / "warehouse")
        engine = create_engine(self.url)
        with engine.begin() as connection:
            for name in inspect(connection).get_table_names():
                connection.execute(text(f'DROP TABLE "{name}"'))
        engine.dispose()

    @contextmanager
    def deployment(self) -> Iterator[DuckDbLake]:
        """A process that has just started."""
        store = Store(self.url, now=self.clock)
        try:
            lake = DuckDbLake(
                self.folder / "lake",
                store,
                self.views,
                dimensions=("names",),
                further=("payments",),
                clock=self.clock,
            )
            lake.manager = PartitionManager(store, clock=SharedClock(store), who="test")
            yield lake
        finally:
            store.close()

    def heal(self) -> None:
        """What a restart does: rounds of refresh and gc, as the time passes that they wait for."""
        with self.deployment() as lake:
            for _ in range(2):
                lake.run()
                lake.later(_LATE)
                for name in lake.store.views():
                    lake.gc(name)

    def check(self) -> None:
        """Nothing torn, lost, double, stuck or left over."""
        with self.deployment() as lake:
            versions = {name: lake.version(name) for name in lake.store.views()}
            lake.run()
            assert versions == {name: lake.version(name) for name in lake.store.views()}, "it does not rest"
            lake.check()
            for name in versions:
                self._check_map(lake, name)

    def _check_map(self, lake: DuckDbLake, name: str) -> None:
        snapshot, registered = lake.snapshot(name), lake.registered(name)
        assert snapshot.attempts == {}, f"{name}: attempts that never ended: {snapshot.attempts}"
        assert snapshot.troubles == (), f"{name}: {snapshot.troubles}"
        states = {rules.effective_state(row, snapshot.header) for row in snapshot.rows.values()}
        assert states == {State.VALID}, f"{name}: {states}"
        assert snapshot.header.watermark == DAYS * DAY, f"{name}: W = {snapshot.header.watermark}"
        named = {row.generation for row in snapshot.rows.values() if row.generation is not None}
        assert {g.id for g in registered.values() if g.state is GenerationState.LIVE} == named
        assert registered.keys() == named, f"{name}: generations nobody needs are still registered"
        left = lake.folders(name) - named - {".writable"}
        assert not left, f"{name}: left in the warehouse: {left}"
        with lake.store.read(name) as reader:
            events = reader.events(most=10_000)[::-1]
            assert reader.leases() == [], f"{name}: leases"
        versions = sorted({event.version for event in events})
        assert versions == list(range(1, snapshot.header.version + 1)), f"{name}: versions {versions}"
        _check_no_double(name, events)


def _check_no_double(name: str, events: list[Event]) -> None:
    """A bucket that is VALID is not committed again; what changes the whole view makes it due again."""
    valid: set[int] = set()
    for event in events:
        if event.operation in _OF_ALL:
            valid.clear()
        elif event.bucket is None:
            continue
        elif event.after is not State.VALID:
            valid.discard(event.bucket)
        else:
            twice = event.operation in _COMMITS and event.bucket in valid
            assert not twice, f"{name}: committed twice: {event}"
            valid.add(event.bucket)

"""A lake, its state and its warehouse, put back before each combination; and what must hold after it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine, insert, inspect, text

from mv_assets.buckets import DAY
from mv_assets.config import MaterializedView
from mv_assets.publish.contents import VERSION
from mv_assets.publish.publisher import PublishedView
from mv_assets.state import rules
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Event, GenerationState, Operation, State
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store, schema
from mv_assets_tests.proof.matrix.code import paid
from mv_assets_tests.proof.matrix.lakes import LAKES
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.process_memory import process_of_its_own
from mv_assets_tests.support.published_lake import PublishedLake, Rows, rows_of
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
    view(
        "p",
        sql=None,
        python=f"{paid.__module__}:paid",
        scope="bucket",
        time_column="at",
        **{"with": [PAYMENTS]},
    ),
)
TWO_DAYS = "SELECT :bucket_start AS day, sum(n) AS n, count(DISTINCT hour) AS hours FROM v"
# Beside these, by what the operation is about; the day after the last one ends before its end.
FURTHER = {
    "stacked": (
        view(
            "d",
            base={"table": "v", "from": "1d"},
            sql=TWO_DAYS,
            scope="bucket",
            time_column="day",
        ),
    ),
    "frozen": (view("f", on_base_delete="freeze"),),
    "closing": (view("c", closes="1h"),),
}
PAID = "SELECT *, (SELECT count(*) FROM payments) AS paid, strftime(\"at\", '%Y-%m-%d') AS key FROM events"
_COMMITS = (Operation.APPEND, Operation.OVERWRITE, Operation.DELETE)
_OF_ALL = (Operation.TAKE_OVER, Operation.ADOPT, Operation.DROP)
_LATE = 25 * 3_600_000


def views_of(kind: str) -> tuple[MaterializedView, ...]:
    return (*VIEWS, *FURTHER.get(kind, ()))


@dataclass
class World:
    """Three views over a few days: one with a dimension, one by a function; both read a further table."""

    folder: Path
    url: str
    clock: Clock
    # What the views are based on, whether they are published, and which others there are.
    kind: str = ""
    views: tuple[MaterializedView, ...] = field(init=False)
    _kept: tuple[Dump, int] | None = field(default=None, init=False)
    # By view and version: the rows that the map named when it was published.
    _shown: dict[tuple[str, int], Rows] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.views = views_of(self.kind)

    @property
    def _template(self) -> Path:
        return self.folder.with_name("kept")

    def keep(self) -> None:
        """What `restore` brings back."""
        self.look_at_published(collect=False)
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
        with closing(store), process_of_its_own():
            lake = LAKES.get(self.kind, DuckDbLake)(
                self.folder / "lake",
                store,
                self.views,
                dimensions=("names",),
                further=("payments",),
                clock=self.clock,
                oracle={"p": PAID},
            )
            lake.manager = PartitionManager(store, clock=SharedClock(store), who="test")
            yield lake

    def look_at_published(self, *, collect: bool = True) -> None:
        """Whatever has happened: readers see a whole version, and gc takes nothing of it."""
        with self.deployment() as lake:
            if not isinstance(lake, PublishedLake):
                return
            there = {
                name: lake.reader.summary(name) for name in lake.store.views() if lake.reader.exists(name)
            }
            # What others have written there last shows what they like.
            own = {name: int(summary[VERSION]) for name, summary in there.items() if VERSION in summary}
            for name, version in own.items():
                seen = rows_of(lake.reader.rows(name))
                if version == lake.version(name):
                    self._shown[name, version] = rows_of(lake.current(name))
                expected = self._shown.get((name, version), seen)
                assert seen == expected, f"{name}: version {version} is not shown whole"
                if collect:
                    lake.gc(name)
                    assert rows_of(lake.reader.rows(name)) == seen

    def heal(self) -> None:
        """What a restart does: rounds of refresh and gc, as the time passes that they wait for."""
        with self.deployment() as lake:
            for _ in range(2 if not isinstance(lake, PublishedLake) else 5):
                lake.run()
                publish(lake)
                lake.later(_LATE)
                expire(lake)
                for name in lake.store.views():
                    lake.gc(name)
            publish(lake)

    def check(self) -> None:
        """Nothing torn, lost, double, stuck or left over."""
        with self.deployment() as lake:
            versions = {name: lake.version(name) for name in lake.store.views()}
            lake.run()
            assert versions == {name: lake.version(name) for name in lake.store.views()}, "it does not rest"
            lake.check()
            if isinstance(lake, PublishedLake):
                assert lake.publisher.behind() == []
            for name in versions:
                self._check_map(lake, name)
                if isinstance(lake, PublishedLake):
                    _check_published(lake, name)

    def _check_map(self, lake: DuckDbLake, name: str) -> None:
        snapshot, registered = lake.snapshot(name), lake.registered(name)
        assert snapshot.attempts == {}, f"{name}: attempts that never ended: {snapshot.attempts}"
        assert snapshot.troubles == (), f"{name}: {snapshot.troubles}"
        states = {rules.effective_state(row, snapshot.header) for row in snapshot.rows.values()}
        assert states == {State.VALID}, f"{name}: {states}"
        # What the clock has closed is one day more.
        days = DAYS + (lake.catalog.view(name).declared.closes is not None)
        assert snapshot.header.watermark == days * DAY, f"{name}: W = {snapshot.header.watermark}"
        named = {row.generation for row in snapshot.rows.values() if row.generation is not None}
        assert {g.id for g in registered.values() if g.state is GenerationState.LIVE} == named
        assert registered.keys() == named, f"{name}: generations nobody needs are still registered"
        left = {each for each in lake.folders(name) if not each.endswith(".parquet")}
        left -= named | {".writable", "_delta_log"}
        assert not left, f"{name}: left in the warehouse: {left}"
        with lake.store.read(name) as reader:
            events = reader.events(most=10_000)[::-1]
            assert reader.leases() == [], f"{name}: leases"
        counted = Counter(event.operation.value for event in events)
        told = lake.store.counters(name)
        assert {each: told.get(each, 0) for each in counted} == counted, f"{name}: {told}"
        versions = sorted({event.version for event in events})
        assert versions == list(range(1, snapshot.header.version + 1)), f"{name}: versions {versions}"
        _check_no_double(name, events)


def publish(lake: DuckDbLake) -> None:
    """What a refresh does after it, if the views are published."""
    if isinstance(lake, PublishedLake):
        raise_first(lake.publisher.publish(lake.catalog.views, look=True))


def expire(lake: DuckDbLake) -> None:
    if isinstance(lake, PublishedLake):
        raise_first(lake.publisher.expire(lake.catalog.views))


def raise_first(done: Sequence[PublishedView]) -> None:
    for each in done:
        if each.error is not None:
            raise each.error


def _check_published(lake: PublishedLake, name: str) -> None:
    """Strangers read what the map says, of the newest; and can read what else is there."""
    lake.check_published(name)
    shown = lake.reader.digests(name)
    assert len({version for version, _ in shown}) == len(shown), f"{name}: one version, two contents: {shown}"
    versions = [each for each in lake.reader.snapshots(name).values() if each is not None]
    # In a Delta log a column that comes, and what is set back, is a commit that shows what was shown before.
    twice = lake.format == "iceberg" and len(versions) > len(set(versions))
    assert not twice, f"{name}: a version is shown twice: {versions}"


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

"""Long random histories, in memory and in lockstep with SQL: what is proved of one holds for all."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mv_assets.errors import Refused
from mv_assets.state import rules
from mv_assets.state.errors import Fenced
from mv_assets.state.model import Header, Lease, State
from mv_assets.state.store import Store, schema
from mv_assets.views.view import Window
from mv_assets_tests.proof.simulation import naive
from mv_assets_tests.proof.simulation.lockstep import LockstepStore
from mv_assets_tests.proof.simulation.memory import Memory, MemoryStore
from mv_assets_tests.proof.simulation.world import Data, named
from mv_assets_tests.support.harness import Clock, Deployment, Work, view
from mv_assets_tests.support.joined_deployment import JoinedDeployment
from mv_assets_tests.support.memory_table import BASE, DAY, BaseTable

DAYS = st.integers(0, 4)
NAMES = st.integers(0, 3)
DEFINITIONS = ["d1", "d2", "d3"]
# A bucket's own day of the base, and of a further table a day before and half a day after.
WINDOWS = {
    "one table": (Window(BASE),),
    "two tables": (Window(BASE), Window("further", before=DAY, after=DAY // 2)),
    "two tables, one not waited for": (Window(BASE), Window("further", DAY, DAY // 2, waits=False)),
}


class History(RuleBasedStateMachine):
    """One table or two, three deployments of one view, and everything that can happen to them."""

    def __init__(self, store: Store, clock: Clock, windows: tuple[Window, ...]) -> None:
        super().__init__()
        self.store, self.clock, self.table, self.windows = store, clock, BaseTable(), windows
        self.names = ["a", "b", "c", "d"] if len(windows) == 1 else ["a", "b", "further/a", "further/b"]
        self.deployments = {
            definition: JoinedDeployment(
                store, self.table, clock, view(definition=definition), windows=windows
            )
            for definition in DEFINITIONS
        }
        self.deployments["d1"].declare()
        self.under_way: list[tuple[Deployment, Work]] = []
        self.ended: list[tuple[Deployment, Work]] = []
        self.leases: list[Lease] = []
        self.read: dict[tuple[int, int], tuple[str, Data]] = {}
        self.forced: dict[int, int] = {}
        self.began: dict[str, dict[int, int]] = {}
        self.watermarks: dict[tuple[str, int], int] = {}

    @property
    def current(self) -> JoinedDeployment:
        return self.deployments[self.header.definition]

    @property
    def header(self) -> Header:
        return self.store.snapshot("v").header

    @rule(name=NAMES, crc=st.integers(1, 3), first=DAYS, length=st.integers(0, 1))
    def file_is_written(self, name: int, crc: int, first: int, length: int) -> None:
        self.table.day(self.names[name], crc, first, first + length)

    @rule(name=NAMES)
    def file_is_removed(self, name: int) -> None:
        self.table.files.pop(self.names[name], None)
        self.table.writes += 1

    @rule(first=NAMES, second=NAMES)
    def files_are_compacted(self, first: int, second: int) -> None:
        held = sorted(self.table.files)
        names = {held[first % len(held)], held[second % len(held)]} if held else set()
        if len({name.rpartition("/")[0] for name in names}) == 1:
            self.table.compact(*sorted(names))

    @rule()
    def rewrites_are_forgotten(self) -> None:
        self.table.rewrites.clear()

    @rule()
    def look(self) -> None:
        snapshot = self.current.map()
        if not rules.idle(snapshot.look, self.current.version, snapshot.header.version, self.clock()):
            self.current.look()

    @rule(days=st.sets(DAYS, min_size=1))
    def work_begins(self, days: set[int]) -> None:
        deployment = self.current
        wanted = [
            b // DAY for b, due in deployment.due().items() if due not in (rules.Due.REVERT, rules.Due.WAIT)
        ]
        chosen = sorted(days & set(wanted)) or wanted
        if chosen:
            work = deployment.register(deployment.plan(*chosen))
            self.began[work.attempt.generation] = dict(self.forced)
            self.under_way.append((deployment, deployment.stage(work)))

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 9), heard=st.booleans())
    def work_commits(self, which: int, heard: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
        deployment, work = self.under_way.pop(which % len(self.under_way))
        self._commit(deployment, work)
        if not heard:
            self.ended.append((deployment, work))

    @precondition(lambda self: self.ended)
    @rule(which=st.integers(0, 9))
    def work_commits_again(self, which: int) -> None:
        self._commit(*self.ended.pop(which % len(self.ended)))

    def _commit(self, deployment: Deployment, work: Work) -> None:
        # Read now: what was listed may have changed since.
        now = dict(self.table.files)
        before = {row.content for row in self.store.snapshot("v").rows.values()}
        try:
            deployment.commit(work)
        except Fenced:
            deployment.manager.abandon("v", work.attempt)
        for bucket, row in self.store.snapshot("v").rows.items():
            if row.content is not None and row.content not in before and bucket in work.attempt.buckets:
                read = deployment.read(work.listed, bucket)
                names = [named(each.source, each.name) for each in read]
                data = tuple((name, now[name].crc) for name in names if name in now)
                self.read[bucket, row.content] = deployment.declaration.definition, data

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 9), day=DAYS)
    def work_fails(self, which: int, day: int) -> None:
        deployment, work = self.under_way[which % len(self.under_way)]
        failed = [b for b in work.attempt.buckets if b // DAY == day] or [work.attempt.buckets[0]]
        try:
            deployment.fail(work, *(bucket // DAY for bucket in failed))
        except Fenced:
            return
        rest = tuple(planned for planned in work.attempt.work if planned.bucket not in failed)
        self.under_way.remove((deployment, work))
        if rest:
            self.under_way.append((deployment, replace(work, attempt=replace(work.attempt, work=rest))))

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 9))
    def worker_is_killed(self, which: int) -> None:
        self.under_way.pop(which % len(self.under_way))

    @rule()
    def false_alarms_are_reverted(self) -> None:
        due = self.current.due()
        current_inputs = {b: self.current.current(b) for b, d in due.items() if d is rules.Due.REVERT}
        self.current.manager.revert(self.current.declaration, current_inputs)

    @rule(day=DAYS)
    def person_forces(self, day: int) -> None:
        self.current.manager.force(self.current.declaration, [day * DAY], "a person")
        self.forced[day * DAY] = self.forced.get(day * DAY, 0) + 1

    @rule()
    def person_drops(self) -> None:
        self.current.manager.drop("v")

    @rule(definition=st.sampled_from(DEFINITIONS))
    def deployment_starts(self, definition: str) -> None:
        known = self._definitions()
        try:
            self.deployments[definition].declare()
        except Fenced:
            assert definition in known

    @rule(definition=st.sampled_from(DEFINITIONS))
    def person_adopts(self, definition: str) -> None:
        try:
            self.current.manager.adopt("v", definition)
        except Refused:
            assert definition not in self._definitions()
        else:
            self.watermarks.clear()

    def _definitions(self) -> set[str]:
        with self.store.read("v") as reader:
            return set(reader.history())

    @rule()
    def reader_takes_a_lease(self) -> None:
        self.leases.append(self.current.leases.acquire("v"))

    @rule()
    def readers_release(self) -> None:
        for lease in self.leases:
            self.current.leases.release(lease)
        self.leases.clear()

    @rule()
    def time_passes(self) -> None:
        self.clock.now += 45_000

    @rule()
    def garbage_is_collected(self) -> None:
        self.current.collect()

    @invariant()
    def rows_hold_what_they_record(self) -> None:
        rows = self.store.snapshot("v").rows
        recorded = self.store.recorded("v", rows)
        for bucket, row in rows.items():
            if row.inputs is None or row.content is None:
                continue
            definition, data = self.read[bucket, row.content]
            known = tuple((named(s.source, s.name), s.crc) for s in recorded[bucket])
            assert definition == row.inputs.definition
            assert naive.fingerprints(self.windows, known) == row.inputs.windows
            held, told = (
                naive.rows(self.windows, each, bucket, self.table.contents) for each in (data, known)
            )
            assert held == told

    @invariant()
    def named_generations_are_live(self) -> None:
        for row in self.store.snapshot("v").rows.values():
            if row.generation is not None:
                generation = self.current.generation(row.generation)
                assert generation is not None
                assert generation.state == "LIVE"

    @invariant()
    def valid_data_was_read_after_the_last_forced_mark(self) -> None:
        for bucket, row in self.store.snapshot("v").rows.items():
            if row.state is State.VALID and row.generation is not None:
                assert self.began[row.generation].get(bucket, 0) == self.forced.get(bucket, 0)

    @invariant()
    def w_is_monotone_and_everything_below_it_is_committed(self) -> None:
        snapshot = self.store.snapshot("v")
        header = snapshot.header
        era = (header.definition, header.reset_at)
        assert header.watermark >= self.watermarks.get(era, 0)
        self.watermarks[era] = header.watermark
        for bucket in range(0, header.watermark, DAY):
            inputs = snapshot.rows[bucket].inputs
            assert inputs is not None
            assert inputs.definition == header.definition

    def teardown(self) -> None:
        """From wherever a history ends all buckets come to match, and then follow each file that changes."""
        self._mend()
        version = self.header.version
        self._mend()
        assert self.header.version == version
        for name, file in list(self.table.files.items()):
            self.table.put(name, file.crc + 1, file.start, file.end)
            self._mend()

    def _mend(self) -> None:
        self.current.converge()
        snapshot, files = self.store.snapshot("v"), self.table.files
        end = naive.end_of(files, self.windows)
        assert snapshot.header.source_end == end
        for bucket in self.current.covered(snapshot):
            row = snapshot.rows.get(bucket)
            if row is None and (end is None or bucket + DAY > end + 1):
                continue
            assert row is not None
            now = naive.windowed(files, self.windows, snapshot.header.definition, bucket)
            assert (row.state, row.inputs) == (State.VALID, now)


def _play(make: Callable[[], History], examples: int, steps: int) -> int:
    """Run histories; others with each MV_ASSETS_SEED, as `make prove` gives it."""
    chosen = int(os.environ.get("MV_ASSETS_SEED", "1"))
    seed(chosen)(make)
    run_state_machine_as_test(
        make,  # type: ignore[arg-type]  # a factory will do, and its seed is read
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("tables", WINDOWS)
def test_long_histories_keep_every_invariant(
    tables: str, record_property: Callable[[str, object], None]
) -> None:
    def make() -> History:
        clock = Clock()
        return History(MemoryStore(Memory(), clock), clock, WINDOWS[tables])

    chosen = _play(make, examples=100, steps=80)
    record_property("proved", f"random histories, {tables}: 100 of up to 80 steps in memory, seed {chosen}")


@pytest.mark.parametrize("tables", list(WINDOWS)[:2])
def test_histories_are_the_same_in_memory_and_in_sql(
    tables: str, state_url: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    opened: list[Store] = []

    def make() -> History:
        clock = Clock()
        if state_url.startswith("sqlite"):
            sql = Store(f"sqlite:///{tmp_path}/{len(opened)}.db", now=clock)
        else:
            sql = Store(state_url, now=clock)
            _empty(sql)
        opened.append(sql)
        return History(LockstepStore(MemoryStore(Memory(), clock), sql), clock, WINDOWS[tables])

    chosen = _play(make, examples=5, steps=50)
    for store in opened:
        store.close()
    record_property(
        "proved",
        f"random histories, {tables}: 5 of up to 50 steps in lockstep with {state_url[:6]}, seed {chosen}",
    )


def _empty(store: Store) -> None:
    with store.database.write() as connection:
        for table in reversed(schema.view.metadata.sorted_tables):
            if table is not schema.schema:
                connection.execute(table.delete())

"""What gc deletes, and what it must not: after the grace, under leases, across crashes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from mv_assets.buckets import DAY
from mv_assets.maintain.garbage import GcReport
from mv_assets.run import warehouse
from mv_assets.run.errors import WarehouseUnusable
from mv_assets.run.warehouse import Warehouse
from mv_assets.state import registry
from mv_assets.state.leases import Leases
from mv_assets.state.model import Attempt, GenerationState, Planned
from mv_assets.state.registry import Registry
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.warehouse_lake import GRACE, DuckDbLake

DuckDbLakes = Callable[..., DuckDbLake]


class Crash(Exception):
    """The process ends here."""


def overwritten(made: DuckDbLake) -> str:
    """Day 0 twice; the generation that it left."""
    made.days(0)
    made.run()
    left = made.named()[0]
    made.overwrite(0)
    assert left is not None
    return left


def test_a_superseded_generation_goes_after_the_grace_and_not_before(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    left = overwritten(made)
    made.later(GRACE - 1)
    assert made.gc().deleted == {}
    assert left in made.folders()
    made.later(1)
    size = made.plain.size("v", left)
    assert made.gc().deleted == {left: size}
    assert made.folders() == {made.named()[0]}
    made.check()


@pytest.mark.parametrize("mount_point", [False, True])
def test_a_gc_without_its_warehouse_forgets_nothing(
    duckdb_lake_on_sqlite: DuckDbLakes, *, mount_point: bool
) -> None:
    made = duckdb_lake_on_sqlite()
    left = overwritten(made)
    made.later()
    with made.unmounted(mount_point=mount_point):
        report = made.garbage().gc("v")
    assert [type(error) for error in report.errors] == [WarehouseUnusable]
    assert list(made.gc().deleted) == [left]


def test_a_lease_keeps_what_its_reader_may_read(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0)
    made.run()
    with Leases(made.store, ttl_ms=10 * GRACE).pin("v") as pinned:
        made.overwrite(0)
        made.later()
        assert made.gc().deleted == {}
        assert pinned.snapshot.rows[0].generation in made.folders()
    assert list(made.gc().deleted) == [pinned.snapshot.rows[0].generation]


def test_a_staged_generation_stays_while_its_heart_beats(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0)
    made.run()
    staged = made.stage()
    for _ in range(3):
        made.later(GRACE - 1)
        Registry(made.store).beat("v", staged)
        assert made.gc().deleted == {}
    made.later()
    assert list(made.gc().deleted) == [staged]


def test_files_of_failed_and_abandoned_attempts_go(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0)
    made.run()
    declaration, version = made.catalog.view("v").declaration, made.version()
    (planned,) = [Planned(row.bucket, row.token, row.inputs) for row in [made.data(0)] if row.inputs]
    failed, abandoned = (Attempt(name, version, (planned,)) for name in ("failed", "abandoned"))
    for attempt in (failed, abandoned):
        made.manager.register(declaration, attempt)
        made.late(attempt.generation)
    made.manager.fail(declaration, failed, {0: "no memory"})
    made.manager.abandon("v", abandoned)
    assert made.gc().deleted == {}
    made.later()
    assert sorted(made.gc().deleted) == ["abandoned", "failed"]
    assert made.folders() == {made.named()[0]}


def test_a_view_that_nobody_declares_any_more_is_collected_too(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    left = overwritten(made)
    made.declare(view("other"))
    made.later()
    assert list(made.gc("v").deleted) == [left]


class Failing(Warehouse):
    """Deletes half, and then the process ends."""

    def delete(self, view: str, generation: str) -> None:
        next(iter(Path(self.place(view, generation)).glob("*.parquet"))).unlink()
        raise Crash(generation)


def test_a_crash_while_files_are_deleted_is_finished_by_the_next_gc(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    left = overwritten(made)
    made.later()
    with pytest.raises(Crash):
        made.garbage(Failing(made.plain.root)).gc("v")
    assert made.registered()[left].state is GenerationState.DOOMED
    assert left in made.folders()
    assert list(made.gc().deleted) == [left]
    assert made.folders() == {made.named()[0]}


def test_a_crash_before_a_deleted_generation_is_forgotten_is_finished_by_the_next_gc(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = duckdb_lake()
    left = overwritten(made)
    made.later(DAY)

    def crash(*_: object, **__: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Registry, "forget", crash)
        with pytest.raises(Crash):
            made.gc()
    assert left not in made.folders()
    assert left in made.registered()
    assert made.garbage().would("v").deleted == {}
    assert made.gc().deleted == {}
    assert left not in made.registered()


def test_what_a_zombie_writes_after_its_generation_was_deleted_goes_too(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0)
    made.run()
    zombie = made.stage()
    made.later()
    assert list(made.gc().deleted) == [zombie]
    made.late(zombie)
    made.later(DAY - GRACE - 1)
    assert list(made.gc().deleted) == [zombie]
    made.late(zombie)
    made.later(1)
    assert list(made.gc().deleted) == [zombie]
    assert zombie not in made.folders()
    assert zombie not in made.registered()


def test_a_folder_that_can_not_be_deleted_is_said_and_stops_nothing_else(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    left = overwritten(made)
    made.overwrite(0)
    made.later()

    class Stuck(Warehouse):
        def delete(self, view: str, generation: str) -> None:
            if generation == left:
                raise WarehouseUnusable(self.place(view, generation), "it is mounted read-only")
            super().delete(view, generation)

    report = made.garbage(Stuck(made.plain.root)).gc("v")
    assert [str(error) for error in report.errors] == [
        f"the warehouse can't be used at {made.plain.place('v', left)}: it is mounted read-only"
    ]
    assert made.folders() == {left, made.named()[0]}
    assert list(made.gc().deleted) == [left]


def test_a_folder_that_is_filled_as_fast_as_it_is_deleted_is_left_to_the_next_gc(
    duckdb_lake_on_sqlite: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = duckdb_lake_on_sqlite()
    left = overwritten(made)
    made.later()

    class Filled(fs.LocalFileSystem):  # type: ignore[misc] # has no types
        def delete_dir(self, path: str) -> None:
            super().delete_dir(path)
            made.late(left)

    with monkeypatch.context() as patch:
        patch.setattr(warehouse, "filesystem_at", lambda path, _storage: (Filled(), path))
        (error,) = made.garbage().gc("v").errors
    assert "files come as fast as they are deleted" in str(error)
    assert made.registered()[left].state is GenerationState.DOOMED
    assert list(made.gc().deleted) == [left]
    assert made.folders() == {made.named()[0]}


def test_a_dry_run_says_what_gc_does_and_changes_nothing(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0, 1, 2)
    made.run()
    made.overwrite(0, 1, 1)
    made.stage()
    made.later()
    made.later(DAY)
    before = made.everything()
    would = made.garbage().would("v")
    assert made.everything() == before
    (bundle,) = [bundle for bundle, _ in would.compacted]
    assert [row.bucket // DAY for row in bundle.rows] == [2]
    done = made.gc()
    assert done.deleted == would.deleted | {bundle.generations[0]: made_size(before, bundle.generations[0])}
    assert [bundle.generations for bundle, _ in done.compacted] == [bundle.generations]
    assert made.everything() != before


def made_size(everything: tuple[object, dict[str, bytes]], generation: str) -> int:
    return sum(len(content) for path, content in everything[1].items() if generation in path)


def test_a_dry_run_counts_only_leases_that_live(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0)
    made.run()
    lease = Leases(made.store, ttl_ms=2 * GRACE).acquire("v")
    made.overwrite(0)
    made.later()
    assert made.garbage().would("v").deleted == {}
    made.later()
    assert list(made.garbage().would("v").deleted) == list(made.garbage().collect("v").deleted) != []
    Leases(made.store).release(lease)


def test_two_gcs_at_once_delete_the_same_and_fail_nobody(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(*range(6))
    made.run()
    for _ in range(2):
        made.overwrite(*range(4))
    made.later()
    before, reports, together = made.stored(), list[GcReport](), threading.Barrier(2)

    def one() -> None:
        together.wait()
        reports.append(made.garbage().gc("v"))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.errors for report in reports] == [[], []]
    made.later()
    made.gc()
    assert made.folders() == set(made.named().values())
    assert by_hour(made.stored()) == by_hour(before)
    made.check()


def test_70_a_pinned_reader_sees_the_same_rows_throughout_commits_compaction_and_gc(
    duckdb_lake: DuckDbLakes,
) -> None:
    made = duckdb_lake()
    made.days(0, 1, 2)
    made.run()
    with Leases(made.store, ttl_ms=100 * GRACE).pin("v") as pinned:
        rows = pinned.snapshot.rows
        named = {row.generation for row in rows.values() if row.generation is not None}
        files = [file for each in made.store.files("v", named).values() for file in each]

        def read() -> pa.Table:
            return pa.concat_tables(pq.read_table(made.folder / "warehouse" / file.path) for file in files)

        before = read()
        for number in (0, 1, 0):
            made.overwrite(number)
            made.later()
            made.gc()
            assert read().equals(before)
    made.gc()
    assert made.folders() == set(made.named().values())


def test_a_dropped_view_is_filled_again(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0, 1)
    made.run()
    made.later()
    made.manager.drop("v")
    made.gc()
    assert made.folders() == set()
    made.run()
    made.check()


def by_hour(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def test_gc_shortens_the_event_log_but_a_bucket_keeps_its_last_change(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_LINES", 2)
    made = duckdb_lake()
    made.days(0, 1)
    made.run()
    made.overwrite(0)
    made.overwrite(0)
    before = {number: made.store.events("v", number * DAY) for number in (0, 1)}
    assert [event.operation for event in before[0]] == ["OVERWRITE", "MARK", "OVERWRITE", "MARK", "APPEND"]
    made.later(90 * DAY)
    assert made.gc().forgotten == 0
    made.later(1)
    assert made.gc().forgotten == 4
    assert made.store.events("v", 0) == before[0][:1]
    assert made.store.events("v", DAY) == before[1]
    assert made.gc().forgotten == 0
    made.check()


def test_gc_keeps_one_line_of_each_operation_on_the_whole_view(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    for number in range(5):
        made.write(f"{number}.parquet", [day(0, number)])
        made.look(whole=True)
    before = [event.operation for event in made.store.events("v")]
    assert before == ["LOOK"] * 5 + ["DECLARE"]
    made.later(90 * DAY + 1)
    assert made.gc().forgotten == 4
    assert [event.operation for event in made.store.events("v")] == ["LOOK", "DECLARE"]

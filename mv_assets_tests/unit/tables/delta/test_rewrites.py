"""Files that a table replaced by others with the same rows, by its own word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from mv_assets.state.model import Segment
from mv_assets.tables.delta import changes
from mv_assets.tables.delta.remembered import KEPT
from mv_assets.tables.listing import Listing, Rewrite
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.rows import DAY, Make, rows


def fill(root: Path, *days: int) -> None:
    for day in days:
        write_deltalake(root, rows(day, v=[day]), mode="append")


def segments(listing: Listing) -> set[Segment]:
    return set(listing.segments())


OPTIMIZE: dict[str, Callable[[DeltaTable], object]] = {
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["v"]),
}


@pytest.mark.parametrize("how", OPTIMIZE)
def test_optimize_is_a_rewrite_of_what_was_there(root: Path, table: Make, how: str) -> None:
    fill(root, 1, 2, 3)
    before = table().current().listing()
    OPTIMIZE[how](DeltaTable(root))
    after = table().current().listing()
    (rewrite,) = after.rewrites
    assert set(rewrite.removed) == segments(before)
    assert set(rewrite.added) == segments(after)


def test_it_is_told_to_a_process_that_never_looked_before(root: Path, table: Make) -> None:
    fill(root, 1, 2)
    DeltaTable(root).optimize.compact()
    told = table().current().listing().rewrites
    assert len(told) == 1
    for version in (0, 1):
        assert {segment.start_ms for segment in told[0].removed} == {DAY, 2 * DAY}, version


def test_rewrites_are_told_in_order_and_remembered_beyond_the_checkpoint(root: Path, table: Make) -> None:
    fill(root, 1, 2)
    table().current().listing()
    DeltaTable(root).optimize.compact()
    first = table().current().listing()
    fill(root, 3)
    DeltaTable(root).optimize.compact()
    second = table().current().listing()
    assert second.rewrites[0] == first.rewrites[0]
    assert [segment.name for segment in second.rewrites[1].removed if segment.start_ms == DAY] == first.names
    DeltaTable(root).create_checkpoint()
    KEPT.clear()
    assert table().current().listing().rewrites == second.rewrites
    # A new schema means reading all of it again, from a checkpoint that knows of no rewrites.
    write_deltalake(root, rows(9, v=[9], w=[1]), mode="append", schema_mode="merge")
    assert table().current().listing().rewrites == second.rewrites


def test_two_rewrites_between_two_looks_are_both_told(root: Path, table: Make) -> None:
    fill(root, 1, 2)
    before = table().current().listing()
    DeltaTable(root).optimize.compact()
    fill(root, 3)
    DeltaTable(root).optimize.compact()
    first, second = table().current().listing().rewrites
    assert set(first.removed) == segments(before)
    assert set(first.added) < set(second.removed)


CHANGES: dict[str, Callable[[Path], object]] = {
    "append": lambda root: fill(root, 7),
    "overwrite": lambda root: write_deltalake(root, rows(1, v=[1]), mode="overwrite"),
    "delete": lambda root: DeltaTable(root).delete("v = 1"),
    "update": lambda root: DeltaTable(root).update({"v": "7"}, predicate="v = 1"),
    "a vector": lambda root: log.with_vector(root, log.deletion_vector(0)),
    "restore": lambda root: DeltaTable(root).restore(0),
}


@pytest.mark.parametrize("how", CHANGES)
def test_what_changes_rows_is_no_rewrite(root: Path, table: Make, how: str) -> None:
    fill(root, 1, 2)
    table().current().listing()
    CHANGES[how](root)
    assert not table().current().listing().rewrites


def test_one_action_that_changes_rows_is_enough_for_no_rewrite(root: Path, table: Make) -> None:
    fill(root, 1, 2)
    first, second = log.actions(root, "add")
    log.commit(
        root,
        log.remove(first["path"], dataChange=False),
        log.remove(second["path"]),
        {"add": first | {"path": "new.parquet", "dataChange": False}},
    )
    assert not table().current().listing().rewrites


def test_optimize_of_a_file_with_a_vector_removes_it_with_its_vector(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, 2, 3, v=[1, 2, 3]))
    log.with_vector(root, log.deletion_vector(1))
    before = table().current().listing()
    (file,) = log.actions(root, "add")[-1:]
    pq.write_table(rows(1, 3, v=[1, 3]), root / "new.parquet")
    log.commit(
        root,
        log.remove(file["path"], dataChange=False, deletionVector=file["deletionVector"]),
        log.add(
            "new.parquet",
            log.stats("ts", "1970-01-02T00:00:00.000Z", "1970-01-04T00:00:00.000Z"),
            dataChange=False,
        ),
    )
    after = table().current().listing()
    assert after.rewrites == (Rewrite(tuple(before.segments()), tuple(after.segments())),)
    assert not after.details.deletes


def test_another_vector_with_the_same_rows_is_a_rewrite_of_the_file_by_itself(
    root: Path, table: Make
) -> None:
    write_deltalake(root, rows(1, 2, 3))
    log.with_vector(root, log.deletion_vector(1))
    before = table().current().listing()
    log.with_vector(root, log.vector_file(root, [1])[0], dataChange=False)
    after = table().current().listing()
    assert after.rewrites == (Rewrite(tuple(before.segments()), tuple(after.segments())),)
    assert after.crcs != before.crcs


def test_files_without_statistics_are_told_where_their_footers_were_read(root: Path, table: Make) -> None:
    log.commit(root, log.protocol(), log.metadata(log.column("ts", "timestamp")))
    for day in (1, 2):
        pq.write_table(rows(day), root / f"f{day}.parquet")
    log.commit(root, log.add("f1.parquet"), log.add("f2.parquet"))
    before = table().current().listing()
    pq.write_table(rows(1, 2), root / "g.parquet")
    removes = [log.remove(f"f{day}.parquet", dataChange=False) for day in (1, 2)]
    log.commit(
        root,
        *removes,
        log.add(
            "g.parquet",
            log.stats("ts", "1970-01-02T00:00:00.000Z", "1970-01-03T00:00:00.000Z"),
            dataChange=False,
        ),
    )
    (rewrite,) = table().current().listing().rewrites
    assert set(rewrite.removed) == segments(before)
    KEPT.clear()
    # Nobody knows where they were: nothing is told of them.
    assert not table(keep=False, name_of_inventory="other").current().listing().rewrites


def test_only_so_many_removed_files_are_remembered_but_the_last_rewrite_always(
    root: Path, table: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_REWRITTEN", 4)
    for day in (1, 3, 5):
        fill(root, day, day + 1)
        table().current().listing()
        DeltaTable(root).optimize.compact()
    told = table().current().listing().rewrites
    assert [len(rewrite.removed) for rewrite in told] == [3]
    fill(root, 8)
    DeltaTable(root).optimize.compact()
    assert [len(rewrite.removed) for rewrite in table().current().listing().rewrites] == [2]

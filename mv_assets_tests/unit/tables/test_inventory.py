"""What is remembered of files between looks."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from mv_assets.config import ParquetTable
from mv_assets.state.store import Store, schema
from mv_assets.state.store.database import Database
from mv_assets.tables.files.local import LocalFolder
from mv_assets.tables.inventory import Inventory, Known
from mv_assets.tables.open import open_table
from mv_assets_tests.support.harness import Deployment
from mv_assets_tests.unit.state.faults import Crash, dump
from mv_assets_tests.unit.tables.lake import LATER, Lake, content, put, ranges
from mv_assets_tests.unit.tables.parquet.test_footer import FIRST, LAST


@pytest.fixture
def inventory(store: Store) -> Inventory:
    return Inventory(store.database, "t")


@pytest.fixture
def kept(store: Store, tmp_path: Path) -> Lake:
    """A folder whose inventory is in a database of each kind."""
    (tmp_path / "lake").mkdir()
    return Lake(tmp_path / "lake", store.database)


def known(identity: int = 1, crc: int = 2, start: int | None = 3, end: int | None = 4) -> Known:
    return Known(identity, crc, start, end)


def test_what_is_saved_is_known_instead_of_what_was(inventory: Inventory) -> None:
    first = {"a": known(), "b": Known(FIRST, LAST, FIRST, LAST, 2**40, trusted=False, error="it's 😀\nbad")}
    inventory.save(first)
    assert dict(inventory.known()) == first
    inventory.save({"a": known(crc=9), "c": known(start=None, end=None)})
    assert dict(inventory.known()) == first | {"a": known(crc=9), "c": known(start=None, end=None)}


@pytest.mark.parametrize("name", ["a b/ä=%41/漢😀.parquet", "line\nbreak", 'it\'s "quoted" \\', "x" * 4_000])
def test_any_name_is_kept(inventory: Inventory, name: str) -> None:
    inventory.save({name: known()})
    assert dict(inventory.known()) == {name: known()}
    inventory.forget([name])
    assert dict(inventory.known()) == {}


def test_some_files_are_asked_for(inventory: Inventory) -> None:
    files = {f"{number:05}.parquet": known(number) for number in range(3_000)}
    inventory.save(files)
    some = dict(list(files.items())[1:2_000])
    assert dict(inventory.known([*some, "unknown"])) == some
    assert dict(inventory.known([])) == {}


def test_what_is_remembered_of_a_table_is_replaced_as_a_whole(
    inventory: Inventory, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.tables.inventory._PART", 7)
    contents = {"head": b"\x00\xff", "files": bytes(range(256))}
    inventory.remember(contents)
    Inventory(store.database, "other").remember({"files": b"its own"})
    Inventory(store.database, "t", keep=False).remember({"files": b"not kept"})
    assert {kind: inventory.recall(kind) for kind in contents} == contents
    inventory.remember({"files": b"short"})
    assert (inventory.recall("files"), inventory.recall("head")) == (b"short", None)
    assert Inventory(store.database, "other").recall("files") == b"its own"
    assert Inventory(None, "t").recall("files") is None


def test_many_files_are_saved_and_forgotten(inventory: Inventory) -> None:
    files = {f"{number:05}.parquet": known(number) for number in range(5_000)}
    inventory.save(files)
    assert dict(inventory.known()) == files
    inventory.forget(list(files)[1:])
    assert list(inventory.known()) == [("00000.parquet", known(0))]


def test_an_inventory_is_of_one_table(store: Store) -> None:
    one, other = Inventory(store.database, "one"), Inventory(store.database, "other")
    one.save({"a": known(1)})
    other.save({"a": known(2)})
    one.forget(["a"])
    assert dict(one.known()) == {}
    assert dict(other.known()) == {"a": known(2)}


def test_a_range_needs_both_ends() -> None:
    assert known().range == (3, 4)
    assert known(start=None).range is known(end=None).range is None


def test_without_a_database_nothing_is_remembered_but_all_is_found(lake: Lake, opened: list[str]) -> None:
    lake.database = None
    lake.write("a.parquet", 1)
    for _ in range(2):
        opened.clear()
        assert ranges(lake.look()) == {"a.parquet": (1, 1)}
        assert "a.parquet" in opened


def test_with_keep_off_nothing_is_written(kept: Lake, state_url: str, opened: list[str]) -> None:
    gone = kept.write("a.parquet", 1)
    kept.write("b.parquet", 2)
    kept.look()
    before = dump(state_url)
    gone.unlink()
    kept.write("b.parquet", 3)
    kept.write("c.parquet", 4)
    assert ranges(kept.look(keep=False)) == {"b.parquet": (3, 3), "c.parquet": (4, 4)}
    assert dump(state_url) == before
    opened.clear()
    kept.write("a.parquet", 1)
    kept.look(keep=False)
    assert {"b.parquet", "c.parquet"} <= set(opened)


def test_it_survives_a_restart(kept: Lake, state_url: str, opened: list[str]) -> None:
    kept.write("a.parquet", 1, None)
    kept.damage("b.parquet")
    kept.write("empty.parquet")
    first = kept.look()
    restarted = Store(state_url)
    kept.database = restarted.database
    opened.clear()
    again = kept.look()
    restarted.close()
    assert opened == []
    assert (ranges(again), again.nulls, again.broken) == (ranges(first), first.nulls, first.broken)


def test_files_that_are_gone_are_forgotten(kept: Lake) -> None:
    file = kept.write("a.parquet", 3, 7)
    kept.write("b.parquet", 1)
    kept.look()
    file.unlink()
    kept.look()
    assert {name for name, _ in kept.table().inventory.known()} == {"b.parquet"}
    kept.damage("a.parquet")
    assert not kept.look().broken["a.parquet"].ranged


def test_it_is_kept_by_root_and_by_time_column(lake: Lake, tmp_path: Path, opened: list[str]) -> None:
    other = tmp_path / "other"
    for root, time in ((lake.root, 1), (other, 2)):
        columns = content(time, column="a"), content(time + 10, column="b")
        for name, data in zip("ab", columns, strict=True):
            put(root / f"{name}.parquet", data)
    looks = [(root, column) for root in (lake.root, other) for column in "ab"]

    def look(root: Path, column: str) -> dict[str, tuple[int, int]]:
        declared = ParquetTable(name="t", path=str(root), time_column=column)
        return ranges(open_table(declared, lake.database, lambda: LATER).current().listing())

    found = [look(*where) for where in looks]
    assert [list(each.values()) for each in found] == [[(1, 1)], [(11, 11)], [(2, 2)], [(12, 12)]]
    opened.clear()
    assert [look(*where) for where in looks] == found
    assert opened == []


def test_it_is_kept_by_unit(lake: Lake) -> None:
    lake.write("a.parquet", 1)
    declared = ParquetTable(name="t", path=str(lake.root), time_column="ts")
    table = open_table(declared, lake.database, lambda: LATER)
    assert ranges(table.current().listing()) == {"a.parquet": (1, 1)}
    by_unit = ParquetTable(name="t", path=str(lake.root), time_column="ts", time_unit="s")
    found = open_table(by_unit, lake.database, lambda: LATER).current().listing()
    assert found.broken.keys() == {"a.parquet"}


def test_a_crash_in_a_long_first_look_keeps_the_batches_that_were_done(
    kept: Lake, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    monkeypatch.setattr("mv_assets.tables.parquet.table._BATCH", 4)
    for number in range(12):
        kept.write(f"{number}.parquet", number)

    def crash(files: int, *_: int) -> None:
        if files == 8:
            raise Crash

    with pytest.raises(Crash):
        kept.table().current().listing(crash)
    done = {name for name, _ in kept.table().inventory.known()}
    assert len(done) == 8
    opened.clear()
    assert len(kept.look()) == 12
    assert set(opened) == {f"{number}.parquet" for number in range(12)} - done


def test_large_files_are_remembered_after_fewer_of_them(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    size = lake.write("0.parquet", 0).stat().st_size
    monkeypatch.setattr("mv_assets.tables.parquet.table._BYTES", 2 * size // LocalFolder.threads)
    for number in range(1, 5):
        lake.write(f"{number}.parquet", number)
    known: list[int] = []
    lake.table().current().listing(lambda *_: known.append(len(dict(lake.table().inventory.known()))))
    assert known == [2, 4, 5]


def test_two_deployments_save_the_same_files_at_once(store: Store, state_url: str) -> None:
    peer = Store(state_url)
    names = [f"{number:04}" for number in range(1_500)]
    together = threading.Barrier(2)

    def save(database: Database, number: int) -> None:
        mine = Inventory(database, "t")
        order = names if number else names[::-1]
        for turn in range(3):
            together.wait()
            mine.save({name: known(turn, number) for name in order})
            mine.forget(order[:10])

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(save, each.database, n) for n, each in enumerate((store, peer))]:
            done.result()
    peer.close()
    found = dict(Inventory(store.database, "t").known())
    # Whoever came last saved every file in one transaction.
    assert len({each.crc for name, each in found.items() if name in names[10:-10]}) == 1
    assert set(names[10:-10]) <= found.keys()


def test_two_deployments_look_for_the_first_time_at_once(kept: Lake, state_url: str) -> None:
    for number in range(40):
        kept.write(f"{number}.parquet", number)
    peer = Store(state_url)
    lakes = [kept, Lake(kept.root, peer.database)]
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(Lake.look, lakes)
    peer.close()
    assert set(one.segments()) == set(other.segments())
    assert len(dict(kept.table().inventory.known())) == 40


# As version 1 had it: no table wrote there yet, but a database may have it.
_VERSION_1 = """
CREATE TABLE mv_inventory (
    table_name VARCHAR NOT NULL, name VARCHAR NOT NULL, identity VARCHAR NOT NULL, crc BIGINT NOT NULL,
    start_ms BIGINT, end_ms BIGINT, trusted BOOLEAN NOT NULL, PRIMARY KEY (table_name, name))
"""


@pytest.fixture
def version_1(deployment: Deployment, state_url: str) -> Deployment:
    deployment.fill(0, 1)
    deployment.store.close()
    engine = create_engine(state_url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE mv_inventory"))
        connection.execute(text(_VERSION_1))
        connection.execute(text("INSERT INTO mv_inventory VALUES ('t', 'a', '1 2 3', 4, 5, 6, true)"))
        connection.execute(text("DROP TABLE mv_trouble"))
        connection.execute(text("ALTER TABLE mv_view DROP COLUMN closed"))
        connection.execute(text("UPDATE mv_schema SET version = 1"))
    engine.dispose()
    return deployment


def test_an_inventory_of_version_1_is_made_anew_and_all_else_is_kept(
    version_1: Deployment, state_url: str
) -> None:
    migrated = Store(state_url)
    inventory = Inventory(migrated.database, "t")
    assert dict(inventory.known()) == {}
    inventory.save({"a": known()})
    assert dict(inventory.known()) == {"a": known()}
    migrated.close()
    assert dump(state_url)["mv_schema"] == [(schema.VERSION,)]
    assert (version_1.watermark, len(version_1.map().rows)) == (2, 2)

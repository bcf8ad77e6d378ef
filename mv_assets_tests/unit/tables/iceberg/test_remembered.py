"""What is remembered of metadata files: how little a commit costs, and that it never tells otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.types import LongType, TimestamptzType
from sqlalchemy import text, update

from mv_assets.state.store import schema
from mv_assets.tables.iceberg import blocks, rewrites
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.listing import Listing
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.unit.tables.iceberg import log
from mv_assets_tests.unit.tables.iceberg.tables import DAY, Create, Make, paths, rows


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of manifests and manifest lists, each time that one is opened."""
    names: list[str] = []
    really = PyArrowFileIO.new_input

    def open_and_note(io: PyArrowFileIO, location: str) -> object:
        if location.endswith(".avro"):
            names.append(Path(location).name)
        return really(io, location)

    monkeypatch.setattr(PyArrowFileIO, "new_input", open_and_note)
    return names


def forget_here() -> None:
    """As in another process."""
    blocks._recent.clear()
    rewrites._recent.clear()


def forget(inventory: Inventory) -> None:
    """As with another database."""
    assert inventory.database is not None
    with inventory.database.write() as connection:
        connection.execute(text("DELETE FROM mv_manifest"))


def told(listing: Listing) -> tuple[object, ...]:
    return (
        sorted(zip(listing.segments(), listing.sizes, listing.changed, listing.identities, strict=True)),
        listing.timeless,
        listing.nulls,
        listing.details,
        listing.rewrites,
    )


@pytest.mark.parametrize("elsewhere", [False, True])
def test_127_after_a_commit_only_its_manifest_list_and_manifest_are_read(
    create: Create,
    table: Make,
    opened: list[str],
    elsewhere: bool,  # noqa: FBT001
) -> None:
    made = create()
    for number in range(5):
        made.append(rows(number))
    assert len(table().current().listing()) == 5
    assert len(opened) >= 6
    made.append(rows(7))
    opened.clear()
    if elsewhere:
        forget_here()
    assert len(table().current().listing()) == 6
    assert sorted(name.partition("-")[0] == "snap" for name in opened) == [False, True]
    opened.clear()
    if elsewhere:
        forget_here()
    assert len(table().current().listing()) == 6
    assert opened == []


def test_127_deletes_and_rewrites_are_not_read_again_either(
    create: Create, table: Make, root: Path, opened: list[str]
) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    made.append(rows(2, v=[3]))
    first, second = paths(made)
    log.commit(root, log.position_deletes(root / "d.parquet", (first, 0)))
    log.commit(root, log.data_file("new", 1), remove=[second], operation="replace")
    before = told(table().current().listing())
    opened.clear()
    forget_here()
    assert told(table().current().listing()) == before
    assert opened == []
    log.commit(root, log.data_file("newer", 1))
    opened.clear()
    table().current().listing()
    assert len(opened) == 2


def test_128_without_the_cache_or_with_another_one_the_listing_is_the_same(
    create: Create, table: Make, root: Path
) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    log.commit(root, log.position_deletes(root / "d.parquet", (paths(made)[0], 0)))
    older = table().current()
    before = told(older.listing())
    log.commit(root, log.data_file("new", 1))
    now = told(table().current().listing())
    # The cache is newer than the version that is listed, and then older than it.
    assert told(older.listing()) == before
    forget_here()
    assert told(older.listing()) == before
    forget_here()
    assert told(table().current().listing()) == now
    forget(table().inventory)
    assert told(table().current().listing()) == now
    forget_here()
    assert told(table().current().listing()) == now
    forget(table().inventory)
    forget_here()
    assert told(table().current().listing()) == now


@pytest.mark.parametrize("spoiled", [{"content": b"no Arrow"}, {"content": b""}, {"layout": "0 1"}])
def test_128_what_is_remembered_otherwise_is_read_again(
    create: Create, table: Make, opened: list[str], spoiled: dict[str, object]
) -> None:
    create().append(rows(1))
    before = told(table().current().listing())
    database = table().inventory.database
    assert database is not None
    with database.write() as connection:
        connection.execute(update(schema.manifest).values(**spoiled))
    forget_here()
    opened.clear()
    assert told(table().current().listing()) == before
    assert len(opened) == 2


def test_another_time_column_is_not_taken_for_the_one_that_was_remembered(
    create: Create, table: Make
) -> None:
    made = create(("ts", TimestamptzType()), ("at", TimestamptzType()))
    micros = rows(1)["ts"]
    made.append(rows(1, at=rows(5)["ts"]))
    assert list(table().current().listing().starts) == [DAY]
    assert list(table(TimeColumn("at")).current().listing().starts) == [5 * DAY]
    assert list(table().current().listing().starts) == [DAY]
    # A column of the same name is another one as well.
    with made.update_schema() as change:
        change.delete_column("ts")
    with made.update_schema() as change:
        change.rename_column("at", "ts")
    assert list(table().current().listing().starts) == [5 * DAY]
    assert len(micros) == 1


def test_a_renamed_partition_column_and_an_expired_snapshot_are_told_anew(
    create: Create, table: Make
) -> None:
    made = create(("ts", TimestamptzType()), ("p", LongType()), by=("p",))
    made.append(rows(1, p=[7]))
    made.append(rows(2, p=[8]))
    listing = table().current().listing()
    assert [*listing.details.partitions.values()] == [{"p": "8"}, {"p": "7"}]
    assert all(listing.changed)
    with made.update_schema() as change:
        change.rename_column("p", "q")
    assert [*table().current().listing().details.partitions.values()] == [{"q": "8"}, {"q": "7"}]
    made.maintenance.expire_snapshots().by_id(made.metadata.snapshots[0].snapshot_id).commit()
    assert sorted(map(bool, table().current().listing().changed)) == [False, True]


def test_manifests_that_are_no_longer_the_tables_are_forgotten(create: Create, table: Make) -> None:
    made = create()
    made.append(rows(1))
    table().current().listing()
    made.overwrite(rows(2))
    made.append(rows(3))
    table().current().listing()
    database = table().inventory.database
    assert database is not None
    with database.read() as connection:
        known = {row.path for row in connection.execute(text("SELECT path FROM mv_manifest"))}
    snapshot = made.current_snapshot()
    assert snapshot is not None
    listed = {manifest.manifest_path for manifest in snapshot.manifests(made.io)}
    assert {path.partition(" ")[0] for path in known} == {snapshot.manifest_list, *listed}


def test_nothing_is_written_where_nothing_is_to_be_kept(create: Create, table: Make) -> None:
    create().append(rows(1))
    made = table()
    kept = made.inventory
    object.__setattr__(made, "inventory", Inventory(kept.database, kept.table, keep=False))
    assert len(made.current().listing()) == 1
    assert kept.database is not None
    with kept.database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM mv_manifest")).scalar() == 0

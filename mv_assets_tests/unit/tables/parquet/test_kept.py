"""A folder that is listed on from what was kept is as if it were listed anew, and says what changed."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mv_assets.state.model import Segment
from mv_assets.state.store.database import Database
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.listing import Listing
from mv_assets.tables.parquet.kept import KEPT
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.unit.tables.lake import DAY, LATER, SETTLE, TS, content, put
from mv_assets_tests.unit.tables.told import Told

NAMES = [f"part={number % 3}/{number}.parquet" for number in range(12)]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(f"sqlite:///{tmp_path}/state.db")
    made.open()
    yield made
    made.close()


def folder(root: Path, database: Database | None, clock: Callable[[], int]) -> ParquetFiles:
    inventory = Inventory(database, "events:00000000")
    return ParquetFiles("events", str(root), TS, inventory, clock, SETTLE)


def anew(table: ParquetFiles) -> Listing:
    """By a process that has kept nothing."""
    before = KEPT.get(table.place)
    KEPT.forget(table.place)
    listing = table.current().listing()
    KEPT.forget(table.place)
    if before is not None:
        KEPT.put(table.place, before, len(before.listing))
    return listing


def held(listing: Listing) -> tuple[object, ...]:
    columns = (listing.names, listing.crcs, listing.starts, listing.ends, listing.sizes, listing.identities)
    rest = (
        listing.timeless,
        listing.nulls,
        listing.broken,
        listing.schema,
        listing.recheck_at,
        listing.unread,
    )
    return (listing.version, sorted(zip(*columns, strict=True)), *rest)


def happens(root: Path, chance: random.Random) -> None:
    name = root / chance.choice(NAMES)
    first = chance.randrange(20) * DAY
    what = chance.choice(("rows", "rows", "rows", "no rows", "nulls", "damage", "goes", "goes", "twice"))
    if what == "goes":
        name.unlink(missing_ok=True)
    elif what == "no rows":
        put(name, content())
    elif what == "damage":
        put(name, b"no Parquet")
    elif what == "nulls":
        put(name, content(first, None))
    else:
        put(name, content(first, first + chance.randrange(3) * DAY))
        if what == "twice":
            # Another object with the same rows.
            name.rename(name.with_suffix(".was"))
            put(name, name.with_suffix(".was").read_bytes())
            name.with_suffix(".was").unlink()


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_and_listed_on_is_what_would_be_listed_anew(
    tmp_path: Path, database: Database, seed: int
) -> None:
    chance, clock = random.Random(seed), Clock(LATER)
    root = tmp_path / "events"
    root.mkdir()
    table = folder(root, database, clock)
    told = Told()
    for _ in range(40):
        for _ in range(chance.randrange(4)):
            happens(root, chance)
        listing = table.current().listing()
        assert held(listing) == held(anew(table))
        told.check(listing)
        for name in listing.broken:
            (root / name).unlink()
    assert told.times > 20


def test_only_what_changed_is_told(tmp_path: Path, database: Database) -> None:
    root, clock = tmp_path / "events", Clock(LATER)
    for day in range(5):
        put(root / f"{day}.parquet", content(day * DAY))
    table = folder(root, database, clock)
    first = table.current().listing()
    put(root / "late.parquet", content(2 * DAY))
    (root / "4.parquet").unlink()
    second = table.current().listing()
    changed = second.history.since(first.history.origin)
    assert changed is not None
    assert sorted((each.name, each.start_ms // DAY) for each in changed) == [
        ("4.parquet", 4),
        ("late.parquet", 2),
    ]
    assert second.history.since(second.history.origin) == []
    assert first.history.since(second.history.origin) is None


def test_a_young_file_is_read_at_each_look(tmp_path: Path, database: Database) -> None:
    """It may change within the time that tells its changes apart."""
    root = tmp_path / "events"
    file = put(root / "a.parquet", content(DAY))
    clock = Clock(int(file.stat().st_mtime * 1_000) + SETTLE // 2)
    table = folder(root, database, clock)
    table.current().listing()
    kept = KEPT.get(table.place)
    assert kept is not None
    assert kept.young == {"a.parquet"}
    # As a writer does whose second write the file's times don't show.
    segment = kept.listing.segment(0)
    crcs = array("q", [kept.listing.crcs[0] ^ 1])
    forged = replace(kept.listing, crcs=crcs, identities=array("q", [kept.listing.identities[0] ^ 1]))
    KEPT.put(table.place, replace(kept, listing=forged), 1)
    assert [*table.current().listing().segments()] == [segment]


def test_after_an_hour_nothing_that_was_kept_is_relied_on(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, clock = tmp_path / "events", Clock(LATER)
    put(root / "a.parquet", content(DAY))
    table = folder(root, database, clock)
    right = [*table.current().listing().segments()]
    kept = KEPT.get(table.place)
    assert kept is not None
    wrong = replace(kept.listing, starts=array("q", [0]))
    KEPT.put(table.place, replace(kept, listing=wrong), 1)
    clock.now += 3_599_999
    assert [*table.current().listing().segments()] == [
        Segment(right[0].name, right[0].crc, 0, right[0].end_ms)
    ]
    clock.now += 1
    assert [*table.current().listing().segments()] == right
    KEPT.put(table.place, replace(kept, listing=wrong), 1)
    monkeypatch.setenv("MV_ASSETS_WHOLE_LOOK", "0")
    assert [*table.current().listing().segments()] == right

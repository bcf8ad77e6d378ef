"""What is remembered of a table between looks: cost follows the change, and what is stale is not used."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.fs import DeltaStorageHandler
from sqlalchemy import delete, func, select, update

from mv_assets.state.store.schema import remembered
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.delta.remembered import KEPT
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.listing import Listing
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.proof.lakehouse.mutants import MUTANTS
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.library import same
from mv_assets_tests.unit.tables.delta.rows import DAY, NOW, Make, ranges, rows

FILES = 40


@pytest.fixture
def many(root: Path) -> Path:
    """A table of many files, summed up in a checkpoint."""
    log.commit(
        root,
        log.protocol("deletionVectors"),
        log.metadata(log.column("ts", "timestamp"), log.column("p", "string"), partitioned=("p",)),
        *(log.add(f"p={at % 3}/f {at}.parquet", day(at), {"p": str(at % 3)}) for at in range(FILES)),
    )
    DeltaTable(root).create_checkpoint()
    return root


def day(number: int) -> log.Action:
    return log.stats(
        "ts", f"2024-01-{number % 28 + 1:02}T00:00:00Z", f"2024-01-{number % 28 + 1:02}T01:00:00Z"
    )


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which files of the log are read, or the word library where it opens the table."""
    found: list[str] = []
    reading, opening = DeltaStorageHandler.open_input_file, DeltaTable.__init__

    def read(self: DeltaStorageHandler, path: str) -> pa.PythonFile:
        file = reading(self, path)
        found.append(path.removeprefix("_delta_log/"))
        return file

    def open_table(self: DeltaTable, *given: Any, **named: Any) -> None:
        found.append("library")
        opening(self, *given, **named)

    monkeypatch.setattr(DeltaStorageHandler, "open_input_file", read)
    monkeypatch.setattr(DeltaTable, "__init__", open_table)
    return found


def new_process() -> None:
    KEPT.clear()


def forget(table: DeltaFiles) -> None:
    """Throw away what is remembered."""
    new_process()
    assert table.inventory.database is not None
    with table.inventory.database.write() as connection:
        connection.execute(delete(remembered))


def told(listing: Listing) -> dict[str, object]:
    """A listing without its order."""
    segments = zip(listing.segments(), listing.sizes, listing.changed, listing.identities, strict=True)
    return {
        "version": listing.version,
        "segments": sorted(segments, key=str),
        "timeless": listing.timeless,
        "nulls": listing.nulls,
        "details": listing.details,
        "schema": listing.schema,
    }


def file_of(version: int) -> str:
    return f"{version:020}.json"


# Case 127


def test_a_look_after_one_commit_reads_that_commit_only(many: Path, table: Make, opened: list[str]) -> None:
    table().current().listing()
    log.commit(many, log.add("new.parquet", day(1), {"p": None}))
    opened.clear()
    listing = table().current().listing()
    assert opened == [file_of(0), file_of(1)]
    assert "new.parquet" in listing.names
    assert len(listing) == FILES + 1


@pytest.mark.usefixtures("many")
def test_a_look_at_what_did_not_change_reads_the_last_commit_only(table: Make, opened: list[str]) -> None:
    first = table().current().listing()
    opened.clear()
    assert told(table().current().listing()) == told(first)
    assert opened == [file_of(0)]


def test_so_does_the_first_look_of_a_new_process(many: Path, table: Make, opened: list[str]) -> None:
    table().current().listing()
    log.commit(many, log.remove("p=0/f 0.parquet"), log.add("new.parquet", day(1), {"p": None}))
    new_process()
    opened.clear()
    listing = table().current().listing()
    assert opened == [file_of(0), file_of(1)]
    forget(table())
    assert told(listing) == told(table().current().listing())


def test_commits_since_the_last_look_are_each_read_once(many: Path, table: Make, opened: list[str]) -> None:
    for at in range(3):
        table().current().listing()
        for _ in range(2):
            log.commit(many, log.add(f"n{len(list(many.glob('_delta_log/*')))}.parquet", day(at), {"p": "x"}))
    opened.clear()
    assert len(table().current().listing()) == FILES + 6
    assert opened == [file_of(4), file_of(5), file_of(6)]


def test_what_is_remembered_is_written_seldom_for_small_changes(
    many: Path, table: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = []
    saving = Inventory.remember

    def remember(self: Inventory, contents: Mapping[str, bytes]) -> None:
        writes.append(len(contents))
        saving(self, contents)

    monkeypatch.setattr(Inventory, "remember", remember)
    table().current().listing()
    for at in range(32):
        log.commit(many, log.add(f"n{at}.parquet", day(at), {"p": "x"}))
        table().current().listing()
    assert 3 <= len(writes) <= 9
    new_process()
    same(table(), table().current().listing(), many)


def test_footers_of_files_without_statistics_are_asked_once(root: Path, table: Make) -> None:
    log.commit(root, log.protocol(), log.metadata(log.column("ts", "timestamp")))
    seen: list[int] = []
    for at in range(6):
        pq.write_table(rows(at, None), root / f"f{at}.parquet")
        log.commit(root, log.add(f"f{at}.parquet"))
        seen.clear()
        listing = table().current().listing(lambda *counts: seen.append(counts[2]))
        assert seen == [1]
        assert ranges(listing) == [(day * DAY, day * DAY) for day in range(at + 1)]
        assert len(listing.nulls) == at + 1
    for file in root.glob("*.parquet"):
        file.unlink()
    for lose in ("nothing", "the process", "all"):
        if lose != "nothing":
            new_process()
        if lose == "all":
            forget(table())
        again = table().current().listing()
        assert told(again) == told(listing)
        assert not again.broken


def test_a_broken_file_is_asked_again_and_known_ones_are_not(root: Path, table: Make) -> None:
    log.commit(root, log.protocol(), log.metadata(log.column("ts", "timestamp")))
    log.commit(root, log.add("f.parquet"), log.add("g.parquet"))
    pq.write_table(rows(1), root / "f.parquet")
    (root / "g.parquet").write_bytes(b"no Parquet")
    for _ in range(2):
        listing = table().current().listing()
        assert (listing.names, list(listing.broken)) == (["f.parquet"], ["g.parquet"])
    (root / "f.parquet").unlink()
    pq.write_table(rows(2), root / "g.parquet")
    assert ranges(table().current().listing()) == [(DAY, DAY), (2 * DAY, 2 * DAY)]


LATER = NOW + 3_600_000


def lost(many: Path, table: Make, *, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake: once a commit was followed, a file that it does not name is no longer listed."""
    table().current().listing()
    if whole:
        # So many files change that the list is saved as well.
        log.commit(many, *(log.add(f"n{at}.parquet", day(at), {"p": "x"}) for at in range(FILES)))
    else:
        log.commit(many, log.add("n0.parquet", day(0), {"p": "x"}))
    with monkeypatch.context() as patch:
        MUTANTS["a file that is lost by a commit"][0](patch)
        table().current().listing()


@pytest.mark.parametrize("process", ["the same", "another"])
@pytest.mark.parametrize("then", ["nothing", "a commit"])
def test_a_file_that_was_lost_is_back_with_the_next_whole_look(
    many: Path, table: Make, process: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost(many, table, whole=process == "another", monkeypatch=monkeypatch)
    if process == "another":
        new_process()
    if then == "a commit":
        log.commit(many, log.add("last.parquet", day(2), {"p": "x"}))
    afterwards = replace(table(), clock=lambda: LATER)
    with_all = len(DeltaTable(many).file_uris())
    # Else there was nothing to find.
    assert len(table().current().listing()) == with_all - 1
    found = afterwards.current().listing()
    same(afterwards, found, many)
    assert len(found) == with_all


def test_a_whole_look_is_told_from_those_that_go_on_from_it(
    many: Path, table: Make, opened: list[str]
) -> None:
    """By the time of the last one, in whichever process that was, whatever was followed since."""
    table().current().listing()
    log.commit(many, *(log.add(f"n{at}.parquet", day(at), {"p": "x"}) for at in range(FILES)))
    half = replace(table(), clock=lambda: NOW + 1_800_000)
    half.current().listing()
    new_process()
    opened.clear()
    replace(table(), clock=lambda: LATER - 1).current().listing()
    assert opened == [file_of(1)]
    replace(table(), clock=lambda: LATER).current().listing()
    assert any("checkpoint" in name for name in opened)
    opened.clear()
    replace(table(), clock=lambda: LATER + 1).current().listing()
    assert opened == [file_of(1)]


def test_what_is_remembered_and_contradicts_a_commit_is_read_anew(many: Path, table: Make) -> None:
    """A file that a commit brings is there already, by mistake."""
    table().current().listing()
    [(key, (before, _))] = KEPT._kept.items()
    log.commit(many, log.add("n0.parquet", day(0), {"p": "x"}))
    table().current().listing()
    [(after, _)] = KEPT._kept.values()
    KEPT.put(key, after._replace(head=before.head), 1)
    same(table(), table().current().listing(), many)


# Case 128


def restored(root: Path, table: Make) -> None:
    """From a backup, after which the same versions are written once more."""
    backup = shutil.copytree(root, root.with_name("backup"))
    write(root, 1)
    write(root, 2)
    table().current().listing()
    shutil.rmtree(root)
    shutil.copytree(backup, root)
    write(root, 3)


def write(root: Path, number: int) -> None:
    write_deltalake(root, rows(number, p=["x"]), mode="append", partition_by=["p"])


def older(root: Path, table: Make) -> None:
    table().current().listing()
    backup = shutil.copytree(root, root.with_name("backup"))
    write(root, 1)
    table().current().listing()
    shutil.rmtree(root)
    shutil.copytree(backup, root)


def cleaned_up(root: Path, table: Make) -> None:
    table().current().listing()
    write(root, 1)
    write(root, 2)
    DeltaTable(root).create_checkpoint()
    for version in range(3):
        (root / "_delta_log" / file_of(version)).unlink()


def another_schema(root: Path, table: Make) -> None:
    table().current().listing()
    write_deltalake(root, rows(1, p=["x"], new=[1]), mode="append", schema_mode="merge")


def another_table(root: Path, table: Make) -> None:
    table().current().listing()
    shutil.rmtree(root)
    write(root, 1)


def another_protocol(root: Path, table: Make) -> None:
    table().current().listing()
    log.commit(root, log.protocol("deletionVectors", "timestampNtz"))


def many_commits(root: Path, table: Make) -> None:
    table().current().listing()
    for at in range(120):
        log.commit(root, log.add(f"c{at}.parquet", day(at), {"p": "x"}))


STALE: dict[str, Callable[[Path, Make], None]] = {
    "restored from a backup": restored,
    "older than what is remembered": older,
    "cleaned up": cleaned_up,
    "of another schema": another_schema,
    "another table": another_table,
    "of another protocol": another_protocol,
    "many commits further": many_commits,
}


@pytest.mark.parametrize("process", ["the same", "another"])
@pytest.mark.parametrize("how", STALE)
def test_what_is_remembered_is_not_used_for_a_table_that_is(
    many: Path, table: Make, how: str, process: str
) -> None:
    STALE[how](many, table)
    if process == "another":
        new_process()
    found = table().current().listing()
    forget(table())
    afresh = table().current().listing()
    assert told(found) == told(afresh)
    same(table(), found, many)


@pytest.mark.parametrize("content", [b"", b"[1]", b"\xff" * 50])
@pytest.mark.parametrize("kind", ["head", "files"])
@pytest.mark.usefixtures("many")
def test_what_is_remembered_and_damaged_is_not_used(table: Make, kind: str, content: bytes) -> None:
    before = told(table().current().listing())
    new_process()
    database = table().inventory.database
    assert database is not None
    with database.write() as connection:
        connection.execute(update(remembered).where(remembered.c.kind == kind).values(content=content))
    assert told(table().current().listing()) == before


def test_files_that_another_process_remembered_meanwhile_are_not_taken_for_those_of_an_earlier_version(
    many: Path, table: Make
) -> None:
    table().current().listing()
    new_process()
    seen = table().current()
    write(many, 1)
    forget(table())
    table().current().listing()
    new_process()
    listing = seen.listing()
    assert len(listing) == FILES
    assert listing.version == seen.version


@pytest.mark.usefixtures("many")
def test_another_time_column_has_a_memory_of_its_own(root: Path, table: Make) -> None:
    write_deltalake(root, rows(3, p=["x"]), mode="append")
    before = told(table().current().listing())
    dimension = table(None).current().listing()
    assert len(dimension) == FILES + 1
    assert told(table().current().listing()) == before
    assert table(TimeColumn("TS")).current().listing().names


def test_without_keeping_nothing_is_written(many: Path, table: Make) -> None:
    made = table(keep=False)
    made.current().listing()
    write(many, 1)
    made.current().listing()
    assert made.inventory.database is not None
    with made.inventory.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(remembered)).scalar() == 0


def test_what_is_remembered_holds_all_that_a_listing_tells(root: Path, tmp_path: Path, table: Make) -> None:
    pq.write_table(rows(4), tmp_path / "else where.parquet")
    log.commit(
        root,
        log.protocol("deletionVectors"),
        log.metadata(log.column("ts", "timestamp"), log.column("p", "date"), partitioned=("p",)),
        log.add("a%20b.parquet", day(1), {"p": "2024-01-01"}, deletionVector=log.deletion_vector(1)),
        log.add("c.parquet", day(2), {"p": None}),
        log.add("nulls.parquet", {"numRecords": 2, "nullCount": {"ts": 2}}, {"p": None}),
        log.add("empty.parquet", {"numRecords": 0}, {"p": "2024-01-02"}),
        log.add("gone.parquet", None, {"p": "2024-01-02"}),
        log.add(f"file://{tmp_path}/else%20where.parquet", None, {"p": "2024-01-02"}),
    )
    first = table().current().listing()
    for throw_away in (new_process, lambda: forget(table())):
        throw_away()
        again = table().current().listing()
        assert told(again) == told(first)
        assert again.broken == first.broken
        assert again.path(again.names[-1]) == f"file://{tmp_path}/else where.parquet"
    log.commit(root, log.remove("a%20b.parquet", deletionVector=log.deletion_vector(1)))
    new_process()
    last = table().current().listing()
    assert "a b.parquet" not in last.listed()
    assert not last.details.deletes
    assert not last.details.partitions.keys() - last.listed()


def test_a_listing_that_was_given_away_stays_as_it_is(many: Path, table: Make) -> None:
    first = table().current().listing()
    before = told(first)
    details = {name: dict(values) for name, values in first.details.partitions.items()}
    log.with_vector(many, log.deletion_vector(1))
    log.commit(many, log.remove("p=1/f 1.parquet"), log.add("new.parquet", day(1), {"p": "y"}))
    table().current().listing()
    assert told(first) == before
    assert first.details.partitions == details

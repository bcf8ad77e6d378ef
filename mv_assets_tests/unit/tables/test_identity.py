"""What tells that a file is the same, and how little a look reads."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from mv_assets.tables.files.folders import Entry, Walk
from mv_assets.tables.files.local import LocalFolder
from mv_assets_tests.unit.tables.lake import (
    LATER,
    SETTLE,
    Lake,
    changed_at,
    content,
    crcs,
    put,
    ranges,
    whole,
)


def test_26_touch_copy_restore_and_replacement_leave_the_fingerprint(lake: Lake, tmp_path: Path) -> None:
    file = lake.write("a.parquet", 1)
    lake.write("b.parquet", 2)
    before, away = whole(lake.look()), tmp_path / "away"

    file.touch()
    assert whole(lake.look()) == before
    shutil.copy(file, away)
    shutil.copy(away, file)
    assert whole(lake.look()) == before
    file.unlink()
    assert whole(lake.look()) != before
    shutil.copy2(away, file)
    assert whole(lake.look()) == before
    away.replace(file)
    assert whole(lake.look()) == before


def test_26_one_changed_byte_is_seen_though_size_and_time_are_forged_back(lake: Lake) -> None:
    file = lake.write("a.parquet", 1)
    was, before = file.stat(), lake.look()
    data = bytearray(file.read_bytes())
    data[4] ^= 1
    put(file, bytes(data))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (was.st_size, was.st_mtime_ns)
    assert lake.version() != before.version
    assert crcs(lake.look()) != crcs(before)


def test_26_a_file_swapped_for_one_of_the_same_size_and_time_is_seen(lake: Lake, tmp_path: Path) -> None:
    file = lake.write("a.parquet", 1)
    was, before = file.stat(), lake.look()
    other = put(tmp_path / "other", content(2))
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    other.replace(file)
    assert ranges(lake.look()) == {"a.parquet": (2, 2)}
    assert whole(lake.look()) != whole(before)


def test_the_checksum_is_of_the_content_alone(lake: Lake) -> None:
    lake.write("a.parquet", 1)
    lake.write("x/b.parquet", 1)
    lake.write("c.parquet", 2)
    found = crcs(lake.look())
    assert found["a.parquet"] == found["x/b.parquet"] != found["c.parquet"]


def test_every_part_of_a_large_file_counts(lake: Lake) -> None:
    large = bytes(9 << 20)
    seen = set()
    for at in (None, 0, (4 << 20) - 1, 4 << 20, (8 << 20) + 5, (9 << 20) - 1):
        data = bytearray(large)
        if at is not None:
            data[at] = 1
        put(lake.root / "a=1" / "ts=1970-01-01" / "a.parquet", bytes(data))
        seen.add(whole(lake.look()))
    assert len(seen) == 6


def test_an_unchanged_look_reads_no_file(lake: Lake, opened: list[str]) -> None:
    for number in range(20):
        lake.write(f"{number}.parquet", number)
    lake.write("empty.parquet")
    lake.damage("broken.parquet")
    first = lake.look()
    opened.clear()
    again = lake.look()
    assert opened == []
    assert (crcs(again), ranges(again), again.broken) == (crcs(first), ranges(first), first.broken)
    assert (again.version, again.recheck_at) == (first.version, None)


def test_a_look_reads_only_what_changed(lake: Lake, opened: list[str]) -> None:
    files = [lake.write(f"{number}.parquet", number) for number in range(5)]
    lake.look()
    opened.clear()
    put(files[3], content(33))
    lake.write("new.parquet", 5)
    assert ranges(lake.look())["3.parquet"] == (33, 33)
    assert set(opened) == {"3.parquet", "new.parquet"}


def test_the_version_changes_when_a_file_comes_goes_changes_or_is_renamed(lake: Lake) -> None:
    seen = [lake.version()]
    file = lake.write("a.parquet", 1)
    seen.append(lake.version())
    put(file, content(2))
    seen.append(lake.version())
    file = file.rename(lake.root / "b.parquet")
    seen.append(lake.version())
    lake.write("c.parquet", 1)
    seen.append(lake.version())
    assert len(set(seen)) == 5
    (lake.root / "c.parquet").unlink()
    assert lake.version() == seen[3] == lake.version()


def test_the_version_does_not_depend_on_the_listing_order() -> None:
    order = random.Random(1)
    entries = [(f"{n}", Entry(order.randint(-(2**63), 2**63 - 1), n, n)) for n in range(100)]
    versions = set()
    for _ in range(5):
        walk = Walk("")
        for name, entry in order.sample(entries, len(entries)):
            walk.add(name, entry)
        versions.add(walk.version)
    assert len(versions) == 1


def test_two_files_that_exchange_their_names_are_a_change(lake: Lake) -> None:
    one, other = lake.write("a.parquet", 1), lake.write("b.parquet", 2)
    before, fingerprint = lake.version(), whole(lake.look())
    swap = one.rename(lake.root / "c")
    other.rename(one)
    swap.rename(other)
    assert lake.version() != before
    assert whole(lake.look()) != fingerprint


def test_a_checksum_of_a_young_file_is_taken_again(lake: Lake, opened: list[str]) -> None:
    file = lake.write("a.parquet", 1)
    lake.age(file, SETTLE)
    assert lake.look().recheck_at == changed_at(file) + 2 * SETTLE
    opened.clear()
    lake.age(file, SETTLE + 1)
    assert lake.look().recheck_at is None
    assert set(opened) == {"a.parquet"}
    opened.clear()
    assert lake.look().recheck_at is None
    assert opened == []


def test_a_look_at_the_recheck_time_comes_to_trust_a_file_that_rests(lake: Lake) -> None:
    file = lake.write("a.parquet", 1)
    lake.age(file, 0)
    for _ in range(3):
        at = lake.look().recheck_at
        if at is None:
            break
        assert at > lake.clock.now
        lake.clock.now = at
    assert lake.look().recheck_at is None


def test_a_file_dated_ahead_of_the_clock_is_not_trusted_before_that_date(lake: Lake) -> None:
    file = lake.write("a.parquet", 1)
    lake.age(file, -10 * SETTLE)
    found = lake.look()
    assert found.recheck_at == found.at + SETTLE


def test_the_listing_tells_size_age_and_identity(lake: Lake) -> None:
    file = lake.write("a.parquet", 1)
    found = lake.look()
    assert (found.sizes[0], found.changed[0]) == (file.stat().st_size, changed_at(file))
    entry = LocalFolder(str(lake.root)).entry("a.parquet")
    assert entry is not None
    assert entry.identity == found.identities[0] ^ found.crcs[0]
    file.touch()
    assert LocalFolder(str(lake.root)).entry("a.parquet") != entry
    file.unlink()
    assert LocalFolder(str(lake.root)).entry("a.parquet") is None


def test_a_file_that_changes_after_the_walk_is_listed_as_it_was_read(lake: Lake) -> None:
    file = lake.write("a.parquet", 1)
    version = lake.table().current()
    put(file, content(2))
    found = version.listing()
    assert ranges(found) == {"a.parquet": (2, 2)}
    assert found.identities[0] == lake.look().identities[0]
    assert lake.version() != found.version


def test_a_file_that_changes_while_it_is_read_is_read_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lake.write("a.parquet", 1)
    writes = [content(2), content(3)]
    really = LocalFolder.open

    def change_then_open(folder: LocalFolder, name: str) -> object:
        if writes:
            put(file, writes.pop(0))
        return really(folder, name)

    monkeypatch.setattr(LocalFolder, "open", change_then_open)
    found = lake.look()
    assert (ranges(found), found.broken) == ({"a.parquet": (3, 3)}, {})
    monkeypatch.undo()
    assert crcs(lake.look()) == crcs(found)


def test_a_file_that_never_rests_is_broken_and_looked_at_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lake.write("a.parquet", 1)
    lake.write("b.parquet", 5)
    really = LocalFolder.open

    def change_then_open(folder: LocalFolder, name: str) -> object:
        if name == "a.parquet":
            put(file, content(2))
        return really(folder, name)

    monkeypatch.setattr(LocalFolder, "open", change_then_open)
    found = lake.look()
    assert str(found.broken["a.parquet"]) == "file a.parquet: it changed each time it was read"
    assert found.recheck_at == LATER + SETTLE
    assert ranges(found) == {"b.parquet": (5, 5)}
    monkeypatch.undo()
    assert ranges(lake.look()) == {"a.parquet": (2, 2), "b.parquet": (5, 5)}

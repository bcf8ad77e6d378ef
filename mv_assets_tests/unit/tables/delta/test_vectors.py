"""Deletion vectors, written by hand; what the deltalake library makes of the same ones is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from mv_assets.errors import MvError
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.listing import Listing
from mv_assets.tables.parquet.footer import Unusable
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.library import deleted_by_library
from mv_assets_tests.unit.tables.delta.rows import DAY, Make, only, ranges, rows

ROWS = 70_000


def deleted(table: DeltaFiles, listing: Listing | None = None) -> dict[str, list[int]]:
    listing = listing or table.current().listing()
    return {name: table.deleted(listing, name).to_pylist() for name in sorted(listing.details.deletes)}


def crc(table: DeltaFiles) -> int:
    (found,) = table.current().listing().crcs
    return found


@pytest.fixture
def days(root: Path) -> Path:
    """One file with a row a day."""
    write_deltalake(root, rows(*range(10)))
    return root


@pytest.fixture
def long(root: Path) -> Path:
    """One file with more rows than one container of a bitmap has."""
    write_deltalake(root, rows(*[1] * ROWS))
    return root


SETS = {
    "one": [3],
    "first and last": [0, ROWS - 1],
    "in two containers": [5, 65_535, 65_536],
    "a run": list(range(100, 5_000)),
    "scattered": list(range(0, ROWS, 3)),
    "all": list(range(ROWS)),
}

KINDS: dict[str, Callable[[Path, list[int]], log.Action]] = {
    "inline": lambda _, places: log.deletion_vector(*places),
    "relative": lambda root, places: log.vector_file(root, places)[0],
    "under a prefix": lambda root, places: log.vector_file(root, places, prefix="ab")[0],
    "absolute": lambda root, places: log.vector_file(root, places, absolute=True)[0],
}


@pytest.mark.parametrize("places", SETS.values(), ids=SETS.keys())
@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_deletes_what_the_library_says(
    long: Path, table: Make, kind: str, places: list[int]
) -> None:
    log.with_vector(long, KINDS[kind](long, places))
    name = only(table().current().listing())
    assert deleted(table()) == {name: places} == deleted_by_library(long)


@pytest.mark.usefixtures("days")
def test_files_without_a_vector_have_no_row_deleted(table: Make) -> None:
    listing = table().current().listing()
    assert not listing.details.deletes
    assert table().deleted(listing, only(listing)).to_pylist() == []


def test_two_files_share_one_file_of_vectors(days: Path, table: Make) -> None:
    write_deltalake(days, rows(20, 21, 22), mode="append")
    first, second = (file["path"] for file in log.actions(days, "add"))
    for path, vector in zip((first, second), log.vector_file(days, [1, 2], [0]), strict=True):
        log.with_vector(days, vector, path)
    assert deleted(table()) == {first: [1, 2], second: [0]} == deleted_by_library(days)


def test_a_vector_is_part_of_the_checksum_and_taking_it_back_reverts_it(days: Path, table: Make) -> None:
    seen = [crc(table())]
    vectors = [log.deletion_vector(1), *log.vector_file(days, [1], [1, 2]), None]
    for vector in vectors:
        log.with_vector(days, vector)
        seen.append(crc(table()))
    assert len(set(seen)) == 4
    assert seen[0] == seen[-1]
    DeltaTable(days).restore(1)
    assert crc(table()) == seen[1]


@pytest.mark.parametrize("reader", ["files", "spark"])
def test_a_vector_changes_one_segment_only_and_not_where_it_lies(
    days: Path, table: Make, reader: str
) -> None:
    write_deltalake(days, rows(20), mode="append")
    made = table(reader=reader)
    before = made.current().listing()
    log.with_vector(days, log.deletion_vector(0), log.actions(days, "add")[0]["path"])
    after = made.current().listing()
    assert ranges(after) == ranges(before) == [(0, 9 * DAY), (20 * DAY, 20 * DAY)]
    assert len(set(before.segments()) & set(after.segments())) == 1


def test_no_vector_is_read_while_looking(days: Path, table: Make) -> None:
    (vector,) = log.vector_file(days, [1])
    log.with_vector(days, vector)
    next(days.glob("deletion_vector_*")).unlink()
    listing = table().current().listing()
    assert ranges(listing) == [(0, 9 * DAY)]
    with pytest.raises(Unusable, match=r"deletion vector deletion_vector_.*\.bin is not there"):
        table().deleted(listing, only(listing))


def test_statistics_that_are_no_longer_tight_are_still_bounds(days: Path, table: Make) -> None:
    stated = json.loads(log.actions(days, "add")[0]["stats"]) | {"tightBounds": False}
    log.with_vector(days, log.deletion_vector(0, 9), stats=json.dumps(stated))
    assert ranges(table().current().listing()) == [(0, 9 * DAY)]


def test_a_file_of_which_all_rows_are_deleted_is_still_a_segment(days: Path, table: Make) -> None:
    # Its vector is read with its rows, so that a wrong one is noticed.
    log.with_vector(days, log.deletion_vector(*range(10)))
    assert ranges(table().current().listing()) == [(0, 9 * DAY)]


def test_nulls_are_counted_as_the_log_states_them_deleted_or_not(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, None, None))
    log.with_vector(root, log.deletion_vector(1))
    assert list(table().current().listing().nulls.values()) == [2]


def test_a_vector_survives_a_checkpoint_and_a_new_process(days: Path, table: Make) -> None:
    log.with_vector(days, log.vector_file(days, [1, 4])[0])
    before = table(keep=False).current().listing()
    DeltaTable(days).create_checkpoint()
    assert table(keep=False).current().listing().details == before.details
    assert deleted(table()) == deleted_by_library(days)


# What does not fit


def changed(vector: log.Action, **values: object) -> log.Action:
    return {**vector, **values}


WRONG: dict[str, Callable[[Path], log.Action]] = {
    "it deletes 2 rows instead of 3": lambda _: changed(log.deletion_vector(1, 2), cardinality=3),
    "it deletes row 10 of a file of 10": lambda _: log.deletion_vector(2, 10),
    "bytes instead of 8": lambda _: changed(log.deletion_vector(2), sizeInBytes=8),
    "not written in base 85": lambda _: changed(log.deletion_vector(2), pathOrInlineDv="~" * 10),
    "unknown format": lambda _: log.described("i", log.z85(b"\0" * 24), b"\0" * 24, [1]),
    "Could not deserialize": lambda _: log.described(
        "i", log.z85(log.bitmap(1)[:4] + b"\xff" * 20), b"\0" * 24, [1]
    ),
    "should lie in": lambda root: changed(log.vector_file(root, [1])[0], offset=1_000),
    "says to have": lambda root: changed(log.vector_file(root, [1], [2])[0], sizeInBytes=30),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_vector_that_does_not_fit_is_refused(days: Path, table: Make, why: str) -> None:
    log.with_vector(days, WRONG[why](days))
    listing = table().current().listing()
    with pytest.raises(Unusable, match=rf"deletion vector .*{why}.*(restore|rewrite)"):
        table().deleted(listing, only(listing))


def test_another_row_count_in_the_log_is_noticed_where_it_is_known_only(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, 2))
    log.with_vector(root, log.deletion_vector(7), stats=None)
    listing = table().current().listing()
    assert table().deleted(listing, only(listing)).to_pylist() == [7]


def test_every_bit_flip_in_a_vector_file_is_noticed(days: Path, table: Make) -> None:
    log.with_vector(days, log.vector_file(days, [1, 2, 5])[0])
    (file,) = days.glob("deletion_vector_*")
    whole, made = file.read_bytes(), table()
    listing = made.current().listing()
    name = only(listing)
    for at in range(len(whole)):
        for bit in range(8):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            with pytest.raises(Unusable, match=f"deletion vector {file.name}"):
                made.deleted(listing, name)
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(Unusable, match=f"deletion vector {file.name}"):
            made.deleted(listing, name)


def test_flips_in_an_inline_vector_end_as_with_the_library(days: Path, table: Make) -> None:
    """It has no checksum: what still decodes to as many rows of the file is data."""
    whole = log.bitmap(1, 2, 5)
    made, refused = table(), 0
    for flipped in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[flipped // 8] ^= 1 << flipped % 8
        (days / "_delta_log" / f"{1:020}.json").unlink(missing_ok=True)
        log.with_vector(days, log.described("i", log.z85(bytes(damaged)), whole, [1, 2, 5]))
        listing = made.current().listing()
        name = only(listing)
        try:
            found = made.deleted(listing, name).to_pylist()
        except Unusable:
            refused += 1
        else:
            assert found == deleted_by_library(days)[name]
            assert len(found) == 3
    assert refused > 6 * len(whole)


def test_a_vector_that_is_described_wrong_makes_the_table_unreadable(days: Path, table: Make) -> None:
    for wrong in ({"storageType": "x"}, {"sizeInBytes": "36"}, {"offset": 1.5}, {"pathOrInlineDv": None}):
        before = (days / "_delta_log").glob("0*.json")
        latest = max(before)
        log.with_vector(days, changed(log.deletion_vector(1), **wrong))
        with pytest.raises(MvError, match="table 't'"):
            table().current().listing()
        max((days / "_delta_log").glob("0*.json")).unlink()
        assert max((days / "_delta_log").glob("0*.json")) == latest


def test_bytes_that_databricks_wrote_for_one_deleted_row_are_those_of_the_tests() -> None:
    data = bytes.fromhex("d1d339640100000000000000000000003a3000000100000000000000100000000100")
    assert data == log.bitmap(1)

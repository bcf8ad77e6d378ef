"""Files that hold current rows beside others: what must be copied, and no more."""

from __future__ import annotations

from mv_assets.maintain.compaction import Holding
from mv_assets.state.model import _SEAL, DataFile, PartitionRow, State


def row(bucket: int, rows: int = 1) -> PartitionRow:
    return PartitionRow(bucket, State.VALID, 1, generation="g", rows=rows, seal=_SEAL)


def held(*live: int, **files: tuple[int, ...]) -> Holding:
    data = tuple(DataFile(name, 10, len(buckets), buckets) for name, buckets in files.items())
    return Holding("g", data, tuple(map(row, live)))


def test_files_of_live_buckets_alone_stay() -> None:
    holding = held(1, 2, 3, a=(1, 2), b=(3,))
    assert holding.mixed().files == ()
    assert [file.path for file in holding.whole_files()] == ["a", "b"]


def test_a_file_without_a_live_bucket_is_nobodys() -> None:
    holding = held(3, a=(1, 2), b=(3,))
    assert holding.mixed().files == ()
    assert [file.path for file in holding.whole_files()] == ["b"]


def test_only_the_file_with_a_dead_bucket_is_copied() -> None:
    holding = held(1, 3, a=(1, 2), b=(3,))
    mixed = holding.mixed()
    assert [file.path for file in mixed.files] == ["a"]
    assert [each.bucket for each in mixed.rows] == [1]
    assert [file.path for file in holding.whole_files()] == ["b"]


def test_a_bucket_is_copied_from_all_its_files_and_with_it_what_is_in_those() -> None:
    holding = held(1, 3, 4, 5, a=(1, 2), b=(1, 3), c=(3, 4), d=(5,))
    mixed = holding.mixed()
    assert [file.path for file in mixed.files] == ["a", "b", "c"]
    assert [each.bucket for each in mixed.rows] == [1, 3, 4]


def test_where_it_was_not_noted_what_files_hold_all_are_copied_or_none() -> None:
    files = (DataFile("a", 10, 2), DataFile("b", 10, 1))
    assert Holding("g", files, (row(1, 2), row(2))).mixed().files == ()
    assert Holding("g", files, (row(1, 2),)).mixed().files == files

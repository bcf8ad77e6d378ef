"""A folder of Parquet files as one look lists it."""

from __future__ import annotations

import errno
import io
import time
from itertools import count

import pyarrow as pa
import pytest

from mv_assets.state.model import EMPTY
from mv_assets.tables.errors import TableRefused
from mv_assets.tables.files.local import LocalFolder
from mv_assets.tables.listing import ALWAYS, Broken
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.unit.tables.lake import (
    LATER,
    SETTLE,
    Lake,
    changed_at,
    content,
    crcs,
    put,
    ranges,
    table_content,
    whole,
)


def test_an_empty_table_has_the_empty_fingerprint(lake: Lake) -> None:
    assert whole(lake.look()) == EMPTY


def test_97_the_same_base_name_in_two_folders_is_two_segments(lake: Lake) -> None:
    lake.write("day=1/part-0.parquet", 1)
    one = whole(lake.look())
    lake.write("day=2/part-0.parquet", 1)
    found = lake.look()
    assert sorted(found.names) == ["day=1/part-0.parquet", "day=2/part-0.parquet"]
    assert (whole(found).segment_count, one.segment_count) == (2, 1)


def test_rows_without_a_time_are_counted_by_file(lake: Lake) -> None:
    lake.write("a.parquet", 1, None, None)
    lake.write("b.parquet", None)
    lake.write("c.parquet", 3)
    for _ in range(2):
        found = lake.look()
        assert found.nulls == {"a.parquet": 2, "b.parquet": 1}
        assert ranges(found) == {"a.parquet": (1, 1), "c.parquet": (3, 3)}
        assert found.broken == {}


def test_a_file_without_rows_is_no_segment(lake: Lake) -> None:
    lake.write("a.parquet")
    lake.write("b.parquet", 1)
    for _ in range(2):
        found = lake.look()
        assert (found.names, found.broken, found.nulls) == (["b.parquet"], {}, {})
    assert len(found.crcs) == len(found.starts) == len(found.ends) == len(found.sizes) == 1


def test_a_dimension_has_no_times(lake: Lake) -> None:
    put(lake.root / "a.parquet", content(1, kind=pa.int64(), column="zone"))
    put(lake.root / "b.parquet", content(kind=pa.int64(), column="zone"))
    assert ranges(lake.look(None)) == {"a.parquet": ALWAYS}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it can't be read as Parquet"),
        (b"PAR1", "it can't be read as Parquet"),
        (b"words, words", "it can't be read as Parquet"),
        (content(1)[:-1], "it can't be read as Parquet"),
        (content(1, column="other"), "it has no column ts, which is the table's time column"),
        (content("x", kind=pa.string()), "its time column ts has type string"),
        (content(1, kind=pa.int64()), "declares no time_unit"),
    ],
)
def test_57_a_file_that_can_not_be_used_is_named_and_harms_no_other(
    lake: Lake, data: bytes, why: str
) -> None:
    lake.write("good.parquet", 1)
    put(lake.root / "x" / "bad.parquet", data)
    for _ in range(2):
        found = lake.look()
        assert ranges(found) == {"good.parquet": (1, 1)}
        (bad,) = found.unplaced
        assert bad.name == "x/bad.parquet"
        assert why in str(bad)
        assert str(bad).startswith("file x/bad.parquet: ")


def test_57_a_file_cut_off_anywhere_is_named_and_harms_no_other(lake: Lake) -> None:
    lake.write("good.parquet", 1)
    data = content(1, 2, None)
    for length in range(len(data)):
        put(lake.root / f"{length}.parquet", data[:length])
    found = lake.look()
    assert ranges(found) == {"good.parquet": (1, 1)}
    assert found.broken.keys() == {f"{length}.parquet" for length in range(len(data))}
    assert len(found.unplaced) == len(data)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1, 1_700_000_000_000_000_000])
def test_a_time_beyond_all_times_does_not_stop_the_look(lake: Lake, value: int, unit: str) -> None:
    put(lake.root / "wild.parquet", content(value, kind=pa.int64()))
    put(lake.root / "good.parquet", content(1, kind=pa.int64()))
    found = lake.look(TimeColumn("ts", unit))  # type: ignore[arg-type]
    assert "good.parquet" in ranges(found)
    assert "wild.parquet" in {*found.names, *found.broken}


def test_98_a_damaged_file_keeps_its_last_known_range(lake: Lake) -> None:
    lake.write("a.parquet", 3, 7)
    lake.write("b.parquet", 9)
    before = lake.look()
    lake.damage("a.parquet")
    for _ in range(2):
        found = lake.look()
        assert ranges(found) == ranges(before)
        assert crcs(found)["a.parquet"] != crcs(before)["a.parquet"]
        bad = found.broken["a.parquet"]
        assert (bad.start_ms, bad.end_ms, found.unplaced) == (3, 7, [])
    lake.write("a.parquet", 3, 7)
    assert (crcs(lake.look()), lake.look().broken) == (crcs(before), {})


def test_98_the_range_is_kept_through_damage_upon_damage(lake: Lake) -> None:
    lake.write("a.parquet", 3, 7)
    lake.look()
    for data in (b"x", b"yy", content(1, column="other"), content("z", kind=pa.string())):
        put(lake.root / "a.parquet", data)
        assert ranges(lake.look()) == {"a.parquet": (3, 7)}


def test_98_a_file_that_once_was_healthy_keeps_its_range_while_it_is_young_and_is_broken_later(
    lake: Lake,
) -> None:
    lake.write("a.parquet", 3, 7)
    lake.look()
    damaged = lake.damage("a.parquet")
    lake.age(damaged, 0)
    young = lake.look()
    assert (young.names, young.broken) == (["a.parquet"], {})
    lake.age(damaged, SETTLE + 1)
    assert lake.look().broken["a.parquet"].ranged


def test_a_file_that_is_still_arriving_is_not_there_yet_and_broken_later(lake: Lake) -> None:
    lake.write("good.parquet", 1)
    lake.look()
    file = put(lake.root / "new.parquet", content(5)[:-10])
    lake.age(file, SETTLE)
    found = lake.look()
    assert (found.names, found.broken) == (["good.parquet"], {})
    assert found.recheck_at == changed_at(file) + 2 * SETTLE
    lake.clock.now = found.recheck_at
    later = lake.look()
    assert [bad.name for bad in later.unplaced] == ["new.parquet"]
    assert (later.version, later.recheck_at) == (found.version, None)


def test_a_file_that_has_arrived_is_there_at_once(lake: Lake) -> None:
    file = put(lake.root / "new.parquet", content(5)[:-10])
    lake.age(file, 0)
    lake.look()
    put(file, content(5))
    lake.age(file, 0)
    assert ranges(lake.look()) == {"new.parquet": (5, 5)}


def test_an_unreadable_file_that_settles_during_the_look_is_not_forgotten(lake: Lake) -> None:
    file = lake.damage("a.parquet")
    times = count(changed_at(file) + SETTLE)
    found = lake.table(clock=lambda: next(times)).current().listing()
    # Either it is reported now, or the table is to be looked at again though nothing changes any more.
    assert "a.parquet" in found.broken or found.recheck_at is not None


def failing_reads(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception, *, times: int) -> None:
    """Have the next reads of one file fail."""
    really, left = LocalFolder.open, [times]

    class Failing(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

        def seek(self, _offset: int, _whence: int = 0) -> int:
            raise error

        def readinto(self, _buffer: object) -> int:
            raise error

    def open_it(folder: LocalFolder, wanted: str) -> object:
        if wanted != name or not left[0]:
            return really(folder, wanted)
        left[0] -= 1
        return pa.PythonFile(Failing(), mode="r")

    monkeypatch.setattr(LocalFolder, "open", open_it)


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), ConnectionError("lost"), TimeoutError("too late")]
)
def test_a_file_that_could_not_be_read_just_now_is_read_again_at_the_next_look(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    lake.write("a.parquet", 3)
    lake.write("b.parquet", 5)
    failing_reads(monkeypatch, "a.parquet", error, times=1)
    found = lake.look()
    assert found.broken.keys() == {"a.parquet"}
    assert found.recheck_at == LATER + SETTLE
    assert ranges(lake.look()) == {"a.parquet": (3, 3), "b.parquet": (5, 5)}
    assert lake.look().broken == {}


def test_98_a_file_that_can_not_be_opened_keeps_its_range(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lake.write("a.parquet", 3, 7)
    lake.write("b.parquet", 5)
    before = lake.look()
    file.touch()
    failing_reads(monkeypatch, "a.parquet", PermissionError(errno.EACCES, "Permission denied"), times=9)
    found = lake.look()
    assert ranges(found) == ranges(before)
    assert "Permission denied" in str(found.broken["a.parquet"])
    monkeypatch.undo()
    assert (crcs(lake.look()), lake.look().broken) == (crcs(before), {})


@pytest.fixture
def columns_of(lake: Lake) -> Lake:
    """Three files whose columns differ."""
    for name, columns in {
        "a": {"ts": pa.array([1], pa.timestamp("ms", "UTC")), "old": [1]},
        "b": {"ts": pa.array([1], pa.timestamp("ms", "UTC")), "rare": ["x"]},
        "c": {"ts": pa.array([1], pa.timestamp("ms", "UTC")), "new": [1.5]},
    }.items():
        put(lake.root / f"{name}.parquet", table_content(pa.table(columns)))
    return lake


def test_columns_are_those_of_a_few_files_and_all_that_are_wanted(columns_of: Lake) -> None:
    table = columns_of.table()
    found = table.columns()
    assert found is not None
    assert (found["ts"], found["new"]) == ("timestamp", "double")
    wanted = table.columns(frozenset({"RARE", "old", "nowhere"}))
    assert wanted == {"ts": "timestamp", "new": "double", "old": "bigint", "rare": "string"}


def test_one_file_of_another_type_does_not_change_the_tables_type(lake: Lake) -> None:
    for name in "abcd":
        lake.write(f"{name}.parquet", 1)
    put(lake.root / "e.parquet", content("1", kind=pa.string()))
    assert lake.table().columns(frozenset({"ts"})) == {"ts": "timestamp_ntz"}


@pytest.mark.parametrize(
    ("log", "kind"), [("_delta_log/0.json", "delta"), ("metadata/version-hint.text", "iceberg")]
)
def test_a_folder_with_a_log_is_no_folder_of_parquet_files(lake: Lake, log: str, kind: str) -> None:
    lake.write("a.parquet", 1)
    put(lake.root / log, b"{}")
    with pytest.raises(TableRefused, match=f"format: {kind}"):
        lake.look()


def test_a_broken_file_does_not_hide_the_columns_of_others(columns_of: Lake) -> None:
    columns_of.damage("d.parquet")
    found = columns_of.table().columns(frozenset({"new"}))
    assert found is not None
    assert (found["ts"], found["new"]) == ("timestamp", "double")
    for name in "abc":
        columns_of.damage(f"{name}.parquet")
    assert columns_of.table().columns() is None


def test_columns_of_many_files_are_sampled(lake: Lake, opened: list[str]) -> None:
    data = content(1)
    for number in range(200):
        put(lake.root / f"{number:03}.parquet", data)
    assert lake.table().columns(frozenset({"nowhere"})) == {"ts": "timestamp_ntz"}
    assert len(opened) < 30
    assert {"000.parquet", "199.parquet"} <= set(opened)


def rare(lake: Lake, files: int, at: int) -> ParquetFiles:
    """A table of many files, of which one has a column that the others lack."""
    for number in range(files):
        lake.write(f"{number:03}.parquet", 1)
    put(lake.root / f"{at:03}.parquet", table_content(pa.table({"rare": [1]})))
    time.sleep(0.02)
    for number in range(5):
        lake.write(f"{number:03}.parquet", 1)
    return lake.table()


def test_a_column_is_found_in_whichever_file_has_it(lake: Lake, opened: list[str]) -> None:
    table = rare(lake, 200, 90)
    assert table.columns(frozenset({"rare"})) == {"ts": "timestamp_ntz"}
    opened.clear()
    assert table.columns(frozenset({"RARE"}), everywhere=True) == {"ts": "timestamp_ntz", "rare": "bigint"}
    assert len(opened) < 200


def test_a_column_that_no_file_has_is_looked_for_in_each_once_and_in_a_bounded_number(
    lake: Lake, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rare(lake, 200, 90)
    table.columns(frozenset({"nowhere"}), everywhere=True)
    assert len(opened) == len(set(opened)) == 200
    opened.clear()
    monkeypatch.setattr("mv_assets.tables.parquet.columns._MOST", 50)
    table.columns(frozenset({"nowhere"}), everywhere=True)
    assert len(opened) < 80


def test_a_new_column_is_found_in_the_newest_file_whatever_its_name(lake: Lake, opened: list[str]) -> None:
    for number in range(200):
        lake.write(f"{number:03}.parquet", 1)
    time.sleep(0.02)
    put(lake.root / "090.parquet", table_content(pa.table({"new": [1]})))
    assert lake.table().columns(frozenset({"new"})) == {"ts": "timestamp_ntz", "new": "bigint"}
    assert len(opened) < 10


def test_a_column_of_the_folders_is_not_looked_for_in_files(lake: Lake, opened: list[str]) -> None:
    for number in range(100):
        lake.write(f"k={number}/a.parquet", 1)
    assert lake.table().columns(frozenset({"K"}), everywhere=True) == {"ts": "timestamp_ntz", "k": "int"}
    assert len(opened) < 10


def test_where_no_file_can_be_read_not_all_are_tried(lake: Lake, opened: list[str]) -> None:
    for number in range(100):
        lake.damage(f"{number}.parquet")
    assert lake.table().columns(frozenset({"ts"}), everywhere=True) is None
    assert len(opened) < 30


def test_int96_is_a_timestamp_to_spark(lake: Lake) -> None:
    lake.write("a.parquet", 1, use_deprecated_int96_timestamps=True, store_schema=False)
    assert lake.table().columns() == {"ts": "timestamp"}


def test_progress_counts_files_and_bytes(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mv_assets.tables.parquet.table._BATCH", 2)
    sizes = [lake.write(f"{number}.parquet", number).stat().st_size for number in range(5)]
    seen: list[tuple[int, int, int, int]] = []
    lake.table().current().listing(lambda *progress: seen.append(progress))
    assert [files for files, *_ in seen] == [2, 4, 5]
    assert seen[-1] == (5, sum(sizes), 5, sum(sizes))
    seen.clear()
    lake.table().current().listing(lambda *progress: seen.append(progress))
    assert seen == []


def test_a_broken_file_says_what_and_why() -> None:
    assert str(Broken("a/b.parquet", "it is damaged")) == "file a/b.parquet: it is damaged"
    assert not Broken("a", "b").ranged
    assert Broken("a", "b", 0, 0).ranged


def test_files_can_be_left_out_of_a_listing(lake: Lake) -> None:
    for number in range(4):
        lake.write(f"{number}.parquet", number)
    found = lake.look()
    kept = {found.segment(at) for at in (0, 3)}
    found.leave_out({1, 2})
    assert set(found.segments()) == kept
    assert len(found.sizes) == len(found.changed) == len(found.identities) == len(found) == 2


def test_a_table_version_listed_twice_says_the_same(lake: Lake) -> None:
    lake.write("a.parquet", 1)
    lake.write("b.parquet")
    version = lake.table().current()
    first, second = version.listing(), version.listing()
    assert (ranges(first), crcs(first), first.version) == (ranges(second), crcs(second), second.version)
    assert version.version == lake.version()

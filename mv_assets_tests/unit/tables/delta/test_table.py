from __future__ import annotations

import json
import shutil
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from mv_assets.errors import StillReading
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.tables.listing import ALWAYS
from mv_assets.tables.places import Place
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.rows import DAY, NOW, Make, only, ranges, rows

NEW_YEAR = 19_723 * DAY  # of 2024


def column(name: str, kind: pa.DataType, *values: Any) -> pa.Table:
    return pa.table({name: pa.array(values, kind)})


def range_of(table: DeltaFiles) -> tuple[int, int]:
    (found,) = ranges(table.current().listing())
    return found


def without_stats(root: Path) -> None:
    """Rewrite the log as a writer leaves it that collects no statistics."""
    for file in (root / "_delta_log").glob("*.json"):
        found = [json.loads(line) for line in file.read_text().splitlines()]
        for action in found:
            action.get("add", {}).pop("stats", None)
        file.write_text("\n".join(map(json.dumps, found)))


# Versions


def test_the_version_stays_while_nothing_is_committed(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    assert table().current().version == table().current().version


def test_the_version_changes_with_a_commit_and_with_another_table_in_its_place(
    root: Path, table: Make
) -> None:
    write_deltalake(root, rows(1))
    versions = {table().current().version}
    write_deltalake(root, rows(2), mode="append")
    versions.add(table().current().version)
    root.rename(root.with_name("old"))
    write_deltalake(root, rows(1))
    versions.add(table().current().version)
    assert len(versions) == 3


def test_the_same_number_after_a_backup_was_restored_is_another_version(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    backup = shutil.copytree(root, root.with_name("backup"))
    write_deltalake(root, rows(2), mode="append")
    before = table().current().version
    shutil.rmtree(root)
    shutil.copytree(backup, root)
    write_deltalake(root, rows(2), mode="append")
    after = table().current().version
    assert after.rpartition("@")[2] == before.rpartition("@")[2] == "1"
    assert after != before


def test_a_version_of_which_only_the_checkpoint_is_left_is_listed(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    DeltaTable(root).create_checkpoint()
    (root / "_delta_log" / f"{0:020}.json").unlink()
    assert ranges(table().current().listing()) == [(DAY, DAY)]


def test_a_table_version_lists_what_it_saw(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    version = table().current()
    write_deltalake(root, rows(2), mode="append")
    listing = version.listing()
    assert ranges(listing) == [(DAY, DAY)]
    assert listing.version == version.version
    assert listing.at == NOW


# Files that come and go


def test_an_appended_file_is_a_segment_more(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    before = set(table().current().listing().segments())
    write_deltalake(root, rows(2, 3), mode="append")
    listing = table().current().listing()
    assert before < set(listing.segments())
    assert ranges(listing) == [(DAY, DAY), (2 * DAY, 3 * DAY)]
    files = {str(path.relative_to(root)): path for path in root.glob("*.parquet")}
    assert dict(zip(listing.names, listing.sizes, strict=True)) == {
        name: path.stat().st_size for name, path in files.items()
    }
    assert all(changed > 1_600_000_000_000 for changed in listing.changed)
    assert len(set(listing.identities)) == 2


def test_deleted_files_are_gone_and_rewritten_ones_are_others(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, v=[1]))
    write_deltalake(root, rows(2, 3, v=[2, 3]), mode="append")
    before = table().current().listing()
    DeltaTable(root).delete("v < 3")
    after = table().current().listing()
    assert ranges(after) == [(3 * DAY, 3 * DAY)]
    assert not set(after.names) & set(before.names)


def test_an_overwrite_replaces_all_segments(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    before = table().current().listing()
    write_deltalake(root, rows(1), mode="overwrite")
    after = table().current().listing()
    assert ranges(after) == ranges(before)
    assert only(after) != only(before)


def test_compaction_leaves_one_segment_over_the_whole_range(root: Path, table: Make) -> None:
    for day in (1, 2, 3):
        write_deltalake(root, rows(day), mode="append")
    DeltaTable(root).optimize.compact()
    assert range_of(table()) == (DAY, 3 * DAY)


def test_restoring_an_earlier_version_gives_its_segments_again(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    first = table().current()
    before = list(first.listing().segments())
    write_deltalake(root, rows(2), mode="overwrite")
    DeltaTable(root).restore(0)
    after = table().current()
    assert list(after.listing().segments()) == before
    assert after.version != first.version


def test_a_checkpointed_log_lists_the_same(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, p=["x"]), partition_by=["p"])
    before = table().current().listing()
    DeltaTable(root).create_checkpoint()
    after = table().current().listing()
    assert list(after.segments()) == list(before.segments())
    assert after.details == before.details


# Time ranges


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (pa.timestamp("us", "UTC"), [1_500, 2_999], (1, 2)),
        (pa.timestamp("us"), [-1, 1_000], (-1, 1)),
        (pa.date32(), [1, 2], (DAY, 3 * DAY - 1)),
        (
            pa.timestamp("us"),
            [-62_135_596_800_000_000, 253_402_300_799_999_999],
            (-62_135_596_800_000, 253_402_300_799_999),
        ),
        (pa.date32(), [-719_162, 2_932_896], (-719_162 * DAY, 2_932_897 * DAY - 1)),
    ],
)
def test_dates_and_timestamps_are_ranged_by_statistics(
    root: Path, table: Make, kind: pa.DataType, values: list[int], expected: tuple[int, int]
) -> None:
    write_deltalake(root, column("ts", kind, *values))
    forget_files(root)
    assert range_of(table()) == expected


def forget_files(root: Path) -> None:
    """Make sure that nothing can be read from the data files."""
    for file in root.rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32()])
def test_integers_are_times_in_the_declared_unit(root: Path, table: Make, kind: pa.DataType) -> None:
    write_deltalake(root, column("ts", kind, 5, 7))
    assert range_of(table(TimeColumn("ts", "s"))) == (5_000, 7_999)
    assert range_of(table(TimeColumn("ts", "ms"))) == (5, 7)
    assert range_of(table(TimeColumn("ts", "us"))) == (0, 0)


def test_seconds_beyond_any_millisecond_are_kept_at_the_end_of_time(root: Path, table: Make) -> None:
    write_deltalake(root, column("ts", pa.int64(), -(2**63), 2**63 - 1))
    assert range_of(table(TimeColumn("ts", "s"))) == ALWAYS
    without_stats(root)
    assert range_of(table(TimeColumn("ts", "s"))) == ALWAYS


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("timestamp", "2024-01-01T00:00:00.123-08:00", NEW_YEAR + 8 * 3_600_000 + 123),
        ("timestamp_ntz", "2024-01-01 00:00:00.5", NEW_YEAR + 500),
    ],
)
def test_statistics_are_understood_as_other_writers_write_them(
    root: Path, table: Make, kind: str, value: str, expected: int
) -> None:
    log.commit(
        root,
        log.protocol("timestampNtz"),
        log.metadata(log.column("ts", kind)),
        log.add("f.parquet", log.stats("ts", value, value)),
    )
    assert range_of(table()) == (expected, expected)


def test_a_dimension_is_everywhere(root: Path, table: Make) -> None:
    write_deltalake(root, pa.table({"id": [1, 2]}))
    assert range_of(table(None)) == ALWAYS


def test_the_time_column_is_found_whatever_its_case(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    assert range_of(table(TimeColumn("TS"))) == (DAY, DAY)
    without_stats(root)
    assert range_of(table(TimeColumn("TS"))) == (DAY, DAY)


@pytest.mark.parametrize(
    ("time", "why"),
    [
        (TimeColumn("at"), "no column at"),
        (TimeColumn("ts", "ms"), "type timestamp, not an integer"),
        (TimeColumn("s"), "type string, not a date or timestamp"),
        (TimeColumn("v"), "declares no time_unit"),
    ],
)
def test_a_time_column_that_can_not_be_one_is_told(
    root: Path, table: Make, time: TimeColumn, why: str
) -> None:
    write_deltalake(root, rows(1, s=["x"], v=[1]))
    with pytest.raises(TableUnreadable, match=why):
        table(time).current().listing()


def test_nulls_are_counted_and_a_file_of_nulls_is_no_segment(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, None))
    with_time = only(table().current().listing())
    write_deltalake(root, rows(None, None, None), mode="append")
    listing = table().current().listing()
    assert only(listing) == with_time
    assert sorted(listing.nulls.values()) == [1, 3]
    assert listing.nulls[with_time] == 1


def test_a_file_without_rows_is_no_segment(root: Path, table: Make) -> None:
    log.commit(
        root,
        log.protocol(),
        log.metadata(log.column("ts", "timestamp")),
        log.add("f.parquet", {"numRecords": 0}),
    )
    assert not table().current().listing().names
    assert not table(None).current().listing().names


# Partitions


@pytest.mark.parametrize(
    ("kind", "value", "text", "expected"),
    [
        ("date", "2024-01-01", "2024-01-01", (NEW_YEAR, NEW_YEAR + DAY - 1)),
        ("timestamp", "1970-01-01 00:00:01.5", "1970-01-01 00:00:01.500000Z", (1_500, 1_500)),
        ("timestamp", "1970-01-01T00:00:01.500000Z", "1970-01-01 00:00:01.500000Z", (1_500, 1_500)),
        ("timestamp_ntz", "1969-12-31 23:59:59", "1969-12-31 23:59:59.000000", (-1_000, -1_000)),
    ],
)
def test_a_table_partitioned_by_its_time_column_is_ranged_by_partition(
    root: Path, table: Make, kind: str, value: str, text: str, expected: tuple[int, int]
) -> None:
    log.commit(
        root,
        log.protocol("timestampNtz"),
        log.metadata(log.column("ts", kind), log.column("v", "long"), partitioned=("ts",)),
        log.add("f.parquet", {"numRecords": 2}, {"ts": value}),
        log.add("g.parquet", {"numRecords": 3}, {"ts": None}),
    )
    listing = table().current().listing()
    assert ranges(listing) == [expected]
    assert listing.nulls == {"g.parquet": 3}
    assert listing.details.partitions["f.parquet"] == {"ts": text}


def test_a_date_partition_written_by_the_library_needs_no_statistics(root: Path, table: Make) -> None:
    write_deltalake(root, pa.table({"ts": [date(2024, 1, 1)], "v": [1]}), partition_by=["ts"])
    without_stats(root)
    forget_files(root)
    assert range_of(table()) == (NEW_YEAR, NEW_YEAR + DAY - 1)


def test_integer_partitions_are_times_in_the_declared_unit(root: Path, table: Make) -> None:
    write_deltalake(root, pa.table({"ts": [7], "v": [1]}), partition_by=["ts"])
    assert range_of(table(TimeColumn("ts", "s"))) == (7_000, 7_999)


def test_names_are_those_of_the_files_whatever_the_partition_values(root: Path, table: Make) -> None:
    values = ["a b", "ü%25=/x", "12:30", "#?&+", None]
    write_deltalake(root, rows(*range(5), p=values), partition_by=["p"])
    listing = table().current().listing()
    assert sorted(listing.names) == sorted(str(path.relative_to(root)) for path in root.rglob("*.parquet"))
    assert {listing.details.partitions[name]["p"] for name in listing.names} == set(values)
    assert ranges(listing) == [(day * DAY, day * DAY) for day in range(5)]


def test_footers_are_read_under_any_name(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, 2, p=["ü%25=/x", "a b"]), partition_by=["p"])
    without_stats(root)
    listing = table().current().listing()
    assert ranges(listing) == [(DAY, DAY), (2 * DAY, 2 * DAY)]
    assert not listing.broken


def test_absolute_paths_stay_as_they_are(root: Path, tmp_path: Path, table: Make) -> None:
    pq.write_table(rows(4), tmp_path / "else where.parquet")
    uri = f"file://{tmp_path}/else%20where.parquet"
    log.commit(root, log.protocol(), log.metadata(log.column("ts", "timestamp")), log.add(uri))
    listing = table().current().listing()
    assert listing.names == [uri]
    assert ranges(listing) == [(4 * DAY, 4 * DAY)]


def test_other_partition_values_make_another_segment(root: Path, table: Make) -> None:
    crcs = set()
    log.commit(
        root,
        log.protocol(),
        log.metadata(log.column("ts", "timestamp"), log.column("p", "string"), partitioned=("p",)),
    )
    for value in ("x", "y", None):
        log.commit(
            root,
            log.add(
                "f.parquet", log.stats("ts", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"), {"p": value}
            ),
        )
        crcs.add(table().current().listing().crcs[0])
    assert len(crcs) == 3


# Footers and the inventory


def test_a_file_without_statistics_is_ranged_by_its_footer_once(root: Path, table: Make) -> None:
    write_deltalake(
        root, rows(1, None, 2, v=[1, 2, 3]), configuration={"delta.dataSkippingNumIndexedCols": "0"}
    )
    seen = []
    first = table().current().listing(lambda *counts: seen.append(counts))
    assert ranges(first) == [(DAY, 2 * DAY)]
    assert list(first.nulls.values()) == [1]
    assert seen == [(1, first.sizes[0], 1, first.sizes[0])]
    forget_files(root)
    again = table().current().listing()
    assert list(again.segments()) == list(first.segments())
    assert again.nulls == first.nulls
    assert not again.broken


def test_a_listing_that_is_cut_short_is_taken_up_where_it_ended(
    root: Path, table: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.tables.lakehouse._BATCH", 2)
    for day in range(5):
        write_deltalake(root, rows(day), mode="append")
    without_stats(root)

    def too_late(files: int, _size: int, all_files: int, _whole: int) -> None:
        if files < all_files:
            raise StillReading("t", files, all_files)

    for known in (2, 4):
        with pytest.raises(StillReading):
            table().current().listing(too_late)
        assert len(dict(table().inventory.known())) == known
    assert ranges(table().current().listing(too_late)) == [(day * DAY, day * DAY) for day in range(5)]


def test_files_that_failed_before_do_not_keep_a_listing_from_the_others(
    root: Path, table: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.tables.lakehouse._BATCH", 1)
    write_deltalake(root, rows(1))
    without_stats(root)
    next(root.glob("*.parquet")).write_bytes(b"no Parquet")
    table().current().listing()
    write_deltalake(root, rows(2), mode="append")
    without_stats(root)

    def too_late(*counts: int) -> None:
        raise StillReading("t", counts[0], counts[2])

    with pytest.raises(StillReading):
        table().current().listing(too_late)
    assert {entry.start_ms for _, entry in table().inventory.known()} == {None, 2 * DAY}


def test_a_remembered_range_is_not_used_for_another_time_column(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, other=pa.array([0], pa.timestamp("us", "UTC"))))
    without_stats(root)
    assert range_of(table()) == (DAY, DAY)
    assert range_of(table(TimeColumn("other"))) == (0, 0)


def test_files_that_left_the_table_are_forgotten(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    without_stats(root)
    made = table()
    made.current().listing()
    assert len(dict(made.inventory.known())) == 1
    write_deltalake(root, rows(2), mode="overwrite")
    without_stats(root)
    listing = made.current().listing()
    assert set(dict(made.inventory.known())) == set(listing.names)


def test_a_missing_file_whose_footer_is_needed_is_broken_until_it_is_back(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    without_stats(root)
    (file,) = root.glob("*.parquet")
    hidden = file.rename(root / "hidden")
    listing = table().current().listing()
    assert not listing.names
    (broken,) = listing.broken.values()
    assert (broken.name, broken.ranged) == (file.name, False)
    assert "not there" in broken.why
    assert listing.recheck_at == NOW + 1_000
    hidden.rename(file)
    assert range_of(table()) == (DAY, DAY)


def test_a_damaged_file_keeps_its_last_known_range(root: Path, table: Make) -> None:
    log.commit(root, log.protocol(), log.metadata(log.column("ts", "timestamp")), log.add("f.parquet"))
    pq.write_table(rows(3), root / "f.parquet")
    assert range_of(table()) == (3 * DAY, 3 * DAY)
    (root / "f.parquet").write_bytes(b"no Parquet")
    log.commit(root, log.add("f.parquet", size=10))
    for _ in range(2):
        listing = table().current().listing()
        broken = listing.broken["f.parquet"]
        assert (broken.start_ms, broken.end_ms) == (3 * DAY, 3 * DAY)
        assert "Parquet" in broken.why
        assert ranges(listing) == [(3 * DAY, 3 * DAY)]


def test_a_file_older_than_its_time_column_has_nulls_there(root: Path, table: Make) -> None:
    write_deltalake(root, pa.table({"v": [1, 2]}))
    old = table(None).current().listing().names[0]
    write_deltalake(root, rows(1, v=[3]), mode="append", schema_mode="merge")
    listing = table().current().listing()
    assert ranges(listing) == [(DAY, DAY)]
    assert listing.nulls == {old: 2}


# Columns


def test_columns_have_spark_types_with_partitions_and_without_files(root: Path, table: Make) -> None:
    kinds = {
        "ts": (pa.timestamp("us", "UTC"), "timestamp"),
        "ntz": (pa.timestamp("us"), "timestamp_ntz"),
        "d": (pa.date32(), "date"),
        "i": (pa.int32(), "int"),
        "n": (pa.decimal128(10, 2), "decimal(10,2)"),
        "s": (pa.struct([("x", pa.int64())]), "struct<x:bigint>"),
        "l": (pa.list_(pa.string()), "array<string>"),
        "p": (pa.string(), "string"),
    }
    schema = pa.schema({name: kind for name, (kind, _) in kinds.items()})
    DeltaTable.create(root, schema, partition_by=["p"])
    expected = {name: spark for name, (_, spark) in kinds.items()}
    assert table().columns() == expected
    listing = table().current().listing()
    assert listing.schema == expected
    assert not listing.names


def mapped(root: Path, mode: str, physical: str = "col-1", field_id: int = 1) -> None:
    log.commit(
        root,
        log.protocol("columnMapping"),
        log.metadata(
            log.column("ts", "timestamp", (field_id, physical)),
            log.column("v", "long", (2, "col-2")),
            log.column("p", "date", (3, "col-3")),
            partitioned=("p",),
            delta__columnMapping__mode=mode,
            delta__columnMapping__maxColumnId="9",
        ),
    )


DAY_ONE = log.stats("col-1", "1970-01-02T00:00:00.000Z", "1970-01-02T00:00:00.000Z")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_ranged_by_what_the_log_calls_them(root: Path, table: Make, mode: str) -> None:
    mapped(root, mode)
    log.commit(root, log.add("f.parquet", DAY_ONE, {"col-3": "2024-01-01"}))
    listing = table().current().listing()
    assert ranges(listing) == [(DAY, DAY)]
    assert listing.schema == {"ts": "timestamp", "v": "bigint", "p": "date"}
    assert listing.details.partitions == {"f.parquet": {"p": "2024-01-01"}}
    assert range_of(table(TimeColumn("p"))) == (NEW_YEAR, NEW_YEAR + DAY - 1)


def test_columns_mapped_by_name_have_physical_names_and_footers_are_read_by_them(
    root: Path, table: Make
) -> None:
    mapped(root, "name")
    pq.write_table(rows(2).rename_columns(["col-1"]), root / "f.parquet")
    log.commit(root, log.add("f.parquet", None, {"col-3": None}))
    listing = table().current().listing()
    assert ranges(listing) == [(2 * DAY, 2 * DAY)]
    assert listing.details.columns == {"ts": Place("col-1"), "v": Place("col-2"), "p": Place("col-3")}


def test_columns_mapped_by_id_have_ids_and_footers_are_read_by_them(root: Path, table: Make) -> None:
    mapped(root, "id")
    field = pa.field("whatever", pa.timestamp("us", "UTC"), metadata={"PARQUET:field_id": "1"})
    pq.write_table(
        rows(2).cast(pa.schema([field.with_name("ts")])).rename_columns(["whatever"]), root / "f.parquet"
    )
    log.commit(root, log.add("f.parquet", None, {"col-3": None}))
    listing = table().current().listing()
    assert ranges(listing) == [(2 * DAY, 2 * DAY)]
    places = {"ts": Place("col-1", 1), "v": Place("col-2", 2), "p": Place("col-3", 3)}
    assert listing.details.columns == places


def test_a_column_dropped_and_added_again_is_seen(root: Path, table: Make) -> None:
    mapped(root, "name")
    before = table().current()
    mapped(root, "name", "col-9", 9)
    after = table().current()
    assert after.version != before.version
    assert after.listing().details.columns["ts"] == Place("col-9")


# What would be read wrong


def test_a_table_that_only_allows_deletion_vectors_is_read(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, 2, 3))
    log.commit(root, log.protocol("deletionVectors"))
    assert range_of(table()) == (DAY, 3 * DAY)


def test_a_file_that_is_listed_twice_is_refused(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, 2, 3))
    log.with_vector(root, log.deletion_vector(1))
    file = log.actions(root, "add")[-1]
    log.commit(root, {"add": file | {"deletionVector": log.deletion_vector(2)}})
    with pytest.raises(TableRefused, match="twice"):
        table(reader="spark").current().listing()


@pytest.mark.parametrize("feature", ["catalogManaged", "somethingNew"])
def test_what_the_library_can_not_open_is_refused_by_name(root: Path, table: Make, feature: str) -> None:
    write_deltalake(root, rows(1))
    log.commit(root, log.protocol(feature))
    with pytest.raises(TableRefused, match=f"needs the Delta reader feature {feature}"):
        table(reader="spark").current()


# What can't be listed


def test_a_root_that_is_missing_or_no_delta_table_is_no_empty_table(root: Path, table: Make) -> None:
    with pytest.raises(TableUnreadable, match="a table"):
        table().current()
    root.mkdir()
    with pytest.raises(TableUnreadable):
        table().current()
    (root / "_delta_log").mkdir()
    with pytest.raises(TableUnreadable):
        table().columns()


def test_a_damaged_log_is_no_empty_table(root: Path, table: Make) -> None:
    for day in (1, 2, 3):
        write_deltalake(root, rows(day), mode="append")
    second = root / "_delta_log" / f"{1:020}.json"
    text = second.read_text()
    second.write_text(text[:50])
    with pytest.raises(TableUnreadable):
        table().current()
    second.unlink()
    with pytest.raises(TableUnreadable, match=r"gap|contiguous"):
        table().current()


def test_a_damaged_checkpoint_is_no_empty_table(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    DeltaTable(root).create_checkpoint()
    (checkpoint,) = (root / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    with pytest.raises(TableUnreadable):
        table().current().listing()


def test_without_the_library_the_table_says_what_to_install(
    table: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(TableUnreadable, match=r"pip install 'mv_assets\[delta\]'"):
        table().current()

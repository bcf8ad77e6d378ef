from __future__ import annotations

import gzip
import sqlite3
import sys
from contextlib import closing
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.types import (
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.tables.iceberg import metadata
from mv_assets.tables.listing import ALWAYS, Listing
from mv_assets.tables.places import Place
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.unit.tables.iceberg import log
from mv_assets_tests.unit.tables.iceberg.tables import (
    DAY,
    NO_METRICS,
    NOW,
    STATED,
    Create,
    Make,
    data,
    long,
    range_of,
    ranges,
    rows,
)
from mv_assets_tests.unit.tables.lake import put, spoiled


def only(listing: Listing) -> str:
    (name,) = listing.names
    return name


def forget_files(root: Path) -> None:
    """Make sure that nothing can be read from the data files."""
    for file in data(root):
        file.unlink()


# Which version


def test_the_version_stays_while_nothing_is_committed(create: Create, table: Make) -> None:
    create().append(rows(1))
    assert table().current().version == table().current().version


def test_the_version_changes_with_a_commit_a_schema_and_another_table_in_its_place(
    create: Create, table: Make, warehouse: SqlCatalog, root: Path
) -> None:
    made = create()
    versions = [table().current().version]
    made.append(rows(1))
    versions.append(table().current().version)
    with made.update_schema() as update:
        update.add_column("w", LongType())
    versions.append(table().current().version)
    warehouse.drop_table("db.t")
    root.rename(root.with_name("old"))
    create()
    versions.append(table().current().version)
    assert len(set(versions)) == 4


def test_a_table_version_lists_what_it_saw(create: Create, table: Make) -> None:
    made = create()
    made.append(rows(1))
    version = table().current()
    made.append(rows(2))
    listing = version.listing()
    assert ranges(listing) == [(DAY, DAY)]
    assert (listing.version, listing.at) == (version.version, NOW)


def test_a_table_is_found_by_its_metadata_file_or_its_catalog_too(
    create: Create, table: Make, tmp_path: Path
) -> None:
    made = create()
    made.append(rows(1))
    by_folder = list(table().current().listing().segments())
    assert list(table(path=made.metadata_location).current().listing().segments()) == by_folder
    catalog = {"type": "sql", "name": "c", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    named = table(path=None, catalog=catalog, identifier="db.t")
    assert list(named.current().listing().segments()) == by_folder
    with pytest.raises(TableUnreadable, match=r"db\.u in its catalog"):
        table(path=None, catalog=catalog, identifier="db.u").current()
    with pytest.raises(TableUnreadable, match="neither"):
        table(path=None).current()


def test_the_hint_names_the_metadata_unless_a_later_version_was_committed(
    create: Create, table: Make, root: Path
) -> None:
    made = create()
    made.append(rows(1))
    made.append(rows(2))
    folder = root / "metadata"
    for version, file in enumerate(sorted(folder.glob("*.metadata.json"))):
        file.rename(folder / f"v{version + 1}.metadata.json")
    hint = folder / "version-hint.text"
    hint.write_text("2\n")
    assert len(table().current().listing()) == 2
    (folder / "v3.metadata.json").rename(folder / "v4.metadata.json")
    assert len(table().current().listing()) == 1
    hint.write_text("5")
    with pytest.raises(TableUnreadable, match=r"no v5\.metadata\.json"):
        table().current()
    hint.write_text("v1")
    assert len(table().current().listing()) == 0


def test_without_a_hint_a_commit_that_never_happened_is_not_taken_for_the_table(
    create: Create, table: Make, root: Path, tmp_path: Path
) -> None:
    """Its writer died between the metadata file and the catalog's swap."""
    made = create()
    made.append(rows(1))
    log.commit(root, log.data_file("never", **log.bounds(1, long(0), long(0))))
    with pytest.raises(TableUnreadable) as refused:
        table(unsafe=False).current()
    said = str(refused.value)
    assert f"table 't' at {root} can't be listed: its metadata folder has no version-hint.text" in said
    assert "declare it by `identifier` and `catalog`, or set `unsafe: true`" in said
    catalog = {"type": "sql", "name": "c", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    assert range_of(table(path=None, catalog=catalog, identifier="db.t", unsafe=False)) == (DAY, DAY)
    assert range_of(table(path=made.metadata_location, unsafe=False)) == (DAY, DAY)
    # Who says so gets what the folder has.
    assert len(table().current().listing()) == 2
    # And where the table says which one, nothing else counts.
    (root / "metadata" / "version-hint.text").write_text(Path(made.metadata_location).name)
    assert range_of(table(unsafe=False)) == (DAY, DAY)


@pytest.mark.parametrize("name", ["v2.gz.metadata.json", "v2.metadata.json.gz", "v2.metadata.json"])
def test_metadata_may_be_compressed_under_either_name(
    create: Create, table: Make, root: Path, name: str
) -> None:
    create().append(rows(1))
    last, folder = log.newest(root), root / "metadata"
    content = last.read_bytes()
    (folder / name).write_bytes(gzip.compress(content) if "gz" in name else content)
    for hint in ("1", "2", "v2", name):
        (folder / "version-hint.text").write_text(hint)
        assert range_of(table(unsafe=False)) == (DAY, DAY)
    assert range_of(table(path=str(folder / name))) == (DAY, DAY)


def test_two_metadata_files_that_a_hint_fits_are_not_guessed_between(
    create: Create, table: Make, root: Path
) -> None:
    create().append(rows(1))
    content, folder = log.newest(root).read_bytes(), root / "metadata"
    (folder / "v2.metadata.json").write_bytes(content)
    (folder / "v2.gz.metadata.json").write_bytes(gzip.compress(content))
    for hint in ("1", "2", "v2"):
        (folder / "version-hint.text").write_text(hint)
        with pytest.raises(TableUnreadable, match=r"v2\.gz\S* and v2\.metadata\S* could both be current"):
            table().current()


@pytest.mark.parametrize("hint", ["", "v9", "00009-x.metadata.json", "../metadata/v1"])
def test_a_hint_to_what_is_not_there_is_no_reason_to_guess(
    create: Create, table: Make, root: Path, hint: str
) -> None:
    create().append(rows(1))
    (root / "metadata" / "version-hint.text").write_text(hint)
    with pytest.raises(TableUnreadable, match="its metadata folder has no "):
        table(unsafe=True).current()


def test_a_hint_that_moves_while_the_folder_is_listed_is_no_error(
    create: Create, table: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create().append(rows(1))
    folder = root / "metadata"
    log.newest(root).rename(folder / "v1.metadata.json")
    (folder / "version-hint.text").write_text("1")
    listed = metadata._names

    def commit(*given: Any) -> set[str]:
        found = listed(*given)
        (folder / "v2.metadata.json").write_bytes((folder / "v1.metadata.json").read_bytes())
        (folder / "version-hint.text").write_text("2")
        return found

    monkeypatch.setattr(metadata, "_names", commit)
    assert range_of(table()) == (DAY, DAY)


# How it is reached


def test_properties_say_how_a_table_by_its_path_is_reached(
    create: Create, table: Make, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here they name the class that reads files."""
    made = create()
    made.append(rows(1))
    (root / "metadata" / "version-hint.text").write_text(Path(made.metadata_location).name)
    (tmp_path / "mounted.py").write_text(
        "from pyiceberg.io.pyarrow import PyArrowFileIO\n"
        "class Mounted(PyArrowFileIO):\n"
        "    @staticmethod\n"
        "    def parse_location(location, properties={}):\n"
        "        scheme, place, path = PyArrowFileIO.parse_location(location, properties)\n"
        f"        return ('file', '', {str(tmp_path)!r} + path.removeprefix('lake'))"
        " if scheme == 's3' else (scheme, place, path)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    far = f"s3://lake/{root.relative_to(tmp_path)}"
    for unsafe in (False, True):
        if unsafe:
            (root / "metadata" / "version-hint.text").unlink()
        reached = table(path=far, catalog={"py-io-impl": "mounted.Mounted"}, unsafe=unsafe)
        assert range_of(reached) == (DAY, DAY)


def test_the_endpoint_of_a_table_by_its_path_is_asked(table: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_given: Any) -> None:
            pass

    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        reached = {
            "s3.endpoint": f"http://127.0.0.1:{server.server_port}",
            "s3.region": "eu",
            "s3.access-key-id": "me",
            "s3.secret-access-key": "secret",
        }
        with pytest.raises(TableUnreadable):
            table(path="s3://lake/t", catalog=reached).current()
        server.shutdown()
    assert asked[0] == "/lake/t/metadata/version-hint.text"


def test_a_sql_catalog_that_has_the_table_under_another_name_says_which(
    create: Create, table: Make, tmp_path: Path
) -> None:
    create().append(rows(1))
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    for more, asked in (({}, "default"), ({"name": "other"}, "other")):
        with pytest.raises(TableUnreadable) as refused:
            table(path=None, catalog=catalog | more, identifier="db.t").current()
        assert f"it belongs to the catalog named c, not to {asked}; set `name: c` in `catalog`" in str(
            refused.value
        )
        with pytest.raises(TableUnreadable, match=r"does not exist: db\.u"):
            table(path=None, catalog=catalog | more, identifier="db.u").current()
    assert range_of(table(path=None, catalog=catalog | {"name": "c"}, identifier="db.t")) == (DAY, DAY)


def test_to_look_at_a_table_makes_no_catalog(table: Make, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/empty.db"
    with pytest.raises(TableUnreadable, match="no such table: iceberg_tables"):
        table(path=None, catalog={"type": "sql", "uri": uri}, identifier="db.t").current()
    with closing(sqlite3.connect(tmp_path / "empty.db")) as made:
        assert made.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_two_metadata_files_of_one_number_are_not_guessed_between(
    create: Create, table: Make, root: Path
) -> None:
    create().append(rows(1))
    last = log.newest(root)
    (root / "metadata" / "00001-other.metadata.json").write_bytes(last.read_bytes())
    with pytest.raises(TableUnreadable, match=r"could both be current.*catalog"):
        table().current()


# Files that come and go


def test_an_appended_file_is_a_segment_more(create: Create, table: Make, root: Path) -> None:
    made = create()
    made.append(rows(1))
    before = set(table().current().listing().segments())
    made.append(rows(2, 3))
    listing = table().current().listing()
    assert before < set(listing.segments())
    assert ranges(listing) == [(DAY, DAY), (2 * DAY, 3 * DAY)]
    files = {str(path.relative_to(root)): path.stat().st_size for path in data(root)}
    assert dict(zip(listing.names, listing.sizes, strict=True)) == files
    committed = {snapshot.timestamp_ms for snapshot in made.metadata.snapshots}
    assert set(listing.changed) == committed
    assert len(set(listing.identities)) == 2


def test_deleted_files_are_gone_and_rewritten_ones_are_others(create: Create, table: Make) -> None:
    made = create()
    made.append(rows(1, v=[1]))
    made.append(rows(2, 3, v=[2, 3]))
    before = table().current().listing()
    made.delete("v < 3")
    after = table().current().listing()
    assert ranges(after) == [(3 * DAY, 3 * DAY)]
    assert not set(after.names) & set(before.names)


def test_an_overwrite_or_compaction_replaces_all_segments(create: Create, table: Make) -> None:
    made = create()
    made.append(rows(1))
    made.append(rows(2))
    before = table().current().listing()
    made.overwrite(made.scan().to_arrow())
    after = table().current().listing()
    assert ranges(after) == [(DAY, 2 * DAY)]
    assert only(after) not in before.names


def test_rolling_back_gives_the_earlier_segments_again(create: Create, table: Make) -> None:
    made = create()
    made.append(rows(1))
    first = made.current_snapshot()
    assert first is not None
    before = list(table().current().listing().segments())
    made.overwrite(rows(2))
    made.manage_snapshots().create_branch(first.snapshot_id, "main").commit()
    assert list(table().current().listing().segments()) == before


def test_files_elsewhere_keep_their_full_path(create: Create, table: Make, root: Path) -> None:
    create()
    stated = log.bounds(1, long(0), long(0))
    log.commit(
        root, log.data_file("s3://bucket/f.parquet", **stated), log.data_file(f"file:{root}/data/g", **stated)
    )
    assert sorted(table().current().listing().names) == ["data/g", "s3://bucket/f.parquet"]


# Time ranges


@pytest.mark.parametrize(
    ("kind", "arrow", "values", "expected"),
    [
        (TimestamptzType(), pa.timestamp("us", "UTC"), [1_500, 2_999], (1, 2)),
        (TimestampType(), pa.timestamp("us"), [-1, 1_000], (-1, 1)),
        (DateType(), pa.date32(), [1, 2], (DAY, 3 * DAY - 1)),
        (
            TimestampType(),
            pa.timestamp("us"),
            [-62_135_596_800_000_000, 253_402_300_799_999_999],
            (-62_135_596_800_000, 253_402_300_799_999),
        ),
        (DateType(), pa.date32(), [-719_162, 2_932_896], (-719_162 * DAY, 2_932_897 * DAY - 1)),
    ],
)
@pytest.mark.parametrize("properties", [{}, NO_METRICS])
def test_dates_and_timestamps_are_ranged(
    create: Create,
    table: Make,
    root: Path,
    kind: IcebergType,
    arrow: pa.DataType,
    values: list[int],
    expected: tuple[int, int],
    properties: dict[str, str],
) -> None:
    create(("ts", kind), **properties).append(pa.table({"ts": pa.array(values, arrow)}))
    if not properties:
        forget_files(root)
    assert range_of(table()) == expected


@pytest.mark.parametrize(("kind", "arrow"), [(LongType(), pa.int64()), (IntegerType(), pa.int32())])
def test_integers_are_times_in_the_declared_unit(
    create: Create, table: Make, kind: IcebergType, arrow: pa.DataType
) -> None:
    create(("ts", kind)).append(pa.table({"ts": pa.array([5, 7], arrow)}))
    assert range_of(table(TimeColumn("ts", "s"))) == (5_000, 7_999)
    assert range_of(table(TimeColumn("ts", "ms"))) == (5, 7)


def test_seconds_beyond_any_millisecond_are_kept_at_the_end_of_time(create: Create, table: Make) -> None:
    create(("ts", LongType())).append(pa.table({"ts": [-(2**63), 2**63 - 1]}))
    assert range_of(table(TimeColumn("ts", "s"))) == ALWAYS


def test_bounds_keep_the_type_they_were_written_with(create: Create, table: Make, root: Path) -> None:
    made = create(("ts", IntegerType()))
    made.append(pa.table({"ts": pa.array([-5, 7], pa.int32())}))
    with made.update_schema() as update:
        update.update_column("ts", LongType())
    forget_files(root)
    assert range_of(table(TimeColumn("ts", "ms"))) == (-5, 7)


def test_times_that_python_has_not_are_ranged(create: Create, table: Make, root: Path) -> None:
    create()
    log.commit(root, log.data_file("f", **log.bounds(1, long(-(2**63)), long(2**63 - 1))))
    assert range_of(table()) == (-(2**63) // 1_000, (2**63 - 1) // 1_000)


def test_a_date_that_became_a_timestamp_still_covers_its_day(create: Create, table: Make, root: Path) -> None:
    create(("ts", TimestampType()))
    log.commit(
        root, log.data_file("f", **log.bounds(1, (1).to_bytes(4, "little"), (2).to_bytes(4, "little")))
    )
    assert range_of(table()) == (DAY, 3 * DAY - 1)


@pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns"])
def test_nanoseconds_are_ranged(create: Create, table: Make, root: Path, kind: str) -> None:
    create()
    log.commit(root, log.data_file("f", **log.bounds(1, long(-1), long(1_999_999))))

    def change(metadata: dict[str, Any]) -> None:
        metadata |= {"format-version": 3, "next-row-id": 0}
        metadata["schemas"][0]["fields"][0]["type"] = kind

    log.rewrite(root, change)
    assert range_of(table()) == (-1, 1)


def test_a_dimension_is_everywhere(create: Create, table: Make, root: Path) -> None:
    create().append(rows(None, 1))
    forget_files(root)
    assert range_of(table(None)) == ALWAYS


def test_the_time_column_is_found_whatever_its_case(create: Create, table: Make) -> None:
    create(**NO_METRICS).append(rows(1))
    assert range_of(table(TimeColumn("TS"))) == (DAY, DAY)


@pytest.mark.parametrize(
    ("time", "why"),
    [
        (TimeColumn("at"), "no column at"),
        (TimeColumn("ts", "ms"), "type timestamp, not an integer"),
        (TimeColumn("v"), "declares no time_unit"),
    ],
)
def test_a_time_column_that_can_not_be_one_is_told(
    create: Create, table: Make, time: TimeColumn, why: str
) -> None:
    create()
    with pytest.raises(TableUnreadable, match=why):
        table(time).current().listing()


@pytest.mark.parametrize("properties", [{}, NO_METRICS])
def test_nulls_are_counted_and_a_file_of_nulls_is_no_segment(
    create: Create, table: Make, properties: dict[str, str]
) -> None:
    made = create(**properties)
    made.append(rows(1, None))
    with_time = only(table().current().listing())
    made.append(rows(None, None, None))
    listing = table().current().listing()
    assert only(listing) == with_time
    assert sorted(listing.nulls.values()) == [1, 3]


def test_a_file_without_rows_is_no_segment(create: Create, table: Make, root: Path) -> None:
    create()
    log.commit(root, log.data_file("f", rows=0))
    assert not table().current().listing().names
    assert not table(None).current().listing().names


# Partitions


def test_identity_partitions_are_told_as_text(create: Create, table: Make, root: Path) -> None:
    fields = (("ts", TimestamptzType()), ("p", StringType()), ("d", DateType()), ("n", DecimalType(5, 2)))
    values = ["a b", "ü%25=/x", "12:30", None]
    given = rows(
        *range(4),
        p=values,
        d=pa.array([0, 2_932_896, None, -1], pa.date32()),
        n=pa.array([Decimal(1), Decimal(2), None, Decimal(-3)], pa.decimal128(5, 2)),
    )
    create(*fields, by=("p", "d", "n")).append(given)
    listing = table().current().listing()
    assert sorted(listing.names) == sorted(str(path.relative_to(root)) for path in data(root))
    told = listing.details.partitions
    assert {(part["p"], part["d"], part["n"]) for part in told.values()} == {
        ("a b", "1970-01-01", "1.00"),
        ("ü%25=/x", "9999-12-31", "2.00"),
        ("12:30", None, None),
        (None, "1969-12-31", "-3.00"),
    }


def test_footers_are_read_under_any_name(create: Create, table: Make) -> None:
    fields = (("ts", TimestamptzType()), ("p", StringType()))
    create(*fields, by=("p",), **NO_METRICS).append(rows(1, 2, p=["ü%25=/x", "a b"]))
    listing = table().current().listing()
    assert ranges(listing) == [(DAY, DAY), (2 * DAY, 2 * DAY)]
    assert not listing.broken


def test_a_table_partitioned_by_its_time_column_is_ranged_by_partition(
    create: Create, table: Make, root: Path
) -> None:
    create(("ts", DateType()), ("v", LongType()), by=("ts",))
    log.commit(root, log.data_file("f", partition=(1,)), log.data_file("g", partition=(None,)))
    listing = table().current().listing()
    assert ranges(listing) == [(DAY, 2 * DAY - 1)]
    assert listing.nulls == {"g": 2}
    assert listing.details.partitions == {"f": {"ts": "1970-01-02"}, "g": {"ts": None}}


def test_timestamp_partitions_are_told_with_their_zone(create: Create, table: Make, root: Path) -> None:
    create(("ts", TimestamptzType()), ("n", TimestampType()), by=("ts", "n"))
    log.commit(root, log.data_file("f", partition=(1_500, 253_402_300_800_000_000)))
    listing = table().current().listing()
    assert ranges(listing) == [(1, 1)]
    assert listing.details.partitions["f"] == {
        "ts": "1970-01-01 00:00:00.001500Z",
        "n": "10000-01-01 00:00:00.000000",
    }


# Footers and the inventory


def test_a_file_without_bounds_is_ranged_by_its_footer_once(create: Create, table: Make, root: Path) -> None:
    create(**NO_METRICS).append(rows(1, None, 2))
    seen = []
    first = table().current().listing(lambda *counts: seen.append(counts))
    assert ranges(first) == [(DAY, 2 * DAY)]
    assert seen == [(1, first.sizes[0], 1, first.sizes[0])]
    forget_files(root)
    again = table().current().listing()
    assert list(again.segments()) == list(first.segments())
    assert again.nulls == first.nulls == {only(first): 1}


def test_a_missing_file_whose_footer_is_needed_is_broken_until_it_is_back(
    create: Create, table: Make, root: Path
) -> None:
    create(**NO_METRICS).append(rows(1))
    (file,) = data(root)
    hidden = file.rename(root / "hidden")
    listing = table().current().listing()
    assert not listing.names
    (broken,) = listing.broken.values()
    assert (broken.name, broken.ranged) == (f"data/{file.name}", False)
    assert "not there" in broken.why
    assert listing.recheck_at == NOW + 1_000
    hidden.rename(file)
    assert range_of(table()) == (DAY, DAY)


def test_a_damaged_file_is_broken(create: Create, table: Make, root: Path) -> None:
    create(**NO_METRICS).append(rows(1))
    data(root)[0].write_bytes(b"no Parquet")
    (broken,) = table().current().listing().broken.values()
    assert "can't be read as Parquet" in broken.why


def test_130_a_file_with_damaged_pages_lies_where_its_footer_says(
    create: Create, table: Make, root: Path
) -> None:
    made = create(**NO_METRICS)
    made.append(rows(1, 2))
    with made.update_schema() as update:
        update.rename_column("ts", "at")
    # The footer has the column by the name that it had.
    put(data(root)[0], spoiled(data(root)[0].read_bytes()))
    for _ in range(2):
        listing = table(TimeColumn("at")).current().listing()
        assert (ranges(listing), listing.unread) == ([(DAY, 2 * DAY)], set())
        (broken,) = listing.broken.values()
        assert "can't be read as Parquet" in broken.why


def test_a_renamed_time_column_is_found_in_older_files(create: Create, table: Make) -> None:
    made = create(**NO_METRICS)
    made.append(rows(1))
    with made.update_schema() as update:
        update.rename_column("ts", "at")
    assert range_of(table(TimeColumn("at"))) == (DAY, DAY)


def test_a_file_older_than_its_time_column_has_nulls_there(create: Create, table: Make) -> None:
    made = create(("v", LongType()), **NO_METRICS)
    made.append(pa.table({"v": [1, 2]}))
    old = table(None).current().listing().names[0]
    with made.update_schema() as update:
        update.add_column("ts", TimestamptzType())
    made.append(rows(1, v=[3]))
    listing = table().current().listing()
    assert ranges(listing) == [(DAY, DAY)]
    assert listing.nulls == {old: 2}


def test_tables_of_the_first_format_version_are_read(create: Create, table: Make) -> None:
    made = create(**{"format-version": "1"})
    made.append(rows(1))
    made.append(rows(2))
    assert made.metadata.format_version == 1
    assert ranges(table().current().listing()) == [(DAY, DAY), (2 * DAY, 2 * DAY)]


def test_files_keep_the_partitioning_they_were_written_with(create: Create, table: Make) -> None:
    made = create(("ts", TimestamptzType()), ("p", StringType()))
    made.append(rows(1, p=["x"]))
    with made.update_spec() as update:
        update.add_identity("p")
    made.append(rows(2, p=["y"]))
    with made.update_schema() as change:
        change.rename_column("p", "q")
    listing = table().current().listing()
    assert ranges(listing) == [(DAY, DAY), (2 * DAY, 2 * DAY)]
    assert list(listing.details.partitions.values()) == [{"q": "y"}]


# Columns


def test_columns_have_spark_types_without_files_too(create: Create, table: Make) -> None:
    create(
        ("ts", TimestamptzType()),
        ("ntz", TimestampType()),
        ("i", IntegerType()),
        ("n", DecimalType(10, 2)),
        ("s", StructType(NestedField(20, "x", LongType()))),
        ("l", ListType(21, StringType())),
        ("u", UUIDType()),
        ("f", FixedType(3)),
        ("t", TimeType()),
    )
    expected = {
        "ts": "timestamp",
        "ntz": "timestamp_ntz",
        "i": "int",
        "n": "decimal(10,2)",
        "s": "struct<x:bigint>",
        "l": "array<string>",
        "u": "string",
        "f": "binary",
        "t": "time(6)",
    }
    assert table().columns() == expected
    listing = table().current().listing()
    assert listing.schema == expected
    assert not listing.names


def test_columns_have_ids_and_one_added_again_has_another(create: Create, table: Make) -> None:
    made = create()
    made.append(rows(1, v=[1]))
    before = table().current()
    assert before.listing().details.columns == {"ts": Place("ts", 1), "v": Place("v", 2)}
    with made.update_schema() as update:
        update.delete_column("v")
    with made.update_schema() as update:
        update.add_column("v", LongType())
    after = table().current()
    assert after.version != before.version
    assert after.listing().details.columns == {"ts": Place("ts", 1), "v": Place("v", 3)}


# What would be read wrong


def deletes(path: str, content: DataFileContent = DataFileContent.POSITION_DELETES, **more: Any) -> Any:
    return log.data_file(path, content=content, **more)


def of_file(path: str) -> dict[str, Any]:
    return log.bounds(log.FILE_PATH, path.encode(), path.encode())


EQUALITY = DataFileContent.EQUALITY_DELETES


def test_delete_files_that_no_longer_apply_are_not_in_the_way(
    create: Create, table: Make, root: Path
) -> None:
    create()
    log.commit(root, deletes("d"), deletes("e", EQUALITY, equality_ids=[1]), deletes("p", **of_file("gone")))
    log.commit(root, log.data_file("f", **STATED))
    assert range_of(table()) == (0, 0)


def test_sparks_reader_sees_each_file_change_by_its_own_deletes(
    create: Create, table: Make, root: Path
) -> None:
    create(("ts", TimestamptzType()), ("p", StringType()), by=("p",))
    made = table(reader="spark")
    for name, part in (("f", "x"), ("g", "x"), ("h", "y")):
        log.commit(root, log.data_file(name, partition=(part,), **STATED))

    def changed(*delete: Any) -> set[str]:
        before = set(made.current().listing().segments())
        log.commit(root, *delete)
        after = set(made.current().listing().segments())
        return {segment.name for segment in after - before}

    puffin: dict[str, Any] = {"file_format": FileFormat.PUFFIN, "referenced_data_file": "h"}
    assert changed(deletes("1", partition=("x",))) == {"f", "g"}
    assert changed(deletes("2", partition=("x",), **of_file("g"))) == {"g"}
    assert changed(deletes("3", EQUALITY, partition=("y",), equality_ids=[1])) == {"h"}
    assert changed(deletes("4", partition=("y",), content_offset=4, **puffin)) == {"h"}
    assert changed(deletes("4", partition=("y",), content_offset=90, **puffin)) == {"h"}
    assert changed(log.data_file("i", partition=("x",), **STATED)) == {"i"}


@pytest.mark.parametrize("kind", [FileFormat.ORC, FileFormat.AVRO])
def test_files_that_are_not_parquet_fail_their_buckets_and_no_others(
    create: Create, table: Make, root: Path, kind: FileFormat
) -> None:
    create()
    log.commit(root, log.data_file("f", file_format=kind, **STATED), log.data_file("g", file_format=kind))
    log.commit(root, log.data_file("h", **log.bounds(1, long(7_000), long(8_000))))
    listing = table().current().listing()
    assert {segment.name: (segment.start_ms, segment.end_ms) for segment in listing.segments()} == {
        "f": (0, 0),
        "h": (7, 8),
    }
    assert listing.broken.keys() == {"f", "g"}
    assert listing.broken["f"].range == (0, 0)
    assert f"it is {kind.value}, not Parquet" in listing.broken["f"].why
    assert "reader: spark" in listing.broken["f"].why
    assert "rewrite_data_files" in listing.broken["f"].why
    assert not listing.broken["g"].ranged
    listing = table(reader="spark").current().listing()
    assert set(listing.names) == {"f", "h"}
    assert listing.broken.keys() == {"g"}
    assert kind.value in listing.broken["g"].why


def test_encrypted_files_fail_their_buckets(create: Create, table: Make, root: Path) -> None:
    create()
    log.commit(root, log.data_file("f", key_metadata=b"key", **STATED))
    listing = table().current().listing()
    assert ranges(listing) == [(0, 0)]
    assert "it is encrypted" in listing.broken["f"].why
    assert "reader: spark" in listing.broken["f"].why
    listing = table(reader="spark").current().listing()
    assert (ranges(listing), listing.broken) == ([(0, 0)], {})


def test_an_imported_file_whose_range_is_not_stated_is_broken(
    create: Create, table: Make, root: Path, tmp_path: Path
) -> None:
    create()
    pq.write_table(rows(1), tmp_path / "f.parquet")
    log.commit(root, log.data_file(f"file://{tmp_path}/f.parquet"))
    (broken,) = table(reader="spark").current().listing().broken.values()
    assert "no field ids" in broken.why


@pytest.mark.parametrize("looked", [False, True])
def test_a_file_that_is_listed_twice_is_refused(
    create: Create,
    table: Make,
    root: Path,
    looked: bool,  # noqa: FBT001
) -> None:
    create()
    log.commit(root, log.data_file("g", **STATED), log.data_file("f", **STATED))
    if looked:
        assert len(table(reader="spark").current().listing()) == 2
    log.commit(root, log.data_file("f", **STATED))
    for _ in range(2):
        with pytest.raises(TableRefused, match="lists f twice"):
            table(reader="spark").current().listing()


def test_so_is_a_manifest_that_is_listed_twice(create: Create, table: Make, root: Path) -> None:
    create()
    log.commit(root, log.data_file("f", **STATED))
    assert len(table(reader="spark").current().listing()) == 1
    log.commit(root, again=True)
    with pytest.raises(TableRefused, match="lists f twice"):
        table(reader="spark").current().listing()


@pytest.mark.parametrize(
    ("version", "kind", "what"), [(4, "long", "format version 4"), (3, "variant", "column of type variant")]
)
def test_what_the_library_can_not_open_is_refused_by_name(
    create: Create, table: Make, root: Path, version: int, kind: str, what: str
) -> None:
    create()

    def change(metadata: dict[str, Any]) -> None:
        metadata |= {"format-version": version, "next-row-id": 0}
        metadata["schemas"][0]["fields"][1]["type"] = kind

    log.rewrite(root, change)
    with pytest.raises(TableRefused, match=what):
        table(reader="spark").current()


# What can't be listed


def test_a_root_that_is_missing_or_no_iceberg_table_is_no_empty_table(table: Make, root: Path) -> None:
    with pytest.raises(TableUnreadable, match=str(root)):
        table().current()
    (root / "metadata").mkdir(parents=True)
    with pytest.raises(TableUnreadable, match="no metadata file"):
        table().columns()


def test_damaged_metadata_is_no_empty_table(create: Create, table: Make, root: Path) -> None:
    create().append(rows(1))
    last = log.newest(root)
    last.write_text(last.read_text()[:100])
    with pytest.raises(TableUnreadable):
        table().current()


@pytest.mark.parametrize("pattern", ["snap-*.avro", "*-m0.avro"])
def test_a_missing_or_damaged_manifest_is_no_empty_table(
    create: Create, table: Make, root: Path, pattern: str
) -> None:
    create().append(rows(1))
    (file,) = (root / "metadata").glob(pattern)
    for damage in (lambda: file.write_bytes(file.read_bytes()[:40]), file.unlink):
        damage()
        with pytest.raises(TableUnreadable):
            table().current().listing()


def test_a_current_snapshot_that_is_missing_is_no_empty_table(
    create: Create, table: Make, root: Path
) -> None:
    create().append(rows(1))
    log.rewrite(root, lambda metadata: metadata.update(snapshots=[]))
    with pytest.raises(TableUnreadable):
        table().current().listing()


def test_without_the_library_the_table_says_what_to_install(
    table: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyiceberg"]:
        monkeypatch.setitem(sys.modules, name, None)
    for made in (table(), table(path=None, catalog={"type": "rest"}, identifier="a.b")):
        with pytest.raises(TableUnreadable, match=r"pip install 'mv_assets\[iceberg\]'"):
            made.current()

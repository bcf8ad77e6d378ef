"""Rows that delete files take out of data files: which, from when on, and what the listing says of it."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import StaticTable
from pyiceberg.types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)
from pyroaring import BitMap64

from mv_assets.tables.iceberg import positions
from mv_assets.tables.iceberg.deletes import Place
from mv_assets.tables.iceberg.deletes import _between as between
from mv_assets.tables.listing import Listing
from mv_assets.tables.parquet.footer import Unusable
from mv_assets_tests.unit.tables.iceberg import log
from mv_assets_tests.unit.tables.iceberg.tables import (
    DAY,
    STATED,
    Create,
    Make,
    data,
    long,
    paths,
    rows,
    visible,
)

POSITION, EQUALITY = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    positions._recent.clear()


def numbers(table: Make, listing: Listing | None = None) -> list[int]:
    """The numbers of the rows that are left."""
    made = table()
    return sorted(row["v"] for row in visible(made, listing or made.current().listing()))


def by_the_library(root: Path) -> list[int]:
    scanned = StaticTable.from_metadata(str(log.newest(root))).scan().to_arrow()
    return sorted(scanned["v"].to_pylist())


def changed(table: Make, root: Path, *files: Any, **how: Any) -> set[str]:
    """Which segments are others after a commit."""
    before = set(table().current().listing().segments())
    log.commit(root, *files, **how)
    return {segment.name for segment in set(table().current().listing().segments()) - before}


def names(*files: str) -> set[str]:
    return {f"data/{Path(file).name}" for file in files}


# Position deletes and vectors


def test_122_position_deletes_of_one_file_are_of_no_other(create: Create, table: Make, root: Path) -> None:
    made = create()
    made.append(rows(1, 1, 1, v=[1, 2, 3]))
    made.append(rows(2, 2, v=[4, 5]))
    first, _ = paths(made)
    delete = log.position_deletes(root / "d.parquet", (first, 0), (first, 2))
    assert changed(table, root, delete) == names(first)
    assert numbers(table) == by_the_library(root) == [2, 4, 5]
    assert changed(table, root, log.position_deletes(root / "e.parquet", (first, 2), (first, 1))) == names(
        first
    )
    assert numbers(table) == by_the_library(root) == [4, 5]
    listing = table().current().listing()
    (deletes,) = listing.details.deletes.values()
    assert table().deleted(listing, *names(first)).to_pylist() == [0, 1, 2]
    assert [Place.of(place).path for place in deletes.places] == [
        f"file://{root}/d.parquet",
        f"file://{root}/e.parquet",
    ]


def test_122_deletes_of_a_partition_are_of_the_files_between_their_bounds(
    create: Create, table: Make, root: Path
) -> None:
    made = create(("ts", TimestamptzType()), ("v", LongType()), ("p", StringType()), by=("p",))
    for number, part in enumerate("xxxy"):
        made.append(rows(1, 2, v=[2 * number, 2 * number + 1], p=[part, part]))
    files = paths(made)
    inside = sorted(files[:3])
    delete = log.position_deletes(root / "d.parquet", (inside[0], 1), (inside[1], 0), partition=("x",))
    affected = names(inside[0], inside[1])
    assert {f"data/p=x/{Path(file).name}" for file in inside[:2]} == changed(table, root, delete)
    assert numbers(table) == by_the_library(root)
    assert len(numbers(table)) == 6
    assert len(affected) == 2
    # Without bounds it may be of any file of the partition.
    bare = log.position_deletes(root / "e.parquet", (inside[0], 0), partition=("x",), lower_bounds=None)
    assert len(changed(table, root, bare)) == 3
    assert numbers(table) == by_the_library(root)
    assert len(numbers(table)) == 5


def test_position_deletes_are_of_rows_of_their_own_commit_and_older_ones(
    create: Create, table: Make, root: Path
) -> None:
    create()
    kept = [root / "data" / f"{name}.parquet" for name in "fgh"]
    kept[0].parent.mkdir(parents=True)
    for number, file in enumerate(kept):
        pq.write_table(rows(1, v=[number]), file)
    files = [log.data_file(f"file://{file}", 1, **STATED) for file in kept]
    log.commit(root, files[0])
    everywhere = [(f"file://{file}", 0) for file in kept]
    log.commit(root, files[1], log.position_deletes(root / "d.parquet", *everywhere))
    log.commit(root, files[2])
    listing = table().current().listing()
    assert listing.details.deletes.keys() == names(*map(str, kept[:2]))
    assert numbers(table, listing) == [2]


def test_rows_without_a_time_are_deleted_as_others_are(create: Create, table: Make, root: Path) -> None:
    """Of a file that has no others too: it is in no bucket, and in answers."""
    made = create()
    made.append(rows(None, None, v=[1, 2]))
    made.append(rows(None, None, v=[3, 4]))
    made.append(rows(1, None, v=[5, 6]))
    first, _, last = paths(made)
    log.commit(root, log.position_deletes(root / "d.parquet", (first, 0), (last, 1)))
    listing = table().current().listing()
    assert listing.timeless == names(*paths(made)[:2])
    assert numbers(table) == by_the_library(root) == [2, 3, 4, 5]
    log.commit(root, log.equality_deletes(root / "e.parquet", pa.table({"v": [3]}), {"v": 2}))
    assert numbers(table) == [2, 4, 5]


@pytest.mark.parametrize("nulls", [1, None])
def test_equality_deletes_of_rows_without_a_time_are_of_all_files(
    create: Create, table: Make, root: Path, nulls: int | None
) -> None:
    """Wherever the times lie of the other rows that they delete."""
    create().append(rows(1, None, v=[1, 2]))
    gone = rows(5, None, v=[9, 2])
    told = log.bounds(1, long(5 * DAY * 1_000), long(5 * DAY * 1_000))
    told["null_value_counts"] = None if nulls is None else {1: nulls}
    log.commit(root, log.equality_deletes(root / "d.parquet", gone, {"ts": 1, "v": 2}, **told))
    assert numbers(table) == [1]


@pytest.mark.parametrize("two", [False, True])
def test_122_vectors_delete_rows_and_one_file_may_have_several_of_them(
    create: Create,
    table: Make,
    root: Path,
    two: bool,  # noqa: FBT001
) -> None:
    made = create()
    made.append(rows(1, 1, 1, v=[1, 2, 3]))
    made.append(rows(2, 2, v=[4, 5]))
    first, second = paths(made)
    deleted = {first: [0, 2], second: [1]} if two else {first: [0, 2]}
    assert changed(table, root, *log.vectors(root / "d.puffin", deleted)) == names(*deleted)
    assert numbers(table) == by_the_library(root) == ([2, 4] if two else [2, 4, 5])


def test_122_a_vector_replaces_position_deletes_of_its_file(create: Create, table: Make, root: Path) -> None:
    made = create()
    made.append(rows(1, 1, 1, v=[1, 2, 3]))
    made.append(rows(2, 2, v=[4, 5]))
    first, second = paths(made)
    log.commit(root, log.position_deletes(root / "d.parquet", (first, 0), (second, 1)))
    assert numbers(table) == [2, 3, 4]
    assert changed(table, root, *log.vectors(root / "d.puffin", {first: [0, 1]})) == names(first)
    listing = table().current().listing()
    assert numbers(table, listing) == [3, 4]
    (place,) = listing.details.deletes[names(first).pop()].places
    assert Place.of(place).path.endswith("d.puffin")
    # The next one is instead of it.
    (vector,) = log.vectors(root / "e.puffin", {first: [0, 1, 2]})
    assert changed(table, root, vector, remove=[f"file://{root}/d.puffin"]) == names(first)
    assert numbers(table) == [4]


def test_two_vectors_of_a_file_fail_its_buckets(create: Create, table: Make, root: Path) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    made.append(rows(2, v=[3]))
    first, _ = paths(made)
    log.commit(root, *log.vectors(root / "d.puffin", {first: [0]}))
    log.commit(root, *log.vectors(root / "e.puffin", {first: [1]}))
    (broken,) = table().current().listing().broken.values()
    assert ({broken.name}, broken.range) == (names(first), (DAY, DAY))
    assert "two deletion vectors" in broken.why


def test_positions_beyond_32_bits_are_read(tmp_path: Path) -> None:
    (entry,) = log.vectors(tmp_path / "d.puffin", {"f": [1, 2**33 + 7]})
    place = Place(entry.file_path, entry[-2], entry[-1], 2, 2**34)
    found = positions.positions(PyArrowFileIO(), [place.text()], "f")
    assert found.to_pylist() == [1, 2**33 + 7]
    with pytest.raises(
        Unusable, match=r"d\.puffin can't be used: it deletes a row that is not among the 9 of f"
    ):
        positions.positions(PyArrowFileIO(), [place._replace(rows=9).text()], "f")


def test_a_vector_that_is_taken_back_gives_the_earlier_segments_again(
    create: Create, table: Make, root: Path
) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    before = list(table().current().listing().segments())
    (vector,) = log.vectors(root / "d.puffin", {paths(made)[0]: [0]})
    log.commit(root, vector)
    assert list(table().current().listing().segments()) != before
    log.commit(root, remove=[vector.file_path])
    assert list(table().current().listing().segments()) == before
    assert not table().current().listing().details.deletes


def test_a_file_has_one_path_however_a_delete_spells_it(create: Create, table: Make, root: Path) -> None:
    made = create()
    made.append(rows(1, 1, 1, 1, 1, v=[1, 2, 3, 4, 5]))
    (path,) = paths(made)
    plain = path.removeprefix("file://")
    spelled = [f"file:{plain}", plain, f"file:///{plain}"]
    for number, other in enumerate(spelled):
        deletes = log.position_deletes(root / f"{number}.parquet", (other, number), (f"{other}.not", 4))
        log.commit(root, deletes)
    log.commit(root, log.position_deletes(root / "one.parquet", (spelled[0], 3)))
    assert numbers(table) == [5]


def test_bounds_exclude_only_what_can_not_be_between_them() -> None:
    assert between(b"file:///a", "/b", b"file:///c")
    assert between(b"/a", "file:/b", b"/c")
    assert not between(b"/a", "/d", b"/c")
    assert not between(b"s3://k/b", "s3://k/a", b"s3://k/c")
    # Cut off and counted up, or spelled in two ways, they tell no order of plain paths.
    assert between(b"file:/", "/z", b"file:0")
    assert between(b"file:///b", "/z", b"file:/a")
    assert between(b"\xff", "/z", b"\xff")


def test_a_large_file_of_deletes_is_read_for_each_of_its_data_files(
    create: Create, table: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    made.append(rows(2, 2, v=[3, 4]))
    first, second = paths(made)
    log.commit(root, log.position_deletes(root / "d.parquet", (first, 0), (second, 1)))
    assert numbers(table) == [2, 3]
    assert positions._recent._weight > 0
    positions._recent.clear()
    monkeypatch.setattr(positions, "_MOST", 1)
    assert numbers(table) == [2, 3]
    assert positions._recent._weight == 0


# Equality deletes


def test_123_equality_deletes_are_of_older_rows_only(create: Create, table: Make, root: Path) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    made.append(rows(2, 2, v=[2, 3]))
    first, second = paths(made)
    delete = log.equality_deletes(root / "d.parquet", pa.table({"v": [2]}), {"v": 2})
    assert changed(table, root, delete) == names(first, second)
    assert numbers(table) == [1, 3]
    # Rows of its own commit are newer.
    new = root / "data" / "new.parquet"
    pq.write_table(log.with_ids(rows(3, 3, v=[1, 2]), {"ts": 1, "v": 2}), new)
    again = log.equality_deletes(root / "e.parquet", pa.table({"v": [1]}), {"v": 2})
    log.commit(root, log.data_file(f"file://{new}", 2, **STATED), again)
    assert numbers(table) == [1, 2, 3]
    listing = table().current().listing()
    assert "data/new.parquet" not in listing.details.deletes
    assert {each.path for each in listing.details.deletes[names(first).pop()].equal} == {
        f"file://{root}/d.parquet",
        f"file://{root}/e.parquet",
    }


def test_123_equality_deletes_find_columns_by_id_after_the_schema_changed(
    create: Create, table: Make, root: Path
) -> None:
    made = create(("ts", TimestamptzType()), ("v", LongType()), ("i", IntegerType()), ("s", StringType()))
    made.append(rows(1, 1, v=[1, 2], i=pa.array([7, 8], pa.int32()), s=["x", None]))
    by_number = log.equality_deletes(root / "d.parquet", pa.table({"i": pa.array([7], pa.int32())}), {"i": 3})
    by_text = log.equality_deletes(
        root / "e.parquet", pa.table({"s": pa.array([None], pa.string())}), {"s": 4}
    )
    log.commit(root, by_number)
    log.commit(root, by_text)

    def change(metadata: dict[str, Any]) -> None:
        """Promote one column, rename it, and drop the other."""
        last = metadata["schemas"][-1]
        fields = [dict(part) for part in last["fields"] if part["name"] != "s"]
        fields[2] |= {"name": "number", "type": "long"}
        metadata["schemas"].append({**last, "schema-id": last["schema-id"] + 1, "fields": fields})
        metadata["current-schema-id"] = last["schema-id"] + 1

    log.rewrite(root, change)
    listing = table().current().listing()
    (deletes,) = listing.details.deletes.values()
    assert [each.columns for each in deletes.equal] == [((3, "bigint"),), ((4, "string"),)]
    # Nulls are equal.
    assert visible(table(), listing) == []


def test_equality_deletes_are_of_their_partition_or_of_all(create: Create, table: Make, root: Path) -> None:
    made = create(("ts", TimestamptzType()), ("v", LongType()), ("p", StringType()), by=("p",))
    made.append(rows(1, 1, v=[1, 2], p=["x", "y"]))
    by_part = log.equality_deletes(root / "d.parquet", pa.table({"v": [1, 2]}), {"v": 2}, partition=("x",))
    log.commit(root, by_part)
    assert numbers(table) == [2]

    def change(metadata: dict[str, Any]) -> None:
        metadata["partition-specs"].append({"spec-id": 1, "fields": []})

    log.rewrite(root, change)
    log.commit(root, log.equality_deletes(root / "e.parquet", pa.table({"v": [2]}), {"v": 2}), spec_id=1)
    assert numbers(table) == []


def test_equality_deletes_by_time_are_of_the_files_of_that_time(
    create: Create, table: Make, root: Path
) -> None:
    made = create()
    made.append(rows(1, v=[1]))
    made.append(rows(2, v=[2]))
    first, _ = paths(made)
    micros = long(DAY * 1_000)
    delete = log.equality_deletes(
        root / "d.parquet", rows(1, v=[1]), {"ts": 1, "v": 2}, **log.bounds(1, micros, micros)
    )
    assert changed(table, root, delete) == names(first)
    assert numbers(table) == [2]


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        (DoubleType(), pa.array([1.0]), "a column of type double"),
        (UUIDType(), pa.array([b"0123456789abcdef"], pa.binary(16)), "a column of type uuid"),
        (StructType(NestedField(9, "x", LongType())), pa.array([{"x": 1}]), "a field inside of another"),
    ],
)
def test_equality_by_columns_that_spark_compares_otherwise_fails_the_buckets(
    create: Create, table: Make, root: Path, kind: Any, value: pa.Array, why: str
) -> None:
    create(("ts", TimestamptzType()), ("v", LongType()), ("c", kind))
    log.commit(root, log.data_file("f", **STATED))
    made = table().current().listing()
    number = 3 if not isinstance(kind, StructType) else 4
    delete = log.data_file("d", content=EQUALITY, equality_ids=[number])
    log.commit(root, delete)
    listing = table().current().listing()
    assert why in listing.broken["f"].why
    assert listing.broken["f"].range == (0, 0)
    assert len(made) == len(value)


# What can't be read


@pytest.mark.parametrize(
    ("delete", "why"),
    [
        ({"file_format": FileFormat.ORC}, "d is ORC, not Parquet"),
        (
            {"file_format": FileFormat.AVRO, "content": EQUALITY, "equality_ids": [2]},
            "d is AVRO, not Parquet",
        ),
        ({"key_metadata": b"key"}, "d is encrypted"),
        ({"file_format": FileFormat.PUFFIN, "referenced_data_file": "f"}, "which part of it"),
        ({"content": EQUALITY, "equality_ids": []}, "no column"),
    ],
)
def test_126_deletes_that_can_not_be_read_fail_the_buckets_of_their_files(
    create: Create, table: Make, root: Path, delete: dict[str, Any], why: str
) -> None:
    create()
    later = log.bounds(1, long(5_000_000), long(6_000_000))
    log.commit(root, log.data_file("f", **STATED))
    log.commit(root, log.data_file("d", **{"content": POSITION, **delete}))
    log.commit(root, log.data_file("g", **later))
    listing = table().current().listing()
    assert listing.broken.keys() == {"f"}
    assert listing.broken["f"].range == (0, 0)
    assert why in listing.broken["f"].why
    assert "reader: spark" in listing.broken["f"].why
    assert not table(reader="spark").current().listing().broken
    # Spark's connector reads them itself.
    assert not table(reader="spark").current().listing().details.deletes


def of_one(table: Make, listing: Listing) -> pa.Int64Array:
    positions._recent.clear()
    (name,) = listing.details.deletes
    return table().deleted(listing, name)


@pytest.mark.parametrize("vector", [False, True])
def test_126_a_file_of_deletes_that_is_missing_is_named(
    create: Create,
    table: Make,
    root: Path,
    vector: bool,  # noqa: FBT001
) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    (path,) = paths(made)
    file = root / "d"
    log.commit(root, *(log.vectors(file, {path: [0]}) if vector else [log.position_deletes(file, (path, 0))]))
    listing = table().current().listing()
    reading = table()
    (name,) = listing.details.deletes
    assert reading.deleted(listing, name).to_pylist() == [0]
    positions._recent.clear()
    hidden = file.rename(root / "hidden")
    with pytest.raises(Unusable, match=rf"its delete file file://{file} is not there"):
        reading.deleted(listing, name)
    hidden.rename(file)
    assert reading.deleted(listing, name).to_pylist() == [0]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda blob: blob[:-4] + bytes(4), "checksum"),
        (lambda blob: (len(blob) - 7).to_bytes(4, "big") + blob[4:], "not as long as it says"),
        (lambda blob: blob[:4] + _framed(b"\0\0\0\0" + blob[8:-4])[4:], "checksum"),
        (lambda _: _framed(b"\xd1\xd3\x39\x64" + BitMap64([0]).serialize()), "not as long as it says"),
        (lambda _: _framed(b"\xd1\xd3\x39\x64" + BitMap64([0]).serialize() + bytes(2)), "deletes 1 rows"),
    ],
)
def test_126_a_vector_that_does_not_say_what_it_should_is_named(
    create: Create, table: Make, root: Path, spoil: Any, why: str
) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    file = root / "d.puffin"
    (vector,) = log.vectors(file, {paths(made)[0]: [0, 1]})
    log.commit(root, vector)
    content, (offset, size) = file.read_bytes(), (vector[-2], vector[-1])
    file.write_bytes(content[:offset] + spoil(content[offset : offset + size]) + content[offset + size :])
    with pytest.raises(Unusable, match=rf"its delete file file://{file} can't be .*{why}"):
        of_one(table, table().current().listing())


def _framed(bitmap: bytes) -> bytes:
    return len(bitmap).to_bytes(4, "big") + bitmap + zlib.crc32(bitmap).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"file_path": ["PATH"], "pos": [5]}, "not among the 2 of"),
        ({"file_path": ["PATH"], "pos": [-1]}, "not among the 2 of"),
        ({"file_path": ["PATH", "PATH"], "pos": [0, 1]}, "it has 2 rows, and the table says 1"),
        ({"file_path": ["PATH"], "pos": pa.array([None], pa.int64())}, "without file_path or pos"),
        ({"file_path": ["PATH"], "pos": pa.array([0], pa.int32())}, "types string and int32"),
        ({"path": ["PATH"], "pos": [0]}, "file_path"),
    ],
)
def test_126_a_file_of_positions_that_does_not_fit_is_named(
    create: Create, table: Make, root: Path, content: dict[str, Any], why: str
) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    (path,) = paths(made)
    file = root / "d.parquet"
    filled = {
        name: [path if value == "PATH" else value for value in values] if isinstance(values, list) else values
        for name, values in content.items()
    }
    delete = log.position_deletes(file, (path, 0))
    pq.write_table(pa.table(filled), file)
    given = {**log.bounds(log.FILE_PATH, path.encode(), path.encode()), "content": POSITION}
    log.commit(root, log.data_file(delete.file_path, 1, file_size_in_bytes=file.stat().st_size, **given))
    with pytest.raises(Unusable, match=rf"its delete file file://{file} can't be .*{why}"):
        of_one(table, table().current().listing())


def test_the_catalog_is_asked_again_if_what_it_lent_no_longer_does(
    create: Create, table: Make, root: Path
) -> None:
    made = create()
    made.append(rows(1, 1, v=[1, 2]))
    log.commit(root, log.position_deletes(root / "d.parquet", (paths(made)[0], 1)))
    reading = table()
    listing = reading.current().listing()

    class Expired(PyArrowFileIO):
        def new_input(self, location: str) -> Any:
            raise PermissionError(location)

    reading._reached[listing.version] = Expired()
    (name,) = listing.details.deletes
    assert reading.deleted(listing, name).to_pylist() == [1]
    assert len(data(root)) == 1

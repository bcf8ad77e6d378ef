"""Rows that are deleted from a file are in no frame of it, however the file is read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from mv_assets.spark.errors import Unreadable
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.read import files
from mv_assets.spark.session import Engine
from mv_assets.tables.listing import EqualityDelete
from mv_assets_tests.unit.spark.read.tables import HandMade, plan_of, rows_of, scans_in, set_all

# A stretch of rows ends at 16384, a word at 64.
EDGES = [0, 1, 62, 63, 64, 16_383, 16_384, 32_767, 32_768, 39_999]
WAYS = {
    "as it is": {},
    "not in batches": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "in splits": {"spark.sql.files.maxPartitionBytes": "8192"},
    "in splits, not in batches": {
        "spark.sql.files.maxPartitionBytes": "8192",
        "spark.sql.parquet.enableVectorizedReader": "false",
    },
}


@pytest.fixture
def spark(engine: Engine) -> Iterator[SparkSession]:
    with engine.session() as session:
        yield session


def table(tmp_path: Path, **columns: str) -> HandMade:
    return HandMade(tmp_path / "events", columns)


def numbers(first: int, last: int) -> pa.Table:
    return pa.table({"x": pa.array(range(first, last), pa.int64())})


def without(rows: Iterable[int], deleted: Sequence[int]) -> list[tuple[int]]:
    gone = set(deleted)
    return sorted(((row,) for at, row in enumerate(rows) if at not in gone), key=repr)


@pytest.mark.parametrize("way", WAYS)
def test_124_deleted_rows_under_a_filter_that_prunes_row_groups(
    tmp_path: Path, spark: SparkSession, way: str
) -> None:
    """By their places in the file, which are not those among the rows that are read of it."""
    made, chance = table(tmp_path, x="bigint"), random.Random(way)
    made.put("a", numbers(0, 40_000), row_group_size=1_000)
    deleted = sorted({*EDGES, *chance.sample(range(40_000), 2_000)})
    made.delete("a", deleted)
    with set_all(spark, WAYS[way]):
        reader = made.reader(spark)
        assert rows_of(reader, ["a"]) == without(range(40_000), deleted)
        for first in (15_900, 30_001, 39_000):
            where = f"x >= {first} AND x < {first + 1_500}"
            assert "GreaterThanOrEqual(" in plan_of(reader.frame(["a"], reader.schema([])).where(where))
            found = rows_of(reader, ["a"], where)
            kept = [row for row in without(range(40_000), deleted) if first <= row[0] < first + 1_500]
            assert found == kept
    assert made.decoded == ["a"]


def test_files_of_one_size_have_their_own_deleted_rows(tmp_path: Path, spark: SparkSession) -> None:
    made, names = table(tmp_path, x="bigint"), [f"part {number}%41.parquet" for number in range(40)]
    sizes = set()
    for number, name in enumerate(names):
        path = made.put(name, numbers(100 * number, 100 * number + 100), compression="none")
        sizes.add(path.stat().st_size)
        if number % 2:
            made.delete(name, range(number))
    assert len(sizes) == 1
    reader = made.reader(spark)
    expected = [row for n in range(40) for row in range(100 * n + (n if n % 2 else 0), 100 * n + 100)]
    assert [row for (row,) in sorted(rows_of(reader, names))] == expected
    # However many files have some, they are one scan; and another one those that have none.
    assert scans_in(reader.frame(names, reader.schema(names))) == 2


def test_all_rows_are_deleted_and_none_and_no_column_is_read(tmp_path: Path, spark: SparkSession) -> None:
    made = table(tmp_path, x="bigint")
    for name in ("all", "none", "one"):
        made.put(name, numbers(0, 70))
    made.delete("all", range(70))
    made.delete("one", [64])
    names = ["all", "none", "one"]
    counted = {name: made.reader(spark, []).frame([name], StructType()).count() for name in names}
    assert counted == {"all": 0, "none": 70, "one": 69}
    assert made.reader(spark).frame(names, made.reader(spark).schema(names)).count() == 139


def test_values_of_partitions_and_nested_columns_beside_deleted_rows(
    tmp_path: Path, spark: SparkSession
) -> None:
    made = table(tmp_path, zone="string", s="struct<p:bigint,q:array<string>>", day="date", x="bigint")
    kind = pa.struct({"p": pa.int64(), "q": pa.list_(pa.string())})
    for number, zone in enumerate(["a", None, "a", "b"]):
        rows = pa.table(
            {
                "s": pa.array([{"p": at, "q": [str(at)]} for at in range(10)], kind),
                "x": pa.array(range(10), pa.int64()),
            }
        )
        made.put(f"f{number}", rows)
        made.give(f"f{number}", zone=zone, day=f"2024-01-0{number + 1}")
    made.delete("f0", [0, 1, 2, 3, 4, 5, 6, 7])
    made.delete("f1", [*range(9)])
    reader = made.reader(spark, ["zone", "s", "day"])
    names = ["f0", "f1", "f2", "f3"]
    found = reader.frame(names, reader.schema([])).selectExpr("zone", "string(day)", "s.p", "s.q[0]")
    rows = sorted((tuple(row) for row in found.collect()), key=repr)
    last = [(zone, f"2024-01-0{day}", at, str(at)) for zone, day in (("a", 3), ("b", 4)) for at in range(10)]
    expected = [(None, "2024-01-02", 9, "9"), *(("a", "2024-01-01", at, str(at)) for at in (8, 9)), *last]
    assert rows == sorted(expected, key=repr)


def test_a_vector_that_is_not_there_is_named_with_its_file(tmp_path: Path, spark: SparkSession) -> None:
    made = table(tmp_path, x="bigint")
    made.put("a", numbers(0, 3))
    made.delete("a", [1])
    del made.places["a"]
    with pytest.raises(Unreadable, match=r"file a: which of its rows are deleted .* vector v-a is not there"):
        rows_of(made.reader(spark), ["a"])


def test_what_takes_too_much_room_is_refused(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = table(tmp_path, x="bigint")
    made.put("a", numbers(0, 3))
    made.delete("a", [1])
    monkeypatch.setattr("mv_assets.spark.read.deletes._LARGEST", 1_000)
    with pytest.raises(Unreadable, match="compact the table"):
        rows_of(made.reader(spark), ["a"])


@pytest.mark.parametrize("deleted", [True, False])
def test_a_file_that_spark_calls_otherwise_is_neither_whole_nor_lost(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, deleted: bool
) -> None:
    made = table(tmp_path, p="string", x="bigint")
    for name in ("a", "b"):
        made.put(name, numbers(0, 3))
        made.give(name, p=name)
        if deleted:
            made.delete(name, [1])
    monkeypatch.setattr(files, "_spellings", lambda uri: [f"{uri}?"])
    reader = made.reader(spark)
    frame = reader.frame(["a", "b"], reader.schema([]))
    for some in (frame, frame.select("x"), frame.where("p IS NULL"), frame.groupBy().count()):
        with pytest.raises(Exception, match="does not name as it lists it"), spark_errors():
            some.collect()


def equal(path: Path, *columns: tuple[int, str]) -> EqualityDelete:
    return EqualityDelete(str(path), columns)


def by_spark(made: HandMade, spark: SparkSession, wanted: list[str], names: list[str]) -> list[Any]:
    return rows_of(made.reader(spark, wanted), names)


def by_arrow(made: HandMade, spark: SparkSession, wanted: list[str], names: list[str]) -> list[Any]:
    return rows_of(made.by_arrow(spark, wanted), names)


BOTH = pytest.mark.parametrize("read", [by_spark, by_arrow])
Read = Callable[[HandMade, SparkSession, list[str], list[str]], list[Any]]


def people(*rows: tuple[int | None, str | None, int]) -> pa.Table:
    columns = zip(*rows, strict=True)
    kinds = [pa.int64(), pa.string(), pa.int64()]
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=["id", "name", "x"])


PEOPLE = {"id": "bigint", "name": "string", "x": "bigint"}


@BOTH
def test_123_rows_that_equal_a_deleted_one_go_where_it_applies(
    tmp_path: Path, spark: SparkSession, read: Read
) -> None:
    """Nulls are equal; a delete file that is no newer than a file has no say in it."""
    made = table(tmp_path, **PEOPLE)
    rows = people((1, "a", 1), (1, None, 2), (None, "a", 3), (None, None, 4), (2, "a", 5))
    for name in ("old", "newer", "newest"):
        made.put(name, rows)
    first = made.put("d1", rows.slice(0, 2).select(["id", "name"]))
    second = made.put("d2", pa.concat_tables([rows.slice(3, 1), rows.slice(4)]).select(["name", "id"]))
    both = ((1, "bigint"), (2, "string"))
    made.delete("old", equal=[equal(first, *both), equal(second, *both)])
    made.delete("newer", [2], equal=[equal(second, *both)])
    expected = {"old": [3], "newer": [1, 2], "newest": [1, 2, 3, 4, 5]}
    for name, kept in expected.items():
        assert read(made, spark, ["x"], [name]) == [(x,) for x in kept]
    assert read(made, spark, ["x"], list(expected)) == sorted(
        (x,) for some in expected.values() for x in some
    )


@BOTH
def test_123_values_are_compared_by_field_id_whatever_their_columns_are_called(
    tmp_path: Path, spark: SparkSession, read: Read
) -> None:
    """One was renamed, one dropped, one is narrower in the delete file, one a partition's."""
    made = table(tmp_path, number="bigint", x="bigint", p="int")
    gone = {"code": 9}
    rows = pa.table(
        {
            "number": pa.array([1, 2, 3], pa.int64()),
            "x": pa.array([1, 2, 3], pa.int64()),
            "code": pa.array(["a", "b", None]),
        }
    )
    for name in ("one", "two"):
        made.put(name, made.with_ids(rows, gone))
        made.give(name, p="7" if name == "one" else "8")
    made.root.mkdir(exist_ok=True)
    by_number = made.put("d1", pa.table({"number": pa.array([1], pa.int32())}))
    by_code = made.put("d2", made.with_ids(pa.table({"code": pa.array([None], pa.string())}), gone))
    by_part = made.put("d3", pa.table({"p": pa.array([8], pa.int32()), "number": pa.array([2], pa.int64())}))
    deletes = [
        equal(by_number, (1, "bigint")),
        equal(by_code, (9, "string")),
        equal(by_part, (3, "int"), (1, "bigint")),
    ]
    for name in ("one", "two"):
        made.delete(name, equal=deletes)
    assert read(made, spark, ["x"], ["one", "two"]) == [(2,)]
    assert read(made, spark, ["x", "p"], ["one"]) == [(7, 2)]


@BOTH
def test_both_kinds_of_deletes_on_many_files(tmp_path: Path, spark: SparkSession, read: Read) -> None:
    """As a stream of upserts leaves them: each commit deletes from all that came before."""
    made, chance = table(tmp_path, **PEOPLE), random.Random(24)
    deletes, kept, commits = list[EqualityDelete](), dict[str, list[tuple[int, int]]](), 12
    for number in range(commits):
        ids = chance.sample(range(40), 10)
        for name, rows in kept.items():
            kept[name] = [row for row in rows if row[0] not in ids]
        deletes.append(
            equal(made.put(f"d{number}", people(*((i, "", 0) for i in ids)).select(["id"])), (1, "bigint"))
        )
        name = f"f{number}"
        made.put(name, people(*((i, "", number) for i in ids)))
        places = chance.sample(range(10), 2)
        kept[name] = [(i, number) for at, i in enumerate(ids) if at not in places]
        made.places[name] = sorted(places)
    for number in range(commits):
        made.delete(f"f{number}", made.places[f"f{number}"], deletes[number + 1 :])
    expected = sorted((row for rows in kept.values() for row in rows), key=repr)
    assert read(made, spark, ["id", "x"], list(kept)) == expected
    reader = made.reader(spark, ["id", "x"])
    assert scans_in(reader.frame(list(kept), reader.schema([]))) == 3


@BOTH
def test_a_delete_file_that_is_not_there_is_named(tmp_path: Path, spark: SparkSession, read: Read) -> None:
    made = table(tmp_path, **PEOPLE)
    made.put("a", people((1, "a", 1)))
    made.delete("a", equal=[equal(tmp_path / "gone.parquet", (1, "bigint"))])
    with pytest.raises(Unreadable, match=r"file a.*/gone\.parquet"):
        read(made, spark, ["x"], ["a"])


def test_arrow_leaves_out_rows_by_their_places_too(tmp_path: Path, spark: SparkSession) -> None:
    made = table(tmp_path, x="bigint")
    made.put("a", numbers(0, 40_000), row_group_size=1_000)
    made.delete("a", EDGES)
    assert rows_of(made.by_arrow(spark), ["a"]) == without(range(40_000), EDGES)


def test_arrow_does_not_compare_what_it_may_compare_otherwise(tmp_path: Path, spark: SparkSession) -> None:
    made = table(tmp_path, x="double")
    path = made.put("a", pa.table({"x": [0.0]}))
    made.delete("a", equal=[equal(path, (1, "double"))])
    with pytest.raises(Unreadable, match=r"file a: .* may compare otherwise"):
        rows_of(made.by_arrow(spark), ["a"])

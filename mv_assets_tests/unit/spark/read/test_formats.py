"""Delta and Iceberg tables, whose own word decides what their files hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    TimeType,
)

from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, daily, rows_at
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.test_table import without_stats
from mv_assets_tests.unit.tables.lake import spoiled

Make = Callable[..., UncheckedLake]
Create = Callable[..., Table]
ALL = "committed"
DELTA = {"format": "delta"}
ICEBERG = {"format": "iceberg", "unsafe": True}


def table_of(lake: UncheckedLake) -> Path:
    return lake.folder / "events"


def test_a_partitioned_delta_table(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("zone", "x"), table=DELTA)
    for number, zone in enumerate(["a/b", "c d%", None]):
        rows = rows_at([number], x=number, zone=pa.array([zone], pa.string()))
        write_deltalake(table_of(lake), rows, mode="append", partition_by=["zone"])
    assert lake.outcomes() == dict.fromkeys(range(3), ALL)
    assert lake.rows("zone", "x") == [("a/b", 0), ("c d%", 1), (None, 2)]


@pytest.mark.parametrize("logged", [True, False], ids=["statistics in the log", "none there"])
def test_130_damaged_pages_of_a_delta_table_fail_their_bucket_and_no_other(
    unchecked_lake: Make, *, logged: bool
) -> None:
    lake = unchecked_lake(daily("x"), table=DELTA)
    root = table_of(lake)
    for number in (0, 1, 2):
        write_deltalake(root, rows_at([number], x=number), mode="append")
    if not logged:
        without_stats(root)
    (file,) = [each for each in root.glob("*.parquet") if pq.read_table(each)["x"].to_pylist() == [1]]
    whole = file.read_bytes()
    file.write_bytes(spoiled(whole, "at"))
    report = lake.run()["v"]
    assert {bucket // DAY: each.outcome.value for bucket, each in report.results.items()} == {
        0: ALL,
        1: "failed",
        2: ALL,
    }
    assert (lake.states(0, 1, 2), lake.watermark(), file.name in report.wrong.failed[DAY]) == ("VSV", 1, True)
    file.write_bytes(whole)
    # What backs off is tried again in time.
    lake.clock.now += DAY
    assert not lake.run()["v"].wrong
    assert (lake.rows("x"), lake.watermark()) == ([0, 1, 2], 3)


def test_a_delta_table_is_compacted_changed_and_restored(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x", "y"), table=DELTA)
    root = table_of(lake)
    write_deltalake(root, rows_at([0], x=0, y=0))
    write_deltalake(root, rows_at([1], x=1, y=1), mode="append")
    lake.run()
    DeltaTable(root).optimize.compact()
    assert (lake.outcomes(), lake.states(0, 1)) == ({}, "VV")
    DeltaTable(root).delete("x = 1")
    lake.run()
    assert lake.rows("x") == [0]
    DeltaTable(root).restore(1)
    assert set(lake.outcomes().values()) == {ALL}
    assert lake.rows("x", "y") == [(0, 0), (1, 1)]


def test_a_column_added_to_a_delta_table_is_null_before(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x", "y"), table=DELTA)
    write_deltalake(table_of(lake), rows_at([0], x=0))
    write_deltalake(table_of(lake), rows_at([1], x=1, y="new"), mode="append", schema_mode="merge")
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("x", "y") == [(0, None), (1, "new")]


def test_a_column_that_an_output_may_hide_is_an_input_whoever_looks(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("coalesce(fare, 0) AS amount", "amount * 2 AS d"), table=DELTA)
    write_deltalake(table_of(lake), rows_at([0], fare=1, amount=10))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("amount", "d") == [(1, 20)]
    lake.know_schemas()
    assert lake.outcomes() == {}
    write_deltalake(table_of(lake), rows_at([0], fare=1), mode="overwrite", schema_mode="overwrite")
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("amount", "d") == [(1, 2)]


def test_a_file_vacuumed_from_under_the_log_fails_its_bucket(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x"), table=DELTA)
    for number in range(3):
        write_deltalake(table_of(lake), rows_at([number], x=number), mode="append")
    gone = Path(log.actions(table_of(lake), "add")[1]["path"]).name
    (table_of(lake) / gone).unlink()
    assert lake.outcomes() == {0: ALL, 1: "failed", 2: ALL}
    assert gone in lake.failures()[1]
    assert "is not there" in lake.failures()[1]


def test_a_file_that_spark_takes_for_hidden_is_not_taken_for_empty(unchecked_lake: Make) -> None:
    """Delta does not mind how its files are called."""
    lake = unchecked_lake(daily("x"), table=DELTA)
    root = table_of(lake)
    write_deltalake(root, rows_at([0], x=0))
    lake.put("_x.parquet", rows_at([1], x=1))
    lake.put("far away/x y.parquet", rows_at([2], x=2))
    for name, number in {"_x.parquet": 1, f"file://{root}/far%20away/x%20y.parquet": 2}.items():
        at = f"1970-01-0{number + 1}T23:59:59.999Z"
        log.commit(root, log.add(name, log.stats("at", at, at, 1)))
    assert lake.outcomes() == {0: ALL, 1: "failed", 2: ALL}
    assert "_x.parquet is not there, or hidden from Spark" in lake.failures()[1]
    assert lake.rows("x") == [0, 2]


def with_ids(rows: pa.Table, **ids: int) -> pa.Table:
    """The rows, with ids for their columns."""
    fields = [
        part.with_metadata({b"PARQUET:field_id": str(ids[part.name]).encode()}) if part.name in ids else part
        for part in rows.schema
    ]
    return rows.cast(pa.schema(fields))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_of_a_delta_table(unchecked_lake: Make, mode: str) -> None:
    """The time column was called otherwise, and another column had its name."""
    lake = unchecked_lake(daily("x"), table=DELTA)
    root = table_of(lake)
    log.commit(
        root,
        log.protocol("columnMapping"),
        log.metadata(
            log.column("at", "timestamp", (2, "ts")),
            log.column("x", "long", (3, "col-3")),
            log.column("ts", "timestamp", (1, "at")),
            delta__columnMapping__mode=mode,
            delta__columnMapping__maxColumnId="3",
        ),
    )
    for number in range(2):
        inside = rows_at([number + 50]).append_column("ts", rows_at([number])["at"])
        inside = inside.append_column("col-3", pa.array([number]))
        lake.put(f"{number}.parquet", with_ids(inside, **{"at": 1, "ts": 2, "col-3": 3}))
        day = f"1970-01-0{number + 1}T23:59:59.999Z"
        log.commit(root, log.add(f"{number}.parquet", log.stats("ts", day, day, 1)))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("x") == [0, 1]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_connector_that_spark_has_not_is_named(unchecked_lake: Make, create: Create, kind: str) -> None:
    lake = unchecked_lake(daily("x"), table={**(ICEBERG if kind == "iceberg" else DELTA), "reader": "spark"})
    if kind == "delta":
        write_deltalake(table_of(lake), rows_at([0], x=0))
    else:
        create().append(rows_at([0], x=0))
    assert lake.outcomes() == {0: "failed"}
    package = {"delta": "io.delta:delta-spark", "iceberg": "org.apache.iceberg:iceberg-spark-runtime"}[kind]
    assert f"no connector for {kind}: add {package}" in lake.failures()[0]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    opened = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    opened.create_namespace("db")
    yield opened
    opened.close()


@pytest.fixture
def create(catalog: SqlCatalog, tmp_path: Path) -> Create:
    """The table `events`, where the lake has it."""

    def make(*fields: tuple[str, IcebergType], by: str | None = None) -> Table:
        listed = (("at", TimestamptzType()), *(fields or [("x", LongType())]))
        schema = Schema(*(NestedField(at, name, kind) for at, (name, kind) in enumerate(listed, 1)))
        parts = (
            []
            if by is None
            else [PartitionField(schema.find_field(by).field_id, 1000, IdentityTransform(), by)]
        )
        return catalog.create_table(
            "db.events", schema, f"file://{tmp_path}/lake/events", PartitionSpec(*parts)
        )

    return make


def test_an_iceberg_table_that_evolves(unchecked_lake: Make, create: Create) -> None:
    """Columns are renamed, added, promoted, and dropped to come back as others."""
    lake = unchecked_lake(daily("renamed", "added", "n", "typeof(n) AS kind", "back"), table=ICEBERG)
    fields = [("old", StringType()), ("n", IntegerType()), ("back", LongType())]
    made = create(*fields)
    made.append(rows_at([0], old="r", n=pa.array([1], pa.int32()), back=1))
    with made.update_schema(allow_incompatible_changes=True) as update:
        update.rename_column("old", "renamed")
        update.add_column("added", LongType())
        update.update_column("n", LongType())
        update.delete_column("back")
    with made.update_schema() as update:
        update.add_column("back", LongType())
    made.append(rows_at([1], renamed="s", n=2**40, added=5, back=7))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("renamed", "added", "n", "kind", "back") == [
        ("r", None, 1, "bigint", None),
        ("s", 5, 2**40, "bigint", 7),
    ]


@pytest.fixture
def refielded(unchecked_lake: Make, create: Create) -> UncheckedLake:
    """A lake whose first file has none of the fields that its table's struct has now."""
    lake = unchecked_lake(daily("s IS NULL AS none", "s.b AS b"), table=ICEBERG)
    made = create(("s", StructType(NestedField(3, "a", LongType()))))
    made.append(rows_at([0, 0], s=pa.array([{"a": 1}, None])))
    with made.update_schema() as update:
        update.add_column(("s", "b"), LongType())
    with made.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column(("s", "a"))
    made.append(rows_at([1], s=pa.array([{"b": 2}])))
    return lake


def test_a_struct_is_there_though_it_had_other_fields(refielded: UncheckedLake) -> None:
    assert refielded.outcomes() == {0: ALL, 1: ALL}
    assert refielded.rows("none", "b") == [(False, 2), (False, None), (True, None)]


def test_an_iceberg_table_whose_names_were_swapped(unchecked_lake: Make, create: Create) -> None:
    """What Spark knows of the old `at` must not skip rows of the new one."""
    lake = unchecked_lake(daily("x"), table=ICEBERG)
    made = create(("other", TimestamptzType()), ("x", LongType()))
    made.append(rows_at([50, 51], other=rows_at([0, 1])["at"].combine_chunks(), x=pa.array([0, 1])))
    for old, new in (("at", "was"), ("other", "at"), ("was", "other")):
        with made.update_schema() as update:
            update.rename_column(old, new)
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("x") == [0, 1]


def test_a_type_that_spark_has_not_fails_every_bucket_of_a_table_that_has_one_for_all(
    unchecked_lake: Make, create: Create
) -> None:
    lake = unchecked_lake(daily("t IS NULL AS t"), table=ICEBERG)
    made = create(("t", TimeType()))
    for number in range(2):
        made.append(rows_at([number], t=pa.array([time(12)])))
    assert lake.outcomes() == {0: "failed", 1: "failed"}
    assert set(lake.failures().values()) == {"type time(6) is none that Spark reads"}


def test_an_iceberg_table_with_partitions(unchecked_lake: Make, create: Create) -> None:
    lake = unchecked_lake(daily("zone", "x"), table=ICEBERG)
    made = create(("zone", StringType()), ("x", LongType()), by="zone")
    for number, zone in enumerate(["a/b c", None]):
        made.append(rows_at([number], zone=pa.array([zone], pa.string()), x=number))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("zone", "x") == [("a/b c", 0), (None, 1)]


def test_a_file_without_ids_is_not_read_as_nulls(unchecked_lake: Make, create: Create) -> None:
    lake = unchecked_lake(daily("x"), table=ICEBERG)
    made = create()
    made.append(rows_at([0], x=0))
    made.append(rows_at([1], x=1))
    [path] = [
        file for file in (table_of(lake) / "data").glob("*.parquet") if pq.read_table(file)["x"][0].as_py()
    ]
    pq.write_table(rows_at([1], x=1), path)
    assert lake.outcomes() == {0: ALL, 1: "failed"}
    assert path.name in lake.failures()[1]


def test_a_name_that_means_another_column_now_is_computed_again(unchecked_lake: Make, create: Create) -> None:
    """The files are the same; what the table says of them is not."""
    lake = unchecked_lake(daily("x"), table=ICEBERG)
    made = create()
    made.append(rows_at([0], x=5))
    lake.run()
    assert lake.rows("x") == [5]
    with made.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("x")
    with made.update_schema() as update:
        update.add_column("x", LongType())
    lake.run()
    assert lake.rows("x") == [None]

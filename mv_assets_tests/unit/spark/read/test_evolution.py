"""Tables whose schema changed after files were written: each reads as the format's own library has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import DecimalType, DoubleType, LongType, StringType

from mv_assets.config.errors import ProjectError
from mv_assets.config.file import Draft
from mv_assets.maintain.audit import audit
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets.spark.errors import ReadFailed
from mv_assets.tables.types import id_of
from mv_assets.views.catalog import prepare
from mv_assets_tests.support.lake import day
from mv_assets_tests.unit.spark.read import nested
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, daily, rows_at
from mv_assets_tests.unit.tables.delta import log as delta_log
from mv_assets_tests.unit.tables.iceberg import log

Make = Callable[..., UncheckedLake]
ALL = "committed"
DELTA = {"format": "delta"}
ICEBERG = {"format": "iceberg", "unsafe": True}
AT = pa.timestamp("us", "UTC")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    with nested.catalog(tmp_path) as opened:
        yield opened


def root_of(lake: UncheckedLake) -> Path:
    return lake.folder / "events"


def rows_like(schema: pa.Schema, number: int) -> pa.Table:
    """Rows of a day in any schema: with something everywhere, and with nothing."""
    plain = [{part.name: made(part.type, number * 10 + at) for part in schema} for at in range(3)]
    hollow = [{part.name: hollowed(part.type, level) for part in schema} for level in range(3)]
    times = [*(day(number, at) for at in range(5)), last(number)]
    listed = [{**row, "at": at} for at, row in zip(times, [*plain, *hollow], strict=True)]
    return pa.Table.from_pylist(listed, schema)


def last(number: int) -> datetime:
    """The last moment of a day."""
    moment: datetime = rows_at([number])["at"].to_pylist()[0]
    return moment


def made(kind: pa.DataType, number: int) -> Any:
    if pa.types.is_struct(kind):
        return {part.name: made(part.type, number + at) for at, part in enumerate(kind)}
    if pa.types.is_map(kind):
        return [(made(kind.key_type, number + at), made(kind.item_type, number + at)) for at in range(2)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [made(kind.value_type, number + at) for at in range(2)]
    if pa.types.is_timestamp(kind):
        return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=number)
    return f"t{number}" if "string" in str(kind) else number


def hollowed(kind: pa.DataType, level: int) -> Any:
    """Nothing, but only some levels further in."""
    if level == 0:
        return None
    if pa.types.is_struct(kind):
        return {part.name: hollowed(part.type, level - 1) for part in kind}
    if pa.types.is_map(kind):
        return [] if level == 1 else [(made(kind.key_type, level), hollowed(kind.item_type, level - 1))]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [] if level == 1 else [hollowed(kind.value_type, level - 1)]
    return None


def as_iceberg_reads(lake: UncheckedLake, *columns: str) -> list[Any]:
    table = StaticTable.from_metadata(str(log.newest(root_of(lake))))
    return ordered(table.scan().to_arrow(), *columns)


def ordered(rows: pa.Table, *columns: str) -> list[Any]:
    return sorted((tuple(row[name] for name in columns) for row in rows.to_pylist()), key=repr)


def by_ids(lake: UncheckedLake, *columns: str) -> list[Any]:
    """What the files hold by the ids that the present schema has, put together without any library."""
    table = StaticTable.from_metadata(str(log.newest(root_of(lake))))
    wanted = pa.struct([schema_to_pyarrow(table.schema()).field(name) for name in columns])
    found = []
    for task in table.scan().plan_files():
        read = pq.read_table(task.file.file_path.removeprefix("file://"))
        found += [by_id(row, pa.struct(list(read.schema)), wanted) for row in read.to_pylist()]
    return sorted((tuple(row.values()) for row in found), key=repr)


def by_id(value: Any, own: pa.DataType, wanted: pa.DataType) -> Any:
    if value is None or not pa.types.is_nested(own):
        return value
    if pa.types.is_struct(own):
        parts = {id_of(part): part for part in own}
        return {
            part.name: by_id(value[parts[id_of(part)].name], parts[id_of(part)].type, part.type)
            if id_of(part) in parts
            else None
            for part in wanted
        }
    if pa.types.is_map(own):
        return [
            (by_id(key, own.key_type, wanted.key_type), by_id(item, own.item_type, wanted.item_type))
            for key, item in value
        ]
    return [by_id(each, own.value_type, wanted.value_type) for each in value]


def midnight(of: date) -> datetime:
    return datetime(of.year, of.month, of.day)  # noqa: DTZ001 - without a zone


def loosely(value: Any) -> Any:
    """Without a difference between no list and one of nothing, which pyiceberg loses where fields changed."""
    if isinstance(value, dict):
        return {name: loosely(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(loosely, value)) or None
    return value


def alike(ours: list[Any], theirs: list[Any]) -> bool:
    return sorted(map(loosely, ours), key=repr) == sorted(map(loosely, theirs), key=repr)


def stored(lake: UncheckedLake, *columns: str) -> list[Any]:
    return ordered(lake.stored(), *columns)


def audited(lake: UncheckedLake) -> list[tuple[str, bool]]:
    return [(each.verdict, each.reread) for each in audit(lake.open(), lake.catalog.view("v"), None)]


def third_version(root: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> None:
    """What the library does not write."""

    def changed(metadata: dict[str, Any]) -> None:
        metadata |= {"format-version": 3, "next-row-id": 0}
        change(metadata)

    log.rewrite(root, changed)


def current(metadata: dict[str, Any]) -> dict[str, Any]:
    """The present schema, as one that is added."""
    new: dict[str, Any] = json.loads(json.dumps(metadata["schemas"][-1]))
    new["schema-id"] = metadata["current-schema-id"] = len(metadata["schemas"])
    metadata["schemas"].append(new)
    return new


RENAMED = ["s.x", "s.deep.b.x", "l.element.x", "ll.element.element.x", "m.value.x", "sl.items.element.x"]
REPLACED = ["s.y", "s.deep.b.y", "l.element.y", "ll.element.element.y", "m.value.y", "ml.value.element.y"]


def evolve(made: Table) -> None:
    """A field of each column is renamed, and another one is another field under its name now."""
    for path in RENAMED:
        with made.update_schema() as update:
            update.rename_column(path, "was_x")
    for path in REPLACED:
        with made.update_schema() as update:
            update.delete_column(path)
        with made.update_schema() as update:
            update.add_column(tuple(path.split(".")), StringType())
    for path in RENAMED[:3]:
        # Its name is another field's now.
        with made.update_schema() as update:
            update.add_column((*path.split(".")[:-1], "x"), LongType())


@pytest.mark.parametrize("version", [2, 3, pytest.param(1, marks=pytest.mark.slow)])
def test_nested_fields_renamed_and_replaced_at_every_depth(
    unchecked_lake: Make, catalog: SqlCatalog, version: int
) -> None:
    columns = tuple(nested.KINDS)
    lake = unchecked_lake(daily(*columns), table=ICEBERG)
    table = nested.iceberg(catalog, root_of(lake), min(version, 2))
    table.append(nested.rows(0))
    lake.run()
    evolve(table)
    table.append(rows_like(table.schema().as_arrow(), 1))
    if version == 3:
        third_version(root_of(lake))
    # The files of the first day are the same, and have other rows.
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert stored(lake, *columns) == by_ids(lake, *columns)
    # The library leaves lists inside lists and maps as they were.
    known = ("s", "l", "m", "k", "sl")
    assert alike(stored(lake, *known), as_iceberg_reads(lake, *known))
    assert audited(lake) == [("equal", True)] * 2


def test_fields_of_a_renamed_kind_are_filtered_and_taken_out(
    unchecked_lake: Make, catalog: SqlCatalog
) -> None:
    """Where Spark would skip rows, it must not do so by another field's statistics."""
    sql = "SELECT at AS hour, s.was_x AS v, get(l, 1).was_x AS w FROM events WHERE s.was_x < 1 OR s.x > 5"
    lake = unchecked_lake(daily("1", sql=sql), table=ICEBERG)
    table = nested.iceberg(catalog, root_of(lake), 2)
    table.append(nested.rows(0))
    evolve(table)
    table.append(rows_like(table.schema().as_arrow(), 1))
    lake.run()
    read = StaticTable.from_metadata(str(log.newest(root_of(lake)))).scan().to_arrow().to_pylist()
    expected = [
        (row["s"]["was_x"], row["l"][1]["was_x"] if row["l"] and len(row["l"]) > 1 else None)
        for row in read
        if row["s"] and ((row["s"]["was_x"] or 1) < 1 or (row["s"]["x"] or 0) > 5 or row["s"]["was_x"] == 0)
    ]
    assert stored(lake, "v", "w") == sorted(expected, key=repr)
    assert expected


def test_files_without_ids_are_found_by_the_name_mapping(unchecked_lake: Make, catalog: SqlCatalog) -> None:
    """Imported files are found by the names they had; what the table wrote itself, by ids."""
    columns = tuple(nested.KINDS)
    lake = unchecked_lake(daily(*columns), table=ICEBERG)
    table = nested.iceberg(catalog, root_of(lake), 2)
    pq.write_table(nested.rows(0), lake.folder / "imported.parquet")
    table.add_files([f"file://{lake.folder}/imported.parquet"])
    for old, new in (("s", "renamed"), ("renamed.x", "z"), ("renamed.deep.b.x", "z"), ("l.element.x", "z")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    with table.update_schema() as update:
        update.rename_column("renamed", "s")
    table.append(rows_like(table.schema().as_arrow(), 1))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert alike(stored(lake, *columns), as_iceberg_reads(lake, *columns))
    assert audited(lake) == [("equal", True)] * 2


def test_a_time_column_is_found_by_the_name_mapping(unchecked_lake: Make, catalog: SqlCatalog) -> None:
    lake = unchecked_lake(daily("x"), table=ICEBERG)
    schema = pa.schema({"ts": AT, "x": pa.int64()})
    table = nested.iceberg(catalog, root_of(lake), 2, schema=schema)
    with table.transaction() as change:
        change.set_properties({"write.metadata.metrics.default": "none"})
    pq.write_table(rows_at([0], x=1).rename_columns(["ts", "x"]), lake.folder / "imported.parquet")
    table.add_files([f"file://{lake.folder}/imported.parquet"])
    with table.update_schema() as update:
        update.rename_column("ts", "at")
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("x") == [1]


def test_a_file_without_ids_or_names_fails_its_bucket_only(unchecked_lake: Make, catalog: SqlCatalog) -> None:
    lake = unchecked_lake(daily("x", "s.x AS sx"), table=ICEBERG)
    schema = pa.schema({"at": AT, "x": pa.int64(), "s": pa.struct({"x": pa.int64()})})
    table = nested.iceberg(catalog, root_of(lake), 2, schema=schema)
    structs = pa.array([{"x": 5}], pa.struct({"x": pa.int64()}))
    pq.write_table(rows_at([0], x=1, s=structs), lake.folder / "imported.parquet")
    table.add_files([f"file://{lake.folder}/imported.parquet"])
    table.append(rows_at([1], x=2, s=structs))
    log.rewrite(root_of(lake), lambda metadata: metadata["properties"].pop("schema.name-mapping.default"))
    assert lake.outcomes() == {0: "failed", 1: ALL}
    assert "imported.parquet" in lake.failures()[0]
    assert "name mapping" in lake.failures()[0]
    assert lake.rows("x", "sx") == [(2, 5)]


DEFAULTS: dict[str, tuple[Any, Any]] = {
    "int": (7, 7),
    "long": (2**40, 2**40),
    "boolean": (True, True),
    "double": (-0.5, -0.5),
    "float": (1.5, 1.5),
    "decimal(9, 2)": ("14.20", Decimal("14.20")),
    "date": ("2017-11-16", date(2017, 11, 16)),
    "timestamp": ("2017-11-16T22:31:08.000001", datetime(2017, 11, 16, 22, 31, 8, 1)),  # noqa: DTZ001
    "timestamptz": ("2017-11-16T22:31:08.000001+00:00", datetime(2017, 11, 16, 22, 31, 8, 1, UTC)),
    "string": ("it's `x`", "it's `x`"),
    "uuid": ("f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
}


def test_columns_and_fields_have_their_defaults_in_older_files(
    unchecked_lake: Make, catalog: SqlCatalog
) -> None:
    names = [f"c{at}" for at in range(len(DEFAULTS))]
    inside = [f"s.{name} AS s{name}" for name in names]
    lake = unchecked_lake(daily("x", "s IS NULL AS gone", *names, *inside), table=ICEBERG)
    kind = pa.struct({"x": pa.int64()})
    schema = pa.schema({"at": AT, "x": pa.int64(), "s": kind})
    table = nested.iceberg(catalog, root_of(lake), 2, schema=schema)
    table.append(rows_at([0, 0], x=pa.array([1, 2]), s=pa.array([{"x": 1}, None], kind)))

    def change(metadata: dict[str, Any]) -> None:
        new = current(metadata)
        for at, (kind, (default, _)) in enumerate(DEFAULTS.items()):
            field = {"name": f"c{at}", "type": kind, "required": False, "initial-default": default}
            new["fields"].append(field | {"id": 100 + at})
            new["fields"][2]["type"]["fields"].append(field | {"id": 200 + at})
        metadata["last-column-id"] = 300

    third_version(root_of(lake), change)
    assert lake.outcomes() == {0: ALL}
    expected = tuple(value for _, value in DEFAULTS.values())
    columns = ("x", "gone", *names, *(f"s{name}" for name in names))
    assert stored(lake, *columns) == [
        (1, False, *expected, *expected),
        (2, True, *expected, *[None] * len(expected)),
    ]
    assert audited(lake) == [("equal", True)]


def test_a_time_column_with_a_default_has_its_range(unchecked_lake: Make, catalog: SqlCatalog) -> None:
    lake = unchecked_lake(daily("x"), table=ICEBERG)
    schema = pa.schema({"x": pa.int64()})
    table = nested.iceberg(catalog, root_of(lake), 2, schema=schema)
    table.append(pa.table({"x": [1, 2]}))

    def change(metadata: dict[str, Any]) -> None:
        field = {"id": 9, "name": "at", "type": "timestamptz", "required": False}
        default = last(0).isoformat()
        current(metadata)["fields"].append(field | {"initial-default": default})
        metadata["last-column-id"] = 9

    third_version(root_of(lake), change)
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("x") == [1, 2]


PROMOTED = {
    "i": (pa.array([1, None], pa.int32()), LongType(), 2**40),
    "f": (pa.array([0.1, None], pa.float32()), DoubleType(), 0.1),
    "d": (pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)), DecimalType(18, 2), Decimal("1.50")),
    "e": (pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)), DecimalType(38, 2), Decimal("1.50")),
}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_promoted_types_hold_the_values_of_older_files(
    unchecked_lake: Make, catalog: SqlCatalog, version: int
) -> None:
    columns = tuple(PROMOTED)
    outputs = [*columns, *(f"s.{name} AS s{name}" for name in columns)]
    lake = unchecked_lake(daily(*outputs), table=ICEBERG)
    values = {name: old for name, (old, _, _) in PROMOTED.items()}
    structs = pa.StructArray.from_arrays(list(values.values()), list(values))
    first = rows_at([0, 0], **values, s=structs)
    table = nested.iceberg(catalog, root_of(lake), min(version, 2), schema=first.schema)
    table.append(first)
    for name, (_, kind, _) in PROMOTED.items():
        with table.update_schema() as update:
            update.update_column(name, kind)
            update.update_column(("s", name), kind)
    news = {name: new for name, (_, _, new) in PROMOTED.items()}
    table.append(pa.Table.from_pylist([{"at": last(1), **news, "s": news}], table.schema().as_arrow()))
    if version == 3:
        third_version(root_of(lake))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    read = StaticTable.from_metadata(str(log.newest(root_of(lake)))).scan().to_arrow().to_pylist()
    expected = [
        tuple(row[name] for name in columns) + tuple(row["s"][name] for name in columns) for row in read
    ]
    assert stored(lake, *columns, *(f"s{name}" for name in columns)) == sorted(expected, key=repr)
    assert audited(lake) == [("equal", True)] * 2


def test_dates_that_became_timestamps(unchecked_lake: Make, catalog: SqlCatalog) -> None:
    lake = unchecked_lake(daily("d", "s.d AS sd"), table=ICEBERG)
    days = pa.array([date(2024, 1, 31), date(1960, 2, 29)])
    first = rows_at([0, 0], d=days, s=pa.StructArray.from_arrays([days], ["d"]))
    nested.iceberg(catalog, root_of(lake), 2, schema=first.schema).append(first)

    def change(metadata: dict[str, Any]) -> None:
        new = current(metadata)
        new["fields"][1]["type"] = new["fields"][2]["type"]["fields"][0]["type"] = "timestamp"

    third_version(root_of(lake), change)
    assert lake.outcomes() == {0: ALL}
    midnights = [(moment, moment) for moment in map(midnight, days.to_pylist())]
    assert stored(lake, "d", "sd") == sorted(midnights, key=repr)
    assert audited(lake) == [("equal", True)]


def test_uuids_are_texts_wherever_they_are(unchecked_lake: Make, catalog: SqlCatalog) -> None:
    ids = [UUID(int=7 << 100), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")]
    lake = unchecked_lake(daily("u", "s.u AS su", "l", "f"), table=ICEBERG)
    one, other = (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([each.bytes, None], pa.binary(16))) for each in ids
    )
    columns = {
        "u": one,
        "s": pa.StructArray.from_arrays([other], ["u"], mask=pa.array([False, True])),
        "l": pa.ListArray.from_arrays(pa.array([0, 2, 2], pa.int32()), one, mask=pa.array([False, True])),
        "f": pa.array([b"\0\1\2\xff", None], pa.binary(4)),
    }
    rows = rows_at([0, 0], **columns)
    nested.iceberg(catalog, root_of(lake), 2, schema=rows.schema).append(rows)
    assert lake.outcomes() == {0: ALL}
    texts = [str(each) for each in ids]
    assert stored(lake, "u", "su", "l", "f") == sorted(
        [(texts[0], texts[1], [texts[0], None], b"\0\1\2\xff"), (None, None, None, None)], key=repr
    )
    assert audited(lake) == [("equal", True)]


def test_an_unused_column_dropped_and_added_again_computes_nothing(
    unchecked_lake: Make, catalog: SqlCatalog
) -> None:
    lake = unchecked_lake(daily("x"), table=ICEBERG)
    schema = pa.schema({"at": AT, "x": pa.int64(), "y": pa.int64(), "s": pa.struct({"a": pa.int64()})})
    table = nested.iceberg(catalog, root_of(lake), 2, schema=schema)
    structs = pa.array([{"a": 1}], pa.struct({"a": pa.int64()}))
    table.append(rows_at([0], x=1, y=1, s=structs))
    assert lake.outcomes() == {0: ALL}
    with table.update_schema() as update:
        update.delete_column("y").rename_column("s.a", "b")
    assert lake.outcomes() == {}
    with table.update_schema() as update:
        update.add_column("y", LongType())
    assert lake.outcomes() == {}
    for change in ("delete", "add"):
        with table.update_schema() as update:
            if change == "delete":
                update.delete_column("x")
            else:
                update.add_column("x", LongType())
    # The same files have other rows now.
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("x") == [None]


def test_a_field_that_is_another_one_under_its_name_and_type_is_seen(
    unchecked_lake: Make, catalog: SqlCatalog
) -> None:
    lake = unchecked_lake(daily("s.a AS a", "s.b AS b"), table=ICEBERG)
    kind = pa.struct({"a": pa.int64(), "b": pa.int64()})
    table = nested.iceberg(catalog, root_of(lake), 2, schema=pa.schema({"at": AT, "s": kind}))
    table.append(rows_at([0], s=pa.array([{"a": 1, "b": 2}], kind)))
    assert lake.outcomes() == {0: ALL}
    before = table.schema()
    with table.update_schema() as update:
        update.delete_column("s.b")
    with table.update_schema() as update:
        update.add_column(("s", "b"), LongType())
    assert [part.name for part in table.schema().fields] == [part.name for part in before.fields]
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("a", "b") == [(1, None)]


def test_nanoseconds_refuse_the_views_that_use_them(unchecked_lake: Make, catalog: SqlCatalog) -> None:
    lake = unchecked_lake(daily("x"), table=ICEBERG)
    table = nested.iceberg(catalog, root_of(lake), 2, schema=pa.schema({"at": AT, "x": pa.int64()}))
    table.append(rows_at([0], x=1))

    def change(metadata: dict[str, Any]) -> None:
        inner = {"id": 11, "name": "n", "type": "timestamptz_ns", "required": False}
        kind = {"type": "struct", "fields": [inner]}
        current(metadata)["fields"].append({"id": 10, "name": "t", "type": kind, "required": False})
        metadata["last-column-id"] = 11

    third_version(root_of(lake), change)
    assert lake.outcomes() == {0: ALL}
    refused(lake, "t", r"column t of table 'events' holds n, nanoseconds (timestamptz_ns)")


def refused(lake: UncheckedLake, column: str, why: str) -> None:
    """What a view that uses the column is told: by the check, the plan and the bucket, and a query too."""
    lake.declare(daily("1 AS x"))
    prepare(Draft("test", lake.project), schemas=True, listed=True)
    lake.declare(daily(f"CAST({column} AS string) AS x"))
    with pytest.raises(ProjectError) as raised:
        prepare(Draft("test", lake.project), schemas=True, listed=True)
    assert why in str(raised.value)
    report = lake.run()["v"]
    assert all(why in each for each in report.wrong.failed.values())
    assert report.wrong.failed
    with pytest.raises(ReadFailed) as unread:
        Answers(lake.open()).answer(
            Question(f"SELECT at, {column} FROM events", Freshness.OFF)
        ).frame.toArrow()
    assert why in str(unread.value)


# Delta


def mapping(mode: str) -> dict[str, Any]:
    return {"delta__columnMapping__mode": mode, "delta__columnMapping__maxColumnId": "999"}


def mapped_struct(*fields: tuple[str, Any, int]) -> Any:
    return delta_log.struct_of(
        *(delta_log.column(name, kind, (number, f"col-{number}")) for name, kind, number in fields)
    )


def array_of(kind: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def physical(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


@pytest.mark.parametrize("mode", ["name", "id"])
def test_delta_columns_are_mapped_at_every_depth(unchecked_lake: Make, mode: str) -> None:
    """Fields are called otherwise inside; one was renamed, one dropped and added again, one came later."""
    lake = unchecked_lake(daily("s", "l", "m", "k"), table=DELTA)
    root = root_of(lake)
    root.mkdir(exist_ok=True)

    def columns(again: int, *more: tuple[str, Any, int]) -> list[Any]:
        def inner(base: int) -> Any:
            fields = (("x", "long", 1), ("y", "string", again), *more)
            return mapped_struct(*((name, kind, base + at) for name, kind, at in fields))

        given = {
            "at": ("timestamp", 1),
            "s": (mapped_struct(("deep", mapped_struct(("in", inner(100), 13)), 12)), 2),
            "l": (array_of(array_of(inner(200))), 3),
            "m": (map_of("string", inner(300)), 4),
            "k": (map_of(inner(400), "long"), 5),
        }
        return [delta_log.column(name, kind, (at, f"col-{at}")) for name, (kind, at) in given.items()]

    def file(name: str, number: int, *fields: tuple[str, pa.DataType, int, Any]) -> Any:
        def pair(base: int) -> pa.DataType:
            inside = zip(names(base), fields, strict=True)
            return pa.struct([physical(each, kind, base + at) for each, (_, kind, at, _) in inside])

        def names(base: int) -> list[str]:
            # By id, the names inside say nothing.
            return [f"col-{base + at}" if mode == "name" else other for other, _, at, _ in fields]

        def value(base: int, *, empty: bool = False) -> Any:
            values = (None if empty else each for *_, each in fields)
            return dict(zip(names(base), values, strict=True))

        deep = pa.struct([physical("col-12", pa.struct([physical("col-13", pair(100), 13)]), 12)])
        kinds = [
            AT,
            deep,
            pa.list_(pa.list_(pair(200))),
            pa.map_(pa.string(), pair(300)),
            pa.map_(pa.field("key", pair(400), nullable=False), pa.int64()),
        ]
        schema = pa.schema([physical(f"col-{at}", kind, at) for at, kind in enumerate(kinds, 1)])
        listed: list[list[Any]] = [
            [
                day(number, 1),
                {"col-12": {"col-13": value(100)}},
                [[value(200), None], None],
                [("a", value(300))],
                [(value(400), 1)],
            ],
            [day(number, 2), {"col-12": None}, [[value(200, empty=True)]], [("a", None)], []],
            [last(number), None, None, None, None],
        ]
        made = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in listed], schema)
        pq.write_table(made, root / name)
        begin, end = (f"{at:%Y-%m-%dT%H:%M:%S.%f}Z" for at in (day(number, 1), last(number)))
        return delta_log.add(name, delta_log.stats("col-1", begin, end, 3))

    delta_log.commit(
        root, delta_log.protocol("columnMapping"), delta_log.metadata(*columns(2), **mapping(mode))
    )
    old = [("y", pa.int64(), 1, 7), ("x", pa.string(), 2, "old")]
    delta_log.commit(root, file("0.parquet", 0, *old))
    lake.run()
    # `y` is another field now, and `z` is new.
    changed = columns(3, ("z", "long", 4))
    delta_log.commit(root, delta_log.metadata(*changed, **mapping(mode)))
    new = [("z", pa.int64(), 4, 9), ("y", pa.string(), 3, "new"), ("x", pa.int64(), 1, 8)]
    delta_log.commit(root, file("1.parquet", 1, *new))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    expected = []
    for value in ({"x": 7, "y": None, "z": None}, {"x": 8, "y": "new", "z": 9}):
        nothing = dict.fromkeys("xyz")
        expected += [
            ({"deep": {"in": value}}, [[value, None], None], [("a", value)], [(value, 1)]),
            ({"deep": None}, [[nothing]], [("a", None)], []),
            (None, None, None, None),
        ]
    assert stored(lake, "s", "l", "m", "k") == sorted(expected, key=repr)
    assert audited(lake) == [("equal", True)] * 2


def widened(name: str, kind: str, *before: str) -> Any:
    changes = [
        {"fromType": old, "toType": new, "tableVersion": 1}
        for old, new in zip(before, (*before[1:], kind), strict=True)
    ]
    return delta_log.column(name, kind, None, **{"delta.typeChanges": changes})


WIDER = {
    "b": (pa.int8(), "byte", "short", 1, 300, pa.int16()),
    "i": (pa.int32(), "integer", "long", 1, 2**40, pa.int64()),
    "f": (pa.float32(), "float", "double", 0.5, 0.1, pa.float64()),
    "id": (pa.int32(), "integer", "double", 1, 0.5, pa.float64()),
    "ie": (pa.int32(), "integer", "decimal(12,2)", 1, Decimal("0.50"), pa.decimal128(12, 2)),
    "le": (pa.int64(), "long", "decimal(22,2)", 1, Decimal("0.50"), pa.decimal128(22, 2)),
    "e": (
        pa.decimal128(9, 2),
        "decimal(9,2)",
        "decimal(20,4)",
        Decimal("1.25"),
        Decimal("0.0001"),
        pa.decimal128(20, 4),
    ),
    "d": (
        pa.date32(),
        "date",
        "timestamp_ntz",
        date(1960, 1, 1),
        datetime(2024, 1, 1, 6),  # noqa: DTZ001
        pa.timestamp("us"),
    ),
}


def test_widened_delta_types_hold_the_values_of_older_files(unchecked_lake: Make) -> None:
    names = tuple(WIDER)
    outputs = [*names, *(f"s.{name} AS s{name}" for name in names)]
    # Conditions by which Spark might skip files whose type is another.
    conditions = "id < 1.5 AND ie < 1.5 AND le < 1.5 AND i <> 3000000000 AND (s.id < 1.5)"
    lake = unchecked_lake(
        daily("1", sql=f"SELECT at AS hour, {', '.join(outputs)} FROM events WHERE {conditions}"), table=DELTA
    )
    root = root_of(lake)
    root.mkdir(exist_ok=True)
    fields = [widened(name, new, old) for name, (_, old, new, *_) in WIDER.items()]
    struct = delta_log.column("s", delta_log.struct_of(*fields))
    delta_log.commit(
        root,
        delta_log.protocol("typeWidening", "timestampNtz"),
        delta_log.metadata(delta_log.column("at", "timestamp"), *fields, struct),
    )
    for number, (kind_at, value_at) in enumerate([(0, 3), (5, 4)]):
        arrays = {name: pa.array([each[value_at]], each[kind_at]) for name, each in WIDER.items()}
        inside = pa.StructArray.from_arrays(list(arrays.values()), list(arrays))
        pq.write_table(rows_at([number], **arrays, s=inside), root / f"{number}.parquet")
        delta_log.commit(root, delta_log.add(f"{number}.parquet"))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    old = [each[3] for each in WIDER.values()]
    old[-1] = midnight(date(1960, 1, 1))
    new = [each[4] for each in WIDER.values()]
    columns = (*names, *(f"s{name}" for name in names))
    assert stored(lake, *columns) == sorted([(*old, *old), (*new, *new)], key=repr)
    assert audited(lake) == [("equal", True)] * 2


def test_a_type_that_no_table_could_widen_fails_that_files_bucket(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x"), table=DELTA)
    root = root_of(lake)
    root.mkdir(exist_ok=True)
    columns = (delta_log.column("at", "timestamp"), widened("x", "long", "integer"))
    delta_log.commit(root, delta_log.protocol("typeWidening"), delta_log.metadata(*columns))
    for number, value in enumerate([pa.array(["text"]), pa.array([5], pa.int32())]):
        pq.write_table(rows_at([number], x=value), root / f"{number}.parquet")
        delta_log.commit(root, delta_log.add(f"{number}.parquet"))
    assert lake.outcomes() == {0: "failed", 1: ALL}
    assert "file 0.parquet, column x" in lake.failures()[0]
    assert lake.rows("x") == [5]


def test_a_variant_refuses_the_views_that_use_it(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x"), table=DELTA)
    root = root_of(lake)
    root.mkdir(exist_ok=True)
    columns = (
        delta_log.column("at", "timestamp"),
        delta_log.column("x", "long"),
        delta_log.column("v", delta_log.struct_of(delta_log.column("w", "variant"))),
    )
    delta_log.commit(root, delta_log.protocol("variantType", "deletionVectors"), delta_log.metadata(*columns))
    pq.write_table(rows_at([0], x=1), root / "0.parquet")
    delta_log.commit(root, delta_log.add("0.parquet"))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("x") == [1]
    refused(lake, "v", "column v of table 'events' has variants")


def test_binary_partitions_refuse_the_views_that_use_them(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x"), table=DELTA)
    rows = rows_at([0, 1], x=1, p=pa.array([b"a", b"b"]))
    write_deltalake(root_of(lake), rows, partition_by=["p"])
    assert DeltaTable(root_of(lake)).version() == 0
    assert lake.outcomes() == {0: ALL, 1: ALL}
    refused(lake, "p", "column p of table 'events' has binary partition values")


def test_an_unused_delta_column_dropped_and_added_again_computes_nothing(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x"), table=DELTA)
    root = root_of(lake)
    root.mkdir(exist_ok=True)

    def columns(**numbers: int) -> list[Any]:
        kinds = {"at": "timestamp", "x": "long", "y": "long"}
        return [delta_log.column(n, kinds[n], (at, f"col-{at}")) for n, at in numbers.items()]

    delta_log.commit(
        root,
        delta_log.protocol("columnMapping"),
        delta_log.metadata(*columns(at=1, x=2, y=3), **mapping("name")),
    )
    pq.write_table(rows_at([0], x=1, y=2).rename_columns(["col-1", "col-2", "col-3"]), root / "0.parquet")
    delta_log.commit(root, delta_log.add("0.parquet"))
    assert lake.outcomes() == {0: ALL}
    for numbers, outcome, value in (({"y": 9}, {}, 1), ({"x": 8}, {0: ALL}, None)):
        given = {"at": 1, "x": 2, "y": 9} | numbers
        delta_log.commit(root, delta_log.metadata(*columns(**given), **mapping("name")))
        assert lake.outcomes() == outcome
        assert lake.rows("x") == [value]

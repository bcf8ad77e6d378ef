"""Columns found among those of one file."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.tables import lakehouse
from mv_assets.tables.parquet.footer import Extent, Unusable
from mv_assets.tables.places import Place, find, has_ids
from mv_assets.tables.times import TimeColumn
from mv_assets.tables.types import Shape, shapes_in

DAY = 86_400_000


def test_a_name_is_taken_as_it_is_spelled_and_else_in_any_case() -> None:
    shapes = [Shape("X", "int"), Shape("x", "bigint"), Shape("Y", "int")]
    assert find(Place("x"), shapes, ids=False) == shapes[1]
    assert find(Place("y"), shapes, ids=False) == shapes[2]
    assert find(Place("z"), shapes, ids=False) is None
    with pytest.raises(Unusable, match="columns AB and ab for the one column aB"):
        find(Place("aB"), [Shape("AB", "int"), Shape("ab", "int")], ids=False)


def test_an_id_says_more_than_a_name() -> None:
    shapes = [Shape("x", "int", 2), Shape("y", "int", 1)]
    assert find(Place("x", 1), shapes, ids=True) == shapes[1]
    assert find(Place("x", 3, names=("x",)), shapes, ids=True) is None


def test_files_without_ids_are_found_by_mapped_names_or_not_at_all() -> None:
    shapes = [Shape("was", "int"), Shape("x", "int")]
    assert find(Place("x", 1, names=("was",)), shapes, ids=False) == shapes[0]
    assert find(Place("x", 1, names=()), shapes, ids=False) is None
    with pytest.raises(Unusable, match=r"no field ids.*name mapping"):
        find(Place("x", 1), shapes, ids=False)
    with pytest.raises(Unusable, match="was and x"):
        find(Place("x", 1, names=("was", "x")), shapes, ids=False)


def test_what_a_file_has_to_hold_must_be_there() -> None:
    with pytest.raises(Unusable, match="lacks column b"):
        find(Place("b", 1, needed=True), [Shape("x", "int", 2)], ids=True)


def file_of(rows: pa.Table) -> pq.ParquetFile:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return pq.ParquetFile(sink)


def test_shapes_have_the_names_ids_and_types_of_all_that_is_inside() -> None:
    x = pa.field("x", pa.int32(), metadata={"PARQUET:field_id": "3"})
    inner = pa.struct([x])
    kinds = {"l": pa.list_(inner), "m": pa.map_(pa.string(), inner), "u": pa.uuid(), "t": pa.time64("us")}
    shapes = shapes_in(file_of(pa.table({name: pa.array([], kind) for name, kind in kinds.items()})))
    inside = (Shape("x", "int", 3),)
    assert shapes == [
        Shape("l", "array", None, (Shape("element", "struct", None, inside),)),
        Shape("m", "map", None, (Shape("key", "string"), Shape("value", "struct", None, inside))),
        Shape("u", "binary"),
        Shape("t", "time(6)"),
    ]
    assert [shape.type for shape in shapes] == [
        "array<struct<x:int>>",
        "map<string,struct<x:int>>",
        "binary",
        "time(6)",
    ]
    assert has_ids(shapes)
    assert not has_ids(shapes[2:])


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place("was"), Extent((DAY, 2 * DAY - 1), rows=1)),
        (Place("at", 1, names=("was",)), Extent((DAY, 2 * DAY - 1), rows=1)),
        (Place("at"), Extent(None, 1, 1)),
        (Place("at", 1, names=(), default="1970-01-04"), Extent((3 * DAY, 4 * DAY - 1), rows=1)),
    ],
)
def test_a_files_range_is_that_of_its_time_columns_place(place: Place, expected: Extent) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"was": pa.array([1], pa.date32())}), sink)
    assert lakehouse.of_footer(pa.BufferReader(sink.getvalue()), TimeColumn("at"), place) == expected

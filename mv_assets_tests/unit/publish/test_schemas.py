"""Columns of a published Iceberg table: types, ids, and the names that stand for them in files."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import DecimalType, LongType, StructType

from mv_assets.publish.iceberg.schemas import NoSuchType, columns_of, mapping_of, numbered, united
from mv_assets.state.model import BUCKET


def columns(**types: pa.DataType) -> StructType:
    return columns_of(pa.schema([*types.items(), (BUCKET, pa.int64())]))


def ids(struct: StructType) -> dict[str, int]:
    return {field.name: field.field_id for field in struct.fields}


def found_by(mapping: NameMapping, path: str) -> int | None:
    """The id of a column by its name in a file."""
    fields, found = mapping.root, None
    for name in path.split("."):
        [found] = [field for field in fields if name in field.names]
        fields = found.fields
    return None if found is None else found.field_id


def table(number: int, columns_: StructType, *known: StructType, start: int = 1) -> Schema:
    return Schema(*numbered(columns_, known, itertools.count(start)).fields, schema_id=number)


def test_our_own_column_is_none_of_the_tables() -> None:
    found = columns(hour=pa.timestamp("us", "UTC"), amount=pa.decimal128(10, 2))
    assert [field.name for field in found.fields] == ["hour", "amount"]
    assert not any(field.required for field in found.fields)


def test_types_that_iceberg_promotes_are_put_together() -> None:
    found = united(
        [columns(n=pa.int32(), d=pa.decimal128(9, 2)), columns(n=pa.int64(), d=pa.decimal128(12, 2))]
    )
    assert [field.field_type for field in found.fields] == [LongType(), DecimalType(12, 2)]


def test_types_that_do_not_go_together_are_named() -> None:
    with pytest.raises(NoSuchType, match="column n is int in some buckets and string in others"):
        united([columns(n=pa.int32()), columns(n=pa.string())])


def test_a_type_that_iceberg_does_not_have_is_named() -> None:
    with pytest.raises(NoSuchType, match="column d is duration"):
        columns(d=pa.duration("us"))


def test_a_name_keeps_its_id_while_its_types_fit() -> None:
    first = table(0, columns(a=pa.int32(), b=pa.string()))
    second = table(1, columns(a=pa.int64(), c=pa.string()), first.as_struct(), start=3)
    third = table(2, columns(a=pa.int64(), b=pa.string()), second.as_struct(), first.as_struct(), start=4)
    assert ids(first.as_struct()) == {"a": 1, "b": 2}
    assert ids(second.as_struct()) == {"a": 1, "c": 3}
    assert ids(third.as_struct()) == {"a": 1, "b": 2}
    assert mapping_of(third, [first, second])[1] == frozenset()


def test_a_column_of_another_kind_gets_another_id_and_its_old_snapshots_would_be_read_wrong() -> None:
    first = table(0, columns(a=pa.int32()))
    second = table(1, columns(a=pa.string()), first.as_struct(), start=2)
    assert ids(second.as_struct()) == {"a": 2}
    mapping, wrong = mapping_of(second, [first])
    assert wrong == {0}
    assert found_by(mapping, "a") == 2


def test_names_that_only_old_snapshots_have_are_still_known() -> None:
    first = table(0, columns(a=pa.int32(), b=pa.struct([("x", pa.int32()), ("y", pa.int32())])))
    second = table(1, columns(b=pa.struct([("x", pa.int32())])), first.as_struct(), start=9)
    mapping, wrong = mapping_of(second, [first])
    assert wrong == frozenset()
    assert found_by(mapping, "a") == 1
    assert found_by(mapping, "b.y") is not None
    assert ids(second.as_struct())["b"] == ids(first.as_struct())["b"]


def test_lists_and_maps_have_ids_inside() -> None:
    nested = columns(l=pa.list_(pa.struct([("a", pa.int32())])), m=pa.map_(pa.string(), pa.int32()))
    found = table(0, nested)
    every = [field.field_id for field in found._lazy_id_to_field.values()]
    assert len(every) == len(set(every)) == 6
    again = table(1, nested, found.as_struct(), start=100)
    assert again.as_struct() == found.as_struct()

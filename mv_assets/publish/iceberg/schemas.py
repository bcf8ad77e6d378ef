"""The columns of a published table: their types, and the ids by which Iceberg knows them.

Our files carry no ids, as Spark can't write those of list elements: a name mapping says which column of a
file has which id. So a name keeps its id for as long as its types fit together, and old snapshots are read
with the mapping of today: those that would be read wrong with it have to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping, create_mapping_from_schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

from mv_assets.state.model import BUCKET

# Every column of a file must have an id to some readers, one that no table has too.
_HELPER = MappedField.model_validate({"field-id": 2_000_000_000, "names": [BUCKET]})
_WIDER: dict[tuple[type, type], IcebergType] = {
    (IntegerType, LongType): LongType(),
    (FloatType, DoubleType): DoubleType(),
}


class NoSuchType(Exception):
    """A column that Iceberg has no type for, or that files have different ones of."""


def columns_of(arrow: pa.Schema) -> StructType:
    """The columns of a file, as Iceberg knows them; all may be null, and none has an id yet.

    Raises:
        NoSuchType: naming the column.

    """
    found = list[NestedField]()
    for part in arrow:
        if part.name == BUCKET:
            continue
        try:
            [field] = _pyarrow_to_schema_without_ids(pa.schema([part])).fields
        except Exception as error:
            raise NoSuchType(f"column {part.name} is {part.type}, which Iceberg has no type for") from error
        found.append(_optional(field))
    return StructType(*found)


def _optional(field: NestedField) -> NestedField:
    return NestedField(field.field_id, field.name, _all_optional(field.field_type), required=False)


def _all_optional(kind: IcebergType) -> IcebergType:
    if isinstance(kind, StructType):
        return StructType(*map(_optional, kind.fields))
    if isinstance(kind, ListType):
        return ListType(kind.element_id, _all_optional(kind.element_type), element_required=False)
    if isinstance(kind, MapType):
        value = _all_optional(kind.value_type)
        return MapType(kind.key_id, _all_optional(kind.key_type), kind.value_id, value, value_required=False)
    return kind


def united(all_columns: Iterable[StructType]) -> StructType:
    """Columns that hold the rows of all files.

    Raises:
        NoSuchType: naming a column that has no such type.

    """
    found: dict[str, NestedField] = {}
    for columns in all_columns:
        for field in columns.fields:
            known = found.get(field.name, field)
            kind = wider(known.field_type, field.field_type)
            if kind is None:
                raise NoSuchType(
                    f"column {field.name} is {_plain(known.field_type)} in some buckets and "
                    f"{_plain(field.field_type)} in others"
                )
            found[field.name] = NestedField(known.field_id, known.name, kind, required=False)
    return StructType(*found.values())


def wider(one: IcebergType, other: IcebergType) -> IcebergType | None:
    """The type that holds the values of both, with the ids of the first; None if Iceberg knows none."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        try:
            return united([one, other])
        except NoSuchType:
            return None
    if isinstance(one, ListType) and isinstance(other, ListType):
        element = wider(one.element_type, other.element_type)
        return None if element is None else ListType(one.element_id, element, element_required=False)
    if isinstance(one, MapType) and isinstance(other, MapType):
        key, value = wider(one.key_type, other.key_type), wider(one.value_type, other.value_type)
        if key is None or value is None:
            return None
        return MapType(one.key_id, key, one.value_id, value, value_required=False)
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        return None if one.scale != other.scale else max(one, other, key=lambda each: each.precision)
    if one == other:
        return one
    return _WIDER.get((type(one), type(other))) or _WIDER.get((type(other), type(one)))


def numbered(columns: StructType, known: Sequence[StructType], fresh: Iterator[int]) -> StructType:
    """The columns with ids: those that names had before, the latest first, and else fresh ones."""
    return StructType(*(_numbered_field(field, known, fresh) for field in columns.fields))


def _numbered_field(field: NestedField, known: Sequence[StructType], fresh: Iterator[int]) -> NestedField:
    for earlier in known:
        for before in earlier.fields:
            kind = wider(before.field_type, field.field_type) if before.name == field.name else None
            if kind is not None:
                kind = _numbered(_only(kind, field.field_type), before.field_type, fresh)
                return NestedField(before.field_id, field.name, kind, required=False)
    number = next(fresh)
    return NestedField(number, field.name, _numbered(field.field_type, None, fresh), required=False)


def _only(kind: IcebergType, wanted: IcebergType) -> IcebergType:
    """Of a struct those fields that are still there; all else as it is."""
    if isinstance(kind, StructType) and isinstance(wanted, StructType):
        there = {field.name: field.field_type for field in wanted.fields}
        return StructType(
            *(
                NestedField(
                    each.field_id, each.name, _only(each.field_type, there[each.name]), required=False
                )
                for each in kind.fields
                if each.name in there
            )
        )
    return kind


def _numbered(kind: IcebergType, before: IcebergType | None, fresh: Iterator[int]) -> IcebergType:
    if isinstance(kind, StructType):
        return numbered(kind, [before] if isinstance(before, StructType) else [], fresh)
    if isinstance(kind, ListType):
        known = before if isinstance(before, ListType) else None
        number = next(fresh) if known is None else known.element_id
        element = _numbered(kind.element_type, None if known is None else known.element_type, fresh)
        return ListType(number, element, element_required=False)
    if isinstance(kind, MapType):
        of = before if isinstance(before, MapType) else None
        key, value = (next(fresh), next(fresh)) if of is None else (of.key_id, of.value_id)
        return MapType(
            key,
            _numbered(kind.key_type, None if of is None else of.key_type, fresh),
            value,
            _numbered(kind.value_type, None if of is None else of.value_type, fresh),
            value_required=False,
        )
    return kind


def mapping_of(schema: Schema, earlier: Iterable[Schema]) -> tuple[NameMapping, frozenset[int]]:
    """The names of a table's columns, with those that only earlier schemas have.

    And the ids of schemas whose names mean other columns now: with them old snapshots would be read wrong.
    """
    fields, wrong = [_HELPER, *create_mapping_from_schema(schema).root], set[int]()
    for before in earlier:
        merged = _merged(fields, create_mapping_from_schema(before).root)
        if merged is None:
            wrong.add(before.schema_id)
        else:
            fields = merged
    return NameMapping(fields), frozenset(wrong)


def holds(mapping: NameMapping, needed: NameMapping) -> bool:
    """Whether a mapping says all that is needed; it may know names that no snapshot has any more."""
    return _merged(mapping.root, needed.root) == list(mapping.root)


def _merged(fields: Iterable[MappedField], before: Iterable[MappedField]) -> list[MappedField] | None:
    """Both; None if one name stands for two columns."""
    found = {field.names[0]: field for field in fields}
    for field in before:
        name, known = field.names[0], found.get(field.names[0])
        if known is None:
            found[name] = field
            continue
        inner = _merged(known.fields, field.fields)
        if known.field_id != field.field_id or inner is None:
            return None
        found[name] = known.model_copy(update={"fields": inner})
    return list(found.values())


def _plain(kind: IcebergType) -> str:
    return str(kind).lower()

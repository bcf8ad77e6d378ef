"""The columns of an Iceberg table: their Spark types, how files have them, and partition values as text."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from mv_assets.tables.lakehouse import LEAVE_OUT
from mv_assets.tables.places import Place
from mv_assets.tables.types import field_name

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.name_mapping import MappedField
    from pyiceberg.types import IcebergType, NestedField

_SPARK = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "time(6)",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp_ntz",
    "timestamptz_ns": "timestamp",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "unknown": "void",
}
# Types whose names go on with a size.
_BY_SIZE = ("decimal", "fixed")
_BYTES = ("binary", "fixed")
_NANOSECONDS = ("timestamp_ns", "timestamptz_ns")
_ARROW = {
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
}


def spark_type(kind: IcebergType) -> str:
    """The type under which Iceberg's own Spark connector shows a column."""
    from pyiceberg.types import DecimalType, FixedType, ListType, MapType, StructType  # noqa: PLC0415 - an extra

    match kind:
        case StructType():
            fields = (f"{field_name(part.name)}:{spark_type(part.field_type)}" for part in kind.fields)
            return f"struct<{','.join(fields)}>"
        case ListType():
            return f"array<{spark_type(kind.element_type)}>"
        case MapType():
            return f"map<{spark_type(kind.key_type)},{spark_type(kind.value_type)}>"
        case DecimalType():
            return f"decimal({kind.precision},{kind.scale})"
        case FixedType():
            return "binary"
    return _SPARK.get(str(kind), str(kind))


def columns(schema: Schema) -> dict[str, str]:
    return {part.name: spark_type(part.field_type) for part in schema.fields}


def types_by_id(metadata: TableMetadata, unlike: Container[str] = ()) -> dict[int, str]:
    """Spark types of columns by id: as they are now or, of dropped ones, as they last were.

    Those that are `unlike` what Spark makes of them keep the name that Iceberg has for them.
    """
    # A schema's number says which is the younger one.
    schemas = [*sorted(metadata.schemas, key=lambda each: each.schema_id), metadata.schema()]
    return {
        part.field_id: str(part.field_type) if str(part.field_type) in unlike else spark_type(part.field_type)
        for schema in schemas
        for part in schema.fields
    }


def refused(schema: Schema) -> dict[str, str]:
    """Columns that would be read wrong from the files, with the reason."""
    found = {}
    for top in schema.fields:
        for part in _within(top):
            kind, inside = str(part.field_type), "" if part is top else f"{part.name}, "
            if part.field_type.is_primitive and kind not in _SPARK and not kind.startswith(_BY_SIZE):
                found[top.name] = f"holds {inside}{kind}, which is none of Spark's types; {LEAVE_OUT}"
            elif kind in _NANOSECONDS:
                found[top.name] = f"holds {inside}nanoseconds ({kind}), which Spark can't read; {LEAVE_OUT}"
            elif part.initial_default is not None and kind.startswith(_BYTES):
                found[top.name] = f"holds {inside}{kind} with a default value for older files; {LEAVE_OUT}"
    return found


def places(metadata: TableMetadata) -> dict[str, Place]:
    """How the columns are found inside the files, which know them by id or, if imported, by name."""
    mapping = metadata.name_mapping()
    names = None if mapping is None else dict(_mapped(mapping.root))
    facts = _Facts(names, _emptied(metadata), _bytes_by_partition(metadata))
    return {part.name: _place(part, facts) for part in metadata.schema().fields}


class _Facts(NamedTuple):
    """What a table says of some of its fields, by id."""

    # In files without ids; None: there should be none such.
    names: Mapping[int, tuple[str, ...]] | None
    # Structs of which some files may hold none of the present fields, so that Spark may take them for null.
    emptied: frozenset[int]
    # Those whose partition values are bytes, so that files have to hold them.
    needed: frozenset[int]


def _place(part: NestedField, facts: _Facts) -> Place:
    number, default = part.field_id, part.initial_default
    return Place(
        part.name,
        number,
        tuple((inner.name, _place(inner, facts)) for inner in _inside(part)),
        None if facts.names is None else facts.names.get(number, ()),
        None if default is None else _default(part.field_type, default),
        uuid=str(part.field_type) == "uuid",
        varies=default is not None
        or facts.names is not None
        or number in facts.emptied
        or number in facts.needed,
        needed=number in facts.needed,
    )


def _inside(part: NestedField) -> tuple[NestedField, ...]:
    from pyiceberg.types import ListType, MapType, StructType  # noqa: PLC0415 - an extra

    match part.field_type:
        case StructType() as kind:
            return kind.fields
        case ListType() as kind:
            return (kind.element_field,)
        case MapType() as kind:
            return kind.key_field, kind.value_field
    return ()


def _within(part: NestedField) -> Iterator[NestedField]:
    """A field, and all that is inside of it."""
    yield part
    for inner in _inside(part):
        yield from _within(inner)


def _mapped(fields: Iterable[MappedField]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for each in fields:
        if each.field_id is not None:
            yield each.field_id, tuple(sorted(each.names))
        yield from _mapped(each.fields)


def _default(kind: IcebergType, value: Any) -> str:
    """A default value as text, which Spark casts."""
    from pyiceberg.conversions import to_json  # noqa: PLC0415 - an extra
    from pyiceberg.types import PrimitiveType  # noqa: PLC0415

    said = value
    if isinstance(kind, PrimitiveType) and not isinstance(value, str):
        said = to_json(kind, value)
    return str(said).lower() if isinstance(said, bool) else str(said)


def _bytes_by_partition(metadata: TableMetadata) -> frozenset[int]:
    from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415 - an extra

    kinds = {part.field_id: str(part.field_type) for part in metadata.schema().fields}
    fields = (part for spec in metadata.partition_specs for part in spec.fields)
    identical = {part.source_id for part in fields if isinstance(part.transform, IdentityTransform)}
    return frozenset(number for number in identical if kinds.get(number, "").startswith((*_BYTES, "uuid")))


def _emptied(metadata: TableMetadata) -> frozenset[int]:
    """Structs that once had none of their present fields: files of then hold none of them."""
    earlier = [_structs(schema.fields) for schema in metadata.schemas]
    return frozenset(
        struct
        for struct, now in _structs(metadata.schema().fields).items()
        if any(struct in then and not then[struct] & now for then in earlier)
    )


def _structs(fields: Iterable[NestedField]) -> dict[int, frozenset[int]]:
    """The ids of the fields of each struct, by its own id, at any depth."""
    return {
        part.field_id: frozenset(inner.field_id for inner in _inside(part))
        for top in fields
        for part in _within(top)
        if part.field_type.is_struct
    }


def redefined(metadata: TableMetadata, name: str) -> list[str]:
    """That a column had another id or type under its present name: the same files now read otherwise."""
    now = metadata.schema().find_field(name)
    earlier = [part for schema in metadata.schemas for part in schema.fields if part.name == now.name]
    if all((part.field_id, part.field_type) == (now.field_id, now.field_type) for part in earlier):
        return []
    return [f"{now.name} {now.field_id} {now.field_type}"]


@lru_cache(maxsize=65_536)
def text(kind: str, value: Any) -> str | None:
    """A partition value as text. Times by Arrow: Python's end with the year 9999."""
    if value is None:
        return None
    if kind in _ARROW:
        return str(pa.array([value], _ARROW[kind]).cast(pa.string())[0].as_py())
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)

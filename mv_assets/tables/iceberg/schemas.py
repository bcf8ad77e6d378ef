"""The columns of an Iceberg table: their Spark types, their ids, and partition values as text."""

from __future__ import annotations

from collections.abc import Container, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mv_assets.tables.types import field_name

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
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


def moved_inside(metadata: TableMetadata) -> str | None:
    """A nested field that some schema of the table has under another name or id; None if there is none.

    Files know fields by id; Spark, reading them, finds only the top-level columns so.
    """
    from pyiceberg.schema import Schema, index_by_name  # noqa: PLC0415 - an extra

    ids: dict[tuple[int, str], int] = {}
    names: dict[int, str] = {}
    for schema in metadata.schemas:
        for top in schema.fields:
            for path, field_id in index_by_name(Schema(top)).items():
                name = schema.find_field(field_id).name
                place = (top.field_id, path.removeprefix(top.name))
                moved = (
                    ids.setdefault(place, field_id) != field_id or names.setdefault(field_id, name) != name
                )
                if moved and field_id != top.field_id:
                    return path
    return None


def emptied_inside(metadata: TableMetadata) -> frozenset[str]:
    """Columns with a struct that once had none of its present fields: files of then hold none of them."""
    earlier = [_structs(schema.fields) for schema in metadata.schemas]
    return frozenset(
        top.name
        for top in metadata.schema().fields
        for struct, now in _structs([top]).items()
        if any(struct in then and not then[struct] & now for then in earlier)
    )


def _structs(fields: Iterable[NestedField]) -> dict[int, frozenset[int]]:
    """The ids of the fields of each struct, by its own id, at any depth."""
    from pyiceberg.types import ListType, MapType, StructType  # noqa: PLC0415 - an extra

    found: dict[int, frozenset[int]] = {}
    for field in fields:
        kind: IcebergType = field.field_type
        inside: list[NestedField] = []
        if isinstance(kind, StructType):
            inside = list(kind.fields)
            found[field.field_id] = frozenset(part.field_id for part in inside)
        elif isinstance(kind, ListType):
            inside = [kind.element_field]
        elif isinstance(kind, MapType):
            inside = [kind.key_field, kind.value_field]
        found |= _structs(inside)
    return found


def redefined(metadata: TableMetadata) -> list[str]:
    """Columns that had another id or type under their present names: the same files now read otherwise."""
    now = {part.name: part for part in metadata.schema().fields}
    earlier = [part for schema in metadata.schemas for part in schema.fields if part.name in now]
    found = {
        part.name
        for part in earlier
        if (part.field_id, part.field_type) != (now[part.name].field_id, now[part.name].field_type)
    }
    return [f"{name} {now[name].field_id} {now[name].field_type}" for name in sorted(found)]


def defaulted(schema: Schema) -> list[str]:
    """Columns that older files don't have, and that are not null there."""
    fields = [schema.find_field(field_id) for field_id in sorted(schema.field_ids)]
    return [part.name for part in fields if part.initial_default is not None]


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

"""Column types of files in Spark SQL's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import repeat

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.tables.parquet.annotations import NOTHING, Said, said_in

INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})

_PLAIN = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_NAMES = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    # Spark has no unsigned types and reads them as the next wider ones.
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
    "date64[ms]": "date",
    "time64[us]": "time(6)",
}
# Bytes to Arrow.
_TEXTS = frozenset({"Enum", "JSON"})
_NO_LEAVES: Iterator[pq.ColumnSchema | None] = repeat(None)


@dataclass(frozen=True, slots=True)
class Shape:
    """A column of a file, or a field inside one.

    `kind` is `struct`, `array` or `map` for what has parts, and else the type under which Spark reads it.
    """

    name: str
    kind: str
    field_id: int | None = None
    parts: tuple[Shape, ...] = ()

    @property
    def type(self) -> str:
        """The whole type under which Spark reads it."""
        if self.kind not in ("struct", "array", "map"):
            return self.kind
        named = self.kind == "struct"
        inside = (f"{field_name(part.name)}:{part.type}" if named else part.type for part in self.parts)
        return f"{self.kind}<{','.join(inside)}>"


def spark_type(
    kind: pa.DataType, leaves: Iterator[pq.ColumnSchema | None] = _NO_LEAVES, said: Said = NOTHING
) -> str:
    """The type under which Spark reads a column of that Arrow type."""
    return _shape(pa.field("", kind), leaves, said).type


def _shape(part: pa.Field, leaves: Iterator[pq.ColumnSchema | None], said: Said) -> Shape:
    """A column as Spark reads it.

    `leaves` are the Parquet columns that it is stored in, in their order, and `said` what Spark wrote of it.
    """
    kind, parts = part.type, list[Shape]()
    if isinstance(kind, pa.BaseExtensionType):
        return _shape(part.with_type(kind.storage_type), leaves, said)
    name = "array"
    if pa.types.is_dictionary(kind):
        return replace(_shape(pa.field(part.name, kind.value_type), leaves, said), field_id=id_of(part))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        parts = [_shape(kind.value_field, leaves, said.part("element"))]
    elif pa.types.is_map(kind):
        fields = (("key", kind.key_field), ("value", kind.item_field))
        name, parts = "map", [_shape(each, leaves, said.part(which)) for which, each in fields]
    elif pa.types.is_struct(kind):
        name, parts = "struct", [_shape(each, leaves, said.field(each.name)) for each in kind]
        if said.is_variant:
            name, parts = "variant", []
    else:
        name = said.of_leaf(_stored(next(leaves)) or _plain(kind))
    return Shape(part.name, name, id_of(part), tuple(parts))


def id_of(part: pa.Field) -> int | None:
    """The id of a file's column, if it has one."""
    value = (part.metadata or {}).get(b"PARQUET:field_id")
    return None if value is None else int(value)


def _plain(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        # Spark refuses to read them.
        return "timestamp_nanos"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    return _NAMES.get(str(kind), str(kind))


def _stored(column: pq.ColumnSchema | None) -> str | None:
    """The type of a column that to Spark is another than to Arrow."""
    if column is None:
        return None
    if column.physical_type == "INT96":
        # The old timestamps have no zone in Arrow, but to Spark they are instants.
        return "timestamp"
    return "string" if column.physical_type == "BYTE_ARRAY" and str(column.logical_type) in _TEXTS else None


_LADDERS = (
    ("tinyint", "smallint", "int", "bigint"),
    ("float", "double"),
    ("date", "timestamp_ntz", "timestamp"),
)


class Sampled(dict[str, str]):
    """Columns of which some types are only those that some of the files have.

    In another file such a column may have a wider type: a whole number digits after the point, a day a time.
    """

    def __init__(self, types: Mapping[str, str], unsure: Iterable[str]) -> None:
        super().__init__(types)
        self.unsure = frozenset(unsure)


def unsure(columns: Mapping[str, str]) -> frozenset[str]:
    """The columns that may have wider types in some files."""
    return columns.unsure if isinstance(columns, Sampled) else frozenset()


def is_one_type(kinds: Iterable[str]) -> bool:
    """Whether one of the types holds the values of all."""
    return any(set(kinds) <= set(ladder) for ladder in _LADDERS) or len(set(kinds)) == 1


def common_type(kinds: Counter[str]) -> str:
    """One type for a column of which files have several: the one that holds all values, else the usual one.

    A file that differs beyond that is that file's error, not the table's type.
    """
    for ladder in _LADDERS:
        if kinds.keys() <= set(ladder):
            return max(kinds, key=ladder.index)
    return kinds.most_common(1)[0][0]


def field_name(name: str) -> str:
    """A nested field's name as it is written in a type."""
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def spark_types(fields: Iterable[pa.Field], said: Said = NOTHING) -> dict[str, str]:
    return {part.name: spark_type(part.type, said=said.field(part.name)) for part in fields}


def types_in(file: pq.ParquetFile) -> dict[str, str]:
    """The columns of a Parquet file."""
    return {shape.name: shape.type for shape in shapes_in(file)}


def shapes_in(file: pq.ParquetFile) -> list[Shape]:
    """The same with all that is inside of them."""
    fields, said = file.schema_arrow, said_in(file.metadata.metadata)
    columns = [file.schema.column(at) for at in range(len(file.schema.names))]
    known = len(columns) == sum(_width(part.type) for part in fields)
    leaves: Iterator[pq.ColumnSchema | None] = iter(columns) if known else _NO_LEAVES
    return [_shape(part, leaves, said.field(part.name)) for part in fields]


def _width(kind: pa.DataType) -> int:
    """How many Parquet columns hold a type."""
    return sum(_width(kind.field(at).type) for at in range(kind.num_fields)) or 1

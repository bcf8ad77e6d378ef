"""Arrow's column types in Spark SQL's words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

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
}


def spark_type(kind: pa.DataType) -> str:
    """The type under which Spark reads a column of that Arrow type."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        # Spark refuses to read them.
        return "timestamp_nanos"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field_name(part.name)}:{spark_type(part.type)}' for part in kind)}>"
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    return _NAMES.get(str(kind), str(kind))


_LADDERS = (
    ("tinyint", "smallint", "int", "bigint"),
    ("float", "double"),
    ("date", "timestamp_ntz", "timestamp"),
)


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


def spark_types(fields: Iterable[pa.Field]) -> dict[str, str]:
    return {part.name: spark_type(part.type) for part in fields}


def types_in(file: pq.ParquetFile) -> dict[str, str]:
    """The columns of a Parquet file."""
    columns = [file.schema.column(at) for at in range(len(file.schema.names))]
    # The old timestamps have no zone in Arrow, but to Spark they are instants.
    instants = {column.path: "timestamp" for column in columns if column.physical_type == "INT96"}
    return {name: instants.get(name, kind) for name, kind in spark_types(file.schema_arrow).items()}

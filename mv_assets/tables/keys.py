"""Whether columns are a unique key of a dimension: no two of its rows have the same values in all of them.

Rows in which one of them is null are no duplicates: they equal nothing that is joined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from mv_assets.tables.arrow import ArrowRows
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.errors import KeyNotUnique, KeyUnknown
from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.listing import Listing, Table
from mv_assets.tables.parquet.footer import Unusable
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets.tables.types import INTEGERS

# Those whose values are equal to Arrow exactly where Spark's join takes them for equal: not floats, of which
# minus zero is zero, nor times, of which files have more digits than Spark.
_KINDS = {
    **dict.fromkeys(INTEGERS, pa.int64()),
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
_DECIMAL = re.compile(r"decimal\(\d+, ?(\d+)\)")
_KNOWN = "integers, decimals, texts, dates, booleans or bytes"


def is_key_type(kind: str | None) -> bool:
    """Whether columns of that type can be verified to be unique."""
    return kind is not None and (kind in _KINDS or _DECIMAL.fullmatch(kind) is not None)


def verify(table: Table, listing: Listing, key: Sequence[str]) -> dict[str, str]:
    """See that the key is one, in the files as they were listed; the types of its columns.

    Raises:
        KeyNotUnique: two rows have the same values.
        KeyUnknown: it can't be told.

    """
    try:
        kinds = _kinds(table, listing, key)
        rows = _rows(table, listing, kinds)
    except Unusable as error:
        raise KeyUnknown(table.name, key, str(error)) from error
    if not kinds:
        return {}
    for column in rows.column_names:
        rows = rows.filter(pc.is_valid(rows[column]))
    counted = rows.group_by(rows.column_names).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted["count_all"], 1))
    if len(twice):
        order = [(column, "ascending") for column in rows.column_names]
        first = twice.sort_by(order).slice(0, 1).to_pylist()[0]
        values = ", ".join(repr(first[column]) for column in rows.column_names)
        raise KeyNotUnique(table.name, key, values, first["count_all"])
    return {column.lower(): kind for column, kind in kinds.items()}


def _rows(table: Table, listing: Listing, kinds: Mapping[str, str]) -> pa.Table:
    wanted, files = (
        pa.schema([(column, _kind(kind)) for column, kind in kinds.items()]),
        _files(table, listing),
    )
    batches = [batch for name in listing.names for batch in files.batches(name, wanted)]
    return pa.Table.from_batches(batches, wanted)


def _kinds(table: Table, listing: Listing, key: Sequence[str]) -> dict[str, str]:
    """The types of its columns, under the table's own names: these say where a column is."""
    kinds = listing.schema
    if any(_named(kinds, column) is None for column in key):
        kinds = table.columns(frozenset(key), everywhere=True) or {}
    found = {}
    # A table without files has no rows that could be alike.
    for column in key if listing.names else ():
        named = _named(kinds, column)
        if named is None:
            raise Unusable(f"there is no column {column}")
        if not is_key_type(kinds[named]):
            raise Unusable(f"column {column} is {kinds[named]}, and a key is of {_KNOWN}")
        found[named] = kinds[named]
    return found


def _named(kinds: Mapping[str, str], column: str) -> str | None:
    return next((name for name in kinds if name.lower() == column.lower()), None)


def _kind(kind: str) -> pa.DataType:
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is not None:
        return pa.decimal128(38, int(decimal[1]))
    if kind not in _KINDS:
        raise Unusable(f"rows are deleted from it by values of type {kind}")
    return _KINDS[kind]


def _files(table: Table, listing: Listing) -> ArrowRows:
    match table:
        case ParquetFiles():
            return ArrowRows(listing, table.folder.open, _kind)
        case DeltaFiles(reader="files"):
            return ArrowRows(listing, table.source, _kind, lambda name: table.deleted(listing, name))
        case IcebergFiles(reader="files"):
            source = table.current().source
            return ArrowRows(
                listing,
                lambda name: source(listing.path(name)),
                _kind,
                lambda name: table.deleted(listing, name),
                source,
            )
    raise Unusable("it is read by its connector for Spark, not by its files")

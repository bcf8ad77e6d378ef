"""The types of files in Spark SQL's words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.tables.types import spark_type, spark_types, types_in
from mv_assets_tests.unit.tables.lake import Lake, put, table_content


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "tinyint"),
        (pa.int16(), "smallint"),
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.uint8(), "smallint"),
        (pa.uint16(), "int"),
        (pa.uint32(), "bigint"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.string_view(), "string"),
        (pa.binary(), "binary"),
        (pa.large_binary(), "binary"),
        (pa.binary(16), "binary"),
        (pa.date32(), "date"),
        (pa.date64(), "date"),
        (pa.timestamp("s", "UTC"), "timestamp"),
        (pa.timestamp("us", "Europe/Berlin"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(38, 10), "decimal(38,10)"),
        (pa.decimal32(5, 2), "decimal(5,2)"),
        (pa.list_(pa.int32()), "array<int>"),
        (pa.large_list(pa.string()), "array<string>"),
        (pa.list_(pa.int8(), 3), "array<tinyint>"),
        (pa.map_(pa.string(), pa.list_(pa.date32())), "map<string,array<date>>"),
        (
            pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.bool_())]))]),
            "struct<a:int,b:struct<c:boolean>>",
        ),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.dictionary(pa.int32(), pa.list_(pa.int64())), "array<bigint>"),
    ],
    ids=str,
)
def test_a_type_has_sparks_name(kind: pa.DataType, name: str) -> None:
    assert spark_type(kind) == name


def test_columns_keep_their_names_and_order() -> None:
    fields = pa.schema([("B", pa.int8()), ("a b", pa.string())])
    assert list(spark_types(fields).items()) == [("B", "tinyint"), ("a b", "string")]


def test_types_are_those_of_the_file(lake: Lake) -> None:
    rows = pa.table(
        {
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "price": pa.array(["1.50", "2.50"]).cast(pa.decimal128(9, 2)),
            "tags": pa.array([[{"k": "v", "n": 1}], None]),
            "id": pa.array([b"0123456789abcdef"] * 2, pa.binary(16)),
        }
    )
    put(lake.root / "a.parquet", table_content(rows))
    assert lake.table(None).columns() == {
        "kind": "string",
        "price": "decimal(9,2)",
        "tags": "array<struct<k:string,n:bigint>>",
        "id": "binary",
    }


# What Arrow calls otherwise


def types_of(rows: pa.Table, **options: Any) -> dict[str, str]:
    return types_in(pq.ParquetFile(pa.BufferReader(table_content(rows, **options))))


def spoken(rows: pa.Table, *fields: dict[str, Any]) -> pa.Table:
    """Rows with what Spark would write of some of their columns."""
    schema = json.dumps({"type": "struct", "fields": fields})
    return rows.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": schema})


def told(name: str, kind: Any, **collations: str) -> dict[str, Any]:
    metadata = {"__COLLATIONS": {path.replace("__", "."): each for path, each in collations.items()}}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata if collations else {}}


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        (told("c", "interval day to second"), 1, "interval day to second"),
        (told("c", "interval hour"), 1, "interval hour"),
        (told("c", "interval month"), pa.scalar(1, pa.int32()), "interval month"),
        (told("c", "string", c="spark.UTF8_LCASE"), "a", "string collate UTF8_LCASE"),
        (told("c", "string", c="icu.de_CI.75.1"), "a", "string collate de_CI"),
        (told("c", "string"), "a", "string"),
        (
            told("c", {"type": "array", "elementType": "string"}, c__element="icu.UNICODE_CI"),
            ["a"],
            "array<string collate UNICODE_CI>",
        ),
        (
            told("c", {"type": "struct", "fields": [told("i", "interval day"), told("n", "long")]}),
            {"i": 1, "n": 1},
            "struct<i:interval day,n:bigint>",
        ),
        (
            told("c", {"type": "map", "keyType": "string", "valueType": "interval day"}),
            pa.scalar([("k", 1)], pa.map_(pa.string(), pa.int64())),
            "map<string,interval day>",
        ),
        (told("c", "variant"), {"metadata": b"", "value": b""}, "variant"),
        # Whoever changed a column later may have left Spark's words there.
        (told("c", "interval day"), "text", "string"),
        (told("c", "interval month"), 1, "bigint"),
        (told("c", "string", c="spark.UTF8_LCASE"), 1, "bigint"),
        (told("c", "variant"), 1, "bigint"),
        (told("other", "interval day"), 1, "bigint"),
        # Whatever it says becomes a type that Spark does not have, and no SQL.
        (told("c", "string", c="x.A) AS c, 'b"), "a", "string collate A__AS_c___b"),
        (told("c", "interval day) AS c"), 1, "bigint"),
        ({"name": "c", "type": {"fields": 5}, "metadata": "variant"}, 1, "bigint"),
    ],
    ids=str,
)
def test_what_spark_wrote_of_a_column_counts_where_it_fits(
    field: dict[str, Any], value: Any, kind: str
) -> None:
    rows = pa.table({"a": [1], "c": pa.array([value])})
    assert types_of(spoken(rows, field)) == {"a": "bigint", "c": kind}


def test_words_that_are_not_sparks_are_passed_over() -> None:
    key = "org.apache.spark.sql.parquet.row.metadata"
    assert types_of(pa.table({"c": [1]}).replace_schema_metadata({key: '"variant"['})) == {"c": "bigint"}


def test_old_timestamps_are_instants_inside_others_too() -> None:
    rows = pa.table({"c": [[{"a": 1, "t": datetime(2024, 1, 1, tzinfo=UTC)}]]})
    kinds = types_of(rows, use_deprecated_int96_timestamps=True, store_schema=False)
    assert kinds == {"c": "array<struct<a:bigint,t:timestamp>>"}


@pytest.mark.parametrize(
    ("logical", "as_written"),
    [("Enum", b"\x01s\x25\x08\x4c\x4c\x00\x00"), ("JSON", b"\x01s\x25\x26\x4c\xcc\x00\x00")],
)
def test_an_enum_or_json_is_a_string(logical: str, as_written: bytes) -> None:
    data = table_content(pa.table({"a": [b"x"], "s": ["{}"]}), store_schema=False)
    # Not every library writes them: the column's converted and logical type.
    as_string = b"\x01s\x25\x00\x4c\x1c\x00\x00"
    assert data.count(as_string) == 1
    file = pq.ParquetFile(pa.BufferReader(data.replace(as_string, as_written)))
    assert str(file.schema.column(1).logical_type) == logical
    assert types_in(file) == {"a": "binary", "s": "string"}

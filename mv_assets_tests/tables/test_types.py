"""Arrow's types in Spark SQL's words."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mv_assets.tables.types import spark_type, spark_types
from mv_assets_tests.tables.lake import Lake, put, table_content


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

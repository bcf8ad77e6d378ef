"""How the columns of an Iceberg table are found in its files, and which would be read wrong."""

from __future__ import annotations

from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from mv_assets.tables.iceberg import schemas
from mv_assets.tables.places import Place


def metadata(*fields: list[dict[str, Any]], mapping: str | None = None, **more: Any) -> TableMetadata:
    """Metadata with some schemas, of which the last one is the present."""
    return TableMetadataUtil.parse_obj(
        {
            "format-version": 3,
            "table-uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
            "location": "/t",
            "last-updated-ms": 1,
            "last-column-id": 99,
            "last-sequence-number": 0,
            "next-row-id": 0,
            "schemas": [
                {"type": "struct", "schema-id": at, "fields": each} for at, each in enumerate(fields)
            ],
            "current-schema-id": len(fields) - 1,
            "partition-specs": [{"spec-id": 0, "fields": more.get("by", [])}],
            "default-spec-id": 0,
            "last-partition-id": 1000,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {} if mapping is None else {"schema.name-mapping.default": mapping},
        }
    )


def field(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind, "required": False, **more}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(number: int, kind: Any) -> dict[str, Any]:
    return {"type": "list", "element-id": number, "element": kind, "element-required": False}


def test_places_have_ids_at_every_depth() -> None:
    found = schemas.places(metadata([field(1, "l", array(2, struct(field(3, "u", "uuid"))))]))
    uuid = Place("u", 3, uuid=True)
    element = Place("element", 2, (("u", uuid),))
    assert found == {"l": Place("l", 1, (("element", element),))}
    assert not found["l"].only_footers_tell


def test_what_had_other_types_or_names_is_found_by_its_id_all_the_same() -> None:
    old = [field(1, "s", struct(field(2, "x", "int"))), field(3, "v", "int")]
    new = [field(1, "t", struct(field(2, "y", "long"))), field(3, "v", "long")]
    found = schemas.places(metadata(old, new))
    assert found == {"t": Place("t", 1, (("y", Place("y", 2)),)), "v": Place("v", 3)}


def test_a_mapping_gives_names_to_files_without_ids() -> None:
    mapping = '[{"field-id": 1, "names": ["s", "was"], "fields": [{"field-id": 2, "names": ["x"]}]}]'
    found = schemas.places(
        metadata([field(1, "s", struct(field(2, "x", "int"))), field(3, "new", "int")], mapping=mapping)
    )
    assert found["s"].names == ("s", "was")
    assert found["s"].part("x").names == ("x",)
    assert found["new"].names == ()
    assert all(place.only_footers_tell for place in found.values())


def test_defaults_are_texts_and_told_by_footers_only() -> None:
    inner = field(3, "b", "boolean", **{"initial-default": True})
    fields = [field(1, "d", "date", **{"initial-default": "2017-11-16"}), field(2, "s", struct(inner))]
    found = schemas.places(metadata(fields))
    assert found["d"].default == "2017-11-16"
    assert found["s"].part("b").default == "true"
    assert all(place.only_footers_tell for place in found.values())


def test_a_struct_that_once_had_none_of_its_fields_is_told_by_footers_only() -> None:
    then, now = field(2, "x", "int"), field(3, "y", "int")
    found = schemas.places(metadata([field(1, "s", struct(then))], [field(1, "s", struct(now))]))
    assert found["s"].only_footers_tell


def test_bytes_that_partition_a_table_have_to_be_in_its_files() -> None:
    by = [{"source-id": 1, "field-id": 1000, "name": "b", "transform": "identity"}]
    found = schemas.places(metadata([field(1, "b", "binary"), field(2, "c", "binary")], by=by))
    assert (found["b"].needed, found["c"].needed) == (True, False)


def test_columns_that_would_be_read_wrong_are_named_with_the_reason() -> None:
    fields = [
        field(
            1, "ok", struct(field(2, "u", "uuid"), field(3, "d", "decimal(9, 2)"), field(4, "f", "fixed[3]"))
        ),
        field(5, "t", array(6, struct(field(7, "n", "timestamptz_ns")))),
        field(8, "g", "geometry"),
        field(9, "b", "binary", **{"initial-default": "00ff"}),
        field(10, "time", "time"),
        field(11, "none", "unknown"),
    ]
    found = schemas.refused(metadata(fields).schema())
    assert found.keys() == {"t", "g", "b"}
    assert "holds n, nanoseconds (timestamptz_ns)" in found["t"]
    assert "geometry" in found["g"]
    assert all("reader: spark" in why for why in found.values())


def test_the_meaning_of_a_place_is_what_decides_values() -> None:
    def meaning(*fields: dict[str, Any], **more: Any) -> str:
        return schemas.places(metadata([field(1, "s", struct(*fields))], **more))["s"].meaning

    plain = meaning(field(2, "x", "int"))
    assert meaning(field(2, "x", "long")) == plain
    assert (
        len(
            {
                plain,
                meaning(field(3, "x", "int")),
                meaning(field(2, "y", "int")),
                meaning(field(2, "x", "int", **{"initial-default": 1})),
                meaning(field(2, "x", "int"), mapping='[{"field-id": 1, "names": ["s"]}]'),
            }
        )
        == 5
    )


def test_a_time_column_that_was_another_one_is_redefined() -> None:
    was, now = field(1, "ts", "timestamptz"), field(2, "ts", "timestamptz")
    assert schemas.redefined(metadata([was]), "ts") == []
    assert schemas.redefined(metadata([was], [was, field(3, "v", "int")]), "ts") == []
    assert schemas.redefined(metadata([was], [field(3, "v", "int"), now]), "ts") == ["ts 2 timestamptz"]


def test_the_types_are_those_of_icebergs_own_connector() -> None:
    schema: Schema = metadata([field(1, "s", struct(field(2, "a b", "uuid")))]).schema()
    assert schemas.columns(schema) == {"s": "struct<`a b`:string>"}

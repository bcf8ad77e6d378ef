"""The columns of a Delta table: their types, and what its log and its files call them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from mv_assets.tables.parquet.annotations import Said
from mv_assets.tables.types import spark_types

_ID = "delta.columnMapping.id"
_NAME = "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class DeltaColumns:
    """`mode` is how columns are found inside the files: none (by their names), name or id."""

    fields: tuple[dict[str, Any], ...]
    types: dict[str, str]
    kinds: dict[str, pa.DataType]
    partitioning: tuple[str, ...]
    mode: str

    @property
    def physical_names(self) -> dict[str, str]:
        """The columns' names inside the files, where columns are found by these."""
        return self._logged_names if self.mode == "name" else {}

    @property
    def field_ids(self) -> dict[str, int]:
        """The columns' ids inside the files, where columns are found by these."""
        return {part["name"]: part["metadata"][_ID] for part in self.fields} if self.mode == "id" else {}

    def logged(self, name: str) -> str:
        """Under which name the log keeps a column's statistics."""
        return self._logged_names.get(name, name)

    @cached_property
    def _logged_names(self) -> dict[str, str]:
        if self.mode == "none":
            return {}
        return {part["name"]: part["metadata"].get(_NAME, part["name"]) for part in self.fields}

    @property
    def mapped_inside(self) -> list[str]:
        """Columns with nested fields that the files call otherwise."""
        return [part["name"] for part in self.fields if self.mode != "none" and _mapped_inside(part["type"])]

    @property
    def widened(self) -> list[str]:
        """Columns that may have a narrower type inside older files."""
        return [part["name"] for part in self.fields if '"delta.typeChanges"' in json.dumps(part)]


def _mapped_inside(kind: Any) -> bool:
    if not isinstance(kind, dict):
        return False
    parts = kind.get("fields", [])
    if any(part["metadata"].get(_NAME, part["name"]) != part["name"] for part in parts):
        return True
    inner = [kind.get(key) for key in ("elementType", "keyType", "valueType")]
    return any(_mapped_inside(part) for part in [*inner, *(part["type"] for part in parts)])


@lru_cache(maxsize=64)
def columns_of(schema: str, partitioning: tuple[str, ...], mode: str) -> DeltaColumns:
    """The columns of a schema as logs write it."""
    from deltalake import Schema  # noqa: PLC0415 - an extra

    fields = tuple(json.loads(schema)["fields"])
    arrow = pa.schema(Schema.from_json(schema).to_arrow())
    types = spark_types(arrow, Said({"fields": list(fields)}))
    kinds = dict(zip(arrow.names, arrow.types, strict=True))
    return DeltaColumns(fields, types, kinds, partitioning, mode)

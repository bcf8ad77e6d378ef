"""The columns of a Delta table: their types, and what its log and its files call them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from mv_assets.tables.lakehouse import LEAVE_OUT
from mv_assets.tables.parquet.annotations import Said
from mv_assets.tables.places import Place
from mv_assets.tables.types import spark_types

_ID = "delta.columnMapping.id"
_NAME = "delta.columnMapping.physicalName"
# Stands where a column, or something inside it, has a narrower type in older files.
_WIDENED = "delta.typeChanges"


@dataclass(frozen=True)
class DeltaColumns:
    """`mode` is how columns are found inside the files: none (by their names), name or id."""

    fields: tuple[dict[str, Any], ...]
    types: dict[str, str]
    kinds: dict[str, pa.DataType]
    partitioning: tuple[str, ...]
    mode: str

    @cached_property
    def places(self) -> dict[str, Place]:
        """How the columns are found inside the files."""
        return {part["name"]: self._place(part) for part in self.fields}

    def _place(self, part: Mapping[str, Any]) -> Place:
        metadata, own = part["metadata"], part["name"]
        return Place(
            own if self.mode == "none" else metadata.get(_NAME, own),
            metadata.get(_ID) if self.mode == "id" else None,
            tuple(self._parts(part["type"])),
            varies=_WIDENED in metadata,
        )

    def _parts(self, kind: Any) -> Iterator[tuple[str, Place]]:
        if not isinstance(kind, dict):
            return
        for field in kind.get("fields", ()):
            yield field["name"], self._place(field)
        for name in ("element", "key", "value"):
            if f"{name}Type" in kind:
                yield name, Place(name, parts=tuple(self._parts(kind[f"{name}Type"])))

    @cached_property
    def refused(self) -> dict[str, str]:
        """Columns that would be read wrong from the files, with the reason."""
        found = {}
        for part in self.fields:
            if _has_variants(part["type"]):
                found[part["name"]] = f"has variants, which would be read wrong; {LEAVE_OUT}"
        for name in self.partitioning:
            if self.types[name] == "binary":
                found[name] = f"has binary partition values, which would be read wrong; {LEAVE_OUT}"
        return found

    def logged(self, name: str) -> str:
        """Under which name the log keeps a column's statistics."""
        return self._logged_names.get(name, name)

    @cached_property
    def _logged_names(self) -> dict[str, str]:
        if self.mode == "none":
            return {}
        return {part["name"]: part["metadata"].get(_NAME, part["name"]) for part in self.fields}


def _has_variants(kind: Any) -> bool:
    if not isinstance(kind, dict):
        return bool(kind == "variant")
    inner = [kind.get(f"{key}Type") for key in ("element", "key", "value")]
    return any(map(_has_variants, [*inner, *(part["type"] for part in kind.get("fields", ()))]))


@lru_cache(maxsize=64)
def columns_of(schema: str, partitioning: tuple[str, ...], mode: str) -> DeltaColumns:
    """The columns of a schema as logs write it."""
    from deltalake import Schema  # noqa: PLC0415 - an extra

    fields = tuple(json.loads(schema)["fields"])
    arrow = pa.schema(Schema.from_json(schema).to_arrow())
    types = spark_types(arrow, Said({"fields": list(fields)}))
    kinds = dict(zip(arrow.names, arrow.types, strict=True))
    return DeltaColumns(fields, types, kinds, partitioning, mode)

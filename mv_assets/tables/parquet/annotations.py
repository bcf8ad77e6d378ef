"""What Spark wrote of columns whose types no other library knows: intervals, collated strings, variants.

In a Parquet file these are numbers, strings and structs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_COLLATIONS = "__COLLATIONS"
# Most files have none of these, and then the rest of it says nothing new.
_TELLING = (b'"interval ', b'"variant"', _COLLATIONS.encode())
_UNITS = {"bigint": "day|hour|minute|second", "int": "year|month"}


@dataclass(frozen=True, slots=True)
class Said:
    """A type as Spark writes it in JSON.

    The collations of strings, by the paths to them, stand at the nearest field that has a name.
    """

    kind: Any = None
    path: str = ""
    collations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_variant(self) -> bool:
        return bool(self.kind == "variant")

    def field(self, name: str) -> Said:
        """A field of a struct, or a column."""
        fields = self.kind.get("fields") if isinstance(self.kind, dict) else None
        for each in fields if isinstance(fields, list) else ():
            if isinstance(each, dict) and each.get("name") == name:
                metadata = each.get("metadata")
                collations = metadata.get(_COLLATIONS) if isinstance(metadata, dict) else None
                return Said(each.get("type"), name, collations if isinstance(collations, dict) else {})
        return NOTHING

    def part(self, name: str) -> Said:
        """The `element` of an array, or the `key` or `value` of a map."""
        kind = self.kind.get(f"{name}Type") if isinstance(self.kind, dict) else None
        return Said(kind, f"{self.path}.{name}", self.collations)

    def of_leaf(self, stored: str) -> str:
        """The type of what is stored in a plain one, which may have been changed since Spark wrote it."""
        if stored == "string" and self.path in self.collations:
            # `provider.NAME`; it becomes SQL, and anybody may have written it.
            name = str(self.collations[self.path]).split(".")[1:2]
            return f"string collate {re.sub(r'[^a-zA-Z0-9_]', '_', ''.join(name)) or '_'}"
        units = _UNITS.get(stored)
        if units and re.fullmatch(rf"interval ({units})( to ({units}))?", str(self.kind)):
            return str(self.kind)
        return stored


NOTHING = Said()


def said_in(metadata: Mapping[bytes, bytes] | None) -> Said:
    """What a footer says of all columns."""
    text = (metadata or {}).get(_KEY, b"")
    if not any(telling in text for telling in _TELLING):
        return NOTHING
    try:
        return Said(json.loads(text))
    except (ValueError, RecursionError):
        return NOTHING

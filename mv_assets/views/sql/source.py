"""What a view's SQL may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A table as the SQL may use it.

    `columns` maps each column to its Spark SQL type, None for a type that is not known; it is None as a whole
    where the schema is not known: a table without files yet, or one not looked at. `time_unit` is "s", "ms",
    "us" or "ns" for a time column that counts since 1970. `grain` is what the time column's values are
    truncated to, where that is known because the table is another view; None means raw instants.
    """

    name: str
    columns: Mapping[str, str | None] | None = None
    time_column: str | None = None
    time_unit: str | None = None
    grain: str | None = None

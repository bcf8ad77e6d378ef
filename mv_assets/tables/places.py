"""How the columns of a table are found inside its files, at every depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mv_assets.tables.parquet.footer import Unusable
from mv_assets.tables.types import Shape


@dataclass(frozen=True, slots=True)
class Place:
    """How a column, or a field inside one, is found: by its id, if it has one, or else by its name inside."""

    name: str
    field_id: int | None = None
    # Fields of a struct by the table's names; an array's `element`, a map's `key` and `value`.
    parts: tuple[tuple[str, Place], ...] = ()
    # The names it may have in files without ids; None: such files can't be read.
    names: tuple[str, ...] | None = None
    # What it is in files without it, as text; else it is null there.
    default: str | None = None
    # Bytes in the files, and a text to Spark.
    uuid: bool = False
    # Whether files may differ in how they hold it, so that only their footers tell.
    varies: bool = False
    # Whether a file without it can't be read, as the value that its table gives it is no text.
    needed: bool = False

    def part(self, name: str) -> Place:
        """The place of a field inside; where none is told, its name is the table's."""
        return next((place for field, place in self.parts if field == name), Place(name))

    @property
    def only_footers_tell(self) -> bool:
        return self.varies or any(place.only_footers_tell for _, place in self.parts)

    @property
    def meaning(self) -> str:
        """All that decides which values the same files give."""
        inside = ",".join(f"{name}={place.meaning}" for name, place in self.parts)
        own = (self.name if self.field_id is None else self.field_id, self.names, self.default)
        return f"{own}{'uuid' if self.uuid else ''}<{inside}>"


def find(place: Place, among: Sequence[Shape], *, ids: bool) -> Shape | None:
    """The column, or the field, of a file that has ids or has none; None if it is not there.

    Raises:
        Unusable: that can't be told.

    """
    if place.field_id is None:
        found = [shape for shape in among if shape.name == place.name]
        found = found or [shape for shape in among if shape.name.lower() == place.name.lower()]
    elif ids:
        found = [shape for shape in among if shape.field_id == place.field_id]
    elif place.names is None:
        raise Unusable(
            "it has no field ids to find columns by; give the table a name mapping "
            "(schema.name-mapping.default), or rewrite the file"
        )
    else:
        found = [shape for shape in among if shape.name in place.names]
    if len(found) > 1:
        both = " and ".join(shape.name for shape in found)
        raise Unusable(
            f"it has columns {both} for the one column {place.name}; rewrite it without one of them"
        )
    if not found and place.needed:
        raise Unusable(f"it lacks column {place.name}, whose values are bytes; rewrite it with the column")
    return found[0] if found else None


def has_ids(shapes: Sequence[Shape]) -> bool:
    """Whether a file has field ids at all."""
    return any(shape.field_id is not None or has_ids(shape.parts) for shape in shapes)

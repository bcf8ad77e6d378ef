"""What is made of a column as it stands in files, where a cast alone does not do it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_UUID = r"(.{8})(.{4})(.{4})(.{4})(.{12})", "$1-$2-$3-$4-$5"


@dataclass(frozen=True, slots=True)
class Conversion:
    """From a column as it is read, or a part of one, to the wanted type.

    A field of a struct has the name that it is read under; without one it is not in the file, and is its
    default or null.
    """

    kind: DataType
    parts: tuple[Conversion, ...] = ()
    name: str | None = None
    default: str | None = None
    uuid: bool = False

    @property
    def only_casts(self) -> bool:
        """Whether Spark's cast does it, which takes the fields of structs by their order."""
        from pyspark.sql.types import StructType  # noqa: PLC0415 - Spark is loaded by those who use it

        named = not isinstance(self.kind, StructType) or all(part.name is not None for part in self.parts)
        return not self.uuid and named and all(part.only_casts for part in self.parts)


def converted(column: Column, how: Conversion) -> Column:
    """The column, or the part of one, in the wanted type."""
    from pyspark.sql import functions as sql  # noqa: PLC0415
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415

    if how.uuid:
        return sql.regexp_replace(sql.lower(sql.hex(column)), *_UUID)
    if how.only_casts:
        return column.cast(how.kind)
    match how.kind:
        case ArrayType():
            found = sql.transform(column, lambda each: converted(each, how.parts[0]))
        case MapType():
            key, value = how.parts
            entries = sql.transform(
                sql.map_entries(column),
                lambda each: sql.struct(
                    converted(each.getField("key"), key), converted(each.getField("value"), value)
                ),
            )
            found = sql.map_from_entries(entries)
        case StructType(fields=fields):
            inside = [
                _field(column, part).alias(field.name) for part, field in zip(how.parts, fields, strict=True)
            ]
            found = sql.when(column.isNotNull(), sql.struct(*inside))
        case _:
            found = column
    return found.cast(how.kind)


def _field(struct: Column, how: Conversion) -> Column:
    from pyspark.sql import functions as sql  # noqa: PLC0415

    if how.name is None:
        return sql.lit(how.default).cast(how.kind)
    return converted(struct.getField(how.name), how)

"""Columns of Delta and Iceberg tables inside files: what Spark is asked for there, and what is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from mv_assets.spark.errors import Unreadable
from mv_assets.spark.read.columns import NOTHING, Holding, Types, Values
from mv_assets.spark.read.conversion import Conversion
from mv_assets.spark.read.files import FIELD_ID, Held, asked_by_id
from mv_assets.spark.types import widest
from mv_assets.tables.parquet.footer import Unusable
from mv_assets.tables.places import Place, find, has_ids
from mv_assets.tables.types import Shape


def by_table(
    names: Sequence[str],
    schema: Mapping[str, DataType],
    given: Mapping[str, Values],
    places: Mapping[str, Place],
) -> Iterator[Holding]:
    """What each file holds of the wanted columns, by the table's word."""
    held = {column: assumed(places[column], kind) for column, kind in schema.items()}
    for name in names:
        values = {column: value for column, value in given.get(name, {}).items() if column in held}
        inside = tuple((column, source) for column, source in held.items() if column not in values)
        yield Holding(name, inside, tuple(values.items()))


def by_footer(
    name: str,
    shapes: Sequence[Shape],
    schema: Mapping[str, DataType],
    given: Values,
    places: Mapping[str, Place],
    types: Types,
) -> Holding:
    """What a file holds of the wanted columns, by its own footer and the table's word.

    Raises:
        Unreadable: it holds a column in a way that can't be read.

    """
    finder = Finder(has_ids(shapes), types)
    held: list[tuple[str, Held]] = []
    values: list[tuple[str, str | None]] = []
    for column, kind in schema.items():
        place = places[column]
        if column in given:
            values.append((column, given[column]))
            continue
        try:
            shape = find(place, shapes, ids=finder.ids)
            if shape is None and place.default is not None:
                values.append((column, place.default))
            elif shape is not None and shape.kind not in NOTHING:
                held.append((column, finder.held(shape, place, kind)))
        except (Unusable, Unreadable) as error:
            raise Unreadable(f"file {name}, column {column}: {error}") from error
    return Holding(name, tuple(held), tuple(values))


def assumed(place: Place, kind: DataType) -> Held:
    """A column as every file has it by the table's word; what a file lacks, Spark gives nulls for."""
    asked, how = _assumed(place, kind)
    return Held(place.name, asked, place.field_id, None if asked == kind else how)


def _assumed(place: Place, kind: DataType) -> tuple[DataType, Conversion]:
    match kind:
        case StructType(fields=fields):
            asked, parts = [], []
            for field in fields:
                inner = place.part(field.name)
                name = inner.name if inner.field_id is None else asked_by_id(inner.field_id)
                metadata = {} if inner.field_id is None else {FIELD_ID: inner.field_id}
                own, how = _assumed(inner, field.dataType)
                asked.append(StructField(name, own, metadata=metadata))
                parts.append(replace(how, name=name))
            return StructType(asked), Conversion(kind, tuple(parts))
        case ArrayType() | MapType():
            inside = [_assumed(place.part(name), part) for name, part in _parts(kind)]
            return _rebuilt(kind, [own for own, _ in inside]), Conversion(
                kind, tuple(how for _, how in inside)
            )
    return (BinaryType() if place.uuid else kind), Conversion(kind, uuid=place.uuid)


def _parts(kind: ArrayType | MapType) -> list[tuple[str, DataType]]:
    if isinstance(kind, ArrayType):
        return [("element", kind.elementType)]
    return [("key", kind.keyType), ("value", kind.valueType)]


def _rebuilt(kind: ArrayType | MapType, parts: Sequence[DataType]) -> DataType:
    return ArrayType(parts[0]) if isinstance(kind, ArrayType) else MapType(parts[0], parts[1])


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds columns in one file, by what its footer says."""

    ids: bool
    types: Types

    def held(self, shape: Shape, place: Place, kind: DataType) -> Held:
        """A column that the file has, read as the file has it.

        Raises:
            Unreadable: it holds something that does not become the table's type.
            Unusable: what is inside can't be told.

        """
        asked, how = self._inside(shape, place, kind)
        return Held(shape.name, asked, None, None if asked == kind else how)

    def _inside(self, shape: Shape, place: Place, kind: DataType) -> tuple[DataType, Conversion]:
        match kind:
            case StructType() if shape.kind == "struct":
                return self._struct(shape, place, kind)
            case ArrayType() | MapType() if shape.kind == kind.typeName():
                inside = [
                    self._inside(own, place.part(name), part)
                    for own, (name, part) in zip(shape.parts, _parts(kind), strict=True)
                ]
                asked = _rebuilt(kind, [own for own, _ in inside])
                return asked, Conversion(kind, tuple(how for _, how in inside))
        own = self.types.of(shape.type)
        if not _becomes(own, kind, place):
            raise Unreadable(
                f"{shape.name} is {own.simpleString()} there, which does not become the table's "
                f"{kind.simpleString()}; rewrite it"
            )
        return own, Conversion(kind, uuid=place.uuid and isinstance(own, BinaryType))

    def _struct(self, shape: Shape, place: Place, kind: StructType) -> tuple[DataType, Conversion]:
        asked, parts = [], []
        for field in kind:
            inner = place.part(field.name)
            found = find(inner, shape.parts, ids=self.ids)
            if found is None or found.kind in NOTHING:
                default = inner.default if found is None else None
                parts.append(Conversion(field.dataType, default=default))
                continue
            own, how = self._inside(found, inner, field.dataType)
            asked.append(StructField(found.name, own))
            parts.append(replace(how, name=found.name))
        # Of a struct of which nothing is asked, nobody could tell whether it is there.
        return StructType(asked or [self._any(shape)]), Conversion(kind, tuple(parts))

    def _any(self, shape: Shape) -> StructField:
        for part in shape.parts:
            if part.kind not in NOTHING:
                return StructField(part.name, self.types.of(part.type))
        raise Unreadable(f"{shape.name} has no field that Spark could read; rewrite it")


def _becomes(own: DataType, wanted: DataType, place: Place) -> bool:
    """Whether a table may have made that of a narrower type, so that each value stays what it is."""
    if place.uuid and isinstance(own, BinaryType):
        return True
    texts = (StringType, BinaryType)
    if isinstance(own, texts) and isinstance(wanted, texts):
        return True
    if isinstance(wanted, TimestampType) and not isinstance(own, TimestampType):
        # What has no zone becomes a moment in the session's, whichever that is.
        return False
    return widest(own, wanted) == wanted

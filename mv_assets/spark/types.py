"""Types of columns that differ from file to file: which one holds all their values unchanged."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_INTEGERS: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
_TIMES: tuple[type[DataType], ...] = (DateType, TimestampNTZType, TimestampType)
# A double holds every integer up to 32 bits, and no more.
_EXACT_IN_DOUBLE = (ByteType, ShortType, IntegerType, FloatType, DoubleType)
_MOST_DIGITS = 38


def widest(one: DataType, other: DataType) -> DataType | None:
    """The narrower type that holds the values of both; None if there is none."""
    if one == other:
        return one
    if isinstance(one, StructType) and isinstance(other, StructType):
        return _struct(one, other)
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        element = widest(one.elementType, other.elementType)
        return None if element is None else ArrayType(element)
    if isinstance(one, MapType) and isinstance(other, MapType):
        key, value = widest(one.keyType, other.keyType), widest(one.valueType, other.valueType)
        return None if key is None or value is None else MapType(key, value)
    for ladder in (_INTEGERS, _TIMES):
        if isinstance(one, ladder) and isinstance(other, ladder):
            return max(one, other, key=lambda kind: ladder.index(type(kind)))
    if isinstance(one, _EXACT_IN_DOUBLE) and isinstance(other, _EXACT_IN_DOUBLE):
        return DoubleType()
    return _decimal(one, other)


def _struct(one: StructType, other: StructType) -> StructType | None:
    """All fields of both: a file that lacks one has nulls there."""
    others = {part.name.lower(): part for part in other}
    fields = []
    for part in one:
        same = others.pop(part.name.lower(), None)
        kind = part.dataType if same is None else widest(part.dataType, same.dataType)
        if kind is None:
            return None
        fields.append(StructField(part.name, kind))
    return StructType([*fields, *others.values()])


def _decimal(one: DataType, other: DataType) -> DataType | None:
    sizes = [_size(kind) for kind in (one, other)]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    whole, scale = max(size[0] for size in known), max(size[1] for size in known)
    return DecimalType(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None


def _size(kind: DataType) -> tuple[int, int] | None:
    """Digits before and after the point."""
    if isinstance(kind, DecimalType):
        return kind.precision - kind.scale, kind.scale
    return (_DIGITS[type(kind)], 0) if isinstance(kind, _INTEGERS) else None


def completed(own: DataType, wanted: DataType) -> DataType:
    """A file's type with the nested fields that it lacks: Spark reads nulls there, and can then cast."""
    if isinstance(own, StructType) and isinstance(wanted, StructType):
        inside = {part.name.lower(): part for part in own}
        return StructType(
            [
                StructField(
                    part.name,
                    completed(inside[part.name.lower()].dataType, part.dataType)
                    if part.name.lower() in inside
                    else part.dataType,
                )
                for part in wanted
            ]
        )
    if isinstance(own, ArrayType) and isinstance(wanted, ArrayType):
        return ArrayType(completed(own.elementType, wanted.elementType))
    if isinstance(own, MapType) and isinstance(wanted, MapType):
        return MapType(completed(own.keyType, wanted.keyType), completed(own.valueType, wanted.valueType))
    return own


def nullable(kind: DataType) -> DataType:
    """The type as files have it, which may hold nulls wherever it has parts."""
    match kind:
        case ArrayType():
            return ArrayType(nullable(kind.elementType))
        case MapType():
            return MapType(nullable(kind.keyType), nullable(kind.valueType))
        case StructType():
            return StructType([StructField(part.name, nullable(part.dataType)) for part in kind])
    return kind


def has_floats(kind: DataType) -> bool:
    """Whether floating point is in it, at any depth."""
    match kind:
        case ArrayType():
            return has_floats(kind.elementType)
        case MapType():
            return has_floats(kind.keyType) or has_floats(kind.valueType)
        case StructType():
            return any(has_floats(part.dataType) for part in kind)
    return isinstance(kind, (FloatType, DoubleType))

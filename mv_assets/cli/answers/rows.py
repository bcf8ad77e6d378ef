"""The rows of an answer as Arrow: a small one at once, a large one piece by piece, in the order Spark has."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sql
from pyspark.sql import types as kinds
from pyspark.sql.conversion import LocalDataToArrowConversion

from mv_assets.spark.errors import JobFailed
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.versions import arrow_schema

# Up to so many rows Spark hands out as one Arrow table, which is much faster than row by row.
SMALL = 50_000
_PIECE = 10_000
_TEXTS = (
    kinds.YearMonthIntervalType,
    kinds.DayTimeIntervalType,
    kinds.CalendarIntervalType,
    kinds.VariantType,
    kinds.NullType,
)


class Rows:
    """The rows of a frame that Spark keeps. Intervals and variants are handed out as text.

    Whatever Spark knows of an answer, each of its values, at any depth, may be null: how it was computed, and
    in how many pieces it comes, makes no other types.
    """

    def __init__(self, frame: DataFrame) -> None:
        with spark_errors():
            schema = frame.schema
            # Names may be there twice, or be empty: columns are told apart by their place.
            self._frame = frame.toDF(*map(str, range(len(schema))))
            self.total = frame.count()
        self.names: list[str] = schema.fieldNames()
        self.types = [field.dataType.simpleString() for field in schema]
        self._kinds = [field.dataType for field in schema]
        given = [_replaced(kind, _as_text) for kind in self._kinds]
        self._given = _numbered(given)
        self.arrow = arrow_schema(self._given)

    @property
    def is_number(self) -> list[bool]:
        return [isinstance(kind, kinds.NumericType) for kind in self._kinds]

    @property
    def twice(self) -> str | None:
        """A name that two columns have."""
        seen = {name.lower() for name in self.names}
        return None if len(seen) == len(self.names) else next(iter(self._repeated()))

    def pieces(self) -> Generator[pa.Table]:
        """All rows. Never much of a large answer is in this process.

        To be closed by who does not want them all: Spark waits to hand out the rest.
        """
        if self.total <= SMALL:
            yield self._whole()
            return
        with spark_errors():
            rows = self._plain().toLocalIterator()
        while True:
            with as_failures(), spark_errors():
                piece = list(islice(rows, _PIECE))
            if not piece:
                return
            yield self._as_arrow(piece)

    def first(self, most: int) -> pa.Table:
        """The first rows, in their order."""
        if self.total <= SMALL:
            return self._whole().slice(0, most)
        with as_failures(), spark_errors():
            # Collected: as Arrow, a limit may come in another order.
            return self._as_arrow(self._plain().limit(most).collect())

    def values(self) -> Generator[tuple[Any, ...]]:
        """All rows as Python's values; to be closed, too."""
        for piece in self.pieces():
            for at in range(0, piece.num_rows, _PIECE):
                yield from values_of(piece.slice(at, _PIECE))

    def _repeated(self) -> Iterator[str]:
        seen = set[str]()
        for name in self.names:
            if name.lower() in seen:
                yield name
            seen.add(name.lower())

    def _whole(self) -> pa.Table:
        with as_failures(), spark_errors():
            return self._select(self._given).toArrow().cast(self.arrow)

    def _plain(self) -> DataFrame:
        """With times that have no zone: in rows, those with one come in the zone of this process."""
        return self._select(self._zoneless)

    @property
    def _zoneless(self) -> kinds.StructType:
        return _numbered([_replaced(field.dataType, _without_zone) for field in self._given])

    def _select(self, wanted: kinds.StructType) -> DataFrame:
        pairs = zip(self._kinds, wanted, strict=True)
        return self._frame.select(*(_given(kind, field) for kind, field in pairs))

    def _as_arrow(self, rows: Sequence[Row]) -> pa.Table:
        with as_failures():
            made = LocalDataToArrowConversion.convert(rows, self._zoneless, use_large_var_types=False)
            return made.cast(self.arrow)


@contextmanager
def as_failures() -> Iterator[None]:
    """What Python or Arrow has no word for is said in one sentence.

    Raises:
        JobFailed: a value, or its type, can't be given out.

    """
    try:
        yield
    except (ValueError, OverflowError, TypeError, pa.ArrowException) as error:
        raise JobFailed(f"a value can't be printed ({error}); cast its column to a string") from error


def values_of(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows of an Arrow table.

    Raises:
        JobFailed: one has a value that Python has no word for.

    """
    with as_failures():
        return zip(*map(_column, table.columns), strict=True)


def _column(column: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    if column.type == pa.float32():
        # As short as it is meant: 0.1, not 0.10000000149011612.
        return [None if value is None else float(str(np.float32(value))) for value in found]
    return found


def _numbered(fields: Sequence[kinds.DataType]) -> kinds.StructType:
    return kinds.StructType([kinds.StructField(str(at), kind) for at, kind in enumerate(fields)])


def _given(kind: kinds.DataType, wanted: kinds.StructField) -> Column:
    column = sql.col(wanted.name)
    if isinstance(kind, kinds.VariantType):
        return sql.to_json(column).alias(wanted.name)
    return column if kind == wanted.dataType else column.cast(wanted.dataType).alias(wanted.name)


def _as_text(kind: kinds.DataType) -> kinds.DataType:
    return kinds.StringType() if isinstance(kind, _TEXTS) else kind


def _without_zone(kind: kinds.DataType) -> kinds.DataType:
    return kinds.TimestampNTZType() if isinstance(kind, kinds.TimestampType) else kind


def _replaced(kind: kinds.DataType, by: Callable[[kinds.DataType], kinds.DataType]) -> kinds.DataType:
    """The type with others inside of it, all of which may be null."""
    match kind:
        case kinds.ArrayType():
            return kinds.ArrayType(_replaced(kind.elementType, by))
        case kinds.MapType():
            return kinds.MapType(_replaced(kind.keyType, by), _replaced(kind.valueType, by))
        case kinds.StructType():
            return kinds.StructType(
                [kinds.StructField(field.name, _replaced(field.dataType, by)) for field in kind]
            )
    return by(kind)

"""Which columns files hold: by their footers where each decides for itself, or by their table's word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from mv_assets.engine.files import Given, Held, Part
from mv_assets.engine.types import widest
from mv_assets.errors import Unreadable
from mv_assets.tables.types import types_in

_THREADS = 8
# Written by libraries for a column that holds nothing but nulls.
_NOTHING = ("null", "void")

Open = Callable[[str], pa.NativeFile]
Values = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Holding:
    """A file and its sources of the wanted columns."""

    name: str
    sources: tuple[tuple[str, Held | Given], ...]


class Types:
    """Spark's types by their names, each parsed once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[str, DataType] = {}

    def of(self, name: str) -> DataType:
        """The type of that name.

        Raises:
            Unreadable: Spark has none.

        """
        if name not in self._known:
            try:
                self._known[name] = self._spark.sql(f"SELECT CAST(NULL AS {name}) AS c").schema["c"].dataType
            except PySparkException as error:
                raise Unreadable(f"type {name} is none that Spark reads") from error
        return self._known[name]


def by_footers(
    names: Sequence[str], wanted: Iterable[str], given: Mapping[str, Values], open_file: Open, types: Types
) -> dict[str, Holding | Unreadable]:
    """What each file holds of the wanted columns, by its own footer; a value that is given counts first."""
    columns = sorted(wanted)

    def kinds(name: str) -> dict[str, list[tuple[str, str]]] | Unreadable:
        try:
            with open_file(name) as file:
                found = types_in(pq.ParquetFile(file))
        except (pa.ArrowException, OSError, ValueError) as error:
            return Unreadable(f"file {name} can't be read ({error})")
        folded: dict[str, list[tuple[str, str]]] = {}
        for spelled, kind in found.items():
            folded.setdefault(spelled.lower(), []).append((spelled, kind))
        return folded

    with ThreadPoolExecutor(_THREADS) as pool:
        found = dict(zip(names, pool.map(kinds, names), strict=True))
    return {
        name: _holding(name, columns, given.get(name, {}), inside, types) for name, inside in found.items()
    }


def _holding(
    name: str,
    columns: Sequence[str],
    given: Values,
    inside: dict[str, list[tuple[str, str]]] | Unreadable,
    types: Types,
) -> Holding | Unreadable:
    if isinstance(inside, Unreadable):
        return inside
    values = {column.lower(): value for column, value in given.items()}
    sources: list[tuple[str, Held | Given]] = []
    for column in columns:
        spellings = inside.get(column.lower(), [])
        if column.lower() in values:
            sources.append((column, Given(values[column.lower()])))
        elif len(spellings) > 1:
            both = " and ".join(spelled for spelled, _ in spellings)
            return Unreadable(f"file {name} has columns {both}, which Spark can't tell apart")
        elif spellings and spellings[0][1] not in _NOTHING:
            spelled, kind = spellings[0]
            try:
                sources.append((column, Held(spelled, types.of(kind))))
            except Unreadable as error:
                return Unreadable(f"file {name}, column {spelled}: {error}")
    return Holding(name, tuple(sources))


def by_table(
    names: Sequence[str],
    schema: Mapping[str, DataType],
    given: Mapping[str, Values],
    physical_names: Mapping[str, str],
    field_ids: Mapping[str, int],
) -> list[Holding]:
    """What each file holds of the wanted columns, by the table's word."""
    held = {
        column: Held(physical_names.get(column, column), kind, field_ids.get(column))
        for column, kind in schema.items()
    }
    return [Holding(name, tuple(_or_given(held, given.get(name, {})))) for name in names]


def _or_given(held: Mapping[str, Held], values: Values) -> Iterator[tuple[str, Held | Given]]:
    for column, source in held.items():
        yield column, Given(values[column]) if column in values else source


def merged(holdings: Iterable[Holding]) -> dict[str, DataType]:
    """The columns that files hold, each with the type that holds all their values.

    Raises:
        Unreadable: a column has types that don't go together.

    """
    kinds: dict[str, tuple[DataType, str]] = {}
    for holding in holdings:
        for column, source in holding.sources:
            if not isinstance(source, Held):
                continue
            known = kinds.get(column)
            kind = source.kind if known is None else widest(known[0], source.kind)
            if kind is None and known is not None:
                raise Unreadable(
                    f"column {column} is {source.kind.simpleString()} in file {holding.name}, but "
                    f"{known[0].simpleString()} in file {known[1]}; rewrite one of them"
                )
            if kind is not None and (known is None or kind != known[0]):
                kinds[column] = kind, holding.name
    return {column: kind for column, (kind, _) in kinds.items()}


def parts(holdings: Iterable[Holding], path: Callable[[str], str]) -> Iterator[Part]:
    """The files in groups that are read alike."""
    alike: dict[tuple[tuple[str, Held | Given], ...], list[str]] = {}
    for holding in holdings:
        alike.setdefault(holding.sources, []).append(path(holding.name))
    for sources, paths in alike.items():
        yield Part(tuple(paths), sources)

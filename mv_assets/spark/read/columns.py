"""Which columns files hold: by their footers where each decides for itself, or by their table's word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from mv_assets.spark.errors import JobFailed, Unreadable
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.read.deletes import Bits
from mv_assets.spark.read.files import Held, Part
from mv_assets.spark.types import widest
from mv_assets.tables.lakehouse import short
from mv_assets.tables.types import Shape, shapes_in

_THREADS = 8
# Written by libraries for a column that holds nothing but nulls.
_VOID = "void"
NOTHING = ("null", _VOID)

NONE_DELETED: Mapping[str, Bits] = {}

Open = Callable[[str], pa.NativeFile]
Values = Mapping[str, str | None]
# A file's columns by their names in lower case: as it spells them, and their types.
Inside = dict[str, list[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Holding:
    """Where a file has the wanted columns from: inside, or given by its table."""

    name: str
    held: tuple[tuple[str, Held], ...]
    given: tuple[tuple[str, str | None], ...] = ()


class Types:
    """Spark's types by their names, each parsed once in the life of a process."""

    _known: ClassVar[dict[str, DataType]] = {}

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def of(self, name: str) -> DataType:
        """The type of that name.

        Raises:
            Unreadable: Spark has none.

        """
        name = _VOID if name in NOTHING else name
        if name not in self._known:
            try:
                with spark_errors():
                    parsed = self._spark.sql(f"SELECT CAST(NULL AS {name}) AS c").schema["c"].dataType
            except JobFailed as error:
                raise Unreadable(f"type {name} is none that Spark reads") from error
            self._known[name] = parsed
        return self._known[name]


def by_footers(
    names: Sequence[str],
    wanted: Iterable[str] | None,
    given: Mapping[str, Values],
    open_file: Open,
    types: Types,
) -> dict[str, Holding | Unreadable]:
    """What each file holds of the wanted columns, by its own footer; a value that is given counts first.

    None are all columns, each by the name that the file gives it.
    """
    found = {name: _by_names(shapes) for name, shapes in footers(names, open_file).items()}
    columns = None if wanted is None else sorted(wanted)
    return {
        name: _holding(
            name,
            _all(each, given.get(name, {})) if columns is None else columns,
            given.get(name, {}),
            each,
            types,
        )
        for name, each in found.items()
    }


def footers(names: Sequence[str], open_file: Open) -> dict[str, list[Shape] | Unreadable]:
    """The columns of files as their footers say."""

    def inside(name: str) -> list[Shape] | Unreadable:
        try:
            with open_file(name) as file:
                return shapes_in(pq.ParquetFile(file))
        except (pa.ArrowException, OSError, ValueError) as error:
            return Unreadable(f"file {name} can't be read ({short(error)})")

    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(names, pool.map(inside, names), strict=True))


def _by_names(shapes: list[Shape] | Unreadable) -> Inside | Unreadable:
    if isinstance(shapes, Unreadable):
        return shapes
    found: Inside = {}
    for shape in shapes:
        found.setdefault(shape.name.lower(), []).append((shape.name, shape.type))
    return found


def _all(inside: Inside | Unreadable, given: Values) -> list[str]:
    """All columns of a file."""
    names = {} if isinstance(inside, Unreadable) else {folded: some[0][0] for folded, some in inside.items()}
    return list(({column.lower(): column for column in given} | names).values())


def _holding(
    name: str, columns: Sequence[str], given: Values, inside: Inside | Unreadable, types: Types
) -> Holding | Unreadable:
    if isinstance(inside, Unreadable):
        return inside
    values = {column.lower(): value for column, value in given.items()}
    held: list[tuple[str, Held]] = []
    for column in columns:
        spellings = inside.get(column.lower(), [])
        if column.lower() in values:
            continue
        if len(spellings) > 1:
            both = " and ".join(spelled for spelled, _ in spellings)
            return Unreadable(
                f"file {name} has columns {both}, which Spark can't tell apart; rename one of them"
            )
        if spellings and spellings[0][1] not in NOTHING:
            spelled, kind = spellings[0]
            try:
                held.append((column, Held(spelled, types.of(kind))))
            except Unreadable as error:
                return Unreadable(f"file {name}, column {spelled}: {error}; rewrite it as another")
    return Holding(name, tuple(held), tuple((c, values[c.lower()]) for c in columns if c.lower() in values))


def alike_spelled(holdings: Iterable[Holding], names: Iterable[str]) -> list[Holding]:
    """Holdings in which names that are the same to Spark are one: as given, or as the first file has it."""
    spelled = {name.lower(): name for name in names}
    found = []
    for each in holdings:
        held = tuple((spelled.setdefault(column.lower(), column), source) for column, source in each.held)
        given = tuple((spelled.setdefault(column.lower(), column), value) for column, value in each.given)
        found.append(Holding(each.name, held, given))
    return found


def merged(holdings: Iterable[Holding], given: Mapping[str, DataType]) -> dict[str, DataType]:
    """The columns that files hold or are given, each with the type that holds all their values.

    Raises:
        Unreadable: a column has types that don't go together.

    """
    kinds = {column: (kind, "the folders' names") for column, kind in given.items()}
    for holding in holdings:
        for column, source in holding.held:
            known, where = kinds.get(column, (source.kind, ""))
            kind = widest(known, source.kind)
            if kind is None:
                raise Unreadable(
                    f"column {column} is {source.kind.simpleString()} in file {holding.name}, but "
                    f"{known.simpleString()} in {where}; rewrite one of them"
                )
            if kind != known or not where:
                kinds[column] = kind, f"file {holding.name}"
    return {column: kind for column, (kind, _) in kinds.items()}


def parts(
    holdings: Iterable[Holding], path: Callable[[str], str], deleted: Mapping[str, Bits] = NONE_DELETED
) -> Iterator[Part]:
    """The files in groups that are read alike; of some, rows are deleted."""
    alike: dict[Any, list[Holding]] = {}
    for holding in holdings:
        alike.setdefault((holding.held, tuple(column for column, _ in holding.given)), []).append(holding)
    for (held, given), some in alike.items():
        files = {path(each.name): tuple(value for _, value in each.given) for each in some}
        partly = {path(each.name): deleted[each.name] for each in some if each.name in deleted}
        yield Part(dict(held), given, files, partly)

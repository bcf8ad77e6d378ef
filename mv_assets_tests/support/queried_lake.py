"""Questions to a lake, compared with what DuckDB says of the same files, and with Spark's own types."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import sqlglot
from pyspark.sql import DataFrame as Frame
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.types import StructType

from mv_assets.query.execute.answer import Answer, Answers, Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets.query.route.pinned import Pinned
from mv_assets.run.opened import OpenProject
from mv_assets.state.leases import Leases
from mv_assets.tables.listing import Listing, OnRead, Table, TableVersion, unnoticed
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets.views.view import View
from mv_assets_tests.support.lake import day
from mv_assets_tests.support.spark_lake import SparkLake, _readable, plainly

TYPES = {
    "at": pa.timestamp("us", "UTC"),
    "zone": pa.int32(),
    "fare": pa.decimal128(10, 2),
    "x": pa.int64(),
    "f": pa.float64(),
    "name": pa.string(),
    "ok": pa.bool_(),
}
HOURS = (
    "SELECT date_trunc('hour', at) AS hour, zone, count(*) AS n, sum(fare) AS fare, count(fare) AS fares, "
    "min(x) AS low, max(x) AS high, sum(x) AS x, count(x) AS xs FROM events GROUP BY ALL"
)
ROWS = "SELECT at, zone, fare, x FROM events"
COUNT = "SELECT count(*) AS n FROM events"
DAILY = "SELECT date_trunc('day', hour) AS day, zone, sum(n) AS n, sum(fare) AS fare FROM v GROUP BY ALL"


def zones(where: str = "") -> str:
    return f"SELECT zone, count(*) AS n, sum(fare) AS fare FROM events {where} GROUP BY zone"


ZONES = zones()


def between(low: str, high: str) -> str:
    return f"WHERE at >= '{low}' AND at < '{high}'"


@dataclass
class QueriedLake:
    """Where questions to a lake are asked."""

    lake: SparkLake
    answers: Answers = field(init=False)
    # The tables that were listed, one after the other; and what happens after each further listing.
    listings: list[str] = field(default_factory=list)
    listed: list[Callable[[], object]] = field(default_factory=list)
    lease_ms: int = 60_000

    def __post_init__(self) -> None:
        self.declared()

    def declared(self) -> None:
        """Know the lake's tables and views as they are declared now."""
        project = self.lake.open()
        tables = {name: Counting.of(table, self) for name, table in project.tables.items()}
        parts = {each.name: getattr(project, each.name) for each in fields(project)}
        self.answers = Answers(Leasing(**parts | {"tables": tables}, lease_ms=self.lease_ms))

    def put(
        self, file: str, table: str = "events", types: Mapping[str, Any] = TYPES, **columns: Sequence[Any]
    ) -> None:
        """Write a file anew."""
        self.put_all(file, columns, table, types)

    def put_all(
        self,
        file: str,
        columns: Mapping[str, Sequence[Any]],
        table: str = "events",
        types: Mapping[str, Any] = TYPES,
    ) -> None:
        arrays = {name: pa.array(values, types.get(name)) for name, values in columns.items()}
        path = self.lake.folder / table / file
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(arrays), path.with_suffix(".tmp~"))
        path.with_suffix(".tmp~").replace(path)

    def day(self, number: int, file: str | None = None, rows: int = 12, seed: int = 0) -> None:
        """A file of rows of one day, from its first to its last moment; some values are null."""
        self.put_all(file or f"day-{number}.parquet", some(number, rows, seed))

    def days(self, *numbers: int) -> None:
        for number in numbers:
            self.day(number)

    def ask(
        self, text: str, freshness: Freshness = Freshness.STRICT, max_staleness: int | None = None
    ) -> Answer:
        return self.answers.answer(Question(text, freshness, max_staleness))

    def rows(
        self, text: str, freshness: Freshness = Freshness.STRICT, max_staleness: int | None = None
    ) -> list[tuple[Any, ...]]:
        return rows_of(self.ask(text, freshness, max_staleness))

    def right(
        self,
        text: str,
        served: str | None = "",
        *,
        duck: str | None = None,
        freshness: Freshness = Freshness.STRICT,
        max_staleness: int | None = None,
    ) -> Answer:
        """An answer that is what DuckDB computes from the files, under Spark's own names and types.

        `served` says from where, as "view: buckets of it + buckets of the base"; None: from the base alone.
        """
        answer = self.ask(text, freshness, max_staleness)
        self._check(answer, text, self.expected(duck or _translated(text)), self._schema(text), served)
        return answer

    def like_base(
        self,
        text: str,
        served: str | None = "",
        *,
        freshness: Freshness = Freshness.STRICT,
        max_staleness: int | None = None,
    ) -> Answer:
        """An answer with the values, names and types that Spark gives without any view."""
        answer, base = self.ask(text, freshness, max_staleness), self.ask(text, Freshness.OFF)
        self._check(answer, text, rows_of(base), base.frame.schema, served)
        return answer

    def by_name(self, text: str, served: str | None = "", freshness: Freshness = Freshness.STRICT) -> Answer:
        """An answer to a question on views that is what DuckDB computes from the files."""
        answer = self.ask(text, freshness)
        self._check(answer, text, self.expected(_translated(text)), None, served)
        return answer

    def why_not(self, text: str, view: str = "v") -> str:
        """Why a view is of no use for a query, which it is not."""
        why = self.answers.explain(Question(text)).considered[view]
        assert why is not None, text
        return why

    def _schema(self, text: str) -> StructType:
        """The names and types that the base table gives, without computing anything."""
        asked = Question(text, Freshness.OFF)
        statement = self.answers._statement(asked)
        with (
            self.answers._session(None) as spark,
            Pinned(self.answers._project) as pinned,
            self.answers._planned(asked, statement, pinned, spark) as planned,
        ):
            return planned.frame.schema

    def _check(
        self, answer: Answer, text: str, expected: list[Any], schema: StructType | None, served: str | None
    ) -> None:
        found, ordered = (
            rows_of(answer),
            sqlglot.parse_one(text, dialect="spark").args.get("order") is not None,
        )
        assert alike(found, expected, ordered=ordered), f"{text}\nfound    {found}\nexpected {expected}"
        if schema is not None:
            types = [
                [(each.name, each.dataType) for each in given] for given in (answer.frame.schema, schema)
            ]
            assert types[0] == types[1], text
        if served != "":
            assert came_from(answer) == served, f"{text}\n{answer.served}"

    def expected(self, sql: str) -> list[tuple[Any, ...]]:
        """What DuckDB says."""
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name in self.lake.tables:
                files = [
                    str(path)
                    for path in sorted((self.lake.folder / name).rglob("*.parquet"))
                    if _readable(path)
                ]
                if files:
                    read = f"read_parquet({files}, union_by_name = true)"
                    connection.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {read}')
            for view in self.lake.catalog.views.values():
                made = self.lake.duckdb(view)
                if made is not None and view.by_bucket:
                    made = self.lake.bucket_by_bucket(view, made, self._filled(view))
                # Of a table, others may be asked for in another zone.
                kind = "VIEW" if view.buckets.zone is None else "TABLE"
                connection.execute(f"SET TimeZone = '{view.declared.timezone}'")
                connection.execute(f'CREATE {kind} "{view.name}" AS {made}')
            connection.execute("SET TimeZone = 'UTC'")
            return [tuple(map(plainly, row)) for row in connection.sql(sql).fetchall()]

    def _filled(self, view: View) -> list[int]:
        """The buckets that files, or buckets of a view below, reach into the windows of."""
        found, buckets = set[int](), view.buckets
        for window in view.windows:
            for low, high in self._reached(window.table):
                first = buckets.floor(buckets.shifted(low, -window.after))
                found |= {*buckets.between(first, buckets.shifted(high, window.before) + 1)}
        last = max((high for _, high in self._reached(view.windows[0].table)), default=-1)
        return sorted(bucket for bucket in found if (view.declared.start or 0) <= bucket <= last)

    def _reached(self, table: str) -> list[tuple[int, int]]:
        below = self.lake.catalog.views.get(table)
        if below is not None:
            return [(bucket, below.buckets.next(bucket) - 1) for bucket in self._filled(below)]
        files = (self.lake.folder / table).rglob("*.parquet")
        ends = [pc.min_max(pq.read_table(file)["at"]).as_py() for file in files]
        return [(math.floor(plainly(each["min"])), math.floor(plainly(each["max"]))) for each in ends]


QueriedLakes = Callable[..., QueriedLake]


@dataclass(frozen=True)
class Leasing(OpenProject):
    """A project whose leases last as long as a test says."""

    lease_ms: int = 60_000

    @property
    def leases(self) -> Leases:
        return Leases(self.store, ttl_ms=self.lease_ms)


@dataclass(frozen=True)
class Counting(ParquetFiles):
    """A table that notes when it is listed."""

    table: ParquetFiles | None = None
    queried_lake: QueriedLake | None = None

    @classmethod
    def of(cls, table: Table, queried_lake: QueriedLake) -> Counting:
        assert isinstance(table, ParquetFiles)
        known = {each.name: getattr(table, each.name) for each in fields(ParquetFiles)}
        return cls(**known, table=table, queried_lake=queried_lake)

    def current(self) -> Any:
        assert self.table is not None
        assert self.queried_lake is not None
        return CountedVersion(self.table.current(), self.name, self.queried_lake)


@dataclass(frozen=True)
class CountedVersion:
    of: TableVersion
    table: str
    queried_lake: QueriedLake

    @property
    def version(self) -> str:
        return self.of.version

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        found = self.of.listing(on_read)
        self.queried_lake.listings.append(self.table)
        if self.queried_lake.listed:
            self.queried_lake.listed.pop(0)()
        return found


def once(monkeypatch: pytest.MonkeyPatch, *happenings: Callable[[], object], after: bool = False) -> None:
    """Have things happen the next times that a planned answer is computed: before it is, or after."""
    compute, left = DataFrame.localCheckpoint, list(happenings)

    def computed(frame: DataFrame, *args: Any, **options: Any) -> Any:
        happening = left.pop(0) if left else None
        if happening is not None and not after:
            happening()
        found = compute(frame, *args, **options)
        if happening is not None and after:
            happening()
        return found

    monkeypatch.setattr(DataFrame, "localCheckpoint", computed)


def _translated(text: str) -> str:
    return sqlglot.transpile(text, "spark", "duckdb")[0]


def some(number: int, rows: int = 12, seed: int = 0) -> dict[str, list[Any]]:
    """Columns of rows of one day."""
    chance = random.Random(f"{number} {seed}")
    times = [day(number, 0), *(day(number, chance.random() * 24) for _ in range(rows - 2)), _last(number)]
    return {
        "at": times,
        "zone": [chance.choice([None, 1, 2, 3]) for _ in times],
        "fare": [chance.choice([None, Decimal(chance.randrange(-999, 9999)) / 100]) for _ in times],
        "x": [chance.choice([None, chance.randrange(100)]) for _ in times],
    }


def _last(number: int) -> datetime:
    return day(number, 24 - 1 / 3_600_000)


def rows_of(answer: Answer) -> list[tuple[Any, ...]]:
    return rows_in(answer.frame)


def rows_in(frame: Frame) -> list[tuple[Any, ...]]:
    table = frame.toArrow()
    columns = [column.to_pylist() for column in table.columns]
    return [tuple(map(plainly, row)) for row in zip(*columns, strict=True)]


def came_from(answer: Answer) -> str | None:
    """As in `QueriedLake.right`."""
    served = answer.served
    if not served.views:
        return None
    used = ", ".join(f"{each.view}: {each.buckets}" for each in served.views)
    return f"{used} + {served.buckets_from_base}"


def alike(found: Sequence[Any], expected: Sequence[Any], *, ordered: bool = False) -> bool:
    """Whether rows are equal; floats to nine digits, and decimals where DuckDB has floats."""
    if not ordered:
        found, expected = (sorted(rows, key=_sortable) for rows in (found, expected))
    return len(found) == len(expected) and all(
        len(one) == len(other) and all(map(_equal, one, other))
        for one, other in zip(found, expected, strict=True)
    )


def _sortable(row: Sequence[Any]) -> list[tuple[bool, str]]:
    return [
        (value is None, f"{value:.6e}" if isinstance(value, (float, int, Decimal)) else repr(value))
        for value in row
    ]


def _equal(one: Any, other: Any) -> bool:
    if (
        isinstance(one, (float, Decimal))
        and isinstance(other, (float, Decimal))
        and type(one) is not type(other)
    ):
        return math.isclose(one, other, rel_tol=1e-5)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)

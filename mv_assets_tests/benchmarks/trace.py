"""B9's trace: what happens to a folder of Parquet files day by day, and what a view of it must then hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import duckdb

# The same for all keepers that start a Spark of their own.
SPARK = {
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
}
COLUMNS = {
    "shipped": "DATE",
    "l_returnflag": "VARCHAR",
    "l_linestatus": "VARCHAR",
    "sum_qty": "DECIMAL(38, 6)",
    "sum_disc_price": "DECIMAL(38, 6)",
    "sum_charge": "DECIMAL(38, 6)",
    "count_order": "BIGINT",
}
_SHIPPED = {"day": "l_shipdate", "month": "CAST(date_trunc('month', l_shipdate) AS DATE)"}


@dataclass(frozen=True, slots=True)
class View:
    """Some of Q1's aggregates by day or month of shipment: SQL that Spark and DuckDB read alike."""

    bucket: str
    start: date
    charge: str = "(1 - l_discount) * (1 + l_tax)"

    @property
    def shipped(self) -> str:
        return _SHIPPED[self.bucket]

    def sql(self, rows: str = "lineitem") -> str:
        """The query, over a table or what stands for it in FROM."""
        return f"""
SELECT {self.shipped} AS shipped, l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       sum(l_extendedprice * {self.charge}) AS sum_charge, count(*) AS count_order
FROM {rows} GROUP BY {self.shipped}, l_returnflag, l_linestatus
"""


class Base:
    """The base table: a folder of files that are made of TPC-H's line items."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder, self._source = folder, source
        folder.mkdir(parents=True)

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.parquet"))

    def arrive(self, name: str, where: str) -> None:
        """A new file with those line items."""
        self._write(name, f"SELECT * FROM '{self._source}' WHERE {where}")

    def received(self, first: date, last: date, since: date) -> None:
        """One file of what was received on some days, of all that was shipped since a day."""
        received = f"l_receiptdate BETWEEN DATE '{first}' AND DATE '{last}'"
        self.arrive(f"received-{first}", f"{received} AND l_shipdate >= DATE '{since}'")

    def correct(self, first: date, last: date) -> None:
        """All files with line items shipped on some days, written again with other quantities for those."""
        shipped = f"l_shipdate BETWEEN DATE '{first}' AND DATE '{last}'"
        for file in self.files:
            with duckdb.connect() as connection:
                concerned = connection.sql(f"SELECT 1 FROM '{file}' WHERE {shipped} LIMIT 1").fetchall()
            if concerned:
                corrected = f"CASE WHEN {shipped} THEN l_quantity + 1 ELSE l_quantity END"
                quantity = f"CAST({corrected} AS DECIMAL(15, 2)) AS l_quantity"
                self._write(file.stem, f"SELECT * REPLACE ({quantity}) FROM '{file}'")

    def expire(self) -> None:
        """Retention takes the oldest file."""
        self.files[0].unlink()

    def compact(self) -> None:
        """One file with the rows of all."""
        small = self.files
        self._write("received-all", f"SELECT * FROM read_parquet({[str(file) for file in small]})")
        for file in small:
            file.unlink()

    def _write(self, name: str, rows: str) -> None:
        draft = self.folder / f".{name}"
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({rows}) TO '{draft}' (FORMAT parquet)")
        draft.rename(self.folder / f"{name}.parquet")


class Keeper(Protocol):
    """A tool that keeps a view of a base table."""

    def deploy(self, view: View) -> None:
        """The view's SQL is new, or another one: whoever changes it leaves it there for the next run."""

    def refresh(self, today: date) -> None:
        """What the schedule runs, that day."""

    def mend(self, first: date, last: date, today: date) -> None:
        """What makes buckets right that are known to be wrong: `refresh`, or what a person would run."""

    def kept(self) -> Sequence[Path]:
        """The Parquet files of the view's rows as a reader would get them now."""


@dataclass(frozen=True, slots=True)
class Step:
    """What happens on a day, beside that day's arrivals."""

    what: str
    change: Callable[[Base], None] = lambda _: None
    view: Callable[[View], View] = lambda view: view


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a keeper's view was like when a day's run had ended."""

    what: str
    seconds: float
    wrong: int
    buckets: int


START = date(1996, 1, 1)
_LOADED = date(1996, 5, 1)
_MONTHS = [date(1996, month, 1) for month in range(1, 6)]
_ARRIVAL = Step("arrivals")
_DAYS = (
    *[_ARRIVAL] * 3,
    Step("February rewritten", lambda base: base.correct(date(1996, 2, 1), date(1996, 2, 29))),
    _ARRIVAL,
    Step("retention takes January's file", Base.expire),
    _ARRIVAL,
    Step("compaction to one file", Base.compact),
    _ARRIVAL,
    Step("another SQL", view=lambda view: replace(view, charge="(1 - l_discount + l_tax)")),
    *[_ARRIVAL] * 2,
)


def play(keeper: Keeper, base: Base) -> Iterator[Outcome]:
    """The whole trace, with one run a day and nobody at hand; each line item arrives 1 to 30 days late."""
    view = View("day", START)
    for first, after in pairwise(_MONTHS):
        base.received(first, after - timedelta(days=1), START)
    keeper.deploy(view)
    begin = time.perf_counter()
    keeper.refresh(_LOADED - timedelta(days=1))
    yield _outcome("four months loaded", begin, keeper, base, view)
    for number, step in enumerate(_DAYS):
        today = _LOADED + timedelta(days=number)
        base.received(today, today, START)
        step.change(base)
        before, view = view, step.view(view)
        if view != before:
            keeper.deploy(view)
        begin = time.perf_counter()
        keeper.refresh(today)
        yield _outcome(step.what, begin, keeper, base, view)


def _outcome(what: str, begin: float, keeper: Keeper, base: Base, view: View) -> Outcome:
    seconds = time.perf_counter() - begin
    wrong, buckets = compared(keeper, base, view)
    return Outcome(what, seconds, len(wrong), buckets)


def compared(keeper: Keeper, base: Base, view: View) -> tuple[list[date], int]:
    """The buckets that differ from DuckDB's answer over the files there are, and how many there should be."""
    files = [str(file) for file in keeper.kept()]
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW lineitem AS FROM read_parquet('{base.folder}/*.parquet')")
        connection.execute(f"CREATE TABLE truth AS SELECT {typed} FROM ({view.sql()})")
        kept = f"read_parquet({files}, hive_partitioning = true)" if files else "truth LIMIT 0"
        connection.execute(f"CREATE TABLE kept AS SELECT {typed} FROM {kept}")
        differ = """
            SELECT DISTINCT shipped
            FROM ((FROM truth EXCEPT ALL FROM kept) UNION ALL (FROM kept EXCEPT ALL FROM truth)) ORDER BY ALL
        """
        wrong = [day for (day,) in connection.sql(differ).fetchall()]
        ((buckets,),) = connection.sql("SELECT count(DISTINCT shipped) FROM truth").fetchall()
    return wrong, buckets

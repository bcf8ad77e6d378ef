"""B15: 64 buckets, each of a CTE over seven days, in one run, against the same queries one by one by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.benchmarks.line_items import SF, line_items
from mv_assets_tests.benchmarks.tpch import Shop, folder, measured, shop, warm

_WARM_UP, _ROUNDS = 1, 5
_FIRST, _BUCKETS, _BEFORE = date(1998, 1, 7), 64, 6
_SQL = """
WITH sold AS (
    SELECT l_suppkey, l_shipdate, sum(l_quantity) AS quantity, max(l_extendedprice) AS price
    FROM lineitem GROUP BY l_suppkey, l_shipdate
)
SELECT {day} AS day, l_suppkey, count(*) AS days, sum(quantity) AS quantity, max(price) AS price
FROM sold GROUP BY l_suppkey
"""


def run() -> Sequence[Figure]:
    declared = {
        "base": {"table": "lineitem", "from": f"{_BEFORE}d"},
        "scope": "bucket",
        "sql": _SQL.format(day=":bucket_start"),
        "time_column": "day",
        "start": _FIRST.isoformat(),
        "max_buckets_per_run": _BUCKETS,
    }
    with _days() as lake, warm() as engine, folder() as place, shop(lake, engine, "1d", **declared) as made:
        made.refresh(_BUCKETS)
        with engine.session() as spark:
            by_hand = _ByHand(spark, lake, place)

            def together() -> Callable[[], object]:
                for bucket in made.project.store.snapshot(made.view.name).rows:
                    made.force(bucket)
                return partial(made.refresh, _BUCKETS)

            steps = {"together": together, "one by one": measured(by_hand.everything)}
            interleaved(_WARM_UP, steps)
            samples = interleaved(_ROUNDS, steps)
            assert _rows(spark, made) == by_hand.rows()
    what = f"{_BUCKETS} daily buckets of a CTE over seven days, SF {SF}, in one run / one by one by hand"
    return [ratio("B15", what, samples, "together", "one by one", 0.7)]


@dataclass(frozen=True)
class _ByHand:
    """Writes each day to a folder of its own."""

    spark: SparkSession
    lake: Path
    place: Path

    def everything(self) -> None:
        for number in range(_BUCKETS):
            last = _FIRST + timedelta(days=number)
            week = [last - timedelta(days=back) for back in range(_BEFORE + 1)]
            self.spark.read.parquet(*(f"{self.lake}/{day}.parquet" for day in week)).createOrReplaceTempView(
                "lineitem"
            )
            made = self.spark.sql(_SQL.format(day=f"TIMESTAMP '{last}'"))
            made.write.mode("overwrite").parquet(f"{self.place}/{last}")

    def rows(self) -> int:
        return self.spark.read.parquet(f"{self.place}/*").count()


def _rows(spark: SparkSession, made: Shop) -> int:
    return spark.read.parquet(*made.files()).count()


@contextmanager
def _days() -> Iterator[Path]:
    """The line items of these days and of those before, a file a day."""
    with folder() as lake, duckdb.connect() as connection:
        for number in range(-_BEFORE, _BUCKETS):
            day = _FIRST + timedelta(days=number)
            some = f"SELECT * FROM read_parquet('{line_items()}') WHERE l_shipdate = DATE '{day}'"
            connection.execute(f"COPY ({some}) TO '{lake}/{day}.parquet' (FORMAT parquet)")
        yield lake

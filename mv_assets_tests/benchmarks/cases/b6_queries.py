"""B6: a query over seven years from a view of days, against the base table and the view's own files."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from mv_assets.query.execute.answer import Answers, Question
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.benchmarks.line_items import SF
from mv_assets_tests.benchmarks.tpch import DAYS, Shop, measured, months, shop, warm

_WARM, _ROUNDS = 20, 7
_Q1 = """
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc,
       count(*) AS count_order
FROM lineitem GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
"""
_BY_HAND = """
SELECT l_returnflag, l_linestatus, sum(sum_qty) AS sum_qty, sum(sum_base_price) AS sum_base_price,
       sum(sum_disc_price) AS sum_disc_price, sum(sum_charge) AS sum_charge,
       sum(sum_qty) / sum(qtys) AS avg_qty, sum(sum_base_price) / sum(prices) AS avg_price,
       sum(sum_disc) / sum(discs) AS avg_disc, sum(count_order) AS count_order
FROM pricing GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
"""


@dataclass
class _Ways:
    """Where the same is asked in three ways."""

    shop: Shop
    answers: Answers
    spark: SparkSession

    def routed(self) -> list[Any]:
        answer = self.answers.answer(Question(_Q1), self.spark)
        assert answer.served.buckets_from_base == 0, answer.served
        return answer.frame.collect()

    def base(self) -> list[Any]:
        self.spark.read.parquet(str(self.shop.lake)).createOrReplaceTempView("lineitem")
        return self.spark.sql(_Q1).collect()

    def by_hand(self) -> list[Any]:
        return self.written().collect()

    def written(self) -> DataFrame:
        """What somebody would write who knows the view's files, and takes them for fresh."""
        self.spark.read.parquet(*self.files).createOrReplaceTempView("pricing")
        return self.spark.sql(_BY_HAND)

    @cached_property
    def files(self) -> list[str]:
        return self.shop.files()

    def planned(self) -> None:
        """From the text of a query to a frame of Spark's, which no job has run for."""
        question = Question(_Q1)
        statement = self.answers._statement(question)
        with self.answers.pinned() as pinned, self.answers._planned(question, statement, pinned, self.spark):
            pass


def run() -> Sequence[Figure]:
    daily: dict[str, Any] = {"bucket": "1d", "start": "1992-01-02", "max_buckets_per_run": DAYS}
    with months() as lake, warm() as engine, shop(lake, engine, **daily) as made, engine.session() as spark:
        made.refresh(DAYS)
        ways = _Ways(made, Answers(made.project), spark)
        assert _plain(ways.routed()) == _plain(ways.base())
        return list(_figures(ways))


def _figures(ways: _Ways) -> Iterator[Figure]:
    # A short query is compiled late: only after so many does either take its own time.
    for _ in range(_WARM):
        ways.by_hand()
        ways.routed()
    steps = {
        "routed": measured(ways.routed),
        "base": measured(ways.base),
        "by hand": measured(ways.by_hand),
    }
    samples = interleaved(_ROUNDS, steps)
    target = 0.01 if float(SF) >= 10 else None
    yield ratio("B6", f"Q1 routed / on the base table, SF {SF}", samples, "routed", "base", target)
    yield ratio("B6", f"Q1 routed / by hand on the view's files, SF {SF}", samples, "routed", "by hand", 1.15)
    plans = interleaved(21, {"routed": measured(ways.planned), "by hand": measured(ways.written)})
    mine, theirs = (statistics.median(plans[name]) * 1_000 for name in ("routed", "by hand"))
    what = f"planning, strict, {DAYS:,} buckets: more than by hand"
    yield Figure("B6", what, mine - theirs, " ms", 50, f"{mine:.0f} ms - {theirs:.0f} ms, medians of 21")


def _plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in rows]

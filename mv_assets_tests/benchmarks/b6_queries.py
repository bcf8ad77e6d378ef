"""B6: a query over seven years from a view of days, against the base table and the view's own files."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame, SparkSession

from mv_assets.clock import clock
from mv_assets.engine.session import Engine
from mv_assets.project import MaterializedView, ParquetTable, Project, Spark
from mv_assets.project.file import Draft
from mv_assets.query.answering import Answers, Question
from mv_assets.refresh.place import Place, place_of
from mv_assets.refresh.refresher import Refresher
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets.views.catalog import prepare
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio

_SF = os.environ.get("SF", "1")
_ROUNDS = 7
_DAYS = 2_526
_VIEW = """
SELECT l_shipdate, l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
       sum(l_extendedprice) AS sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
       sum(l_discount) AS sum_disc, count(l_quantity) AS qtys, count(l_extendedprice) AS prices,
       count(l_discount) AS discs, count(*) AS count_order
FROM lineitem GROUP BY l_shipdate, l_returnflag, l_linestatus
"""
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
class _Shop:
    """TPC-H's line items, a file a month, and a view of their days."""

    folder: Path
    place: Place
    answers: Answers
    spark: SparkSession

    def routed(self) -> list[Any]:
        answer = self.answers.answer(Question(_Q1), self.spark)
        assert answer.served.buckets_from_base == 0, answer.served
        return answer.frame.collect()

    def base(self) -> list[Any]:
        self._read(self.folder / "lineitem").createOrReplaceTempView("lineitem")
        return self.spark.sql(_Q1).collect()

    def by_hand(self) -> list[Any]:
        return self.written().collect()

    def written(self) -> DataFrame:
        """What somebody would write who knows the view's files, and takes them for fresh."""
        self.spark.read.parquet(*self.files).createOrReplaceTempView("pricing")
        return self.spark.sql(_BY_HAND)

    @cached_property
    def files(self) -> list[str]:
        rows = self.place.store.snapshot("pricing").rows.values()
        generations = {row.generation for row in rows if row.generation}
        files = self.place.store.files("pricing", generations).values()
        return [f"{self.place.warehouse.root}/{file.path}" for some in files for file in some]

    def planned(self) -> None:
        """From the text of a query to a frame of Spark's, which no job has run for."""
        question = Question(_Q1)
        with ExitStack() as held:
            statement = self.answers._statement(question)
            self.answers._planned(question, statement, self.answers.present(held), self.spark, held)

    def _read(self, folder: Path) -> DataFrame:
        return self.spark.read.parquet(str(folder))


def run() -> Sequence[Figure]:
    with _shop() as shop:
        kept = len(shop.place.store.snapshot("pricing").rows)
        assert kept == _DAYS, kept
        assert _plain(shop.routed()) == _plain(shop.base())
        return list(_figures(shop))


def _figures(shop: _Shop) -> Iterator[Figure]:
    def measured(work: Callable[[], object]) -> Callable[[], Callable[[], object]]:
        return lambda: work

    for _ in range(3):
        shop.by_hand()
        shop.routed()
    steps = {
        "routed": measured(shop.routed),
        "base": measured(shop.base),
        "by hand": measured(shop.by_hand),
    }
    samples = interleaved(_ROUNDS, steps)
    target = 0.1 if float(_SF) >= 10 else None
    yield ratio("B6", f"Q1 routed / on the base table, SF {_SF}", samples, "routed", "base", target)
    yield ratio("B6", f"Q1 routed / by hand on the view's files, SF {_SF}", samples, "routed", "by hand", 1.3)
    plans = interleaved(21, {"routed": measured(shop.planned), "by hand": measured(shop.written)})
    mine, theirs = (statistics.median(plans[name]) * 1_000 for name in ("routed", "by hand"))
    what = f"planning, strict, {_DAYS:,} buckets: more than by hand"
    yield Figure("B6", what, mine - theirs, " ms", 50, f"{mine:.0f} ms - {theirs:.0f} ms, medians of 21")


def _plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in rows]


@contextmanager
def _shop() -> Iterator[_Shop]:
    folder = Path(tempfile.mkdtemp())
    store = Store(f"sqlite:///{folder}/state.db")
    engine = Engine(Spark(conf={"spark.driver.memory": "6g", "spark.ui.enabled": "false"}))
    try:
        _write(folder)
        place = _place(folder, store, engine)
        reports = Refresher(place).run()
        assert not [report.error for report in reports if report.error], reports
        with engine.session() as spark:
            yield _Shop(folder, place, Answers(place), spark)
    finally:
        engine.stop()
        store.close()
        shutil.rmtree(folder, ignore_errors=True)


def _place(folder: Path, store: Store, engine: Engine) -> Place:
    table = ParquetTable(name="lineitem", path=str(folder / "lineitem"), time_column="l_shipdate")
    view = MaterializedView.model_validate(
        {
            "name": "pricing",
            "base": "lineitem",
            "sql": _VIEW,
            "time_column": "l_shipdate",
            "bucket": "1d",
            "start": "1992-01-02",
            "max_buckets_per_run": _DAYS,
        }
    )
    project = Project(tables=(table,), views=(view,), warehouse=str(folder / "warehouse"))
    catalog = prepare(Draft("benchmark", project), schemas=False)
    later = 3_600_000
    manager = PartitionManager(store, clock=lambda: clock() + later)
    return place_of(catalog, store, manager, engine, lambda: clock() + later)


def _write(folder: Path) -> None:
    """A file a month, or a few."""
    tool = Path(sys.executable).parent / "tpchgen-cli"
    command = [str(tool), "parquet", "-s", _SF, "--tables=lineitem", f"--output-dir={folder}/all"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own environment's tool
    (folder / "lineitem").mkdir()
    with duckdb.connect() as connection:
        rows = (
            f"SELECT *, strftime(l_shipdate, '%Y-%m') AS m FROM read_parquet('{folder}/all/lineitem.parquet')"
        )
        connection.execute(f"COPY ({rows}) TO '{folder}/months' (FORMAT parquet, PARTITION_BY (m))")
    for part in sorted((folder / "months").glob("m=*/*.parquet")):
        part.rename(folder / "lineitem" / f"{part.parent.name[2:]}-{part.name}")
    shutil.rmtree(folder / "all")
    shutil.rmtree(folder / "months")

"""B16: a year in folders of days whose names are the time column, against Spark's own discovery of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession

from mv_assets.spark.read.readers import Reader, reader_of
from mv_assets.spark.session import Engine
from mv_assets_tests.benchmarks.figure import Figure, Samples, interleaved, ratio
from mv_assets_tests.benchmarks.line_items import SF, line_items
from mv_assets_tests.benchmarks.tpch import PRICING, Shop, folder, measured, shop, warm

_WARM_UP, _ROUNDS = 2, 5
_YEAR, _MONTHS, _DAY = 1995, 12, "1995-06-15"
_USED = ["l_shipdate", "l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount", "l_tax"]


def run() -> Sequence[Figure]:
    with ExitStack() as held:
        lake, engine = held.enter_context(_days()), held.enter_context(warm())
        made = held.enter_context(_shop(lake, engine))
        spark = held.enter_context(engine.session())
        listing = made.project.tables["lineitem"].current().listing()
        reader = reader_of(spark, made.project.tables["lineitem"], listing, _USED)
        reader.learn(listing.names)
        one_day = [name for name in listing.names if f"={_DAY}/" in name]

        def backfill() -> Callable[[], object]:
            return partial(held.enter_context(_shop(lake, engine)).refresh, _MONTHS)

        steps = {
            "all": measured(lambda: _priced(spark, _read(reader, listing.names))),
            "all by Spark": measured(lambda: _priced(spark, spark.read.parquet(str(lake)))),
            "one": measured(lambda: _priced(spark, _read(reader, one_day))),
            "one by Spark": measured(lambda: _priced(spark, _one(spark, lake))),
            "backfill": backfill,
            "by hand": measured(_ByHand(spark, lake, held.enter_context(folder())).everything),
        }
        interleaved(_WARM_UP, steps)
        samples = interleaved(_ROUNDS, steps)
        late_samples = _late(held, spark, lake, engine)
    what = f"Q1 a day over {len(listing)} files, each in the folder of its day, SF {SF}"
    return [
        ratio("B16", f"{what}, read / with Spark's own partitions", samples, "all", "all by Spark", 1.1),
        ratio("B16", "one of these files, read / by Spark", samples, "one", "one by Spark", 1.1),
        ratio("B16", f"cold backfill of {_MONTHS} months / by hand", samples, "backfill", "by hand", 1.1),
        ratio("B16", "a late file in one month / that month by hand", late_samples, "late", "by hand", 1.1),
    ]


def _late(held: ExitStack, spark: SparkSession, lake: Path, engine: Engine) -> Samples:
    """The same late files for both, each round in another month."""
    made, job = held.enter_context(_shop(lake, engine)), _ByHand(spark, lake, held.enter_context(folder()))
    made.refresh(_MONTHS)
    refreshed, rewritten = count(1), count(1)

    def late() -> Callable[[], object]:
        _arrived(lake, next(refreshed))
        return partial(made.refresh, 1)

    def by_hand() -> Callable[[], object]:
        return partial(job.month, _arrived(lake, next(rewritten)))

    steps = {"late": late, "by hand": by_hand}
    interleaved(_WARM_UP, steps)
    return interleaved(_ROUNDS, steps)


def _arrived(lake: Path, number: int) -> str:
    """The month of the year for which a late file, with a tenth of a day's rows, has arrived by now."""
    month = f"{_YEAR}-{number:02}"
    day = lake / f"l_shipdate={month}-15"
    if not (day / "late.parquet").exists():
        written = f"read_parquet('{day}/*.parquet', hive_partitioning = false)"
        rows = f"SELECT * FROM {written} WHERE l_orderkey % 10 = 1"
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY ({rows}) TO '{lake.parent}/late.parquet' (FORMAT parquet)",
            )
        (lake.parent / "late.parquet").rename(day / "late.parquet")
    return month


class _ByHand:
    """Writes each month to a folder of its own, each time to another one."""

    def __init__(self, spark: SparkSession, lake: Path, place: Path) -> None:
        self._spark = spark
        self._lake = lake
        self._place = place
        self._places = (place / str(number) for number in count())

    def everything(self) -> None:
        rows = self._priced(self._spark.read.parquet(str(self._lake)))
        rows.write.partitionBy("month").parquet(str(next(self._places)))

    def month(self, month: str) -> None:
        """One month, of which it is known that it changed, in place of what was written of it before."""
        read = self._spark.read.option("basePath", str(self._lake))
        rows = self._priced(read.parquet(f"{self._lake}/l_shipdate={month}-*"))
        writer = rows.write.partitionBy("month").mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.parquet(str(self._place / "months"))

    def _priced(self, rows: DataFrame) -> DataFrame:
        rows.createOrReplaceTempView("lineitem")
        return self._spark.sql(PRICING).selectExpr("*", "date_format(l_shipdate, 'yyyy-MM') AS month")


def _read(reader: Reader, names: Sequence[str]) -> DataFrame:
    return reader.frame(names, reader.schema(names))


def _one(spark: SparkSession, lake: Path) -> DataFrame:
    return spark.read.option("basePath", str(lake)).parquet(f"{lake}/l_shipdate={_DAY}")


def _priced(spark: SparkSession, rows: DataFrame) -> None:
    rows.createOrReplaceTempView("lineitem")
    spark.sql(PRICING).write.format("noop").mode("overwrite").save()


def _shop(lake: Path, engine: Engine) -> AbstractContextManager[Shop]:
    return shop(lake, engine, start=f"{_YEAR}-01-01")


@contextmanager
def _days() -> Iterator[Path]:
    """The line items of a year, in a folder a day; the files don't have the day."""
    with folder() as lake, duckdb.connect() as connection:
        some = f"SELECT * FROM read_parquet('{line_items()}') WHERE year(l_shipdate) = {_YEAR}"
        connection.execute(f"COPY ({some}) TO '{lake}/days' (FORMAT parquet, PARTITION_BY (l_shipdate))")
        yield lake / "days"

"""Merged rows are the rows that a recomputation gives, whatever happened to the base table before."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.config import MaterializedView
from mv_assets.plan import planner
from mv_assets.plan.scope import Scope
from mv_assets.run.compute import Alike, Computation
from mv_assets.spark.session import Engine
from mv_assets_tests.support.capabilities import knows
from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.spark_lake import SparkLake, by_bucket

SparkLakes = Callable[..., SparkLake]
DAYS = 4
SUMS = """
    SELECT date_trunc('hour', e.at) AS hour, z.name, count(*) AS rows, count(e.price) AS priced,
           sum(e.n) AS n, sum(e.price * e.n) AS price, min(e.n) AS low, max(e.word) AS word, min(e.x) AS x,
           max(e.at) AS last, bool_or(e.n > 90) AS high, count_if(e.n > 50) AS many,
           sum(e.n) FILTER (WHERE e.price > 5) AS dear
    FROM events e LEFT JOIN zones z ON e.zone = z.zone GROUP BY 1, z.name
"""
FEW = "SELECT at, zone, price FROM events WHERE n > 95"


def sums(**given: Any) -> MaterializedView:
    return view("sums", sql=SUMS, dimensions=["zones"], **given)


def few() -> MaterializedView:
    return view("few", sql=FEW, time_column="at", bucket="6h")


@dataclass
class Jobs:
    """The jobs that ran: whether each merged, and whether it came to an end."""

    done: list[tuple[str, bool]] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)

    def merges(self, view: str) -> int:
        return self.done.count((view, True))


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    real, found = Computation.write, Jobs()

    def write(self: Computation, alike: Alike, buckets: Sequence[int], place: str) -> None:
        found.failed.append(alike.merged)
        real(self, alike, buckets, place)
        found.failed.pop()
        found.done.append((self._view.name, alike.merged))

    monkeypatch.setattr(Computation, "write", write)
    return found


class World:
    """Files to which anything may happen, from a seed."""

    def __init__(self, make: SparkLakes, seed: int, *views: MaterializedView) -> None:
        self.random = random.Random(seed)
        self.lake = make(*(views or (sums(), few())), dimensions=["zones"])
        self.zones()
        for number in range(DAYS):
            self.add(f"day-{number}.parquet", [number], rows=600)

    @property
    def files(self) -> list[Path]:
        return sorted((self.lake.folder / "events").glob("*.parquet"))

    def add(self, name: str, days: Sequence[int], rows: int = 30, kinds: pa.Schema | None = None) -> None:
        pick = self.random
        times = [day(pick.choice(days), pick.random() * 24) for _ in range(rows)]
        times.append(day(max(days) + 1, 0) - timedelta(milliseconds=1))
        columns = {
            "at": times,
            "zone": [pick.choice([1, 2, 3, 4, None]) for _ in times],
            "n": [pick.choice([None, *range(100)]) for _ in times],
            "price": [pick.choice([None, Decimal(pick.randint(-999, 999)) / 100]) for _ in times],
            "word": [pick.choice(["a", "b", "zz", None]) for _ in times],
            "x": [pick.choice([None, pick.random()]) for _ in times],
        }
        self._write("events", name, pa.table(columns, schema=kinds or SCHEMA))

    def zones(self) -> None:
        names = [self.random.choice("ABC") for _ in range(3)]
        self._write("zones", "zones.parquet", pa.table({"zone": [1, 2, 3], "name": names}))

    def something(self, step: int) -> str:
        """One thing happens; mostly files come."""
        days = sorted(self.random.sample(range(DAYS), self.random.randint(1, 3)))
        what = self.random.choice(
            ["late"] * 6 + ["wider", "replaced", "removed", "compacted", "zones", "forced"]
        )
        match what:
            case "late":
                self.add(f"late-{step}.parquet", days)
            case "wider":
                self.add(f"late-{step}.parquet", days, kinds=WIDER)
            case "replaced":
                self.add(self.random.choice(self.files).name, days, rows=self.random.choice([40, 500]))
            case "removed":
                self.random.choice(self.files).unlink()
            case "compacted":
                self._compact(step)
            case "zones":
                self.zones()
            case "forced":
                declaration = self.lake.catalog.views["sums"].declaration
                self.lake.manager.force(declaration, [days[0] * DAY], "a person")
        return what

    def _compact(self, step: int) -> None:
        paths = self.random.sample(self.files, min(2, len(self.files)))
        tables = [pq.read_table(path).cast(WIDER) for path in paths]
        for path in paths:
            path.unlink()
        self._write("events", f"packed-{step}.parquet", pa.concat_tables(tables))

    def _write(self, table: str, name: str, rows: pa.Table) -> None:
        path = self.lake.folder / table / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path.with_suffix(".tmp~"))
        path.with_suffix(".tmp~").replace(path)


SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us", "UTC"),
        "zone": pa.int32(),
        "n": pa.int32(),
        "price": pa.decimal128(9, 2),
        "word": pa.string(),
        "x": pa.float64(),
    }
)
WIDER = SCHEMA.set(2, pa.field("n", pa.int64()))


def exactly(lake: SparkLake, name: str) -> dict[int, Any]:
    """The stored rows, to the bit."""
    return by_bucket(lake.catalog.views[name], lake.stored(name))


def recomputed(lake: SparkLake, name: str) -> dict[int, Any]:
    """The same after every bucket was computed from all its files."""
    rows = lake.snapshot(name).rows
    lake.manager.force(lake.catalog.views[name].declaration, list(rows), "compared")
    lake.run()
    return exactly(lake, name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_long_histories_give_what_a_recomputation_gives(
    spark_lake: SparkLakes, jobs: Jobs, seed: int
) -> None:
    world = World(spark_lake, seed)
    world.lake.run()
    for step in range(14):
        world.something(step)
        assert [report.error for report in world.lake.run().values()] == [None, None]
        world.lake.check()
    for name in ("sums", "few"):
        assert jobs.merges(name) >= 3, jobs.done
        assert exactly(world.lake, name) == recomputed(world.lake, name)
    assert jobs.failed == []


@pytest.mark.slow
def test_a_file_that_one_bucket_has_counted_already_is_not_counted_again(
    spark_lake: SparkLakes, jobs: Jobs
) -> None:
    world = World(spark_lake, 3)
    world.lake.run()
    world.add("late.parquet", [1, 2])
    # One of the two buckets gets the file now, the other later, together with a file that both get.
    assert world.lake.outcomes("sums", Scope(DAY, 2 * DAY)) == {1: "committed"}
    world.add("later.parquet", [1, 2])
    world.lake.run()
    world.lake.check()
    assert exactly(world.lake, "sums") == recomputed(world.lake, "sums")
    assert jobs.merges("sums") == 3


def test_files_are_not_merged_into_rows_that_a_peer_wrote_since(spark_lake: SparkLakes) -> None:
    world = World(spark_lake, 7)
    world.lake.run()
    world.add("late.parquet", [1])
    planned = world.lake.look("sums")
    [work] = planner.plan(planned).work
    assert list(work.additions) == [DAY]
    world.add("later.parquet", [1])
    assert world.lake.outcomes("sums") == {1: "committed"}
    world.add("last.parquet", [1])
    assert world.lake.compute(planned, work) == {1: "committed as STALE"}
    assert world.lake.outcomes("sums") == {1: "committed"}
    world.lake.run()
    world.lake.check()


def test_rows_that_can_not_be_read_any_more_are_recomputed(spark_lake: SparkLakes, jobs: Jobs) -> None:
    world = World(spark_lake, 4)
    world.lake.run()
    for path in (world.lake.folder / "warehouse" / "sums").rglob("*.parquet"):
        path.write_bytes(path.read_bytes()[:100])
    world.add("late.parquet", [1])
    world.lake.run("sums")
    assert (jobs.failed, jobs.done[-1]) == ([], ("sums", False))
    # What else is damaged is for an audit to find.
    world.lake.manager.force(world.lake.catalog.views["sums"].declaration, None, "damaged")


def test_rows_that_turn_out_to_be_damaged_while_they_are_merged_are_recomputed(
    spark_lake: SparkLakes, jobs: Jobs
) -> None:
    lake = spark_lake()
    lake.write("day-0.parquet", [*through(0), *(day(0, number / 100) for number in range(2_000))])
    lake.run()
    for path in (lake.folder / "warehouse").rglob("*.parquet"):
        content = path.read_bytes()
        path.write_bytes(content[:4] + bytes(40) + content[44:])
    lake.write("late.parquet", [day(0)])
    assert lake.outcomes() == {0: "committed"}
    assert (jobs.failed, jobs.done[-1]) == ([True], ("v", False))


def test_sums_of_floating_point_are_merged_where_the_view_allows_it(
    spark_lake: SparkLakes, jobs: Jobs
) -> None:
    sql = "SELECT date_trunc('hour', at) AS hour, sum(x) AS x FROM events GROUP BY ALL"
    world = World(spark_lake, 5, view("never", sql=sql), view("merged", sql=sql, merge_floats=True))
    world.lake.run()
    world.add("late.parquet", [1])
    world.lake.run()
    world.lake.check()
    assert (jobs.merges("never"), jobs.merges("merged")) == (0, 1)


def test_groups_without_aggregates_are_merged(spark_lake: SparkLakes, jobs: Jobs) -> None:
    sql = "SELECT date_trunc('hour', at) AS hour, zone FROM events GROUP BY ALL"
    world = World(spark_lake, 8, view(sql=sql))
    world.lake.run()
    world.add("late.parquet", [1])
    world.lake.run()
    world.lake.check()
    assert (jobs.merges("v"), jobs.failed) == (1, [])


@pytest.mark.parametrize(
    "items",
    [
        "zone, session_window(at, '20 minutes') AS session, count(*) AS n",
        "vector_sum(array(CAST(coalesce(n, 0) AS FLOAT))) AS v",
        "vector_avg(array(CAST(coalesce(n, 0) AS FLOAT))) AS v",
        "schema_of_variant_agg(parse_json(CAST(n AS STRING))) AS s",
    ],
)
def test_what_does_not_come_in_parts_is_what_the_whole_table_gives(
    spark_lake: SparkLakes, jobs: Jobs, engine: Engine, items: str
) -> None:
    with engine.session() as spark:
        if not knows(spark, f"SELECT {items} FROM VALUES (1, 2, now()) AS events (zone, n, at) GROUP BY ALL"):
            pytest.skip("this Spark has no such function")
    sql = f"SELECT date_trunc('day', at) AS hour, {items} FROM events GROUP BY ALL"
    world = World(spark_lake, 9, view(sql=sql))
    world.lake.run()
    world.add("late.parquet", [1, 2], rows=60)
    world.lake.run()
    assert exactly(world.lake, "v") == of_the_whole_table(world, sql)
    assert jobs.merges("v") == 0
    # DuckDB has no such functions to compare with.
    world.lake.manager.force(world.lake.catalog.views["v"].declaration, None, "not comparable")


def of_the_whole_table(world: World, sql: str) -> dict[int, Any]:
    """The rows that Spark gives without any buckets."""
    with world.lake.engine.session() as spark:
        spark.read.parquet(str(world.lake.folder / "events")).createOrReplaceTempView("events")
        return by_bucket(world.lake.catalog.views["v"], spark.sql(sql).toArrow())


@pytest.mark.slow
def test_sketches_are_merged(spark_lake: SparkLakes, jobs: Jobs) -> None:
    sql = "SELECT date_trunc('day', at) AS hour, hll_sketch_agg(n) AS n FROM events GROUP BY ALL"
    world = World(spark_lake, 6, view(sql=sql), view("w", base="v", time_column="hour", sql=ESTIMATE))
    world.lake.run("v", "w")
    world.add("late.parquet", [1], rows=300)
    world.lake.run("v", "w")
    merged = {row["hour"]: row["n"] for row in world.lake.stored("w").to_pylist()}
    assert jobs.merges("v") == 1
    recomputed(world.lake, "v")
    again = {row["hour"]: row["n"] for row in world.lake.stored("w").to_pylist()}
    assert {hour: pytest.approx(n, rel=0.05) for hour, n in again.items()} == merged
    # DuckDB has no such sketches to compare with.
    world.lake.manager.force(world.lake.catalog.views["v"].declaration, None, "not comparable")


ESTIMATE = "SELECT hour, hll_sketch_estimate(n) AS n FROM v"

"""A city's trips with zones, and views on them up to three deep; things happen to the files."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.config import MaterializedView
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.spark_lake import SparkLake

HOURLY = """
    SELECT date_trunc('hour', e.at) AS hour, z.borough, count(*) AS trips, sum(e.fare) AS fare,
           max(e.tip) AS tip, count(e.tip) AS tipped
    FROM events e LEFT JOIN zones z ON e.zone = z.zone GROUP BY ALL
"""
DAILY = """
    SELECT date_trunc('day', hour) AS day, borough, sum(trips) AS trips, sum(fare) AS fare, max(tip) AS tip
    FROM hourly GROUP BY ALL
"""
MONTHLY = (
    "SELECT date_trunc('month', day) AS month, sum(trips) AS trips, sum(fare) AS fare FROM daily GROUP BY ALL"
)
DEAR = "SELECT at, zone, fare FROM events WHERE fare > 90"

SCHEMA = pa.schema(
    {
        "at": pa.timestamp("us", "UTC"),
        "zone": pa.int32(),
        "fare": pa.decimal128(9, 2),
        "tip": pa.float64(),
    }
)


def hourly(**given: object) -> MaterializedView:
    return view("hourly", **{"sql": HOURLY, "dimensions": ["zones"], **given})


def daily() -> MaterializedView:
    return view("daily", base="hourly", sql=DAILY, time_column="day")


def monthly() -> MaterializedView:
    return view("monthly", base="daily", sql=MONTHLY, time_column="month", bucket="1mo")


def dear() -> MaterializedView:
    return view("dear", sql=DEAR, time_column="at", bucket="6h")


class Trips:
    """The lake of trips; every file is made from a seed."""

    def __init__(self, make: Callable[..., SparkLake], *views: MaterializedView, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.lake = make(*(views or (hourly(), daily(), monthly(), dear())), dimensions=["zones"])
        self.zones()

    @property
    def files(self) -> list[Path]:
        return sorted((self.lake.folder / "events").glob("*.parquet"))

    def put(self, name: str, days: list[int], rows: int = 40) -> Path:
        """A file with trips on some days, of which the last is over at its last millisecond."""
        times = [day(self.random.choice(days), self.random.random() * 24) for _ in range(rows)]
        times.append(day(max(days) + 1, 0) - timedelta(milliseconds=1))
        table = pa.table(
            {
                "at": times,
                "zone": [self.random.choice([1, 2, 3, 4, None]) for _ in times],
                "fare": [Decimal(self.random.randint(100, 10_000)) / 100 for _ in times],
                "tip": [self.random.choice([None, self.random.random() * 10]) for _ in times],
            },
            schema=SCHEMA,
        )
        return self._write(self.lake.folder / "events" / name, table)

    def zones(self, *renamed: str) -> None:
        """The dimension; zone 4 is in none."""
        names = [*renamed, *"ABC"[len(renamed) :]]
        self._write(
            self.lake.folder / "zones" / "zones.parquet", pa.table({"zone": [1, 2, 3], "borough": names})
        )

    def compact(self, *paths: Path, name: str) -> None:
        """Several files become one, with the same rows."""
        together = pa.concat_tables([pq.read_table(path) for path in paths])
        self._write(self.lake.folder / "events" / name, together)
        for path in paths:
            path.unlink()

    def _write(self, path: Path, table: pa.Table) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path.with_suffix(".tmp~"))
        path.with_suffix(".tmp~").replace(path)
        return path

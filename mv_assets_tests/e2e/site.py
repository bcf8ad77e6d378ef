"""A project file with a lake beside it, what happens to its files, and what its state says."""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from mv_assets.config import MaterializedView
from mv_assets.plan import planner
from mv_assets.state.model import Operation, PartitionRow, State
from mv_assets.state.rules import effective_state
from mv_assets.tables.open import open_table
from mv_assets.views.catalog import load
from mv_assets_tests.support.spark_lake import SparkLake

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 14
HOURLY, WEEKLY, WEATHER = "trips_hourly", "trips_weekly", "weather_daily"
_COMPUTED = (Operation.APPEND, Operation.OVERWRITE, Operation.DELETE)
_TRIPS = pa.schema(
    {"at": pa.timestamp("us", "UTC"), "zone": pa.int32(), "fare": pa.decimal128(9, 2), "tip": pa.float64()}
)
_PROJECT: dict[str, Any] = {
    "tables": [
        {"name": "trips", "path": "trips", "time_column": "at", "settle": "1s"},
        {"name": "zones", "path": "zones", "settle": "1s"},
        {"name": "weather", "path": "weather", "time_column": "at", "settle": "1s"},
    ],
    "views": [
        {
            "name": HOURLY,
            "base": "trips",
            "dimensions": ["zones"],
            "sql": """
                SELECT date_trunc('hour', t.at) AS hour, z.borough,
                       count(*) AS trips, sum(t.fare) AS fare, max(t.tip) AS tip
                FROM trips t LEFT JOIN zones z ON t.zone = z.zone GROUP BY ALL""",
            "time_column": "hour",
            "bucket": "1d",
            "start": f"{FIRST:%Y-%m-%d}",
            "description": "Trips by hour and borough.",
        },
        {
            "name": WEEKLY,
            "base": HOURLY,
            "sql": """
                SELECT date_trunc('week', hour) AS week, sum(trips) AS trips, sum(fare) AS fare
                FROM trips_hourly GROUP BY ALL""",
            "time_column": "week",
            "bucket": "1w",
            "start": f"{FIRST:%Y-%m-%d}",
        },
        {
            "name": WEATHER,
            "base": "weather",
            "sql": "SELECT date_trunc('day', at) AS day, max(degrees) AS degrees FROM weather GROUP BY ALL",
            "time_column": "day",
            "bucket": "1d",
            "start": f"{FIRST:%Y-%m-%d}",
        },
    ],
}


def day(number: int) -> str:
    """The key of the given day of January 2024."""
    return f"2024-01-{number:02}"


def days(first: int, last: int) -> list[str]:
    return [day(number) for number in range(first, last + 1)]


def week(number: int) -> str:
    """The key of the week that a day of January 2024 lies in; the 1st was a Monday."""
    return day((number - 1) // 7 * 7 + 1)


BUCKETS = {HOURLY: days(1, DAYS), WEEKLY: [week(1), week(8)], WEATHER: days(1, 3)}


@dataclass
class Site(SparkLake):
    """Trips with zones and weather, written and spoiled as a test likes; DuckDB knows what comes of it."""

    file: str = "project.yaml"
    _random: random.Random = field(default_factory=lambda: random.Random(5))
    _whole: dict[Path, bytes] = field(default_factory=dict)

    @classmethod
    def files_of(cls, folder: Path, state: str) -> Path:
        """Write the project file; where it is."""
        written = {"state": state, "warehouse": str(folder / "warehouse"), **_PROJECT}
        (folder / "project.yaml").write_text(yaml.safe_dump(written))
        return folder / "project.yaml"

    def beside(self, file: str) -> Site:
        """The same site by a project file of its own, which may come to say something else."""
        (self.folder / file).write_text(self.project_file.read_text())
        return Site(self.folder, self.store, views=(), file=file)

    def redefine(self, before: str, after: str) -> None:
        """Write the project file anew, with a piece of SQL that reads otherwise."""
        text = self.project_file.read_text()
        assert before in text
        self.project_file.write_text(text.replace(before, after))
        self.declare()

    @property
    def project_file(self) -> Path:
        return self.folder / self.file

    def declare(self, *_: MaterializedView) -> None:
        self.catalog = load(self.project_file, schemas=False)
        self.project = self.catalog.project
        self.tables = {
            name: open_table(table, self.store.database, self.clock, keep=False)
            for name, table in self.catalog.tables.items()
        }

    # What happens to the files.

    def fill(self) -> None:
        """Two weeks of trips and three days of weather."""
        zones = {"zone": pa.array([1, 2, 3], pa.int32()), "borough": ["A", "B", "C"]}
        _write(self.folder / "zones" / "zones.parquet", pa.table(zones))
        for number in range(1, DAYS + 1):
            self.put_trips(number, f"{day(number)}.parquet")
        for number in range(1, 4):
            self.put_weather(number)

    def put_trips(self, number: int, name: str) -> Path:
        """Trips through a whole day, the last of them at its last millisecond."""
        chance, start = self._random, FIRST + timedelta(days=number - 1)
        times = [start + timedelta(hours=chance.random() * 24) for _ in range(30)]
        times.append(start + timedelta(days=1, milliseconds=-1))
        columns = {
            "at": times,
            "zone": [chance.choice([1, 2, 3, None]) for _ in times],
            "fare": [Decimal(chance.randint(100, 10_000)) / 100 for _ in times],
            "tip": [chance.choice([None, chance.random() * 10]) for _ in times],
        }
        return _write(self.folder / "trips" / name, pa.table(columns, schema=_TRIPS))

    def put_weather(self, number: int) -> Path:
        start = FIRST + timedelta(days=number - 1)
        times = [start + timedelta(hours=hour) for hour in range(24)]
        times.append(start + timedelta(days=1, milliseconds=-1))
        table = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), "degrees": range(25)})
        return _write(self.folder / "weather" / f"{day(number)}.parquet", table)

    def poison(self, path: Path) -> None:
        """Spoil the values of a column; the footer stays whole, so only who reads the rows notices."""
        chunk = pq.ParquetFile(path).metadata.row_group(0).column(_TRIPS.names.index("fare"))
        start, size = chunk.dictionary_page_offset or chunk.data_page_offset, chunk.total_compressed_size
        content = bytearray(self._whole.setdefault(path, path.read_bytes()))
        content[start : start + size] = b"\xff" * size
        _replace(path, bytes(content))

    def heal(self) -> None:
        """Put back whatever was poisoned or taken away."""
        away = self.folder / "weather.away"
        if away.exists():
            away.rename(self.folder / "weather")
        for path, content in self._whole.items():
            _replace(path, content)
        self._whole.clear()

    def lose_weather(self) -> None:
        """The table's folder is gone."""
        (self.folder / "weather").rename(self.folder / "weather.away")

    # What the state says.

    def rows(self, view: str) -> dict[str, PartitionRow]:
        if view not in self.store.views():
            return {}
        snapshot = self.store.snapshot(view)
        return {snapshot.header.buckets.key(bucket): row for bucket, row in snapshot.rows.items()}

    def state_of(self, view: str, bucket: str) -> State:
        return effective_state(self.rows(view).get(bucket), self.store.snapshot(view).header)

    def valid(self, view: str) -> list[str]:
        return [bucket for bucket in sorted(self.rows(view)) if self.state_of(view, bucket) is State.VALID]

    def last_error(self, view: str, bucket: str) -> str | None:
        snapshot = self.store.snapshot(view)
        record = snapshot.attempts.get(snapshot.header.buckets.parse(bucket))
        return None if record is None else record.last_error

    def being_computed(self, view: str, bucket: str) -> bool:
        """Whether an attempt on a bucket was begun and has not ended."""
        if view not in self.store.views():
            return False
        snapshot = self.store.snapshot(view)
        record = snapshot.attempts.get(snapshot.header.buckets.parse(bucket))
        return record is not None and record.generation is not None

    def version_now(self, view: str) -> int:
        return self.store.snapshot(view).header.version

    def versions(self) -> dict[str, int]:
        """A moment in every view's history."""
        return {view: self.version_now(view) for view in self.catalog.views}

    def computed(self, view: str, since: int = 0) -> Counter[str]:
        """How often each bucket was computed after a version."""
        key = self.catalog.view(view).buckets.key
        events = self.store.events(view, most=10_000)
        return Counter(
            key(event.bucket)
            for event in events
            if event.operation in _COMPUTED and event.bucket is not None and event.version > since
        )

    def is_due(self) -> bool:
        """Whether a look would find something to do: what another view computed again, say."""
        return any(planner.plan(self.dry(view)).work for view in self.catalog.views)

    def is_complete(self) -> bool:
        """Whether every bucket that has data up to its end is VALID and has the rows it should have."""
        if any(self.valid(view) != buckets for view, buckets in BUCKETS.items()):
            return False
        with suppress(AssertionError):
            self.check()
            return True
        return False


def _write(path: Path, table: pa.Table) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    _replace(path, out.getvalue().to_pybytes())
    return path


def _replace(path: Path, content: bytes) -> None:
    # Hidden until it is whole.
    draft = path.with_name(f".{path.name}")
    draft.write_bytes(content)
    os.replace(draft, path)  # noqa: PTH105 - the same, and says what it does

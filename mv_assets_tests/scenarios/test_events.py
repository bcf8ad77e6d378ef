"""What happens to a base table, and what the views make of it; DuckDB computes each of them again."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mv_assets.plan import planner
from mv_assets_tests.scenarios.trips import HOURLY, Trips, daily, dear, hourly, monthly
from mv_assets_tests.support.lake import EPOCH
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.spark_lake import SparkLake

SparkLakes = Callable[..., SparkLake]
LAST = 34


@pytest.fixture
def trips(spark_lake: SparkLakes) -> Trips:
    """A month and some days of trips, a file a day, and all views filled."""
    made = Trips(spark_lake)
    for number in range(LAST):
        made.put(f"day-{number:02}.parquet", [number])
    made.lake.run()
    made.lake.check()
    return made


def touched(trips: Trips) -> dict[str, list[int]]:
    """A refresh; the days of which each view computed a bucket."""
    reports = trips.lake.run()
    trips.lake.check()
    return {name: sorted({bucket // DAY for bucket in each.results}) for name, each in reports.items()}


def test_a_cold_backfill_fills_every_view_in_order(trips: Trips) -> None:
    lake = trips.lake
    assert [lake.watermark(name) for name in ("hourly", "daily", "monthly", "dear")] == [LAST, LAST, 31, LAST]
    assert touched(trips) == {"hourly": [], "daily": [], "monthly": [], "dear": []}


def test_a_late_file_changes_exactly_its_buckets_all_the_way_up(trips: Trips) -> None:
    trips.put("late.parquet", [3, 5])
    assert touched(trips) == {"hourly": [3, 4, 5], "daily": [3, 4, 5], "monthly": [0], "dear": [3, 4, 5]}


@pytest.mark.slow
def test_a_correction_of_a_file_is_followed(trips: Trips) -> None:
    trips.put("day-07.parquet", [7], rows=90)
    assert touched(trips) == {"hourly": [7], "daily": [7], "monthly": [0], "dear": [7]}


@pytest.mark.slow
def test_retention_and_a_later_backfill_are_followed(trips: Trips) -> None:
    kept = {path.name: path.read_bytes() for path in trips.files[:3]}
    for path in trips.files[:3]:
        path.unlink()
    assert touched(trips)["hourly"] == [0, 1, 2]
    assert [row.rows for row in trips.lake.snapshot("daily").rows.values()][:3] == [0, 0, 0]
    for name, content in kept.items():
        (trips.lake.folder / "events" / name).write_bytes(content)
    assert touched(trips) == {"hourly": [0, 1, 2], "daily": [0, 1, 2], "monthly": [0], "dear": [0, 1, 2]}


@pytest.mark.slow
def test_a_compaction_changes_no_row(trips: Trips) -> None:
    before = trips.lake.stored("monthly").to_pylist()
    trips.compact(*trips.files[10:20], name="packed.parquet")
    assert touched(trips)["hourly"] == list(range(10, 20))
    assert trips.lake.stored("monthly").to_pylist() == before


@pytest.mark.slow
def test_a_rollback_to_earlier_files_is_followed(trips: Trips, tmp_path: Path) -> None:
    backup = shutil.copytree(trips.lake.folder / "events", tmp_path / "backup")
    trips.put("day-02.parquet", [2])
    trips.put("late.parquet", [9])
    touched(trips)
    shutil.rmtree(trips.lake.folder / "events")
    backup.rename(trips.lake.folder / "events")
    assert touched(trips) == {"hourly": [2, 9], "daily": [2, 9], "monthly": [0], "dear": [2, 9]}


@pytest.mark.slow
def test_a_change_of_the_sql_rebuilds_the_view_and_what_is_based_on_it(trips: Trips) -> None:
    changed = HOURLY.replace("count(*) AS trips", "2 * count(*) AS trips")
    trips.lake.declare(hourly(sql=changed), daily(), monthly(), dear())
    assert touched(trips) == {
        "hourly": list(range(LAST)),
        "daily": list(range(LAST)),
        "monthly": [0],
        "dear": [],
    }


@pytest.mark.slow
def test_while_a_new_definition_is_built_no_bucket_of_the_old_one_counts(trips: Trips) -> None:
    changed = HOURLY.replace("count(*) AS trips", "2 * count(*) AS trips")
    trips.lake.declare(hourly(sql=changed, max_buckets_per_run=10), daily(), monthly(), dear())
    observed = trips.lake.look("hourly")
    work = planner.plan(observed).work[0]
    trips.lake.compute(observed, work)
    computed = {planned.bucket // DAY for planned in work.buckets}
    assert {(row["hour"] - EPOCH).days for row in trips.lake.stored("hourly").to_pylist()} == computed
    daily_work = planner.plan(trips.lake.look("daily")).work
    assert {planned.bucket // DAY for work in daily_work for planned in work.buckets} == computed
    touched(trips)


@pytest.mark.slow
def test_a_changed_dimension_rebuilds_the_views_that_join_it(trips: Trips) -> None:
    trips.zones("Harbour")
    trips.lake.look("hourly")
    assert trips.lake.reason(4, "hourly") == "dimension zones changed"
    assert touched(trips) == {
        "hourly": list(range(LAST)),
        "daily": list(range(LAST)),
        "monthly": [0],
        "dear": [],
    }
    assert "Harbour" in trips.lake.stored("daily")["borough"].to_pylist()


@pytest.mark.slow
def test_a_poisoned_file_in_the_middle_fails_its_buckets_alone_until_it_heals(trips: Trips) -> None:
    for number in (LAST, LAST + 1, LAST + 2):
        trips.put(f"day-{number}.parquet", [number])
    path = trips.files[LAST + 1]
    content = path.read_bytes()
    trips.lake.spoil(path.name, "fare")
    reports = trips.lake.run()
    outcomes = {bucket // DAY: each.outcome.value for bucket, each in reports["hourly"].results.items()}
    assert outcomes == {LAST: "committed", LAST + 1: "failed", LAST + 2: "committed"}
    assert trips.lake.watermark("hourly") == LAST + 1
    trips.lake.check(complete=False)
    path.write_bytes(content)
    trips.lake.clock.now += 3_600_000
    assert touched(trips)["hourly"] == [LAST + 1]
    assert trips.lake.watermark("hourly") == LAST + 3


class Chance:
    """Something happens to the files of a lake, by a seed."""

    def __init__(self, trips: Trips, seed: int) -> None:
        self._trips = trips
        self._random = random.Random(seed)
        self._newest = 6
        self._events = {
            self.arrive: 6,
            self.late: 6,
            self.correct: 3,
            self.retire: 2,
            self.pack: 2,
            self.rename: 1,
        }

    def happen(self) -> None:
        for event in self._random.choices(list(self._events), list(self._events.values()), k=2):
            event()

    def arrive(self) -> None:
        self._newest += self._random.randint(1, 4)
        days = list(range(max(self._newest - 3, 0), self._newest + 1))
        self._trips.put(f"new-{self._newest}.parquet", days, rows=20)

    def late(self) -> None:
        self._trips.put(
            f"late-{self._random.random()}.parquet", [self._random.randrange(self._newest)], rows=5
        )

    def correct(self) -> None:
        name = self._random.choice(self._trips.files).name
        self._trips.put(name, [self._random.randrange(self._newest)], rows=10)

    def retire(self) -> None:
        if len(self._trips.files) > 3:
            self._random.choice(self._trips.files).unlink()

    def pack(self) -> None:
        if len(self._trips.files) > 3:
            pair = self._random.sample(self._trips.files, 2)
            self._trips.compact(*pair, name=f"packed-{self._random.random()}.parquet")

    def rename(self) -> None:
        self._trips.zones(self._random.choice("ABXYZ"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, pytest.param(12, marks=pytest.mark.deep)])
def test_whatever_happens_in_whatever_order_every_view_is_right(spark_lake: SparkLakes, seed: int) -> None:
    trips = Trips(spark_lake, seed=seed)
    chance = Chance(trips, seed)
    chance.arrive()
    for _ in range(8):
        chance.happen()
        trips.lake.run()
        trips.lake.check()

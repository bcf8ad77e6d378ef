from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mv_assets.buckets import DAY, HOUR, MINUTE
from mv_assets.demo.city import TRIPS, bustle, corrected, trips, zones

MONDAY = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1_000)


def some(start: int = MONDAY, end: int = MONDAY + DAY, seed: int = 1, least: int = 1) -> pa.Table:
    return trips(np.random.default_rng(seed), start, end, least)


def test_the_same_chance_gives_the_same_trips() -> None:
    assert some(seed=1).equals(some(seed=1))
    assert not some(seed=1).equals(some(seed=2))


def test_trips_lie_within_their_time_and_in_zones_that_exist() -> None:
    start, end = MONDAY + 7 * HOUR + 13 * MINUTE, MONDAY + 9 * HOUR + 1_000
    found = some(start, end)
    times = found["pickup_at"].cast(pa.int64())
    assert start <= pc.min(times).as_py() <= pc.max(times).as_py() < end
    assert set(found["zone_id"].to_pylist()) <= set(zones()["zone_id"].to_pylist())
    assert found.schema == TRIPS
    assert pc.min(found["fare"]).as_py() > 0
    assert found.num_rows > 300


def test_a_moment_has_at_least_a_few_trips() -> None:
    assert some(MONDAY, MONDAY + 1_000, least=4).num_rows >= 4


def test_weekdays_have_rush_hours_and_weekends_do_not() -> None:
    saturday = MONDAY + 5 * DAY
    assert bustle(MONDAY + 18 * HOUR) > 3 * bustle(MONDAY + 3 * HOUR)
    assert bustle(MONDAY + 8 * HOUR) > 2 * bustle(saturday + 8 * HOUR)
    assert all(0 < bustle(MONDAY + hour * HOUR) <= 1.1 for hour in range(7 * 24))
    # Every hour has some, or nobody would see it in a view.
    hours = pc.hour(some()["pickup_at"]).to_pylist()
    assert set(hours) == set(range(24))


def test_a_correction_changes_fares_and_nothing_else() -> None:
    found = some()
    changed = corrected(found, 1.1)
    assert changed.schema == found.schema
    assert changed.drop_columns("fare").equals(found.drop_columns("fare"))
    assert all(
        new > old for new, old in zip(changed["fare"].to_pylist(), found["fare"].to_pylist(), strict=True)
    )

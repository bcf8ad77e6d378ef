from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mv_assets.buckets import DAY, HOUR
from mv_assets.demo import Demo
from mv_assets.demo.feeder import PAUSE_S, SLOT, advance, feed, reached
from mv_assets.demo.files import files_in, path_for, write

MONDAY = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1_000)
NOON = MONDAY + 12 * HOUR


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    return Demo(tmp_path)


class Time:
    """A clock that only waiting moves, for so many rounds."""

    def __init__(self, now: int, rounds: int) -> None:
        self.now = now
        self.rounds = rounds

    def clock(self) -> int:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += int(seconds * 1_000)
        self.rounds -= 1
        return self.rounds == 0


def run(demo: Demo, time: Time, failed: Callable[[Exception], None] | None = None) -> None:
    def unexpected(error: Exception) -> None:
        raise error

    chance = np.random.default_rng(7)
    feed(demo, clock=time.clock, wait=time.wait, chance=chance, failed=failed or unexpected)


def in_time(demo: Demo) -> list[tuple[int, int]]:
    return [(file.start, file.end) for file in files_in(demo.trips) if not file.late]


def test_every_file_holds_what_its_name_says(demo: Demo) -> None:
    for path in advance(demo, MONDAY + 5 * HOUR, MONDAY + DAY + 1_999):
        (file,) = [each for each in files_in(demo.trips) if each.path == path]
        times = pq.read_table(path, partitioning=None)["pickup_at"].cast(pa.int64())
        assert file.start <= pc.min(times).as_py()
        assert pc.max(times).as_py() < file.end
    assert in_time(demo) == [
        (MONDAY + 5 * HOUR, MONDAY + SLOT),
        (MONDAY + SLOT, MONDAY + 2 * SLOT),
        (MONDAY + 2 * SLOT, MONDAY + 3 * SLOT),
        (MONDAY + 3 * SLOT, MONDAY + DAY),
        (MONDAY + DAY, MONDAY + DAY + 1_000),
    ]


def test_the_feeder_goes_on_where_the_data_ends_without_gap_or_overlap(demo: Demo) -> None:
    advance(demo, MONDAY, NOON)
    rounds = 30
    run(demo, Time(NOON + 1_234, rounds))
    held = in_time(demo)
    assert [end for _, end in held[:-1]] == [start for start, _ in held[1:]]
    last = NOON + 1_234 + (rounds - 1) * int(PAUSE_S * 1_000)
    assert reached(demo) == last - last % 1_000


def test_about_one_file_in_twelve_is_hours_or_days_late(demo: Demo) -> None:
    advance(demo, MONDAY, NOON)
    rounds = 240
    run(demo, Time(NOON, rounds))
    late = [file for file in files_in(demo.trips) if file.late]
    assert rounds / 30 < len(late) < rounds / 6
    for file in late:
        assert NOON - 3 * DAY <= file.start < NOON - HOUR
        assert file.start // HOUR == (file.end - 1) // HOUR


def test_a_night_without_a_feeder_is_caught_up_with(demo: Demo) -> None:
    advance(demo, MONDAY, NOON)
    run(demo, Time(NOON + 15 * HOUR, 1))
    assert in_time(demo)[2:] == [
        (NOON, MONDAY + 3 * SLOT),
        (MONDAY + 3 * SLOT, MONDAY + DAY),
        (MONDAY + DAY, NOON + 15 * HOUR),
    ]


def test_a_clock_that_was_set_back_adds_nothing_twice(demo: Demo) -> None:
    advance(demo, MONDAY, NOON)
    run(demo, Time(NOON - HOUR, 3))
    assert in_time(demo)[-1][1] == NOON


def test_the_feeder_survives_a_full_disk(demo: Demo) -> None:
    demo.trips.write_text("no folder")
    said: list[Exception] = []
    time = Time(NOON, 4)

    def failed(error: Exception) -> None:
        said.append(error)
        if len(said) == 2:
            demo.trips.unlink()

    run(demo, time, failed)
    assert len(said) == 2
    assert len(in_time(demo)) >= 1


def test_the_feeder_survives_what_nobody_thought_of(demo: Demo) -> None:
    """A clock before the year 1 is one such thing: Python has no date for it."""
    said: list[Exception] = []
    time = Time(-(10**14), 2)

    def failed(error: Exception) -> None:
        said.append(error)
        time.now = NOON

    run(demo, time, failed)
    assert [type(error) for error in said] == [ValueError]
    assert len(in_time(demo)) >= 1


def test_names_are_never_used_twice_and_foreign_files_are_left_alone(demo: Demo) -> None:
    table = pa.table({"pickup_at": [MONDAY]})
    first = path_for(demo.trips, "late", NOON, NOON + HOUR)
    write(table, first)
    second = path_for(demo.trips, "late", NOON, NOON + HOUR)
    write(table, second)
    assert first != second
    write(table, first.with_name("mine.parquet"))
    write(table, demo.trips / "other" / first.name)
    assert [file.path for file in files_in(demo.trips)] == sorted([first, second])
    assert [path for path in demo.trips.rglob("*") if path.name.startswith(".")] == []

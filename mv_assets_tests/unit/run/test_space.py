"""Too little room for Spark's files: what fits is computed, and no bucket is blamed for what does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from mv_assets.buckets import DAY
from mv_assets.run.compute import Alike
from mv_assets.run.two_steps import TwoStepRefresh
from mv_assets.spark.errors import OutOfSpace
from mv_assets.state import health
from mv_assets_tests.support.duckdb_engine import DuckDbComputation
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.warehouse_lake import DuckDbLake

DuckDbLakes = Callable[..., DuckDbLake]


def too_big(patch: pytest.MonkeyPatch, *days: int) -> list[list[int]]:
    """There is no room for these days; the days of each job that was tried."""
    real, tried = DuckDbComputation.write, list[list[int]]()

    def write(self: DuckDbComputation, alike: Alike, buckets: Sequence[int], place: str) -> None:
        tried.append([bucket // DAY for bucket in buckets])
        if {bucket // DAY for bucket in buckets} & set(days):
            raise OutOfSpace("No space left on device")
        real(self, alike, buckets, place)

    patch.setattr(DuckDbComputation, "write", write)
    return tried


def test_a_bucket_that_needs_more_room_than_there_is_takes_no_other_along(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = duckdb_lake(view(max_buckets_per_run=4))
    made.days(*range(8))
    with monkeypatch.context() as patch:
        too_big(patch, 2)
        report = made.run()["v"]
    assert isinstance(report.error, OutOfSpace)
    assert (made.states(*range(8)), made.watermark()) == ("VV-VVVVV", 2)
    assert made.snapshot().attempts == {}
    assert len(health.troubles(made.snapshot())) == 1
    made.run()
    assert (made.states(*range(8)), made.watermark()) == ("VVVVVVVV", 8)
    assert health.troubles(made.snapshot()) == []


def test_it_keeps_nobody_out_when_it_is_all_that_is_left_of_its_work(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = duckdb_lake(view(max_buckets_per_run=2))
    made.days(0, 1)
    with monkeypatch.context() as patch:
        too_big(patch, 0)
        made.run()
        assert made.states(0, 1) == "-V"
        made.days(2, 3)
        made.run()
        assert made.states(*range(4)) == "-VVV"


def test_where_nothing_fits_it_is_the_disk_and_not_everything_is_tried(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = duckdb_lake(view(max_buckets_per_run=4))
    made.days(*range(8))
    with monkeypatch.context() as patch:
        tried = too_big(patch, *range(8))
        report = made.run()["v"]
    assert isinstance(report.error, OutOfSpace)
    assert made.states(*range(8)) == "--------"
    # The work, its half, and two buckets alone; then the next, down to the first bucket alone.
    assert tried[:4] == [[0, 1, 2, 3], [0, 1], [0], [1]]
    assert len(tried) <= 8
    assert made.snapshot().attempts == {}


@pytest.mark.parametrize(
    ("without_room", "states"), [((0,), "-VVVVV"), ((2, 3), "VV--VV"), ((0, 3), "-VV---")]
)
def test_work_in_two_steps_without_room_keeps_no_other_out_and_the_second_is_the_disk(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch, without_room: Sequence[int], states: str
) -> None:
    made = duckdb_lake(view(max_buckets_per_run=2))
    made.days(*range(6))
    project = made.open()
    with monkeypatch.context() as patch:
        tried = too_big(patch, *without_room)
        with TwoStepRefresh(
            project, made.catalog.view("v"), [number * DAY for number in range(6)]
        ) as refresh:
            refresh.stage()
            results = refresh.commit()
    assert made.states(*range(6)) == states
    assert sorted(results) == [number * DAY for number in range(6)]
    assert all(results[number * DAY].done == (state == "V") for number, state in enumerate(states))
    assert ([4, 5] in tried) == ("V" in states[4:])
    assert len(health.troubles(made.snapshot())) == 1

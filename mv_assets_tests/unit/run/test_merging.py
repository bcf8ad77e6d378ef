"""When files are merged into what is stored of a bucket, by the plans that say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mv_assets.observe import additions as merging
from mv_assets.observe.additions import together
from mv_assets.plan import planner
from mv_assets.state.model import PartitionRow
from mv_assets_tests.support.lake import Lake, day, through, view
from mv_assets_tests.support.memory_table import DAY

Lakes = Callable[..., Lake]


def merged(lake: Lake, name: str = "v") -> list[int]:
    """The days that the next plan merges."""
    return sorted(bucket // DAY for work in planner.plan(lake.dry(name)).work for bucket in work.additions)


@pytest.fixture
def filled(lake: Lakes) -> Lake:
    """Three days, each of a large file."""
    made = lake()
    for number in range(3):
        made.write(f"day-{number}.parquet", [*through(number)] * 2_000, number)
    made.refresh()
    return made


def test_a_file_that_only_came_is_merged(filled: Lake) -> None:
    late = filled.write("late.parquet", through(1))
    before = (filled.folder / "events" / "day-1.parquet").stat().st_size
    [work] = planner.plan(filled.dry()).work
    row = filled.row(1)
    assert row is not None
    assert merged(filled) == [1]
    assert work.bytes == late.stat().st_size + row.bytes
    assert work.spared == before - row.bytes


def test_what_came_to_several_buckets_is_read_once(filled: Lake) -> None:
    late = filled.write("late.parquet", through(0, 2))
    [work] = planner.plan(filled.dry()).work
    assert merged(filled) == [0, 1, 2]
    stored = sum(row.bytes for row in filled.snapshot().rows.values())
    assert work.bytes == late.stat().st_size + stored


def test_a_change_a_removal_and_a_rename_are_recomputed(filled: Lake) -> None:
    for number in range(3):
        filled.write(f"late-{number}.parquet", through(number))
    filled.write("day-0.parquet", through(0), 7)
    filled.remove("day-1.parquet")
    content = filled.remove("day-2.parquet")
    (filled.folder / "events" / "renamed.parquet").write_bytes(content)
    assert filled.states(0, 1, 2) == "VVV"
    assert merged(filled) == []


def test_what_somebody_distrusts_is_recomputed(filled: Lake) -> None:
    filled.write("late.parquet", through(0, 2))
    filled.manager.force(filled.catalog.views["v"].declaration, [1 * DAY], "it looks odd")
    assert merged(filled) == [0, 2]


def test_another_definition_is_recomputed(filled: Lake) -> None:
    filled.write("late.parquet", through(1))
    filled.declare(view(sql="SELECT at, x FROM events", time_column="at"))
    assert merged(filled) == []


def test_a_changed_dimension_is_recomputed(lake: Lakes) -> None:
    sql = "SELECT e.at, z.x FROM events e JOIN zones z USING (x) WHERE e.x > 1"
    made = lake(view(sql=sql, time_column="at", dimensions=["zones"]), dimensions=["zones"])
    made.write("zones.parquet", through(0), table="zones")
    for number in range(2):
        made.write(f"day-{number}.parquet", [*through(number)] * 2_000, number)
    made.refresh()
    made.write("late.parquet", through(1))
    assert merged(made) == [1]
    made.write("zones.parquet", through(0), 5, table="zones")
    assert merged(made) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT date_trunc('hour', at) AS hour, avg(x) AS n FROM events GROUP BY ALL",
        "SELECT DISTINCT at AS hour FROM events",
    ],
)
def test_what_does_not_come_in_parts_is_recomputed(lake: Lakes, sql: str) -> None:
    made = lake(view(sql=sql))
    for number in range(2):
        made.write(f"day-{number}.parquet", [*through(number)] * 2_000, number)
    made.refresh()
    made.write("late.parquet", through(1))
    assert made.planned() == [("OVERWRITE", [1])]
    assert merged(made) == []


def test_what_would_read_more_is_recomputed(spark_lake: Lakes) -> None:
    made = spark_lake(
        view(sql="SELECT at AS hour, x, concat(md5(concat('a', x)), md5(concat('b', x))) AS w FROM events")
    )
    made.days(0, 1)
    made.refresh()
    row = made.row(1)
    assert row is not None
    assert row.bytes > (made.folder / "events" / "day-1.parquet").stat().st_size
    made.write("late.parquet", through(1))
    assert merged(made) == []


def test_what_spares_little_is_recomputed(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.write("late.parquet", through(0, 2))
    [work] = planner.plan(filled.dry()).work
    monkeypatch.setattr(merging, "WORTH", work.spared)
    assert merged(filled) == [0, 1, 2]
    monkeypatch.setattr(merging, "WORTH", work.spared + 1)
    assert merged(filled) == []
    [whole] = planner.plan(filled.dry()).work
    assert (whole.bytes, whole.spared) == (work.bytes + work.spared, 0)


@pytest.mark.parametrize(("worth", "asked"), [(1, {0, 2}), (1 << 40, set())])
def test_what_buckets_were_computed_from_is_loaded_for_those_that_may_be_merged(
    filled: Lake, monkeypatch: pytest.MonkeyPatch, worth: int, asked: set[int]
) -> None:
    loaded, real = set[int](), merging.addition

    def addition(row: PartitionRow, *given: Any) -> Any:
        loaded.add(row.bucket // DAY)
        return real(row, *given)

    monkeypatch.setattr(merging, "addition", addition)
    monkeypatch.setattr(merging, "WORTH", worth)
    filled.write("late-0.parquet", [day(0)])
    filled.write("late-2.parquet", [day(2)])
    # One more row, in a file that was there.
    filled.write("day-1.parquet", [*through(1), day(1)])
    planner.plan(filled.dry())
    assert loaded == asked


def test_buckets_of_which_one_has_a_file_that_another_adds_are_not_merged_by_one_job() -> None:
    files = {day: frozenset({f"day-{day}", "late"}) for day in range(4)}
    added = {day: frozenset({"late"}) for day in (0, 1, 3)} | {2: frozenset({"day-2"})}
    assert together(added, files) == [[0, 1, 3], [2]]


def test_buckets_that_share_nothing_are_merged_by_one_job() -> None:
    files = {day: frozenset({f"day-{day}", f"late-{day}"}) for day in range(3)}
    assert together({day: frozenset({f"late-{day}"}) for day in range(3)}, files) == [[0, 1, 2]]

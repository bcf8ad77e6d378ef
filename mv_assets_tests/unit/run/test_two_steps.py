"""Chosen buckets: staged, then committed, and what is said of those that there is nothing to do about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn

import pytest

from mv_assets.buckets import DAY, HOUR
from mv_assets.plan import planner
from mv_assets.progress import Progress
from mv_assets.run.refresher import Refresher
from mv_assets.run.two_steps import TwoStepRefresh
from mv_assets.run.warehouse import new_generation
from mv_assets.spark.errors import EngineUnavailable
from mv_assets.state.model import Attempt, Doing
from mv_assets.tables.errors import TableUnreadable
from mv_assets_tests.support.duckdb_engine import DuckDbEngine
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.warehouse_lake import DuckDbLake


def said_of(made: DuckDbLake, *days: int) -> dict[int, str | None]:
    with TwoStepRefresh(made.open(), made.catalog.view("v"), [number * DAY for number in days]) as refresh:
        refresh.stage()
        return {bucket // DAY: result.reason for bucket, result in refresh.results.items()}


def test_a_bucket_that_is_not_due_says_what_it_really_waits_for(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake],
) -> None:
    made = duckdb_lake_on_sqlite(view(buffer="2h", start="1970-01-02"))
    made.days(1, 2)
    made.clock.now = 3 * DAY + HOUR
    made.run()
    buffered = "not due: it ends at 1970-01-04T00:00:00Z, and is computed 2h later"
    assert said_of(made, 2) == {2: buffered}
    made.clock.now = 9 * DAY
    made.run()
    known = "events is known to have data up to 1970-01-03T23:59:59.999Z"
    # Before and after the round in which nothing is new.
    for _ in range(2):
        found = said_of(made, 0, 2, 3)
        assert (found[0] or "").startswith("not due: it lies before the view's coverage")
        assert found[2] == "it is VALID already"
        assert found[3] == f"not due: it ends at 1970-01-05T00:00:00Z, and {known}"


def troubles_at_work(made: DuckDbLake) -> list[str]:
    return [trouble.what for trouble in made.snapshot().troubles if trouble.doing is Doing.WORK]


def test_a_table_that_can_not_be_listed_ends_it_and_is_a_trouble_of_the_view(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake],
) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    events = made.folder / "events"
    events.rename(made.folder / "away")
    with pytest.raises(TableUnreadable) as ended:
        said_of(made, 0)
    assert troubles_at_work(made) == [str(ended.value)]
    (made.folder / "away").rename(events)


def test_without_spark_nothing_is_staged_and_no_bucket_blamed(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unplugged(_engine: DuckDbEngine) -> NoReturn:
        raise EngineUnavailable("unplugged")

    made = duckdb_lake_on_sqlite()
    made.days(0, 1)
    monkeypatch.setattr(DuckDbEngine, "session", unplugged)
    with pytest.raises(EngineUnavailable) as ended:
        said_of(made, 0, 1)
    assert troubles_at_work(made) == [str(ended.value)]
    assert (made.snapshot().rows, made.snapshot().attempts) == ({}, {})


def test_a_false_alarm_is_undone_beside_what_is_computed(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake],
) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0, 1)
    made.run()
    before, content = made.named(), made.remove("day-0.parquet")
    made.look()
    (made.folder / "events" / "day-0.parquet").write_bytes(content)
    made.write("late.parquet", [day(1)])
    with TwoStepRefresh(made.open(), made.catalog.view("v"), [0, DAY]) as refresh:
        assert refresh.stage()
        found = refresh.commit()
    assert [found[bucket].outcome for bucket in (0, DAY)] == ["reverted", "committed"]
    assert [made.named()[number] == before[number] for number in (0, 1)] == [True, False]


def test_what_is_valid_is_not_forced_unless_asked(duckdb_lake_on_sqlite: Callable[..., DuckDbLake]) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    made.run()
    version = made.version()
    with TwoStepRefresh(made.open(), made.catalog.view("v"), [0]) as refresh:
        refresh.force("somebody asks", valid_too=False)
    assert (made.states(0), made.version()) == ("V", version)


def test_what_killed_its_process_before_it_had_a_row_is_tried_again_in_spite_of_its_backoff(
    duckdb_lake_on_sqlite: Callable[..., DuckDbLake],
) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    [work] = planner.plan(made.look()).work
    for _ in range(8):
        made.manager.register(
            made.catalog.view("v").declaration, Attempt(new_generation(), made.version(), work.buckets)
        )
    made.later()
    assert "backing off" in str(said_of(made, 0)[0])
    with TwoStepRefresh(made.open(), made.catalog.view("v"), [0]) as refresh:
        refresh.force("somebody asks", valid_too=False)
        assert refresh.stage()
        refresh.commit()
    assert made.states(0) == "V"


def test_work_is_told_of_alike_whoever_commits_it(duckdb_lake_on_sqlite: Callable[..., DuckDbLake]) -> None:
    told = list[list[tuple[object, ...]]]()
    for _ in range(2):
        made, heard = duckdb_lake_on_sqlite(view(max_buckets_per_run=2)), Heard()
        made.days(0, 1, 2)
        told.append(heard.told)
        if len(told) == 1:
            Refresher(made.open(), progress=heard).run()
        else:
            with TwoStepRefresh(
                made.open(), made.catalog.view("v"), [0, DAY, 2 * DAY], progress=heard
            ) as refresh:
                assert refresh.stage()
                refresh.commit()
        assert made.states(0, 1, 2) == "VVV"
        made.manager.drop("v")
    one, other = told
    # The refresh goes round once more, to see that nothing is left.
    assert one[: len(other)] == other
    assert [(what, *rest[:1]) for what, *rest in other] == [
        ("plans", 3),
        ("begins", "APPEND v 1970-01-01 to 1970-01-02"),
        ("ends", 2),
        ("begins", "APPEND v 1970-01-03"),
        ("ends", 1),
    ]


class Heard(Progress):
    def __init__(self) -> None:
        self.told = list[tuple[object, ...]]()

    def plans(self, buckets: int, size: int) -> None:
        self.told.append(("plans", buckets, size))

    def begins(self, what: str) -> None:
        self.told.append(("begins", what))

    def ends(self, buckets: int, size: int) -> None:
        self.told.append(("ends", buckets, size))


def test_files_that_still_arrive_are_waited_for(duckdb_lake_on_sqlite: Callable[..., DuckDbLake]) -> None:
    made = duckdb_lake_on_sqlite(table={"settle": "1h", "settle_at_most": "1h"})
    made.days(0)
    made.clock.now = time.time_ns() // 1_000_000
    slept = list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        made.later(int(seconds * 1_000) + 1)

    with TwoStepRefresh(made.open(), made.catalog.view("v"), [0], sleep) as refresh:
        assert refresh.stage()
        refresh.commit()
    assert made.states(0) == "V"
    assert 0 < sum(slept) <= 3_601

"""A bucket that a person names is computed, due or not; where that can't be, it says why."""

from __future__ import annotations

import time
from collections.abc import Callable

from mv_assets.buckets import DAY, HOUR
from mv_assets.observe.observation import Observation
from mv_assets.plan import planner
from mv_assets.plan.scope import Scope, prepare
from mv_assets.run.refresher import Report
from mv_assets.state.model import Attempt
from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.support.warehouse_lake import DuckDbLake

Make = Callable[..., DuckDbLake]


def asked(made: DuckDbLake, *days: int, name: str = "v", max_bytes: int | None = None) -> Report:
    """A refresh of neighbouring days, as a person names them."""
    declared = made.catalog.view(name)
    scope = Scope.of(declared, [number * DAY for number in days], max_bytes)
    return made.run(name, scope=scope)[name]


def wrong(report: Report) -> list[str]:
    return report.wrong.sentences(report.view.name, report.view.buckets)


def outcomes(report: Report) -> dict[int, str]:
    return {bucket // DAY: result.outcome.value for bucket, result in report.results.items()}


def test_a_day_that_has_begun_is_computed_and_w_stays_with_the_data(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.days(0)
    made.write("today.parquet", [day(1, 0), day(1, 9)])
    made.clock.now = DAY + 10 * HOUR
    made.run()
    assert (made.states(0, 1), made.watermark()) == ("V-", 1)
    report = asked(made, 1)
    assert (outcomes(report), wrong(report)) == ({1: "committed"}, [])
    assert (made.states(0, 1), made.watermark()) == ("VV", 1)
    made.check(complete=False)
    # Nothing is left of it: it is marked, computed again and passed by W like any other.
    assert asked(made, 1).results == {}
    made.write("later.parquet", [day(1, 11)])
    made.clock.now = DAY + 12 * HOUR
    made.look()
    assert made.states(1) == "S"
    made.run()
    assert (made.states(1), made.watermark()) == ("V", 1)
    made.write("whole.parquet", through(1))
    made.clock.now = 2 * DAY
    made.run()
    assert (made.states(1), made.watermark()) == ("V", 2)


def test_a_day_whose_buffer_is_not_over_is_computed(duckdb_lake: Make) -> None:
    made = duckdb_lake(view(buffer="6h"))
    made.days(0)
    made.clock.now = DAY + HOUR
    assert outcomes(asked(made, 0)) == {0: "committed"}
    assert made.watermark() == 1


def test_neighbours_that_are_due_and_not_due_are_computed_together(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.days(0, 1)
    made.write("more.parquet", [day(2, 1), day(4, 1)])
    made.clock.now = 9 * DAY
    assert outcomes(asked(made, 0, 1, 2, 3, 4)) == dict.fromkeys(range(5), "committed")
    # The file reaches into the third day and the fifth, and over the fourth.
    assert (made.states(0, 1, 2, 3, 4), made.watermark()) == ("VVVVV", 4)


def test_a_day_without_rows_says_so(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.days(0)
    made.clock.now = 9 * DAY
    report = asked(made, 0, 1, 2)
    assert outcomes(report) == {0: "committed"}
    known = "and events is known to have data up to 1970-01-01T23:59:59.999Z"
    assert wrong(report) == [
        f"v 1970-01-02: events has no rows of it yet: it ends at 1970-01-03T00:00:00Z, {known}",
        f"v 1970-01-03: events has no rows of it yet: it ends at 1970-01-04T00:00:00Z, {known}",
    ]
    assert (made.states(0, 1, 2), made.watermark()) == ("V--", 1)


def test_nothing_is_known_of_an_empty_table(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.clock.now = 9 * DAY
    [said] = wrong(asked(made, 0))
    assert said.startswith("v 1970-01-01: events has no rows of it yet: it ends at 1970-01-02T00:00:00Z")
    assert said.endswith("and events is known to have nothing")


def test_a_day_that_is_still_to_come_says_so(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.write("ahead.parquet", [day(3, 1)])
    made.clock.now = 2 * DAY
    assert wrong(asked(made, 3)) == ["v 1970-01-04: it lies in the future"]
    # Its rows lie ahead, but it has begun.
    made.clock.now = 3 * DAY
    assert outcomes(asked(made, 3)) == {3: "committed"}
    assert made.watermark() == 0


def test_a_frozen_day_says_what_it_waits_for(duckdb_lake: Make) -> None:
    made = duckdb_lake(view(on_base_delete="freeze"))
    made.days(0, 1)
    made.run()
    made.remove("day-0.parquet")
    made.manager.force(made.catalog.view("v").declaration, [0], "a person")
    [said] = wrong(asked(made, 0))
    assert said.startswith("v 1970-01-01: frozen: 1 of its files are gone (day-0.parquet)")


def test_a_day_whose_files_still_arrive_is_waited_for(duckdb_lake: Make) -> None:
    made = duckdb_lake(table={"settle": "1h", "settle_at_most": "1h"})
    made.write("today.parquet", [day(0, 0), day(0, 9)])
    begin = made.clock.now = time.time_ns() // 1_000_000
    assert outcomes(asked(made, 0)) == {0: "committed"}
    assert made.clock.now - begin > HOUR // 2


def test_what_somebody_computes_already_is_left_to_them_and_said(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.write("today.parquet", [day(0, 0), day(0, 9)])
    made.clock.now = 10 * HOUR
    observed = made.watch().round(named={"v": frozenset([0])})["v"]
    assert isinstance(observed, Observation)
    made.manager.register(
        made.catalog.view("v").declaration,
        Attempt("another", made.version(), planner.plan(observed).work[0].buckets),
    )
    assert wrong(asked(made, 0)) == ["v 1970-01-01: in flight: another"]


def test_what_there_was_no_leave_to_read_is_as_it_was_wanted(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.days(0)
    report = asked(made, 0, max_bytes=1)
    assert (report.results, wrong(report)) == ({}, [])
    assert report.waiting[0].reason.startswith("left for later")


def test_who_names_nothing_gets_what_is_due(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.write("today.parquet", [day(0, 0), day(0, 9)])
    made.clock.now = 9 * DAY
    report = made.run("v")["v"]
    assert (report.results, report.waiting, wrong(report)) == ({}, (), [])


def test_a_day_without_rows_is_not_emptied_by_force_either(duckdb_lake: Make) -> None:
    made = duckdb_lake()
    made.days(0)
    made.clock.now = 9 * DAY
    made.run()
    declared, days = made.catalog.view("v"), [0, DAY, 2 * DAY]
    prepare(made.manager, made.store, declared, days, made.clock.now, force=True, extend=False)
    report = asked(made, 0, 1, 2)
    assert outcomes(report) == {0: "committed"}
    assert [line.partition(" yet")[0] for line in wrong(report)] == [
        "v 1970-01-02: events has no rows of it",
        "v 1970-01-03: events has no rows of it",
    ]
    assert (made.states(0, 1, 2), made.watermark()) == ("V--", 1)

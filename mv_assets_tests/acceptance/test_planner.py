"""Cases 27 to 38 with the planner itself, on real files."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from mv_assets.buckets import HOUR, MINUTE
from mv_assets.defs.tick.requests import askings
from mv_assets.observe.observation import Limits, Observed, nothing_due
from mv_assets.plan import planner
from mv_assets.state import rules
from mv_assets.state.errors import GaveUp
from mv_assets.state.model import Attempt, State
from mv_assets.state.rules import Due
from mv_assets_tests.support.faults import ALWAYS as FOREVER
from mv_assets_tests.support.faults import failing
from mv_assets_tests.support.lake import Lake, day, observation_of, operations_of, through, view
from mv_assets_tests.support.memory_table import DAY

Lakes = Callable[..., Lake]


def test_27_without_a_known_source_end_nothing_is_appended(lake: Lakes) -> None:
    made = lake()
    assert made.planned() == []
    made.write("future.parquet", [day(60_000)])
    assert made.planned() == []
    assert made.snapshot().header.source_end is None


def test_28_a_file_that_ends_in_the_buckets_last_millisecond_admits_it(lake: Lakes) -> None:
    made = lake()
    made.write("short.parquet", [day(0, 0), day(0, 23.999)])
    assert made.planned() == []
    made.write("whole.parquet", through(0))
    assert made.planned() == [("APPEND", [0])]


def test_29_appends_end_where_the_data_ends_however_late_it_is(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.converge()
    made.clock.now += 1_000 * DAY
    assert (made.planned(), made.watermark()) == ([], 2)


def test_30_with_data_ahead_of_the_buffer_the_clock_wins(lake: Lakes) -> None:
    made = lake(view(buffer="2h"))
    made.clock.now = 3 * DAY + HOUR
    made.days(0, 1, 2)
    assert made.planned() == [("APPEND", [0, 1])]
    made.clock.now += HOUR
    assert made.planned() == [("APPEND", [0, 1, 2])]


def test_31_after_a_failure_in_the_middle_the_plan_holds_only_it_and_then_w_jumps(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1, 2)
    made.look()
    made.damage("day-1.parquet")
    made.refresh()
    assert (made.states(0, 1, 2), made.watermark()) == ("VSV", 1)
    made.days(1)
    assert made.planned() == [("OVERWRITE", [1])]
    made.refresh()
    assert (made.states(0, 1, 2), made.watermark()) == ("VVV", 3)


def test_32_a_false_alarm_is_reverted_without_a_run(lake: Lakes) -> None:
    made = lake()
    made.days(0)
    made.converge()
    content = made.remove("day-0.parquet")
    made.look()
    before = made.row(0)
    (made.folder / "events" / "day-0.parquet").write_bytes(content)
    assert made.planned() == [("REVERT", [0])]
    assert made.refresh() == {0: "reverted"}
    row = made.row(0)
    assert before is not None
    assert row is not None
    assert (row.state, row.generation, row.inputs) == (State.VALID, before.generation, before.inputs)


def test_33_a_revert_that_could_not_be_written_is_healed_by_the_next_plan(lake: Lakes) -> None:
    made = lake()
    made.days(0)
    made.converge()
    content = made.remove("day-0.parquet")
    made.look()
    (made.folder / "events" / "day-0.parquet").write_bytes(content)
    observed = made.look()
    with failing(made.store, "UPDATE", times=FOREVER), pytest.raises(GaveUp, match="revert on view 'v'"):
        made.carry_out(observed)
    assert made.states(0) == "S"
    assert made.refresh() == {0: "reverted"}


def test_34_a_failing_bucket_backs_off_while_the_others_go_on(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.look()
    made.damage("day-0.parquet")
    made.refresh()
    made.days(2)
    plan = planner.plan(made.look())
    assert operations_of(plan) == [("APPEND", [2])]
    assert plan.failing == ()
    assert "backing off until" in plan.waiting[0].reason
    assert "day-0.parquet" in plan.waiting[0].reason
    made.clock.now += rules.retry_delay(1)
    assert [each.planned.bucket for each in planner.plan(made.look()).failing] == [0]


def test_36_a_stale_bucket_that_is_still_empty_is_not_emptied_again(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.converge()
    content = made.remove("day-0.parquet")
    made.converge()
    (made.folder / "events" / "day-0.parquet").write_bytes(content)
    made.look()
    made.remove("day-0.parquet")
    assert made.planned() == [("REVERT", [0])]


def test_38_stale_buckets_become_contiguous_ranges_of_bounded_length_with_the_newest_first(
    lake: Lakes,
) -> None:
    made = lake(view(max_buckets_per_run=3))
    made.days(*range(12))
    assert [days for _, days in made.planned()] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]
    made.converge()
    for number in (0, 1, 4, 5, 6, 7, 10):
        made.write(f"day-{number}.parquet", through(number), value=77)
    made.days(12)
    expected = [
        ("OVERWRITE", [10]),
        ("OVERWRITE", [7]),
        ("OVERWRITE", [4, 5, 6]),
        ("OVERWRITE", [0, 1]),
        ("APPEND", [12]),
    ]
    assert made.planned() == expected


def test_first_comes_what_must_not_starve_the_oldest_repair_and_one_append(lake: Lakes) -> None:
    made = lake(view(max_buckets_per_run=1))
    made.days(*range(8))
    made.converge()
    for number in (1, 3, 5, 7):
        made.write(f"day-{number}.parquet", through(number), value=77)
    made.days(8, 9)
    observed = made.look()
    plan = planner.plan(observed)
    asked = [asking.buckets for asking in askings(observed.view, plan, lambda _bucket: True)]
    assert [[bucket // DAY for bucket in each] for each in asked] == [[1], [8], [7], [5], [3], [9]]
    free = [asking.buckets for asking in askings(observed.view, plan, lambda bucket: bucket > 4 * DAY)]
    assert [[bucket // DAY for bucket in each] for each in free] == [[8], [7], [5], [9]]


def test_a_bucket_whose_attempt_never_ended_runs_alone(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1, 2)
    observed = made.look()
    planned = planner.plan(observed).work[0].buckets
    made.manager.register(observed.view.declaration, Attempt("killed", 1, planned[1:2]))
    in_flight = planner.plan(made.look())
    assert operations_of(in_flight) == [("APPEND", [0]), ("APPEND", [2])]
    assert in_flight.waiting[0].reason == "in flight: killed"
    with made.store.write("v") as tx:
        tx.leave_behind("killed")
    made.clock.now += rules.retry_delay(1)
    assert made.planned() == [("APPEND", [0]), ("APPEND", [1]), ("APPEND", [2])]


def test_a_bucket_waits_while_its_files_are_still_arriving(lake: Lakes) -> None:
    made = lake(table={"settle": "10s", "settle_at_most": "1m"})
    made.days(0, 1)
    made.clock.now = ctime(made, "day-0.parquet") + 9_999
    plan = planner.plan(made.look())
    assert (operations_of(plan), {waits.reason for waits in plan.waiting}) == (
        [],
        {"its files are still arriving"},
    )
    made.clock.now += 10_001
    assert made.planned() == [("APPEND", [0, 1])]


def test_a_bucket_whose_files_never_rest_is_refreshed_all_the_same(lake: Lakes) -> None:
    made = lake(table={"settle": "10s", "settle_at_most": "20s"})
    made.days(0)
    made.write("again.parquet", [day(0)])
    observed = made.look()
    first, base = made.clock(), observation_of(observed).view_inputs.base
    base.changed = array("q", [first, first + 19_000])
    assert operations_of(planner.plan(later(observed, first + 19_999))) == []
    assert operations_of(planner.plan(later(observed, first + 20_000))) == [("APPEND", [0])]


RESTLESS = {"settle": "10m", "settle_at_most": "30m"}


def test_a_new_bucket_whose_file_is_replaced_all_the_time_is_refreshed_all_the_same(lake: Lakes) -> None:
    made = lake(table=RESTLESS)
    found = replaced_every_5_minutes(made, lambda _minute: {"day-0.parquet": through(0)})
    assert found == {30: [("APPEND", [0])], 60: [("OVERWRITE", [0])], 90: [("OVERWRITE", [0])]}


def test_all_buckets_that_a_replaced_file_reaches_into_are_refreshed_together(lake: Lakes) -> None:
    made = lake(table=RESTLESS)
    made.write("wide.parquet", through(0, 3))
    made.converge()
    found = replaced_every_5_minutes(made, lambda _minute: {"wide.parquet": through(0, 3)})
    assert found == {minute: [("OVERWRITE", [0, 1, 2, 3])] for minute in (30, 60, 90)}


def test_a_bucket_that_began_to_wait_later_waits_as_long_and_not_for_ever(lake: Lakes) -> None:
    made = lake(table=RESTLESS)
    made.days(0, 1)
    made.converge()
    first, second = {"day-0.parquet": through(0)}, {"day-1.parquet": through(1)}
    found = replaced_every_5_minutes(made, lambda minute: first | (second if minute >= 20 else {}))
    both = [("OVERWRITE", [0, 1])]
    assert found == {30: [("OVERWRITE", [0])], 60: both, 90: both}


def replaced_every_5_minutes(
    made: Lake, files: Callable[[int], dict[str, list[datetime]]]
) -> dict[int, list[tuple[str, list[int]]]]:
    """The minutes in which work is found, and done, while files are replaced by others of these times."""
    begin, found = made.clock.now, {}
    for minute in range(0, 91, 5):
        made.clock.now = begin + minute * MINUTE
        replaced = files(minute)
        for name, times in replaced.items():
            made.write(name, times, value=77 + minute)
        observed = made.look()
        base = observation_of(observed).view_inputs.base
        base.changed = array("q", [base.at if name in replaced else 0 for name in base.names])
        if operations_of(planner.plan(observed)):
            found[minute] = operations_of(planner.plan(observed))
            made.carry_out(observed)
    return found


def test_a_clock_ahead_of_ours_holds_no_bucket(lake: Lakes) -> None:
    made = lake(table={"settle": "10s"})
    made.days(0)
    made.clock.now = ctime(made, "day-0.parquet") - DAY
    assert made.planned() == [("APPEND", [0])]


def test_the_bytes_of_work_count_a_file_once_however_many_buckets_it_reaches_into(lake: Lakes) -> None:
    made = lake()
    path = made.write("wide.parquet", through(0, 4))
    work = planner.plan(made.look()).work
    assert [(each.operation, len(each.buckets), each.bytes) for each in work] == [
        (Due.APPEND, 5, path.stat().st_size)
    ]


def test_the_map_and_the_clock_alone_can_tell_that_nothing_is_due(lake: Lakes) -> None:
    made = lake(view(buffer="1h"))
    made.clock.now = 2 * DAY + HOUR - 1
    made.days(0, 1)
    made.converge()
    made.look(whole=True)
    limits, summary = Limits(buffer=HOUR), made.store.summary("v")
    assert (made.states(0, 1), nothing_due(summary, limits, made.clock())) == ("V-", True)
    made.clock.now += 1
    assert not nothing_due(summary, limits, made.clock())
    made.converge()
    assert made.states(0, 1) == "VV"


def test_a_forced_mark_is_planned_though_nothing_changed_and_says_who_wanted_it(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.converge()
    made.manager.force(made.look().view.declaration, [DAY], "a person wants it")
    work = planner.plan(made.look()).work
    assert [(each.operation, each.reason) for each in work] == [(Due.OVERWRITE, "a person wants it")]


def later(observed: Observed, now: int) -> Observed:
    """The same files, looked at later."""
    found = observation_of(observed)
    found.view_inputs.base.at = now
    return replace(
        found,
        now=now,
        ending=found.view_inputs.ending(now),
        dimensions_changed=found.view_inputs.dimensions_changed(now, found.limits.settle_at_most),
    )


def ctime(made: Lake, name: str) -> int:
    return (made.folder / "events" / name).stat().st_ctime_ns // 1_000_000

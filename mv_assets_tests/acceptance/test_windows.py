"""Cases 101 to 110 and 116 to 118: several tables, windows, views that are meant bucket by bucket."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mv_assets.config import MaterializedView
from mv_assets.errors import MvError
from mv_assets.observe.observation import Observation
from mv_assets.plan import planner
from mv_assets.run.errors import Misplaced
from mv_assets.state.errors import Fenced
from mv_assets.state.model import EMPTY, Outcome
from mv_assets_tests.support.lake import Lake, day, observation_of, through, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.spark_lake import SparkLake

Lakes = Callable[..., Lake]
SparkLakes = Callable[..., SparkLake]
MS = timedelta(milliseconds=1)
ROLLING = "SELECT :bucket_start AS day, count(*) AS n, count(DISTINCT x) AS xs FROM events"
PAID = """
    WITH paid AS (SELECT x, count(*) AS n FROM payments GROUP BY x)
    SELECT :bucket_start AS day, count(*) AS orders, sum(paid.n) AS paid
    FROM events LEFT JOIN paid USING (x)
"""


THREE = """
    SELECT :bucket_start AS day, count(*) AS n, (SELECT count(*) FROM payments) AS payments,
           (SELECT count(*) FROM refunds) AS refunds FROM events
"""


def rolling(**given: Any) -> MaterializedView:
    """Seven days that end with the bucket."""
    base = {"table": "events", "from": "6d"}
    return view(**{"base": base, "scope": "bucket", "sql": ROLLING, "time_column": "day", **given})


def paid(**window: Any) -> MaterializedView:
    """Events, with payments up to two days later."""
    given: dict[str, Any] = {
        key: window.pop(key) for key in ("on_base_delete", "closes", "name") if key in window
    }
    further = [{"table": "payments", "to": "2d", **window}]
    return view(**{"with": further, "scope": "bucket", "sql": PAID, "time_column": "day"} | given)


@pytest.fixture
def payments(lake: Lakes) -> Callable[..., Lake]:
    """Events of days 0 to 5 and payments of days 0 to 5: the last due bucket is day 3."""

    def make(**window: Any) -> Lake:
        made = lake(paid(**window), further=["payments"])
        made.days(*range(6))
        made.days(*range(6), table="payments")
        made.refresh()
        return made

    return make


def test_101_a_late_file_marks_every_bucket_whose_window_it_overlaps(lake: Lakes) -> None:
    made = lake(rolling())
    made.days(*range(12))
    made.refresh()
    assert made.states(*range(12)) == "V" * 12
    made.write("late.parquet", [day(3)])
    made.look()
    assert made.states(*range(12)) == "VVVSSSSSSSVV"
    assert made.reason(9) == "1 segment added (late.parquet)"
    made.converge()
    assert made.states(*range(12)) == "V" * 12


@pytest.mark.parametrize(("edge", "reached"), [(timedelta(0), True), (-MS, False)])
def test_101_the_first_millisecond_of_a_window_counts_and_the_one_before_does_not(
    lake: Lakes, edge: timedelta, *, reached: bool
) -> None:
    made = lake(rolling())
    made.days(*range(12))
    made.refresh()
    # The window of day 9 begins with day 3.
    made.write("late.parquet", [day(3, 0) + edge])
    made.look()
    assert made.states(9) == ("S" if reached else "V")
    assert made.states(2, 8) == ("VS" if reached else "SS")


def test_102_the_table_that_ends_first_holds_w_and_is_named(payments: Callable[..., Lake]) -> None:
    made = payments()
    # Payments are known through day 5, and a bucket needs two days of them beyond its end.
    assert (made.watermark(), made.states(*range(6))) == (4, "VVVV--")
    made.days(6, 7, 8)
    made.converge()
    look = made.snapshot().look
    assert look is not None
    assert (made.watermark(), look.ends_first) == (4, "payments")
    why = planner.not_due(made.dry(), 4 * DAY)
    assert "payments is known to have data up to 1970-01-06T23:59:59.999Z" in why
    assert "reads up to 1970-01-08" in why
    made.days(6, 7, table="payments")
    made.converge()
    assert (made.watermark(), made.states(*range(6))) == (6, "VVVVVV")
    made.days(8, 9, 10, 11, table="payments")
    made.converge()
    look = made.snapshot().look
    assert look is not None
    assert (made.watermark(), look.ends_first) == (9, "events")


def test_103_a_table_that_is_not_waited_for_holds_nothing_and_marks_what_it_touches(
    payments: Callable[..., Lake],
) -> None:
    made = payments(wait=False)
    assert (made.watermark(), made.states(*range(6))) == (6, "VVVVVV")
    made.write("late.parquet", [day(6)], table="payments")
    made.look()
    # Day 6 lies in the windows of days 4 and 5, and in that of day 6, which has no events yet.
    assert made.states(*range(6)) == "VVVVSS"
    made.converge()
    assert made.states(*range(6)) == "VVVVVV"


def test_a_table_without_any_data_holds_w_unless_nobody_waits(lake: Lakes) -> None:
    made = lake(paid(), further=["payments"])
    made.days(0, 1)
    made.refresh()
    assert (made.watermark(), made.states(0, 1)) == (0, "--")
    assert "payments is known to have nothing" in planner.not_due(made.dry(), 0)


UNKNOWN = "waits for a file of payments: nothing else tells what columns it has"


def test_103_a_table_that_is_not_waited_for_but_has_no_file_at_all_is(lake: Lakes) -> None:
    made = lake(paid(wait=False), further=["payments"])
    made.days(0, 1)
    assert made.refresh() == {}
    assert [(each.bucket // DAY, each.reason) for each in planner.plan(made.dry()).waiting] == [
        (0, UNKNOWN),
        (1, UNKNOWN),
    ]
    assert (made.watermark(), made.states(0, 1), made.snapshot().attempts) == (0, "--", {})
    made.write("later.parquet", [day(40)], table="payments")
    made.converge()
    assert (made.watermark(), made.states(0, 1)) == (2, "VV")


def test_103_a_table_whose_last_file_is_gone_makes_stale_what_read_it_and_is_then_waited_for(
    lake: Lakes,
) -> None:
    made = lake(paid(wait=False), further=["payments"])
    made.days(0, 1, 2)
    made.days(2, table="payments")
    made.converge()
    kept = made.remove("day-2.parquet", "payments")
    assert made.refresh() == {}
    # Payments of day 2 were read by all.
    assert made.states(0, 1, 2) == "SSS"
    assert {each.reason for each in planner.plan(made.dry()).waiting} == {UNKNOWN}
    (made.folder / "payments" / "day-2.parquet").write_bytes(kept)
    made.converge()
    assert made.states(0, 1, 2) == "VVV"


def test_103_what_has_no_file_in_any_window_is_empty_though_a_table_has_none_at_all(lake: Lakes) -> None:
    made = lake(paid(wait=False), further=["payments"])
    made.days(0, 1, 9)
    made.days(9, table="payments")
    made.converge()
    kept = made.remove("day-9.parquet", "payments")
    made.remove("day-0.parquet")
    assert made.refresh() == dict.fromkeys((0, 7, 8), Outcome.COMMITTED)
    assert made.states(0, 1, 7, 8, 9) == "VVVVS"
    (made.folder / "payments" / "day-9.parquet").write_bytes(kept)
    made.converge()
    assert made.states(0, 1, 7, 8, 9) == "VVVVV"


def test_103_a_view_of_which_no_bucket_is_there_is_waited_for_too(lake: Lakes) -> None:
    over: dict[str, Any] = {"with": [{"table": "up", "wait": False}], "scope": "bucket", "time_column": "day"}
    made = lake(view("up", base="clicks", sql=UP), view(sql=NOT_WAITED_FOR, **over), further=["clicks"])
    made.days(0, 1)
    made.refresh()
    assert {each.reason for each in planner.plan(made.dry()).waiting} == {
        "waits for up, of whose data nothing is known yet"
    }
    made.days(0, table="clicks")
    made.converge()
    assert made.states(0, 1) == "VV"


def test_104_a_change_of_the_second_table_between_second_look_and_write_is_mended_by_the_next_look(
    payments: Callable[..., Lake],
) -> None:
    made = payments()
    made.write("late.parquet", [day(1)])
    observed = made.look()
    [work] = planner.plan(observed).work
    looked = {bucket: seen.current for bucket, seen in observation_of(made.dry()).buckets.items()}
    made.write("late.parquet", [day(2)], table="payments")
    assert made.compute(observed, work, lambda: looked)[1] is Outcome.COMMITTED
    assert made.states(1) == "V"
    made.look()
    assert (made.states(1), made.reason(1)) == ("S", "1 segment added (payments: late.parquet)")


def test_104_a_change_of_the_second_table_before_the_second_look_is_committed_as_stale(
    payments: Callable[..., Lake],
) -> None:
    made = payments()
    made.write("late.parquet", [day(1)])
    observed = made.look()
    [work] = planner.plan(observed).work
    made.write("late.parquet", [day(2)], table="payments")
    assert made.compute(observed, work)[1] is Outcome.COMMITTED_STALE
    made.converge()
    assert made.states(*range(4)) == "VVVV"


def test_105_a_file_of_the_second_table_that_changes_while_it_is_read_is_a_source_change(
    spark_lake: SparkLakes,
) -> None:
    made = spark_lake(paid(), further=["payments"])
    made.days(*range(6))
    made.days(*range(6), table="payments")
    made.run()
    made.write("late.parquet", [day(1)])

    def replace_and_restore() -> None:
        made.before = None
        path = made.folder / "payments" / "day-2.parquet"
        content = path.read_bytes()
        made.write("day-2.parquet", through(2), 7, table="payments")
        path.unlink()
        path.write_bytes(content)

    observed = made.look()
    made.before = replace_and_restore
    assert made.carry_out(observed) == {1: Outcome.SOURCE_CHANGED}
    made.run()
    assert made.states(*range(4)) == "VVVV"


def test_106_no_segment_in_any_window_is_empty_without_a_job_and_one_in_the_second_alone_is_computed(
    spark_lake: SparkLakes,
) -> None:
    made = spark_lake(paid(), further=["payments"])
    made.days(0, 1, 6, 7, 8)
    made.days(0, 1, 4, 8, 9, 10, table="payments")
    assert made.outcomes() == dict.fromkeys(range(9), "committed")
    # Days 2 to 4 reach the payments of day 4, day 5 reaches nothing: aggregates of nothing would be a row.
    rows = {number: row.rows for number in range(9) if (row := made.row(number)) is not None}
    assert rows == {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 0, 6: 1, 7: 1, 8: 1}
    empty = made.row(5)
    assert empty is not None
    assert empty.inputs is not None
    assert (empty.generation, empty.inputs.windows) == (None, (EMPTY, EMPTY))


def test_106_a_bucket_that_loses_all_of_both_tables_is_deleted(payments: Callable[..., Lake]) -> None:
    made = payments()
    made.remove("day-0.parquet")
    assert made.planned() == [("OVERWRITE", [0])]
    for number in range(3):
        made.remove(f"day-{number}.parquet", table="payments")
    assert made.planned() == [("OVERWRITE", [1, 2]), ("DELETE", [0])]
    made.converge()
    assert made.states(*range(4)) == "VVVV"


@pytest.mark.parametrize("table", ["events", "payments"])
def test_107_a_name_gone_from_either_table_freezes(payments: Callable[..., Lake], table: str) -> None:
    made = payments(on_base_delete="freeze")
    content = made.remove("day-2.parquet", table=table)
    made.look()
    frozen = {number for number in range(4) if (row := made.row(number)) is not None and row.frozen}
    assert frozen == ({2} if table == "events" else {0, 1, 2})
    assert made.states(*range(4)) == "VVVV"
    made.write("late.parquet", [day(2)])
    made.look()
    assert made.planned() == []
    (made.folder / table / "day-2.parquet").write_bytes(content)
    made.converge()
    assert made.states(*range(4)) == "VVVV"
    assert not any(row.frozen for row in made.snapshot().rows.values())


def test_108_a_broken_file_of_the_second_table_fails_the_buckets_that_read_it_and_no_others(
    payments: Callable[..., Lake],
) -> None:
    made = payments()
    made.damage("day-3.parquet", table="payments")
    made.refresh()
    failed = {bucket // DAY: record.last_error or "" for bucket, record in made.snapshot().attempts.items()}
    assert set(failed) == {1, 2, 3}
    assert all("payments: file day-3.parquet" in error for error in failed.values())
    assert made.states(*range(4)) == "VSSS"
    made.days(3, table="payments")
    made.clock.now += 3_600_000
    made.converge()
    assert made.states(*range(4)) == "VVVV"


NUMBERED = """
    WITH ranked AS (SELECT at, x, row_number() OVER (ORDER BY at, x) AS place FROM events)
    SELECT :bucket_start AS day, x, place FROM ranked ORDER BY place DESC, x LIMIT 3
"""


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_109_rows_are_the_same_computed_alone_with_neighbours_and_in_another_order(
    spark_lake: SparkLakes, order: list[int]
) -> None:
    together = spark_lake(rolling(sql=NUMBERED))
    together.days(*range(4))
    together.run()
    rows = together.stored().sort_by([("day", "ascending"), ("place", "ascending")])
    assert rows.num_rows == 2 + 3 + 3 + 3
    together.declare(rolling(sql=f"{NUMBERED} -- the same", max_buckets_per_run=1))
    together.manager.force(together.catalog.view("v").declaration, [n * DAY for n in order], "alone")
    for number in order:
        observed = together.look(whole=True)
        [work] = [work for work in planner.plan(observed).work if work.buckets[0].bucket == number * DAY]
        assert together.compute(observed, work) == {number: Outcome.COMMITTED}
    again = together.stored().sort_by([("day", "ascending"), ("place", "ascending")])
    assert again.to_pylist() == rows.to_pylist()


def test_110_rows_in_the_window_but_outside_the_bucket_are_dropped(spark_lake: SparkLakes) -> None:
    each_day = "SELECT date_trunc('day', at) AS day, count(*) AS n FROM events GROUP BY 1"
    made = spark_lake(rolling(sql=each_day))
    made.days(*range(4))
    assert made.outcomes() == dict.fromkeys(range(4), "committed")
    assert sorted(made.stored()["n"].to_pylist()) == [2, 2, 2, 2]


@pytest.mark.parametrize("shift", ["+ INTERVAL 1 DAY", "- INTERVAL 7 DAYS"])
def test_110_rows_outside_every_window_fail_the_attempt_even_if_a_neighbour_would_take_them(
    spark_lake: SparkLakes, shift: str
) -> None:
    outside = f"SELECT :bucket_start {shift} AS day, count(*) AS n FROM events"
    made = spark_lake(rolling(sql=outside))
    made.days(0, 1)
    assert made.outcomes() == {0: "failed", 1: "failed"}
    error = made.snapshot().attempts[0].last_error or ""
    assert "outside of every window" in error
    assert issubclass(Misplaced, MvError)


def test_116_a_view_with_windows_on_a_view_waits_for_every_upstream_bucket_in_the_window(lake: Lakes) -> None:
    sql = "SELECT :bucket_start AS day, sum(n) AS n FROM v"
    week = view("week", base={"table": "v", "from": "2d"}, scope="bucket", sql=sql, time_column="day")
    made = lake(view(), week)
    made.days(*range(6))
    made.converge()
    assert made.states(*range(6), name="week") == "VVVVVV"
    made.write("late.parquet", [day(2)])
    made.look("week")
    # Day 2 of v is STALE: what reads it waits, and is not marked.
    assert (made.states(2), made.states(*range(6), name="week")) == ("S", "VVVVVV")
    waiting = {
        each.bucket // DAY: each.reason for each in planner.plan(made.look("week", whole=True)).waiting
    }
    assert set(waiting) == {2, 3, 4}
    assert waiting[4] == "waits for v 1970-01-03, which is STALE"
    made.refresh("v")
    made.look("week")
    assert made.states(*range(6), name="week") == "VVSSSV"
    made.converge()
    assert made.states(*range(6), name="week") == "VVVVVV"


NOT_WAITED_FOR = "SELECT :bucket_start AS day, count(*) AS n FROM events LEFT JOIN up ON up.n = events.x"
UP = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM clicks GROUP BY ALL"


def not_waited_for(lake: Lakes) -> Lake:
    """A view that does not wait for the view below it, which has all of days 0 to 5."""
    over: dict[str, Any] = {"with": [{"table": "up", "wait": False}], "scope": "bucket", "time_column": "day"}
    made = lake(view("up", base="clicks", sql=UP), view(sql=NOT_WAITED_FOR, **over), further=["clicks"])
    made.days(*range(8))
    made.days(*range(6), table="clicks")
    made.converge()
    assert (made.states(*range(8)), made.states(*range(6), name="up")) == ("VVVVVVVV", "VVVVVV")
    return made


def test_what_a_view_below_had_and_is_stale_is_waited_for_even_by_those_who_wait_for_nothing_new(
    lake: Lakes,
) -> None:
    made = not_waited_for(lake)
    newer = UP.replace("count(*)", "count(*) + 1")
    over: dict[str, Any] = {"with": [{"table": "up", "wait": False}], "scope": "bucket", "time_column": "day"}
    made.declare(view("up", base="clicks", sql=newer), view(sql=NOT_WAITED_FOR, **over))
    version = made.version()
    assert made.states(*range(6)) == "VVVVVV"
    waiting = planner.plan(made.look(whole=True)).waiting
    assert {each.bucket // DAY for each in waiting} == set(range(6))
    assert (made.version(), made.states(*range(8))) == (version, "VVVVVVVV")
    made.converge()
    assert made.states(*range(8)) == "VVVVVVVV"


def test_a_stale_bucket_below_holds_none_but_those_whose_windows_it_lies_in(lake: Lakes) -> None:
    made = not_waited_for(lake)
    made.write("late.parquet", [day(5)], table="clicks")
    waiting = planner.plan(made.look(whole=True)).waiting
    assert (made.states(*range(6), name="up"), made.states(*range(8))) == ("VVVVVS", "VVVVVVVV")
    assert {each.bucket // DAY for each in waiting} == {5}
    made.days(8)
    made.refresh()
    assert made.states(5, 6, 7, 8) == "VVVV"


def test_117_an_added_window_is_a_new_definition_and_the_earlier_one_is_then_fenced(lake: Lakes) -> None:
    own = view(scope="bucket", sql=ROLLING, time_column="day")
    made = lake(own)
    made.days(0, 1, 2)
    made.converge()
    made.declare(rolling())
    made.look()
    assert made.states(0, 1, 2) == "SSS"
    made.converge()
    assert made.states(0, 1, 2) == "VVV"
    made.declare(own)
    with pytest.raises(Fenced):
        made.look()
    made.manager.adopt("v", made.catalog.view("v").definition)
    made.look()
    assert made.states(0, 1, 2) == "SSS"
    made.converge()
    assert made.states(0, 1, 2) == "VVV"


def test_what_of_a_table_is_not_waited_for_is_no_part_of_the_definition(lake: Lakes) -> None:
    patient, hasty = lake(paid(), further=["payments"]), paid(wait=False)
    before = patient.catalog.view("v").definition
    patient.declare(hasty)
    assert patient.catalog.view("v").definition == before


def test_the_order_of_further_tables_is_no_part_of_the_definition(lake: Lakes) -> None:
    def joined(*tables: str) -> MaterializedView:
        further: Any = [{"table": table, "from": "1d"} for table in tables]
        return view(scope="bucket", sql=THREE, time_column="day", **{"with": further})

    made = lake(joined("payments", "refunds"), further=["payments", "refunds"])
    for table in ("events", "payments", "refunds"):
        made.days(0, 1, table=table)
    made.converge()
    version, before = made.version(), made.catalog.view("v").definition
    made.declare(joined("refunds", "payments"))
    assert (made.catalog.view("v").definition, made.planned(), made.states(0, 1)) == (before, [], "VV")
    assert made.version() == version


def test_closes_closes_the_bucket_that_the_last_table_ends_in(lake: Lakes) -> None:
    made = lake(paid(closes="1h"), further=["payments"])
    made.clock.now = 10 * DAY
    made.write("events.parquet", [day(0, 0), day(2, 23)])
    made.write("payments.parquet", [day(0, 0), day(4, 22)], table="payments")
    # Payments end in the afternoon of day 4, which is the end of what day 2 reads.
    made.clock.now = 5 * DAY + 3_600_000 - 1
    observed = made.look(whole=True)
    assert isinstance(observed, Observation)
    assert (observed.ending.closed, made.watermark()) == (None, 0)
    made.clock.now += 1
    assert observation_of(made.look(whole=True)).ending.closed == 3 * DAY

"""Case 141 and what follows from it: a bucket that the clock closes, though the data stops before its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from mv_assets.buckets import DAY, HOUR, MINUTE, Buckets
from mv_assets.config import MaterializedView
from mv_assets.observe.observation import Limits, Observation, Observed, Unchanged, nothing_due
from mv_assets.plan import planner
from mv_assets.state import health, rules
from mv_assets.state.model import _SEAL, Operation
from mv_assets_tests.support.lake import HOURLY, Lake, day, operations_of, through, view

Lakes = Callable[..., Lake]
# 23:59:31, when the last row of a daily batch is written.
LAST = 24 - 29 / 3600
CLOSED = "the bucket that the source ends in was closed"


def batch(made: Lake, number: int) -> None:
    """A day as a daily batch brings it."""
    made.write(f"batch-{number}.parquet", [day(number, 0), day(number, LAST)])


def named(made: Lake, *days: int, name: str = "v") -> Observed:
    """A round in which a person asks for days."""
    observed = made.watch().round(named={name: frozenset(number * DAY for number in days)})[name]
    assert isinstance(observed, Observed)
    return observed


def test_141_a_day_whose_data_stops_at_235931_is_due_once_it_is_closed(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = DAY + 59 * MINUTE
    made.converge()
    assert (made.planned(), made.states(0), made.watermark()) == ([], "-", 0)
    made.clock.now = DAY + HOUR
    assert operations_of(planner.plan(made.look())) == [("APPEND", [0])]
    made.converge()
    assert (made.states(0, 1), made.watermark()) == ("V-", 1)
    # The next day has no data: it is not due at any time, and W stays.
    made.clock.now += 1_000 * DAY
    made.converge()
    assert (made.planned(), made.states(0, 1), made.watermark()) == ([], "V-", 1)
    # A late row is a change like any other.
    made.write("late.parquet", [day(0, 7)])
    made.look()
    assert made.states(0) == "S"
    made.converge()
    assert (made.states(0, 1), made.watermark()) == ("V-", 1)


def test_without_closes_it_is_due_when_the_next_day_begins_to_arrive(lake: Lakes) -> None:
    made = lake()
    batch(made, 0)
    made.clock.now = 1_000 * DAY
    made.converge()
    assert (made.states(0), made.watermark()) == ("-", 0)
    made.write("next.parquet", [day(1, 1)])
    made.converge()
    assert (made.states(0, 1), made.watermark()) == ("V-", 1)


def test_an_unchanged_table_is_looked_at_when_the_clock_closes_a_bucket_and_not_again(lake: Lakes) -> None:
    # Files are young for a while by the machine's clock: it is tomorrow that ends here.
    tomorrow = time.time_ns() // 1_000_000 // DAY + 1
    # Sooner than a whole look is due, which comes to a table at rest as well.
    made = lake(view(closes="30m", start=f"{day(tomorrow - 1):%Y-%m-%d}"))
    made.days(tomorrow - 1)
    batch(made, tomorrow)
    made.clock.now = (tomorrow + 1) * DAY
    made.converge()
    assert isinstance(made.look(), Unchanged)
    made.clock.now += HOUR // 2 - 1
    assert isinstance(made.look(), Unchanged)
    made.clock.now += 1
    assert isinstance(made.look(), Observation)
    made.converge()
    version = made.version()
    assert (made.states(tomorrow), made.watermark()) == ("V", tomorrow + 1)
    made.clock.now += 100 * DAY
    made.look(whole=True)
    assert isinstance(made.look(), Unchanged)
    assert (made.version(), made.watermark()) == (version, tomorrow + 1)


def test_the_map_and_the_clock_alone_tell_that_a_bucket_is_closed(lake: Lakes) -> None:
    made = lake(view(closes="1h", buffer="2h"))
    made.days(0)
    batch(made, 1)
    made.clock.now = 2 * DAY + HOUR - 1
    made.converge()
    made.look(whole=True)
    summary = made.store.summary("v")
    for limits in (Limits(closes=HOUR), Limits(buffer=2 * HOUR, closes=HOUR)):
        assert nothing_due(summary, limits, 2 * DAY + HOUR - 1)
        assert not nothing_due(summary, limits, 2 * DAY + HOUR)
    assert nothing_due(summary, Limits(), 1_000 * DAY)
    # Closed and looked at, and its buffer not over yet.
    made.clock.now += 1
    made.look()
    made.look(whole=True)
    summary, limits = made.store.summary("v"), Limits(buffer=2 * HOUR, closes=HOUR)
    assert nothing_due(summary, limits, 2 * DAY + 2 * HOUR - 1)
    assert not nothing_due(summary, limits, 2 * DAY + 2 * HOUR)


def test_w_climbs_by_the_clock_over_what_a_person_had_computed_before(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = DAY - HOUR // 2
    assert made.carry_out(named(made, 0)) == {0: "committed"}
    assert (made.states(0), made.watermark()) == ("V", 0)
    made.clock.now = DAY + HOUR - 1
    made.look()
    assert made.watermark() == 0
    made.clock.now += 1
    observed = made.look()
    assert (operations_of(planner.plan(observed)), made.watermark()) == ([], 1)
    assert isinstance(made.look(), Unchanged)


def test_closing_is_one_write_and_its_line_in_the_log_says_so(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = DAY
    made.look()
    version = made.version()
    made.clock.now = DAY + HOUR
    made.look()
    [event] = made.store.events("v", most=1)
    assert (event.version, event.operation, event.why) == (version + 1, Operation.LOOK, CLOSED)
    made.look(whole=True)
    assert made.version() == version + 1


def test_the_cap_is_the_bucket_of_the_sources_end_and_goes_with_it(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    made.days(0, 1)
    batch(made, 2)
    made.clock.now = 10 * DAY
    made.look()
    assert rules.cap(made.snapshot().header) == 3 * DAY
    # The batch is taken back before anything of it was computed.
    made.remove("batch-2.parquet")
    made.look()
    assert rules.cap(made.snapshot().header) == 2 * DAY
    made.converge()
    assert (made.states(0, 1, 2), made.watermark()) == ("VV-", 2)


def test_a_bucket_that_a_person_had_computed_beyond_the_data_holds_w_however_late_it_is(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = 5 * DAY
    made.converge()
    made.manager.force(made.look().view.declaration, [DAY, 2 * DAY], "a person")
    made.converge()
    made.clock.now += 100 * DAY
    made.converge()
    # Both are VALID and empty, and nobody knows whether more comes.
    assert (made.states(0, 1, 2), made.watermark()) == ("VVV", 1)


def test_two_deployments_that_close_at_different_times_do_not_take_it_back_from_each_other(
    lake: Lakes,
) -> None:
    one, other, never = view(closes="1h"), view(closes="6h"), view()
    made = lake(one)
    batch(made, 0)
    made.clock.now = DAY + HOUR
    made.converge()
    assert made.watermark() == 1
    version = made.version()
    for declared in (other, never, one, never, other):
        made.declare(declared)
        made.look(whole=True)
        assert (made.version(), made.watermark(), made.states(0)) == (version, 1, "V")


def test_a_deployment_that_knows_of_no_closing_keeps_no_other_from_it(lake: Lakes) -> None:
    made = lake(view())
    made.days(0)
    batch(made, 1)
    made.clock.now = 2 * DAY
    made.converge()
    made.clock.now += HOUR
    for _ in range(3):
        # Its looks are the last that were made, and all that they saw is the same.
        made.declare(view())
        made.look(whole=True)
    made.declare(view(closes="1h"))
    made.converge()
    assert (made.states(0, 1), made.watermark()) == ("VV", 2)


def test_a_commit_by_one_that_knows_of_no_closing_moves_w_as_far_as_the_map_says(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = DAY + HOUR
    observed = made.look()
    made.declare(view())
    made.carry_out(observed)
    assert (made.states(0), made.watermark()) == ("V", 1)


def test_an_end_that_was_moved_by_one_that_knows_of_no_closing_closes_nothing(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = 3 * DAY
    made.look()
    header = made.snapshot().header
    assert (header.closed, rules.cap(header)) == (DAY, DAY)
    # As a process of an older version would leave it: that column it does not know.
    for end, cap in [(2 * DAY + HOUR, 2 * DAY + HOUR + 1), (-5, -4), (None, None), (5, DAY)]:
        assert rules.cap(replace(header, source_end=end, seal=_SEAL)) == cap


def test_a_new_definition_and_a_drop_begin_anew(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = DAY + HOUR
    made.converge()
    made.manager.drop("v")
    assert made.watermark() == 0
    made.converge()
    assert (made.states(0), made.watermark()) == ("V", 1)
    made.declare(view(closes="1h", sql=HOURLY.replace("count(*)", "sum(x)")))
    made.converge()
    assert (made.states(0), made.watermark()) == ("V", 1)


def test_it_is_no_part_of_the_definition(lake: Lakes) -> None:
    made = lake(view())
    known = made.catalog.view("v").definition
    made.declare(view(closes="3h"))
    assert made.catalog.view("v").definition == known


def test_closing_before_1970_is_like_any_other(lake: Lakes) -> None:
    made = lake(view(start="1969-12-30", closes="1h"))
    made.write("old.parquet", [day(-2, 0), day(-1, LAST)])
    made.clock.now = HOUR - 1
    made.converge()
    assert (made.states(-2, -1), made.watermark()) == ("V-", -1)
    made.clock.now = HOUR
    assert operations_of(planner.plan(made.look())) == [("APPEND", [-1])]
    made.converge()
    assert (made.states(-2, -1), made.watermark()) == ("VV", 0)


@pytest.mark.parametrize("width", ["15m", "1h", "1d", "1w", "1mo"])
def test_buckets_of_every_width_are_closed_by_their_own_end(width: str) -> None:
    buckets = Buckets.of(width)
    start = buckets.floor(40 * DAY)
    end = buckets.next(start)
    assert rules.closes_at(buckets, end - 2, HOUR) == end + HOUR
    assert rules.closed(buckets, end - 2, HOUR, end + HOUR) == end
    assert rules.closed(buckets, start, HOUR, end + HOUR - 1) is None
    # The data reaches its end: there is nothing to close.
    assert rules.closes_at(buckets, end - 1, HOUR) is None
    assert (rules.closes_at(buckets, None, HOUR), rules.closes_at(buckets, start, None)) == (None, None)


def test_the_buffer_still_counts(lake: Lakes) -> None:
    made = lake(view(closes="1h", buffer="2h"))
    batch(made, 0)
    made.clock.now = DAY + 2 * HOUR - 1
    assert made.planned() == []
    made.clock.now += 1
    assert made.planned() == [("APPEND", [0])]


def test_the_lag_counts_from_the_end_of_the_closed_bucket(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = DAY + HOUR
    made.converge()
    assert health.lag(made.snapshot().header, made.clock()) == HOUR
    made.clock.now += DAY
    made.converge()
    assert health.lag(made.snapshot().header, made.clock()) == HOUR + DAY


def test_a_closed_bucket_that_nobody_computes_is_a_stall(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = DAY + HOUR - 1
    made.look()
    made.clock.now += 1
    made.look()
    made.clock.now += HOUR
    made.look()
    assert health.stall(made.snapshot(), 0, HOUR, made.clock()) is None
    made.clock.now += 1
    said = health.stall(made.snapshot(), 0, HOUR, made.clock())
    assert said is not None
    assert said.startswith("stalled: 1970-01-01 has been due for 1h")
    made.converge()
    made.clock.now += 100 * DAY
    made.look(whole=True)
    assert health.stall(made.snapshot(), 0, HOUR, made.clock()) is None


def test_what_is_not_due_says_when_it_will_be(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.clock.now = DAY + HOUR - 1
    known = "events is known to have data up to 1970-01-01T23:59:31Z"
    said = f"it ends at 1970-01-02T00:00:00Z, {known}, and it is due at 1970-01-02T01:00:00Z"
    assert planner.not_due(made.look(), 0) == said
    made.clock.now = 9 * DAY
    assert planner.not_due(made.look(), DAY) == f"it ends at 1970-01-03T00:00:00Z, and {known}"
    made.declare(view())
    by_clock = "the view's `closes` would have it due by the clock"
    assert planner.not_due(made.look(), 0) == f"it ends at 1970-01-02T00:00:00Z, and {known}; {by_clock}"


def test_a_file_of_unknown_range_holds_w_at_a_closed_bucket_too(lake: Lakes) -> None:
    made = lake(view(closes="1h"))
    batch(made, 0)
    made.write("broken.parquet", [day(0)])
    made.damage("broken.parquet")
    made.clock.now += 1_000_000
    made.refresh()
    assert (made.states(0), made.watermark()) == ("V", 0)
    made.remove("broken.parquet")
    made.converge()
    assert made.watermark() == 1


# Views on views


def hours(**given: str) -> MaterializedView:
    return view("v", bucket="1h", **given)


def days(**given: str) -> MaterializedView:
    return view("w", base="v", sql="SELECT hour, n FROM v", **given)


def until(made: Lake, hour: float) -> None:
    """A day of files, an hour each, until some time of it."""
    for number in range(int(hour) + 1):
        made.write(f"{number:02}.parquet", [day(0, number), day(0, min(number + 1 - 1 / 3_600_000, hour))])


def test_a_view_on_a_view_follows_what_is_closed_below(lake: Lakes) -> None:
    made = lake(hours(closes="1h"), days())
    until(made, LAST)
    made.clock.now = DAY + HOUR - 1
    made.converge()
    assert (made.snapshot("v").header.watermark, made.states(0, name="w")) == (23 * HOUR, "-")
    made.clock.now += 1
    made.converge()
    assert (made.snapshot("v").header.watermark, made.watermark("w")) == (DAY, 1)
    assert made.states(0, 1, name="w") == "V-"


def test_a_view_on_a_view_closes_its_own_bucket_once_that_below_has_all_there_is(lake: Lakes) -> None:
    made = lake(hours(closes="1h"), days(closes="2h"))
    # The shop shuts at 21:10.
    until(made, 21 + 1 / 6)
    made.clock.now = DAY + 2 * HOUR - 1
    made.converge()
    assert made.snapshot("v").header.watermark == 22 * HOUR
    assert (made.states(0, name="w"), made.watermark("w")) == ("-", 0)
    made.clock.now += 1
    made.converge()
    assert (made.states(0, 1, name="w"), made.watermark("w")) == ("V-", 1)
    versions = made.version("v"), made.version("w")
    made.clock.now += 100 * DAY
    made.converge()
    assert (made.version("v"), made.version("w")) == versions
    # An hour that arrives later is a change like any other.
    made.write("22.parquet", [day(0, 22), day(0, 22.5)])
    made.look()
    made.converge()
    assert made.snapshot("v").header.watermark == 23 * HOUR
    row = made.row(0, "w")
    assert row is not None
    assert (made.states(0, name="w"), row.rows, made.watermark("w")) == ("V", 23, 1)


def test_a_view_on_a_view_closes_nothing_that_the_one_below_is_only_late_with(lake: Lakes) -> None:
    made = lake(hours(), days(closes="1h"))
    until(made, 21 + 1 / 6)
    made.clock.now = 9 * DAY
    made.converge()
    # 21:00 to 21:10 is there and not computed: a day without it would be wrong.
    assert made.snapshot("v").header.watermark == 21 * HOUR
    assert (made.states(0, name="w"), made.watermark("w")) == ("-", 0)
    said = planner.not_due(made.look("w", whole=True), 0)
    assert (
        said == "it ends at 1970-01-02T00:00:00Z, and v is known to have data up to 1970-01-01T20:59:59.999Z"
    )


def test_a_view_on_a_view_closes_nothing_while_a_bucket_below_fails(lake: Lakes) -> None:
    made = lake(hours(closes="1h"), days(closes="1h"))
    until(made, 21 + 1 / 6)
    made.clock.now += 1_000_000
    made.look()
    made.damage("21.parquet")
    made.refresh("v")
    made.look("w")
    assert made.snapshot("v").header.watermark == 21 * HOUR
    assert (made.planned("w"), made.watermark("w")) == ([], 0)
    until(made, 21 + 1 / 6)
    made.converge()
    assert (made.states(0, name="w"), made.watermark("w")) == ("V", 1)


def test_a_closed_day_that_is_computed_again_waits_for_what_is_stale_below(lake: Lakes) -> None:
    made = lake(hours(closes="1h"), days(closes="1h"))
    until(made, 21 + 1 / 6)
    made.converge()
    assert made.states(0, name="w") == "V"
    made.write("late.parquet", [day(0, 3.5)])
    made.look("w")
    assert made.planned("w") == []
    made.refresh("v")
    assert made.planned("w") == [("OVERWRITE", [0])]
    made.converge()
    assert made.states(0, name="w") == "V"


def test_whole_days_below_are_closed_below_alone(lake: Lakes) -> None:
    made = lake(view("v", closes="1h"), days(closes="1h"))
    batch(made, 0)
    made.write("more.parquet", through(1))
    made.converge()
    assert (made.watermark("v"), made.watermark("w")) == (2, 2)
    made.clock.now += 100 * DAY
    made.converge()
    assert (made.watermark("v"), made.watermark("w")) == (2, 2)


def test_a_day_of_a_view_on_a_view_that_is_named_waits_for_what_is_below(lake: Lakes) -> None:
    made = lake(view("v"), days())
    made.days(0)
    made.write("today.parquet", [day(1, 0), day(1, 9)])
    made.clock.now = DAY + 10 * HOUR
    made.converge()
    [waiting] = planner.plan(named(made, 1, name="w")).waiting
    assert waiting.reason == "waits for v 1970-01-02, which is VACANT"
    made.carry_out(named(made, 1))
    assert made.carry_out(named(made, 1, name="w")) == {1: "committed"}
    assert (made.states(0, 1, name="w"), made.watermark("v"), made.watermark("w")) == ("VV", 1, 1)


def test_a_peer_that_closes_nothing_does_not_hide_a_stall(lake: Lakes) -> None:
    mine = lake(view(closes="1h", stall_after="1h"))
    peer = lake(view(stall_after="1h"), clock=mine.clock)
    mine.days(0)
    mine.write("x.parquet", [day(1, 3)])
    mine.clock.now = DAY + 4 * HOUR
    mine.converge()
    mine.clock.now = 2 * DAY + HOUR
    for _ in range(4):
        mine.clock.now += HOUR
        mine.look(whole=True)
        peer.look(whole=True)
    said = mine.look(whole=True).wrong.stalled
    assert said is not None
    assert said.startswith("stalled: 1970-01-02 has been due for ")

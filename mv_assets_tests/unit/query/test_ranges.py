"""What conditions say of the time: to the microsecond, and nothing where Spark might read them otherwise."""

from __future__ import annotations

import operator
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from mv_assets.buckets import DAY
from mv_assets.query.match.joins import conjuncts
from mv_assets.query.match.ranges import Range, TimeOf, range_of
from mv_assets.query.match.spans import AFTER, BEFORE
from mv_assets.tables.times import Unit

HOUR, MS = DAY // 24, 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def asked(
    where: str, kind: str = "timestamp", unit: Unit | None = None, *, sampled: bool = False
) -> tuple[Range, int]:
    """The range, and how many conditions say something else."""
    select = cast("exp.Select", parse_one(f"SELECT 1 FROM e WHERE {where}", dialect="spark"))
    for column in select.find_all(exp.Column):
        column.set("table", exp.to_identifier("e"))
    found, others = range_of(conjuncts(select), TimeOf("e", "at", kind, unit, sampled))
    return found, len(others)


def micros(days: float, **more: float) -> int:
    return round(timedelta(days=days, **more) / timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [
        ("at >= '1970-01-02'", micros(1), None),
        ("at > '1970-01-02'", micros(1) + 1, None),
        ("at < timestamp'1970-01-02 00:00:00'", None, micros(1)),
        ("at <= date'1970-01-02'", None, micros(1) + 1),
        ("at = '1970-01-02T03:04:05.6'", micros(1, hours=3, minutes=4, seconds=5.6), None),
        ("'1970-01-02' <= at", micros(1), None),
        ("'1970-01-02' > at", None, micros(1)),
        ("(at) >= ('1970-01-02')", micros(1), None),
        ("at >= '1970-01-02 00:00:00Z'", micros(1), None),
        ("at >= '1970-01-02 02:00:00+02:00'", micros(1), None),
        ("at >= '1970-01-01 19:00:00-05:00'", micros(1), None),
        ("at >= '1969-12-31 23:59:59.999999'", -1, None),
        ("at BETWEEN '1970-01-02' AND '1970-01-03'", micros(1), micros(2) + 1),
        ("at >= '1970-01-02' AND at < '1970-01-05' AND at >= '1970-01-03'", micros(2), micros(4)),
        ("date_trunc('hour', at) = '1970-01-02 03:00:00'", micros(1, hours=3), micros(1, hours=4)),
        ("date_trunc('HOUR', at) > '1970-01-02 03:00:00'", micros(1, hours=4), None),
        ("date_trunc('month', at) <= '1970-02-01'", None, micros(59)),
        ("cast(at AS date) = '1970-01-02'", micros(1), micros(2)),
        ("to_date(at) < date'1970-01-02'", None, micros(1)),
        ("trunc(at, 'month') = '1970-02-01'", micros(31), micros(59)),
    ],
)  # fmt: skip
def test_conditions_on_the_time_are_ranges(where: str, low: int | None, high: int | None) -> None:
    found, others = asked(where)
    if " = '1970-01-02T" in where:
        high = cast("int", low) + 1
    assert (found, others) == (Range(low, high, rejects_null=True), 0)


@pytest.mark.parametrize(
    "where",
    [
        "at >= '1970-1-2'",
        "at >= '1970'",
        "at >= 'tomorrow'",
        "at >= '1970-02-30'",
        "at >= '1970-01-02 24:00:00'",
        "at >= '1970-01-02 00:00:00 Europe/Berlin'",
        "at >= '1970-01-02Z'",
        "at >= '1970-01-02 00:00:00.1234567'",
        "at >= 5",
        "at >= x",
        "at != '1970-01-02'",
        "at <=> '1970-01-02'",
        "NOT at >= '1970-01-02'",
        "at >= '1970-01-02' OR x = 1",
        "at IN ('1970-01-02')",
        "at IS NOT NULL",
        "x >= '1970-01-02'",
        "date_trunc('hour', at) >= '1970-01-02 03:30:00'",
        "cast(at AS date) >= '1970-01-02 03:00:00'",
        "cast(at AS string) >= '1970-01-02'",
        "date_trunc('week', at) = '1970-01-01'",
        "at + INTERVAL 1 DAY >= '1970-01-02'",
        "at >= cast('1970-01-02 03:00:00' AS date)",
    ],
)
def test_other_conditions_say_nothing_of_the_time(where: str) -> None:
    assert asked(where) == (Range(), 1)


def test_a_zone_in_a_text_counts_only_where_spark_heeds_it() -> None:
    assert asked("at >= '1970-01-02 02:00:00+02:00'", "timestamp_ntz") == (Range(), 1)
    assert asked("at >= '1970-01-02 02:00:00'", "timestamp_ntz")[0].low == micros(1, hours=2)


def test_dates_step_by_days() -> None:
    assert asked("at > '1970-01-02'", "date")[0].low == micros(2)
    assert asked("at <= '1970-01-02'", "date")[0].high == micros(2)
    assert asked("at = date'1970-01-02'", "date")[0] == Range(micros(1), micros(2), rejects_null=True)
    assert asked("at >= '1970-01-02 12:00:00'", "date") == (Range(), 1)


@given(st.sampled_from([">", ">=", "<", "<=", "="]), st.integers(-3 * 24, 3 * 24), st.integers(-4, 4))
def test_dates_against_a_time_of_day_are_compared_as_midnights(sign: str, hours: int, date: int) -> None:
    when = _EPOCH + timedelta(hours=hours)
    found, others = asked(f"at {sign} timestamp'{when:%Y-%m-%d %H:%M:%S}'", "date")
    compare = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}[
        sign
    ]
    if compare(_EPOCH + timedelta(days=date), when):
        # Nothing that is asked for may lie outside.
        assert found.outer[0] <= date * DAY < found.outer[1]
    elif not others:
        assert not (found.inner[0] <= date * DAY and (date + 1) * DAY <= found.inner[1])


@pytest.mark.parametrize(("unit", "step"), [("s", 1_000_000), ("ms", 1_000), ("us", 1)])
def test_counted_times_step_by_their_unit(unit: Unit, step: int) -> None:
    assert asked("at > 3600", "bigint", unit)[0].low == 3_601 * step
    assert asked("at <= -5", "bigint", unit)[0].high == -4 * step
    assert asked("at = 7L", "bigint", unit)[0] == Range(7 * step, 8 * step, rejects_null=True)
    assert asked("at >= 1.5", "bigint", unit) == (Range(), 1)
    assert asked("at >= '1970-01-02'", "bigint", unit) == (Range(), 1)
    made = {"s": "timestamp_seconds", "ms": "timestamp_millis", "us": "timestamp_micros"}[unit]
    assert asked(f"{made}(at) >= '1970-01-02'", "bigint", unit)[0].low == micros(1)
    assert asked(f"date_trunc('day', {made}(at)) = '1970-01-02'", "bigint", unit)[0].high == micros(2)
    other = "timestamp_micros" if unit == "ms" else "timestamp_millis"
    assert asked(f"{other}(at) >= '1970-01-02'", "bigint", unit) == (Range(), 1)


@given(
    st.sampled_from([">", ">=", "<", "<=", "="]),
    st.integers(-3_000_000, 3_000_000).map(lambda n: n * 1_000),
    st.integers(-3_000_000_000, 3_000_000_000),
)
def test_nanoseconds_that_are_asked_for_are_in_the_range(sign: str, bound: int, nanos: int) -> None:
    found, others = asked(f"at {sign} {bound}", "bigint", "ns")
    compare = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}[
        sign
    ]
    ms = nanos // 1_000_000
    if compare(nanos, bound):
        assert found.outer[0] <= ms < found.outer[1]
    elif not others:
        assert not found.inner[0] <= ms < found.inner[1]


@given(st.integers(-5_000, 5_000), st.integers(-5_000, 5_000))
def test_the_inner_milliseconds_are_whole_and_the_outer_ones_hold_all(low: int, high: int) -> None:
    found = Range(low, high)
    inside = {micro // MS for micro in range(low, high)}
    whole = {ms for ms in inside if low <= ms * MS and (ms + 1) * MS <= high}
    assert set(range(*found.inner)) == whole
    assert inside <= set(range(*found.outer))
    assert len(set(range(*found.outer)) - inside) == 0 or low >= high


def test_an_open_range_has_open_ends() -> None:
    assert Range().inner == Range().outer == (BEFORE, AFTER)
    assert Range(5_500).inner == (6, AFTER)
    assert Range(5_500).outer == (5, AFTER)
    assert Range(None, -1).outer == (BEFORE, 0)


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [
        ("at >= '1970-01-02'", micros(1), None),
        ("at > '1970-01-02'", micros(1) + 1, None),
        ("at < '1970-01-02'", None, micros(1)),
        ("at <= '1970-01-02'", None, micros(1) + 1),
        ("at = '1970-01-02'", micros(1), micros(1) + 1),
        ("to_date(at) = '1970-01-02'", micros(1), micros(2)),
        ("at > TIMESTAMP '1970-01-02 10:00:00'", micros(1, hours=10) + 1, None),
    ],
)
def test_where_some_files_may_have_times_a_date_is_not_the_whole_day(
    where: str, low: int | None, high: int | None
) -> None:
    assert asked(where, "date", sampled=True) == (Range(low, high, rejects_null=True), 0)
    # Spark takes of the text the day only, or the time as well: as the file has it.
    assert asked("at >= '1970-01-02 10:00:00'", "date", sampled=True)[1] == 1

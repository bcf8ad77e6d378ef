"""Which expressions are the same, which views are thought to fit, and who answers for which time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from mv_assets.buckets import DAY
from mv_assets.config import DeclaredProject, MaterializedView, ParquetTable
from mv_assets.config.file import Draft
from mv_assets.query.match.clock import without_clock
from mv_assets.query.match.matches import Match, match
from mv_assets.query.match.ranges import Range, TimeOf
from mv_assets.query.match.request import request_of
from mv_assets.query.match.spans import common, joined, without
from mv_assets.query.match.statement import statement_of
from mv_assets.query.match.truncation import stays_over, truncated_to, without_finer
from mv_assets.query.match.view_columns import ViewColumns, view_columns_of
from mv_assets.query.route.assignment import Candidate, assign
from mv_assets.spark_sql.canonical import NotPlain, expanded, refuse_neighbours, spelled
from mv_assets.spark_sql.grain import BOUNDARIES, nested
from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Source
from mv_assets.views.catalog import prepare
from mv_assets_tests.support.lake import view

EVENTS = Source(
    "events", {"at": "timestamp", "zone": "int", "x": "bigint", "name": "string", "ok": "boolean"}, "at"
)
TIME = TimeOf("events", "at", "timestamp")


def meant(expression: str) -> exp.Expr:
    select = parse_one(f"SELECT {expression} FROM events AS e", dialect="spark")
    resolver = Resolver(EVENTS, [])
    resolver.query(select, {}, None)
    return expanded(cast("exp.Select", select).expressions[0], resolver.meaning)


def spelling(expression: str) -> str:
    return spelled(meant(expression))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x", "e.X"),
        ("x", "(`x`)"),
        ("sum(x)", "SUM((e.x))"),
        ("count(*)", "count(1)"),
        ("count(*)", "COUNT((0))"),
        ("date_trunc('hour', at)", "DATE_TRUNC('HOUR', e.at)"),
        ("CASE WHEN x > 1 THEN 2 END", "case when (e.x > 1) then 2 end"),
        ("date'1970-01-01'", "CAST('1970-01-01' AS date)"),
        ("x::int", "cast(x AS INT)"),
        ("name = 'a'", "e.name = ('a')"),
        ("x IS NULL", "(x) is null"),
    ],
)
def test_these_mean_the_same(one: str, other: str) -> None:
    assert spelling(one) == spelling(other)


@pytest.mark.parametrize(
    ("cut_twice", "cut_once"),
    [
        ("date_trunc('day', date_trunc('hour', at))", "date_trunc('day', at)"),
        ("cast(date_trunc('minute', at) AS date)", "cast(at AS DATE)"),
        ("trunc(cast(date_trunc('hour', at) AS date), 'MM')", "trunc(at, 'MM')"),
        ("date_trunc('month', date_trunc('week', at))", "date_trunc('month', date_trunc('week', at))"),
        ("date_trunc('day', cast(name AS date))", "date_trunc('day', cast(name AS date))"),
    ],
)
def test_a_finer_cut_of_the_time_and_of_nothing_else_is_none(cut_twice: str, cut_once: str) -> None:
    assert spelled(without_finer(meant(cut_twice), TIME.is_time)) == spelling(cut_once)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x", "zone"),
        ("sum(x)", "sum(DISTINCT x)"),
        ("count(x)", "count(*)"),
        ("count(x)", "count(DISTINCT x)"),
        ("count('a')", "count(NULL)"),
        ("sum(x)", "sum(x + 0)"),
        ("x + 1", "x + 1.0"),
        ("x + 1", "x + 1L"),
        ("x + 1", "x - 1"),
        ("1 - x", "x - 1"),
        ("x - (zone - 1)", "(x - zone) - 1"),
        ("name = 'a'", "name = 'A'"),
        ("name = 'a'", "name = 'a '"),
        ("name = '1'", "name = 1"),
        ("name LIKE 'a'", "name = 'a'"),
        ("ok = true", "ok = false"),
        ("true", "'true'"),
        ("cast(x AS int)", "try_cast(x AS int)"),
        ("cast(x AS int)", "cast(x AS smallint)"),
        ("cast(x AS decimal(10, 2))", "cast(x AS decimal(10, 3))"),
        ("date_trunc('hour', at)", "date_trunc('day', at)"),
        ("date_trunc('month', date_trunc('week', at))", "date_trunc('month', at)"),
        ("date_trunc('hour', date_trunc('day', at))", "date_trunc('hour', at)"),
        ("date_trunc('day', at)", "cast(at AS date)"),
        ("trunc(at, 'month')", "date_trunc('month', at)"),
        ("year(at)", "month(at)"),
        ("day(at)", "dayofweek(at)"),
        ("x / zone", "x DIV zone"),
        ("x BETWEEN 1 AND 2", "x BETWEEN 2 AND 1"),
        ("x IN (1, 2)", "x IN (1)"),
        ("x NOT IN (1)", "x IN (1)"),
        ("x = 1", "x <=> 1"),
        ("NOT ok", "ok"),
        ("x > 1", "x >= 1"),
        ("round(x)", "round(x, 1)"),
        ("substring(name, 1)", "substring(name, 1, 2)"),
        ("coalesce(x, zone)", "coalesce(zone, x)"),
        ("least(x, 1)", "greatest(x, 1)"),
        ("sum(x) FILTER (WHERE ok)", "sum(x)"),
        ("sum(x) FILTER (WHERE ok)", "sum(x) FILTER (WHERE NOT ok)"),
        ("CASE WHEN ok THEN x END", "CASE WHEN ok THEN x ELSE 0 END"),
        ("CASE x WHEN 1 THEN 2 END", "CASE zone WHEN 1 THEN 2 END"),
        ("-x", "x"),
        ("'a,b'", "concat('a', 'b')"),
        ("hll_sketch_agg(x)", "hll_sketch_agg(x, 12)"),
        ("min(x)", "max(x)"),
        ("bool_and(ok)", "bool_or(ok)"),
    ],
)  # fmt: skip
def test_these_do_not(one: str, other: str) -> None:
    assert spelling(one) != spelling(other)


@pytest.mark.parametrize(
    "expression",
    [
        "rand()",
        "current_timestamp()",
        "name LIKE '%a' ESCAPE '/'",
        "name RLIKE 'a'",
        r"name = 'a\\b'",
        "at + INTERVAL 1 DAY",
        "to_date(name, 'yyyy-MM-dd')",
        "to_date(name, 'd/M/y')",
        "to_timestamp(name, 'yyyy-MM-dd HH:mm:ss')",
        "date_format(at, 'd/M/y')",
        "unix_timestamp(name, 'yyyy-MM-dd HH:mm:ss')",
        "from_unixtime(x, 'yyyy')",
        "x IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "sum(x) OVER ()",
        "transform(array(x), y -> y + 1)",
        "nowhere",
        "percentile(x, 0.5)",
        "from_utc_timestamp(at, 'CET')",
    ],
)
def test_these_are_left_to_spark(expression: str) -> None:
    with pytest.raises(NotPlain):
        spelling(expression)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT zone AS e, x, count(*) AS n FROM events e GROUP BY zone, x HAVING e.x > 5",
        "SELECT zone AS e, x, count(*) AS n FROM events e GROUP BY zone, x ORDER BY e.x",
        "SELECT name AS z, count(*) AS n FROM events GROUP BY name HAVING z.f IS NULL",
        "SELECT name AS z, z.f, count(*) AS n FROM events GROUP BY name",
    ],
)
def test_parts_of_an_output_s_name_are_left_to_spark(text: str) -> None:
    assert "may be a field" in str(
        request_of(statement_of(text, ["events"]), {"events": EVENTS}, TIME).aggregation
    )


@pytest.mark.parametrize(
    ("moment", "evaluated"),
    [
        ("now() - INTERVAL 7 DAYS", ["NOW() - INTERVAL '7' DAYS"]),
        ("now() - (INTERVAL 2 DAYS 12 HOURS)", ["NOW() - (INTERVAL '2' DAYS + INTERVAL '12' HOURS)"]),
        ("now() /* or so */ - INTERVAL 1 DAY", ["NOW() - INTERVAL '1' DAY"]),
        ("now() - INTERVAL 2 DAYS 12 HOURS", []),
        ("now() - INTERVAL 2 DAYS 12 HOURS AND at < now() - INTERVAL '2' DAYS + INTERVAL '12' HOURS", []),
        ("to_date(date_format(now(), 'y-MM-dd'), 'yyyy-MM-dd')", []),
        ("to_timestamp(date_format(now(), 'y-MM-dd'), 'y-MM-dd')", []),
    ],
)
def test_the_clock_is_read_for_what_sqlglot_writes_as_it_reads_it(moment: str, evaluated: list[str]) -> None:
    asked = list[str]()

    def evaluate(expressions: Sequence[str]) -> list[tuple[str, str | None]]:
        asked.extend(expressions)
        return [("timestamp", "1970-01-02 00:00:00")] * len(expressions)

    statement = statement_of(f"SELECT count(*) FROM events WHERE at >= {moment}", ["events"])
    assert (without_clock(statement, evaluate) is None) == (not evaluated)
    assert asked == evaluated


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("+name > '5'", True),
        ("name > +zone", True),
        ("x IN (+zone, 1)", True),
        ("x BETWEEN 1 AND + 2", True),
        ("NOT +x = 1", True),
        ("x ++ zone > 1", True),
        ("CASE WHEN ok THEN +x END = 1", True),
        ("x DIV +zone = 1", True),
        ("x + zone + 10L + 1 > `x`+1.5D + x::int + 1", False),
        ("(x) + CASE WHEN ok THEN 1 END + 1 > 1", False),
    ],
)
def test_a_sign_before_a_value_is_left_to_spark(expression: str, refused: bool) -> None:  # noqa: FBT001
    tokens = statement_of(f"SELECT x FROM events WHERE {expression}", ["events"]).tokens
    with pytest.raises(NotPlain) if refused else nullcontext():
        refuse_neighbours(tokens)


@given(
    st.sampled_from(list(BOUNDARIES)[1:]), st.sampled_from(list(BOUNDARIES)[1:]), st.integers(-3_000, 30_000)
)
def test_a_coarse_grain_of_nested_ones_starts_with_a_fine_one(fine: str, coarse: str, days: int) -> None:
    finer, coarser = BOUNDARIES[fine], BOUNDARIES[coarse]
    assert finer is not None
    assert coarser is not None
    if nested(fine, coarse):
        assert finer.is_start(coarser.floor(days * DAY))
    assert nested(fine, fine)


def test_weeks_are_no_part_of_months_quarters_and_years() -> None:
    assert not any(nested("week", coarse) for coarse in ("month", "quarter", "year"))
    assert nested("day", "week")
    assert nested("month", "quarter")
    assert not nested("month", "week")
    assert not nested("day", "hour")


@pytest.mark.parametrize(
    ("expression", "cut", "stays"),
    [
        ("date_trunc('hour', at)", "hour", "hour"),
        ("date_trunc('mm', at)", "month", "month"),
        ("trunc(at, 'year')", "year", "year"),
        ("trunc(at, 'day')", None, None),
        ("date_trunc('millennium', at)", None, None),
        ("to_date(at)", "day", "day"),
        ("to_date(name, 'yyyy')", None, None),
        ("year(at)", None, "year"),
        ("weekofyear(at)", None, "week"),
        ("hour(at)", None, "hour"),
        ("second(at)", None, None),
        ("at", None, None),
    ],
)
def test_grains_of_functions(expression: str, cut: str | None, stays: str | None) -> None:
    node = parse_one(expression, dialect="spark")
    assert (truncated_to(node), stays_over(node)) == (cut, stays)


def view_columns(sql: str, **given: Any) -> ViewColumns:
    declared = view(sql=sql, **given)
    return _view_columns_of(declared)["v"]


def _view_columns_of(*views: MaterializedView) -> dict[str, ViewColumns]:
    events = ParquetTable(name="events", path="/nowhere/events", time_column="at")
    catalog = prepare(Draft("test", DeclaredProject(tables=(events,), views=views)), schemas=False)
    return {name: view_columns_of(each, {"events": EVENTS}, TIME) for name, each in catalog.views.items()}


def matched(asked: str, sql: str, **given: Any) -> Match | str:
    statement = statement_of(asked, ["events"])
    try:
        return match(request_of(statement, {"events": EVENTS}, TIME), view_columns(sql, **given))
    except NotPlain as reason:
        return str(reason)


HOURLY = "SELECT date_trunc('hour', at) AS hour, zone, count(*) AS n, sum(x) AS s FROM events GROUP BY ALL"
FILTERED = "SELECT at, zone, x FROM events WHERE x > 5"


@pytest.mark.parametrize(
    ("sql", "given", "why"),
    [
        (f"WITH events AS ({FILTERED}) {HOURLY}", {}, "WITH is answered by the base table only"),
        (f"WITH e AS ({FILTERED}) {HOURLY.replace('events', 'e')}", {}, "WITH is answered by the base"),
        (HOURLY.replace("events", f"({FILTERED}) AS events"), {}, "is not a plain table"),
        (f"{HOURLY} UNION ALL {HOURLY}", {}, "it is a UNION; it can be asked by its own name"),
        (f"({HOURLY}) UNION ({HOURLY})", {}, "it is a UNION; it can be asked by its own name"),
        (HOURLY, {"scope": "bucket"}, "it is meant bucket by bucket; it can be asked by its own name"),
    ],
)
def test_a_view_whose_rows_come_another_way_answers_by_its_own_name_only(
    sql: str, given: dict[str, Any], why: str
) -> None:
    asked = "SELECT zone, sum(x) AS s FROM events GROUP BY zone"
    assert isinstance(matched(asked, HOURLY), Match)
    found = matched(asked, sql, **given)
    assert isinstance(found, str)
    assert why in found


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT count(*) FROM events",
        "SELECT zone, sum(x) FROM events GROUP BY zone",
        "SELECT zone + 1, count(zone) FROM events GROUP BY 1",
        "SELECT date_trunc('day', at), count(*) FROM events GROUP BY ALL",
        "SELECT year(at), count(1) FROM events GROUP BY 1 HAVING count(*) > 1 ORDER BY sum(x)",
        "SELECT DISTINCT zone FROM events WHERE at >= '1970-01-02 00:30:00'",
        "SELECT sum(x) FILTER (WHERE zone = 1) FROM events WHERE hour(at) = 5",
        "SELECT sum(zone) FROM events",
    ],
)
def test_these_questions_fit_the_view(asked: str) -> None:
    assert isinstance(matched(asked, HOURLY), Match)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("SELECT x FROM events", "single rows"),
        ("SELECT count(x) FROM events", "count"),
        ("SELECT avg(x) FROM events", "count"),
        ("SELECT sum(x * zone) FROM events", "sum"),
        ("SELECT min(x) FROM events", "min"),
        ("SELECT max(at) FROM events", "max"),
        ("SELECT sum(DISTINCT x) FROM events", "DISTINCT"),
        ("SELECT count(DISTINCT x) FROM events", "x"),
        ("SELECT minute(at), count(*) FROM events GROUP BY 1", "minute"),
        ("SELECT count(*) FROM events WHERE x = 1", "x"),
        ("SELECT sum(x) FILTER (WHERE ok) FROM events", "ok"),
        ("SELECT count(*) FROM events WHERE at > '1970-01-01' OR zone = 1", "at"),
        ("SELECT median(zone) FROM events", ""),
    ],
)
def test_these_questions_do_not_and_it_is_said_why(asked: str, why: str) -> None:
    said = matched(asked, HOURLY)
    assert isinstance(said, str)
    assert why in said


def test_neighbouring_texts_are_left_to_spark() -> None:
    # For Spark a doubled quote is one quote, for sqlglot two texts in a row.
    assert isinstance(matched("SELECT count(*) FROM events WHERE zone = 'it''s'", HOURLY), str)
    assert isinstance(matched("SELECT concat(zone, 'a' 'b'), count(*) FROM events GROUP BY 1", HOURLY), str)
    own = HOURLY.replace("FROM events", "FROM events WHERE name = 'it''s'")
    assert isinstance(matched("SELECT count(*) FROM events WHERE name = concat('it', 's')", own), str)


@given(
    days=st.sets(st.integers(0, 9)),
    others=st.sets(st.integers(0, 9)),
    low=st.one_of(st.none(), st.integers(-1, 10 * 48)),
    length=st.integers(0, 5 * 48),
)
def test_all_that_is_asked_is_dealt_out_once(
    days: set[int], others: set[int], low: int | None, length: int
) -> None:
    half = DAY // 48
    asked = Range() if low is None else Range(low * half * 1_000, (low + length) * half * 1_000)
    rows: dict[str, Any] = {
        "v": {day * DAY: SimpleNamespace(rows=100) for day in days},
        "w": {day * DAY: SimpleNamespace(rows=10) for day in others},
    }
    candidates = [Candidate(Match(view_columns, None), rows[name]) for name, view_columns in SPLIT.items()]
    made = assign(asked, candidates)
    served = [span for part in made.parts for span in part.spans]
    assert joined([*served, *made.base]) == joined([asked.outer])
    assert sum(end - start for start, end in [*served, *made.base]) == sum(
        end - start for start, end in joined([asked.outer])
    )
    for part in made.parts:
        name, hours = (
            part.match.view_columns.view.name,
            BOUNDARIES["day" if part.match.view_columns.view.name == "w" else "hour"],
        )
        assert hours is not None
        whole = joined((bucket, bucket + DAY) for bucket in rows[name])
        assert common(whole, part.spans) == part.spans
        assert all(hours.is_start(edge) for span in part.spans for edge in span)
        reached = joined((bucket, bucket + DAY) for bucket in part.rows)
        assert without(part.spans, reached) == ()
        assert all(common(part.spans, [(bucket, bucket + DAY)]) for bucket in part.rows)
        assert part.cuts == (part.spans != reached)
    # The cheaper one has all that it can.
    cheap = [span for part in made.parts if part.match.view_columns.view.name == "w" for span in part.spans]
    mine = {
        day
        for day in others
        if common([asked.inner], [(day * DAY, (day + 1) * DAY)]) == ((day * DAY, (day + 1) * DAY),)
    }
    assert joined(cheap) == joined((day * DAY, (day + 1) * DAY) for day in mine)


SPLIT = _view_columns_of(
    view(sql=HOURLY),
    view("w", sql="SELECT date_trunc('day', at) AS hour, count(*) AS n FROM events GROUP BY ALL"),
)


def test_a_view_with_a_range_of_its_own_answers_for_whole_grains_of_it() -> None:
    sql = HOURLY.replace("FROM events", "FROM events WHERE at >= '1970-01-01 10:30:00'")
    rows: Any = {0: SimpleNamespace(rows=1), DAY: SimpleNamespace(rows=1)}
    made = assign(Range(), [Candidate(Match(view_columns(sql), None), rows)])
    hour = DAY // 24
    assert [part.spans for part in made.parts] == [((11 * hour, 2 * DAY),)]
    assert made.parts[0].cuts

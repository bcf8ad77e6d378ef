"""How fresh an answer is: bounded, stored, by a view's own name, around broken and frozen buckets."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.buckets import DAY
from mv_assets.errors import MvError
from mv_assets.query.errors import FileInTheWay, NothingStored, NotValid, QueryRefused
from mv_assets.query.route.eligibility import Freshness
from mv_assets_tests.support.lake import EPOCH, day, view
from mv_assets_tests.support.queried_lake import (
    COUNT,
    DAILY,
    HOURS,
    ZONES,
    QueriedLake,
    QueriedLakes,
    between,
    came_from,
    once,
    rows_of,
    zones,
)

pytestmark = pytest.mark.slow
STORED, OFF, BOUNDED = Freshness.STORED, Freshness.OFF, Freshness.BOUNDED


@pytest.fixture
def recent(queried_lake: QueriedLakes) -> Callable[..., tuple[QueriedLake, int]]:
    """A lake of the last days, so that a view of it lags behind by no more than days; and its first day."""

    def make(*views: Any, **options: Any) -> tuple[QueriedLake, int]:
        first = time.time_ns() // 1_000_000 // DAY - 4
        start = date.fromordinal(EPOCH.toordinal() + first).isoformat()
        declared = views or [view(sql=HOURS, start=start, max_staleness="5d")]
        made = queried_lake(*declared, **options)
        made.days(first, first + 1, first + 2)
        made.lake.converge()
        return made, first

    return make


def test_a_bounded_answer_may_be_stale_on_purpose_and_lists_nothing(
    recent: Callable[..., tuple[QueriedLake, int]],
) -> None:
    made, first = recent()
    asked = f"{COUNT} {between(f'{day(first, 0):%Y-%m-%d}', f'{day(first + 3, 0):%Y-%m-%d}')}"
    before = made.right(asked, "v: 3 + 0", freshness=BOUNDED)
    made.day(first + 1, "late.parquet", seed=1)
    made.listings.clear()
    stale = made.ask(asked, BOUNDED)
    assert made.listings == []
    assert (came_from(stale), rows_of(stale)) == ("v: 3 + 0", rows_of(before))
    made.right(asked, "v: 2 + 1")
    # Once it is known to be STALE it is not served any more.
    made.lake.look()
    made.right(asked, "v: 2 + 1", freshness=BOUNDED)


def test_a_view_that_lags_too_far_behind_is_no_use_to_a_bounded_question(
    recent: Callable[..., tuple[QueriedLake, int]],
) -> None:
    made, first = recent()
    lag = made.lake.clock.now - (first + 3) * DAY
    made.day(first, "late.parquet", seed=1)
    assert came_from(made.ask(COUNT, BOUNDED, lag)) is not None
    for bound in (lag - 1, 1, 0):
        made.right(COUNT, None, freshness=BOUNDED, max_staleness=bound)
    made.lake.clock.now += 5 * DAY
    said = made.right(COUNT, None, freshness=BOUNDED).served.considered["v"]
    assert "max_staleness" in str(said)


def test_a_view_without_a_bound_needs_one_with_the_question(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    assert made.right(COUNT, None, freshness=BOUNDED).served.considered["v"] == "it declares no max_staleness"
    made.right(COUNT, "v: 2 + 0", freshness=BOUNDED, max_staleness=made.lake.clock.now)


def test_switched_off_views_serve_nothing(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    answer = made.right(ZONES, None, freshness=OFF)
    assert answer.served.files_from_base == 2
    made.by_name("SELECT zone, sum(n) AS n FROM v GROUP BY zone", None, OFF)


def test_stored_gives_what_was_last_committed_valid_or_stale(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=3)
    asked = "SELECT hour, zone, n FROM v WHERE hour < '1970-01-03'"
    before = made.rows(asked)
    made.day(1, seed=5)
    assert made.rows(asked, STORED) == before or sorted(made.rows(asked, STORED), key=repr) == sorted(
        before, key=repr
    )
    made.lake.look()
    assert made.lake.states(0, 1, 2) == "VSV"
    made.listings.clear()
    answer = made.ask(asked, STORED)
    assert sorted(rows_of(answer), key=repr) == sorted(before, key=repr)
    assert (came_from(answer), made.listings) == ("v: 2 + 0", [])
    made.lake.converge()
    assert sorted(made.rows(asked, STORED), key=repr) == sorted(made.expected(asked), key=repr)


def test_stored_of_what_was_never_computed_says_so(queried_lake: QueriedLakes) -> None:
    made = queried_lake()
    made.day(0)
    asked = "SELECT count(*) AS n FROM v"
    for _ in ("nobody knows it", "it was looked at"):
        with pytest.raises(NothingStored, match=r"nothing of view v was ever computed.*mv-assets refresh v"):
            made.ask(asked, STORED)
        made.lake.look()
    made.lake.converge()
    assert made.rows(asked, STORED) != [(0,)]
    # Computed, but not there.
    assert made.rows(f"{asked} WHERE hour >= '1999-01-01'", STORED) == [(0,)]


def test_stored_of_buckets_without_rows_is_an_empty_answer(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=3)
    for file in ("day-0.parquet", "day-1.parquet"):
        made.lake.remove(file)
    made.lake.converge()
    assert made.lake.states(0, 1, 2) == "VVV"
    first = "FROM v WHERE hour < '1970-01-03'"
    assert made.rows(f"SELECT count(*) AS n {first}", STORED) == [(0,)]
    assert made.rows(f"SELECT zone, n {first}", STORED) == []


def test_stored_is_refused_for_a_base_table(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=1)
    for asked in (COUNT, "SELECT count(*) AS n FROM v JOIN events ON v.zone = events.zone"):
        with pytest.raises(QueryRefused, match=r"events is a base table.*ask a view"):
            made.ask(asked, STORED)


def test_stored_reads_one_version_of_the_map(
    queried_lake: QueriedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = queried_lake(filled=2)
    asked = "SELECT a.hour, a.n, b.n AS m FROM v a JOIN v b ON a.hour = b.hour AND a.zone <=> b.zone"
    before = sorted(made.rows(asked, STORED), key=repr)

    def happen() -> None:
        made.day(0, seed=8)
        made.lake.converge()

    once(monkeypatch, happen)
    assert sorted(made.rows(asked, STORED), key=repr) == before
    assert sorted(made.rows(asked, STORED), key=repr) != before


def test_rows_of_another_definition_are_not_used(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    doubled = HOURS.replace("count(*) AS n", "count(*) + 0 AS n").replace("sum(x)", "2 * sum(x)")
    made.lake.declare(view(sql=doubled))
    made.declared()
    made.right(ZONES, None)
    made.by_name("SELECT zone, sum(x) AS x FROM v GROUP BY zone", None)
    with pytest.raises(NothingStored, match="computed with another definition than this project has"):
        made.ask("SELECT * FROM v", STORED)
    made.lake.converge()
    made.by_name("SELECT zone, sum(x) AS x FROM v GROUP BY zone", "v: 2 + 0")
    # And a deployment that still declares the old one does not use the new rows.
    made.lake.declare(view(sql=HOURS))
    made.declared()
    made.right(ZONES, None)
    with pytest.raises(NothingStored, match="computed with another definition than this project has"):
        made.ask("SELECT * FROM v", STORED)
    made.lake.declare(view(sql=doubled))


def test_another_width_of_buckets_makes_the_old_ones_useless(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    made.lake.declare(view(sql=HOURS, bucket="6h"))
    made.declared()
    made.right(ZONES, None)
    made.by_name("SELECT zone, sum(n) AS n FROM v GROUP BY zone", None)
    made.lake.converge()
    made.right(ZONES, "v: 8 + 0")


# A view by its own name.


def test_by_its_name_a_view_gives_fit_buckets_and_computes_the_others(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=3)
    every = "SELECT * FROM v"
    made.by_name(every, "v: 3 + 0")
    made.day(1, "late.parquet", seed=1)
    made.days(3)
    answer = made.by_name(every, "v: 2 + 2")
    assert answer.frame.columns == list(made.lake.catalog.view("v").select.columns)
    made.by_name(
        "SELECT max(n) AS m, count(*) AS c FROM v WHERE hour >= '1970-01-02 05:00:00' AND hour < '1970-01-03'"
    )
    made.by_name("SELECT v.hour, sum(w.n) AS n FROM v JOIN v AS w ON v.hour = w.hour GROUP BY v.hour")
    made.by_name("SELECT hour, n FROM v UNION ALL SELECT hour, n + 1 FROM v WHERE zone = 1")
    made.by_name("SELECT hour, row_number() OVER (ORDER BY hour, zone) AS r FROM v ORDER BY r LIMIT 3")


def test_a_view_and_its_base_are_joined_at_one_listing(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    made.day(1, seed=4)
    made.by_name(
        "SELECT v.zone, sum(v.n) AS n, max(e.c) AS c FROM v "
        "JOIN (SELECT zone, count(*) AS c FROM events GROUP BY zone) e ON v.zone = e.zone GROUP BY v.zone",
        "v: 2 + 2",
    )


def test_a_view_on_a_view_follows_its_base_through_both(queried_lake: QueriedLakes) -> None:
    daily = view("daily", base="v", sql=DAILY, time_column="day")
    made = queried_lake(view(sql=HOURS), daily, filled=3)
    every = "SELECT day, zone, n, fare FROM daily"
    made.by_name(every, "daily: 3 + 0")
    made.right(f"{COUNT} {between('1970-01-01', '1970-01-04')}", "daily: 3 + 0")
    made.day(1, "late.parquet", seed=1)
    made.by_name(every, "daily: 2 + 1")
    made.right(ZONES, "daily: 2 + 1")
    made.lake.look("v")
    assert made.lake.states(0, 1, 2) == "VSV"
    made.by_name(every, "daily: 2 + 1")
    made.lake.refresh("v")
    # Upstream is right again, and what is based on it not yet.
    assert made.lake.states(0, 1, 2) == "VVV"
    made.by_name(every, "daily: 2 + 1")
    made.right(ZONES, "daily: 2, v: 1 + 0")


JOINED = (
    "SELECT date_trunc('hour', at) AS hour, city, count(*) AS n FROM events "
    "JOIN zones ON events.zone = zones.zone GROUP BY ALL"
)


def _zones(made: QueriedLake, *names: str) -> None:
    types = {"zone": pa.int32(), "city": pa.string()}
    made.put("zones.parquet", "zones", types, zone=[1, 2], city=list(names))


def test_a_changed_dimension_is_in_every_answer(queried_lake: QueriedLakes) -> None:
    made = queried_lake(view(sql=JOINED, dimensions=("zones",)), dimensions=("zones",))
    _zones(made, "Ulm", "Bonn")
    made.days(0, 1)
    made.lake.converge()
    same = "SELECT city, count(*) AS n FROM events JOIN zones ON events.zone = zones.zone GROUP BY city"
    made.by_name("SELECT city, sum(n) AS n FROM v GROUP BY city", "v: 2 + 0")
    made.right(same, "v: 2 + 0")
    made.right(same.replace("events.zone = zones.zone", "zones.zone = events.zone"))
    made.right(
        same.replace(
            "zones ON events.zone = zones.zone", "zones z ON z.zone = events.zone AND events.zone > 1"
        ),
        None,
    )
    # A join drops and multiplies rows.
    made.right(COUNT, None)
    _zones(made, "Ulm", "Ulm")
    made.by_name("SELECT city, sum(n) AS n FROM v GROUP BY city", None)
    made.right(same, None)


def test_having_and_distinct_are_for_a_views_own_name_only(queried_lake: QueriedLakes) -> None:
    hours = "SELECT date_trunc('hour', at) AS hour, zone, count(*) AS n FROM events GROUP BY ALL"
    some_hours = f"{hours} HAVING count(*) > 1"
    pairs = "SELECT DISTINCT at, zone FROM events"
    made = queried_lake(view(sql=some_hours), view("pairs", sql=pairs, time_column="at"), filled=2)
    made.right(ZONES, None)
    made.right(some_hours.replace("hour, zone", "h, zone"), None)
    made.right("SELECT at, zone FROM events", None)
    made.by_name("SELECT sum(n) AS n FROM v", "v: 2 + 0")
    made.by_name("SELECT count(*) AS n FROM pairs", "pairs: 2 + 0")


# Rows of no time, frozen buckets, broken files.


def test_rows_without_a_time_are_added_from_the_base_unless_they_are_ruled_out(
    queried_lake: QueriedLakes,
) -> None:
    timed = HOURS.replace("FROM events", 'FROM events WHERE "at" IS NOT NULL')
    made = queried_lake(oracle={"v": timed.replace("hour', at", 'hour\', "at"')}, filled=2)
    made.put("timeless.parquet", at=[None, None], zone=[1, None], fare=[Decimal("1.00"), None], x=[1, 2])
    made.put("half.parquet", at=[day(1), None], zone=[1, 2], fare=[None, None], x=[1, 2])
    made.lake.converge()
    answer = made.right(ZONES, "v: 2 + 0")
    assert answer.served.files_from_base == 2
    made.right("SELECT date_trunc('day', at) AS d, count(*) AS n, count(at) AS c FROM events GROUP BY d")
    made.right(f"{COUNT} WHERE at IS NULL")
    answer = made.right(f"{COUNT} WHERE at < '1970-01-03'", "v: 2 + 0")
    assert answer.served.files_from_base == 0
    made.by_name("SELECT sum(n) AS n FROM v WHERE hour IS NOT NULL")


def test_a_frozen_bucket_is_for_the_views_own_name_only(queried_lake: QueriedLakes) -> None:
    made = queried_lake(view(sql=HOURS, on_base_delete="freeze"))
    made.days(0, 1)
    made.day(1, "more.parquet", seed=3)
    made.lake.converge()
    own = "SELECT zone, sum(n) AS n FROM v GROUP BY zone"
    kept = sorted(made.rows(own), key=repr)
    made.lake.remove("more.parquet")
    made.right(ZONES, "v: 1 + 1")
    made.lake.converge()
    row = made.lake.row(1)
    assert row is not None
    assert row.frozen
    made.right(ZONES, "v: 1 + 1")
    answer = made.ask(own)
    assert (came_from(answer), sorted(rows_of(answer), key=repr)) == ("v: 2 + 0", kept)
    # What is left has changed: neither the stored rows nor new ones would be right.
    made.day(1, seed=7)
    with pytest.raises(NotValid, match=r"1970-01-02.* of view v .*frozen"):
        made.ask(own)
    made.by_name("SELECT zone, sum(n) AS n FROM v WHERE hour < '1970-01-02' GROUP BY zone", "v: 1 + 0")
    made.right(ZONES, "v: 1 + 1")
    made.lake.manager.drop("v")


def test_a_bucket_that_is_about_to_freeze_is_as_good_as_a_frozen_one(queried_lake: QueriedLakes) -> None:
    made = queried_lake(view(sql=HOURS, on_base_delete="freeze"), filled=2)
    own = "SELECT zone, sum(n) AS n FROM v GROUP BY zone"
    kept = sorted(made.rows(own), key=repr)
    made.lake.remove("day-1.parquet")
    made.right(ZONES)
    assert sorted(made.rows(own), key=repr) == kept


def test_an_unreadable_file_is_named_where_it_matters_and_only_there(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=4)
    made.lake.damage("day-3.parquet")
    with pytest.raises(MvError, match=r"day-3\.parquet"):
        made.ask(COUNT)
    with pytest.raises(MvError, match=r"day-3\.parquet"):
        made.ask(f"{COUNT} WHERE at >= '1970-01-04'", OFF)
    for low, high in (("1970-01-01", "1970-01-04"), ("1970-01-02 00:30:00", "1970-01-04")):
        made.right(f"{COUNT} {between(low, high)}")
    made.by_name("SELECT sum(n) AS n FROM v WHERE hour < '1970-01-04'", "v: 3 + 0")
    made.lake.look()
    made.right(zones(between("1970-01-01", "1970-01-04")), "v: 3 + 0")


@pytest.mark.parametrize("damage", ["footer", "pages"])
def test_a_file_in_the_way_says_of_which_time_it_is_and_what_would_answer(
    queried_lake: QueriedLakes, damage: str
) -> None:
    made = queried_lake(filled=3)
    if damage == "footer":
        made.lake.damage("day-1.parquet")
    else:
        _spoil(made.lake.folder / "events" / "day-1.parquet")
    ways = r"mend it or take it away, or ask for a time without it, or ask v by name with freshness `stored`"
    held = rf"day-1\.parquet.*; it holds 1970-01-02T\S+Z to 1970-01-02T\S+Z of table events: {ways}$"
    for asked in (f"{ZONES} ORDER BY max(x)", "SELECT zone, sum(n) AS n FROM v GROUP BY zone"):
        for freshness in (Freshness.STRICT, OFF):
            with pytest.raises(FileInTheWay, match=held):
                made.ask(asked, freshness)
    made.right(zones(between("1970-01-01", "1970-01-02")))
    made.ask("SELECT zone, sum(n) AS n FROM v GROUP BY zone", STORED)


def test_a_file_of_a_dimension_in_the_way_is_of_no_time(queried_lake: QueriedLakes) -> None:
    made = queried_lake(view(sql=JOINED, dimensions=("zones",)), dimensions=("zones",))
    _zones(made, "Ulm", "Bonn")
    made.day(0)
    (made.lake.folder / "zones" / "a.parquet").write_bytes(b"not a table")
    whole = r"a\.parquet.*table zones has no time, and is read as a whole: mend it or take it away$"
    with pytest.raises(FileInTheWay, match=whole):
        made.ask("SELECT count(*) AS n FROM events JOIN zones ON events.zone = zones.zone")


def _spoil(path: Path) -> None:
    """Leave a file its footer alone."""
    content, metadata = bytearray(path.read_bytes()), pq.ParquetFile(path).metadata.row_group(0)
    for column in map(metadata.column, range(metadata.num_columns)):
        start = column.dictionary_page_offset or column.data_page_offset
        content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)


def test_a_file_of_unknown_range_is_read_by_every_strict_question(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    (made.lake.folder / "events" / "new.parquet").write_bytes(b"PAR1 not a table")
    for asked in (COUNT, f"{COUNT} {between('1970-01-01', '1970-01-02')}", "SELECT sum(n) AS n FROM v"):
        with pytest.raises(MvError, match=r"new\.parquet"):
            made.ask(asked)
    made.lake.look()
    with pytest.raises(MvError, match=r"new\.parquet"):
        made.ask(f"{COUNT} {between('1970-01-01', '1970-01-02')}")
    (made.lake.folder / "events" / "new.parquet").unlink()
    made.right(COUNT, "v: 2 + 0")

"""Answers are those of the base table, whatever part of them a view gave."""

from __future__ import annotations

import pytest

from mv_assets.buckets import DAY
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.queried_lake import (
    COUNT,
    HOURS,
    ROWS,
    ZONES,
    QueriedLakes,
    between,
    once,
    zones,
)


def test_71_a_cold_view_is_answered_by_the_base(queried_lake: QueriedLakes) -> None:
    made = queried_lake()
    made.days(0, 1)
    made.right(ZONES, None)
    made.lake.watch().round(whole=True)
    made.right(ZONES, None)
    made.by_name("SELECT zone, sum(n) AS n FROM v GROUP BY zone", None)
    assert "trusted" in str(made.ask(ZONES).served.considered["v"])


def test_72_a_stale_bucket_comes_from_the_base_and_the_rest_from_the_view(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=4)
    made.day(1, "late.parquet", seed=1)
    made.lake.look()
    assert made.lake.states(0, 1, 2, 3) == "VSVV"
    answer = made.right(ZONES, "v: 3 + 1")
    assert answer.served.files_from_base == 2
    made.right(f"{COUNT} {between('1970-01-01', '1970-01-05')}", "v: 3 + 1")
    made.right(f"{COUNT} {between('1970-01-03', '1970-01-05')}", "v: 2 + 0")


def test_73_a_change_that_nobody_looked_at_yet_is_in_a_strict_answer(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=3)
    made.day(2, "late.parquet", seed=1)
    made.right(ZONES, "v: 2 + 1")
    made.day(0, seed=2)
    made.right(ZONES, "v: 1 + 2")
    made.lake.remove("day-1.parquet")
    made.right(ZONES, None)
    assert made.lake.states(0, 1, 2) == "VVV"


def test_74_the_ends_of_an_unaligned_range_come_from_the_base(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=4)
    whole = f"{COUNT} {between('1970-01-02', '1970-01-04')}"
    assert made.right(whole, "v: 2 + 0").served.files_from_base == 0
    # Within the day in whole hours, which the view has.
    made.right(f"{COUNT} {between('1970-01-02 10:00:00', '1970-01-04')}", "v: 2 + 0")
    for low, high in (
        ("1970-01-02 10:30:00", "1970-01-04 00:00:00.000001"),
        ("1970-01-01 23:59:59.999999", "1970-01-03"),
    ):
        answer = made.right(f"SELECT count(*) AS n, sum(x) AS x FROM events {between(low, high)}")
        assert answer.served.view == "v"
        assert answer.served.buckets_from_base in (1, 2)
        assert answer.served.files_from_base == answer.served.buckets_from_base
    made.right(f"{COUNT} WHERE at BETWEEN '1970-01-02' AND '1970-01-03'", "v: 1 + 1")
    made.right(f"{COUNT} WHERE at > '1970-01-02' AND '1970-01-03' >= at", "v: 1 + 2")


def test_75_what_lies_before_the_coverage_comes_from_the_base(queried_lake: QueriedLakes) -> None:
    made = queried_lake(view(sql=HOURS, start="1970-01-03"), filled=4)
    assert made.lake.states(0, 1, 2, 3) == "--VV"
    made.right(ZONES, "v: 2 + 2")
    made.right(zones(between("1970-01-01", "1970-01-03")), None)
    # By its own name a view has its covered range only.
    expected = made.expected("""SELECT count(*) FROM events WHERE "at" >= '1970-01-03'""")
    assert made.rows("SELECT sum(n) AS n FROM v") == expected


def test_76_a_filter_on_what_truncation_hides_is_answered_by_the_base(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    made.right(f"{COUNT} WHERE minute(at) = 0", None)
    made.right(f"{COUNT} WHERE x > 50", None)
    made.right(f"{COUNT} WHERE at < '1970-01-02' OR at > '1970-01-02 00:30:00'", None)
    made.right(f"{COUNT} WHERE zone = 1 OR zone IS NULL", "v: 2 + 0")
    made.right(f"{COUNT} WHERE hour(at) < 12", "v: 2 + 0")
    made.right(f"{COUNT} WHERE date_trunc('hour', at) = '1970-01-02 00:00:00'", "v: 1 + 0")
    made.right(f"{COUNT} WHERE cast(at AS date) = '1970-01-02'", "v: 1 + 0")


def test_77_a_group_key_that_the_view_lacks_is_answered_by_the_base(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    made.right("SELECT x, count(*) AS n FROM events GROUP BY x", None)
    made.right("SELECT zone, x % 2 AS odd, count(*) AS n FROM events GROUP BY ALL", None)
    made.right("SELECT minute(at) AS m, count(*) AS n FROM events GROUP BY m", None)
    made.right("SELECT zone % 2 AS odd, count(*) AS n FROM events GROUP BY odd", "v: 2 + 0")
    # The column at, not the alias, is what is grouped by.
    made.right("SELECT date_trunc('day', at) AS at, count(*) AS n FROM events GROUP BY at", None)


@pytest.mark.slow
def test_78_names_types_and_order_are_those_of_the_base(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=3)
    for text in (
        "SELECT zone, count(*), SUM(fare), avg(fare), avg(x), Max(X) FROM events GROUP BY 1 ORDER BY 1",
        "SELECT sum(fare) / count(*) AS `per row`, zone AS Zone FROM events GROUP BY zone ORDER BY 2 DESC",
        "SELECT zone, sum(x) AS x FROM events GROUP BY zone ORDER BY x DESC NULLS LAST LIMIT 2",
        "SELECT zone FROM events GROUP BY zone ORDER BY max(x) DESC, zone LIMIT 2 OFFSET 1",
        "SELECT zone AS z, zone AS z, 1 AS one FROM events e GROUP BY e.zone ORDER BY 2 NULLS LAST",
        "SELECT DISTINCT zone FROM events ORDER BY zone",
        "SELECT DISTINCT count(*) AS n FROM events GROUP BY zone ORDER BY n",
        "SELECT cast(at AS date) AS d, count(fare) AS c FROM events GROUP BY 1 HAVING c > 1 ORDER BY d",
        "SELECT month(at) AS m, hour(at) AS h, count(*) AS n FROM events GROUP BY ALL ORDER BY ALL",
        "SELECT count(*) FILTER (WHERE zone = 1) AS a, sum(x) FILTER (WHERE zone > 1) AS c FROM events",
        "SELECT count(DISTINCT zone) AS zones, count(zone) AS c, max(zone) AS m, count(1) AS n FROM events",
        "SELECT CASE WHEN zone > 1 THEN 'far' ELSE 'near' END AS f, sum(x) AS s FROM events GROUP BY ALL",
        "SELECT count(*) AS n FROM events HAVING sum(x) > 1000000",
    ):  # fmt: skip
        served = None if "ORDER BY ALL" in text else "v: 3 + 0"
        made.right(text, served)
    # In HAVING, x is what the base says it is: it has a column of that name too.
    made.like_base(
        "SELECT zone, count(*) AS x FROM events GROUP BY zone HAVING x > 7 ORDER BY -x, zone", None
    )


def test_79_nothing_counts_as_0_and_sums_to_null(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    made.day(1, seed=9)
    for where in (
        between("1970-01-05", "1970-01-07"),
        between("1970-01-03", "1970-01-01"),
        "WHERE zone = 99",
    ):
        asked = (
            f"SELECT count(*) AS n, count(x) AS c, sum(x) AS s, avg(x) AS a, min(x) AS m FROM events {where}"
        )
        made.right(asked)
        assert made.rows(asked) == [(0, 0, None, None, None)]
        made.right(f"SELECT zone, count(*) AS n FROM events {where} GROUP BY zone")
    # Rows that are there, with no value at all.
    made.put("nulls.parquet", at=[day(2, 24 - 1 / 3_600_000)], zone=[7], fare=[None], x=[None])
    made.lake.converge()
    made.right("SELECT zone, count(x) AS c, sum(x) AS s, avg(x) AS a FROM events GROUP BY zone", "v: 3 + 0")


def test_80_a_view_dropped_in_the_middle_of_a_query_gives_a_right_answer(
    queried_lake: QueriedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = queried_lake(filled=3)
    once(monkeypatch, lambda: made.lake.manager.drop("v"))
    made.right(ZONES, "v: 3 + 0")
    made.right(ZONES, None)


def test_80_generations_that_vanished_under_a_view_are_made_up_for_by_the_base(
    queried_lake: QueriedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = queried_lake(view(sql=HOURS), view("w", sql=ROWS, time_column="at"), filled=3)

    def vanish(name: str) -> None:
        for path in (made.lake.folder / "warehouse" / name).rglob("*.parquet"):
            path.unlink()

    once(monkeypatch, lambda: vanish("v"))
    made.right(ZONES, None)
    made.right(ZONES)
    vanish("w")
    made.right("SELECT at, x FROM events WHERE zone = 1", None)
    made.right(ZONES, None)
    made.lake.manager.drop("v")
    made.lake.manager.drop("w")


def test_81_of_two_fitting_views_the_cheaper_answers(queried_lake: QueriedLakes) -> None:
    totals = "SELECT date_trunc('day', at) AS hour, count(*) AS n, sum(fare) AS fare FROM events GROUP BY ALL"
    made = queried_lake(view(sql=HOURS), view("totals", sql=totals), filled=3)
    made.right(COUNT, "totals: 3 + 0")
    made.right(ZONES, "v: 3 + 0")
    # Where the cheaper one has nothing, the other one has.
    made.lake.manager.force(made.lake.catalog.view("totals").declaration, [DAY], "doubted")
    assert made.lake.states(0, 1, 2, name="totals") == "VSV"
    made.right(COUNT, "totals: 2, v: 1 + 0")
    made.right(f"{COUNT} {between('1970-01-01 06:00:00', '1970-01-04')}", "totals: 1, v: 2 + 0")

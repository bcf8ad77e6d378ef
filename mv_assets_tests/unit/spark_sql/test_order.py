from __future__ import annotations

import pytest

from mv_assets_tests.unit.spark_sql.analysed import only, view_of

NAMED = """
    WINDOW plain AS (PARTITION BY pickup_at), ordered AS (PARTITION BY pickup_at ORDER BY fare),
      cut AS (PARTITION BY pickup_at ROWS 1 PRECEDING)
"""
ROWS = "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"


@pytest.mark.parametrize(
    "call",
    [
        *(
            f"{function} OVER (PARTITION BY pickup_at)"
            for function in (
                "row_number()",
                "rank()",
                "dense_rank()",
                "percent_rank()",
                "cume_dist()",
                "ntile(2)",
                "lag(fare)",
                "lead(fare) IGNORE NULLS",
                "nth_value(fare, 2)",
                "counter_diff(fare)",
                "first(fare)",
                "first_value(fare) FILTER (WHERE zone_id > 1)",
                "last(fare) RESPECT NULLS",
                "last_value(fare)",
                "any_value(fare)",
            )
        ),
        f"sum(fare) OVER (PARTITION BY pickup_at {ROWS})",
        "sum(fare) OVER (PARTITION BY pickup_at ROWS UNBOUNDED PRECEDING)",
        f"sum(fare) FILTER (WHERE zone_id > 1) OVER (PARTITION BY pickup_at {ROWS})",
        f"sort_array(collect_list(fare) OVER (PARTITION BY pickup_at {ROWS}))",
        f"sum(fare) OVER (PARTITION BY pickup_at ORDER BY 1 {ROWS})",
        "row_number() OVER (PARTITION BY pickup_at ORDER BY NULL)",
        "row_number() OVER plain",
        "first(fare) OVER PLAIN",
        "sum(fare) OVER cut",
        f"(SELECT max(s) FROM (SELECT sum(zone_id) OVER (PARTITION BY borough {ROWS}) AS s FROM zones))",
    ],
)
def test_a_window_that_counts_rows_without_an_order_is_refused(call: str) -> None:
    what = only(f"SELECT pickup_at AS hour, {call} AS x FROM trips {NAMED}").what
    assert what.startswith("the window of ")
    assert what.endswith("depends on the order in which rows arrive; give it an ORDER BY on columns")


@pytest.mark.parametrize(
    "call",
    [
        "sum(fare) OVER (PARTITION BY pickup_at)",
        "sum(fare) OVER plain",
        "sum(fare) OVER (PARTITION BY pickup_at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        f"sum(fare) OVER (PARTITION BY pickup_at ORDER BY fare {ROWS})",
        "row_number() OVER (PARTITION BY pickup_at ORDER BY zone_id)",
        "lag(fare) IGNORE NULLS OVER (PARTITION BY pickup_at ORDER BY zone_id)",
        "ntile(4) OVER ordered",
        "first(fare) OVER ordered",
    ],
)
def test_a_window_with_an_order_or_without_a_frame_is_fine(call: str) -> None:
    assert view_of(f"SELECT pickup_at AS hour, {call} AS x FROM trips {NAMED}").columns == ("hour", "x")


@pytest.mark.parametrize(
    "call",
    [
        "listagg(zone_id) WITHIN GROUP (ORDER BY zone_id)",
        "listagg(zone_id, ',') WITHIN GROUP (ORDER BY Zone_ID DESC NULLS LAST)",
        "string_agg(zone_id) WITHIN GROUP (ORDER BY fare, zone_id)",
        "listagg(DISTINCT zone_id) WITHIN GROUP (ORDER BY zone_id) FILTER (WHERE fare > 1)",
        "listagg(upper(payload.b.c)) WITHIN GROUP (ORDER BY UPPER(payload.b.c))",
        "listagg(CAST(zone_id AS string) || '-' || fare) WITHIN GROUP (ORDER BY zone_id, fare)",
    ],
)
def test_a_list_ordered_by_what_it_lists_is_fine(call: str) -> None:
    assert view_of(f"SELECT pickup_at AS hour, {call} AS x FROM trips GROUP BY 1").columns == ("hour", "x")


@pytest.mark.parametrize(
    "call",
    [
        "listagg(zone_id) WITHIN GROUP (ORDER BY fare)",
        "`listagg`(zone_id) WITHIN GROUP (ORDER BY fare)",
        "listagg(zone_id, ',') WITHIN GROUP (ORDER BY fare DESC) FILTER (WHERE fare > 1)",
        "string_agg(zone_id) WITHIN GROUP (ORDER BY fare)",
        "concat('a', listagg(zone_id) WITHIN GROUP (ORDER BY fare))",
    ],
)
def test_a_list_ordered_by_something_else_is_refused(call: str) -> None:
    assert only(f"SELECT pickup_at AS hour, {call} AS x FROM trips GROUP BY 1").what == (
        "listagg lists rows that tie in fare in the order in which they arrive; add zone_id to its ORDER BY"
    )


def test_a_list_that_its_keys_do_not_tell_is_refused() -> None:
    for call in (
        "listagg(zone_id) WITHIN GROUP (ORDER BY abs(zone_id))",
        "listagg(tags['a']) WITHIN GROUP (ORDER BY tags['A'])",
        "listagg(DISTINCT zone_id || fare) WITHIN GROUP (ORDER BY zone_id)",
    ):
        what = only(f"SELECT pickup_at AS hour, {call} AS x FROM trips GROUP BY 1").what
        assert what.startswith("listagg lists rows that tie in ")

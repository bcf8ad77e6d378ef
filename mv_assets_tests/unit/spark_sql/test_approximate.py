from __future__ import annotations

import pytest

from mv_assets.spark_sql.functions import REFUSALS
from mv_assets.spark_sql.outputs import APPROXIMATE
from mv_assets.spark_sql.spark_functions import AGGREGATES
from mv_assets_tests.unit.spark_sql.analysed import view_of

HOUR = "date_trunc('hour', pickup_at) AS hour"
ALL = {"hour", "n", "p"}


def approximate(items: str, rest: str = "GROUP BY ALL", tables: str = "trips") -> set[str]:
    return set(view_of(f"SELECT {HOUR}, {items} FROM {tables} {rest}").approximate)


@pytest.mark.parametrize("name", sorted(APPROXIMATE))
def test_a_column_that_an_approximate_function_has_a_part_in_is_told(name: str) -> None:
    assert approximate(f"count(*) AS n, {name}(fare, 2) AS p") == {"p"}
    assert approximate(f"count(*) AS n, hash(`{name.upper()}` (fare, 2)) AS p") == {"p"}


@pytest.mark.parametrize("name", ["approx_count_distinct", "sum", "percentile", "median"])
def test_a_function_that_adds_up_the_same_in_any_order_is_not_approximate(name: str) -> None:
    assert approximate(f"count(*) AS n, {name}(fare{', 0.5' if name == 'percentile' else ''}) AS p") == set()


def test_a_column_that_uses_another_by_its_name_is_approximate_as_well() -> None:
    assert approximate("approx_percentile(fare, 0.5) AS p, p + 1 AS q, count(*) AS n") == {"p", "q"}


@pytest.mark.parametrize(
    "rest", ["GROUP BY 1 HAVING approx_percentile(fare, 0.5) > 1", "GROUP BY 1 HAVING p > 1"]
)
def test_where_it_decides_which_rows_there_are_no_column_can_be_compared(rest: str) -> None:
    assert approximate("count(*) AS n, approx_percentile(fare, 0.5) AS p", rest) == ALL


def test_in_a_subquery_it_may_touch_every_column() -> None:
    medians = "(SELECT zone_id, approx_percentile(zone_id, 0.5) AS m FROM zones GROUP BY zone_id) z"
    assert approximate("count(*) AS n, max(m) AS p", tables=f"trips JOIN {medians} USING (zone_id)") == ALL
    scalar = "(SELECT approx_percentile(zone_id, 0.5) FROM zones) AS p"
    assert approximate(f"zone_id AS n, {scalar}", rest="") == ALL


def test_approximate_functions_are_aggregates_that_a_view_may_call() -> None:
    assert APPROXIMATE <= AGGREGATES
    assert not APPROXIMATE & {name for refusal in REFUSALS for name in refusal.functions}

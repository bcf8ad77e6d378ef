"""What happens to a base table, and what the views make of it; DuckDB computes each of them again."""

from __future__ import annotations

from collections.abc import Callable

from mv_assets_tests.lake import day, view
from mv_assets_tests.refinery import Refinery

DAILY = "SELECT date_trunc('day', hour) AS hour, sum(n) AS n FROM v GROUP BY ALL"


def test_a_cold_backfill_fills_every_bucket(refinery: Callable[..., Refinery]) -> None:
    lake = refinery(view(), view("daily", base="v", sql=DAILY))
    lake.days(0, 1, 2, 3)
    assert lake.outcomes("daily") == dict.fromkeys(range(4), "committed")
    lake.check()


def test_a_late_file_changes_exactly_its_bucket(refinery: Callable[..., Refinery]) -> None:
    lake = refinery(view(), view("daily", base="v", sql=DAILY))
    lake.days(0, 1, 2, 3)
    lake.run()
    lake.write("late.parquet", [day(1)])
    reports = lake.run()
    assert [list(report.results) for report in reports.values()] == [[86_400_000], [86_400_000]]
    lake.check()

"""What a try of a query has pinned lasts until its block ends, however that is: leases, and one listing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets.query.route.pinned import Pinned
from mv_assets.state.errors import LeaseExpired
from mv_assets.state.store import Store
from mv_assets_tests.support.lake import day
from mv_assets_tests.support.warehouse_lake import DuckDbLake

Make = Callable[..., DuckDbLake]


def leases(store: Store) -> int:
    with store.read("v") as reader:
        return len(reader.leases())


def test_a_lease_is_taken_with_the_map_and_given_back_at_the_end(duckdb_lake_on_sqlite: Make) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    made.run()
    with Pinned(made.open()) as pinned:
        assert leases(made.store) == 0
        assert pinned.snapshot("v") is pinned.snapshot("v") is not None
        assert leases(made.store) == 1
    assert leases(made.store) == 0


def test_a_lease_is_given_back_by_a_try_that_fails(duckdb_lake_on_sqlite: Make) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    made.run()
    with pytest.raises(ValueError, match="anything"), Pinned(made.open()) as pinned:  # noqa: PT012
        pinned.snapshot("v")
        raise ValueError("anything")
    assert leases(made.store) == 0


def test_a_lease_that_was_lost_is_the_reason_whatever_else_went_wrong(duckdb_lake_on_sqlite: Make) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    made.run()
    for error in (None, ValueError("a file is gone")):
        with pytest.raises(LeaseExpired), Pinned(made.open()) as pinned:  # noqa: PT012
            pinned.snapshot("v")
            made.later(3_600_000)
            if error is not None:
                raise error


def test_a_view_that_nobody_has_declared_has_no_map_and_no_lease(duckdb_lake_on_sqlite: Make) -> None:
    made = duckdb_lake_on_sqlite()
    with Pinned(made.open()) as pinned:
        assert pinned.snapshot("v") is None


def test_a_table_is_what_it_was_when_it_was_first_asked_for(duckdb_lake_on_sqlite: Make) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    with Pinned(made.open()) as pinned:
        version = pinned.tables.version("events")
        assert (pinned.extent("events"), pinned.changed()) == (None, None)
        before = pinned.tables.listing("events")
        pinned.note("events", {"day-0.parquet"})
        made.write("day-1.parquet", [day(1)])
        assert pinned.changed() is None
        made.write("day-0.parquet", [day(0)], value=1)
        assert pinned.changed() == ("events", "day-0.parquet")
        assert (pinned.tables.version("events"), pinned.tables.listing("events") is before) == (version, True)

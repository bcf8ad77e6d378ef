"""What a person asks for, with a command or in Dagster's launchpad."""

from __future__ import annotations

import pytest

from mv_assets.config import DeclaredProject, ParquetTable
from mv_assets.config.file import Draft
from mv_assets.errors import BucketError
from mv_assets.plan.scope import Scope, between
from mv_assets.views import bounds
from mv_assets.views.catalog import prepare
from mv_assets.views.view import View
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.memory_table import DAY

# In the middle of the fourth day.
NOW = 3 * DAY + DAY // 2


@pytest.fixture
def daily() -> View:
    events = ParquetTable(name="events", path="events", time_column="at")
    return prepare(Draft("test", DeclaredProject(tables=(events,), views=(view(),))), schemas=False).view("v")


@pytest.mark.parametrize(
    ("first", "last", "days"),
    [
        (None, None, None),
        ("1970-01-02", "1970-01-04", [1, 2, 3]),
        ("1970-01-02", None, [1]),
        (None, "1970-01-02", [1]),
        # It has begun.
        ("1970-01-04", None, [3]),
    ],
)
def test_buckets_are_named_by_the_first_and_the_last(
    daily: View, first: str | None, last: str | None, days: list[int] | None
) -> None:
    found = between(daily, first, last, NOW)
    assert found == (None if days is None else [number * DAY for number in days])
    whole = Scope(max_bytes=5)
    if found is not None:
        whole = Scope(found[0], found[-1] + DAY, 5, {daily.name: frozenset(found)})
    assert Scope.of(daily, found, 5) == whole


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        ("1970-01-03", "1970-01-02", "the last bucket 1970-01-02 lies before the first, 1970-01-03"),
        ("1970-01-05", None, "bucket 1970-01-05 lies in the future"),
        ("1970-01-02", "9999-12-31", "bucket 9999-12-31 lies in the future"),
        ("0999-12-31", None, "bucket 0999-12-31 lies before 1001-01-01T00:00:00Z, where no view can start"),
        ("", None, "'' is not a bucket"),
        ("1970-01-02", "soon", "'soon' is not a bucket"),
    ],
)
def test_what_can_not_be_computed_is_refused(daily: View, first: str, last: str | None, said: str) -> None:
    with pytest.raises(BucketError, match=said):
        between(daily, first, last, NOW)


def test_a_range_that_nobody_could_look_at_is_refused_before_it_is_counted_out(
    daily: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "_MOST_BUCKETS", 1_000)
    with pytest.raises(BucketError, match="from bucket 1960-01-01 on these are 3,656 buckets; is the year"):
        between(daily, "1960-01-01", "1970-01-03", NOW)

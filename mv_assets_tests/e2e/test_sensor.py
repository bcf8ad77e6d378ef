"""What the sensors do by themselves: fill, follow the files, keep one table's trouble to its own views."""

from __future__ import annotations

import time

import pytest

from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.deployment import Deployment
from mv_assets_tests.e2e.site import BUCKETS, HOURLY, WEATHER, WEEKLY, Site, day, week


def test_the_sensors_fill_every_view_with_ranged_runs_and_compute_no_bucket_twice(
    dagster: Dagster, site: Site
) -> None:
    assert dagster.assets() == sorted([*BUCKETS, "trips", "weather", "zones"])
    for view, buckets in BUCKETS.items():
        assert list(dagster.partitions(view).materialized) == buckets
    for view in (HOURLY, WEATHER):
        first = dagster.runs(view=view)[0]
        assert first.sensor is not None
        assert first.range == (day(1), max(site.rows(view)))


def test_what_dagster_shows_of_a_bucket_is_what_the_map_says(dagster: Dagster, site: Site) -> None:
    for bucket, row in site.rows(HOURLY).items():
        told = dagster.materialization(HOURLY, bucket)
        assert told is not None
        assert (told.metadata["rows"], told.metadata["bytes"]) == (str(row.rows), str(row.bytes))
        assert told.metadata["generation"] == row.generation


def test_a_late_file_has_only_its_own_buckets_computed_in_both_views(deployment: Deployment) -> None:
    dagster, site = deployment.dagster, deployment.site
    before, since = site.versions(), time.time()
    site.put_trips(3, "late.parquet")
    deployment.wait_until(lambda: site.computed(WEEKLY, before[WEEKLY]), "the week to be computed again")
    deployment.calm_down()
    assert site.computed(HOURLY, before[HOURLY]) == {day(3): 1}
    assert site.computed(WEEKLY, before[WEEKLY]) == {week(3): 1}
    assert site.computed(WEATHER, before[WEATHER]) == {}
    asked = [(run.assets, run.range) for run in dagster.runs(since=since)]
    assert asked == [((HOURLY,), (day(3), day(3))), ((WEEKLY,), (week(3), week(3)))]


@pytest.mark.slow
def test_a_table_that_is_gone_is_an_error_of_its_own_views_only(deployment: Deployment) -> None:
    dagster, site = deployment.dagster, deployment.site
    site.lose_weather()

    def said() -> bool:
        check = dagster.check(WEATHER, "no_failed_buckets")
        return check is not None and not check.passed and "weather" in (check.description or "")

    deployment.wait_until(said, "the view's check to name the table")
    site.put_trips(4, "meanwhile.parquet")
    before = site.versions()
    deployment.wait_until(lambda: site.computed(WEEKLY, before[WEEKLY]), "the other table's views to go on")
    assert site.computed(HOURLY, before[HOURLY]) == {day(4): 1}
    assert len(site.valid(WEATHER)) == 3
    site.heal()
    deployment.wait_until(
        lambda: (check := dagster.check(WEATHER, "no_failed_buckets")) is not None and check.passed,
        "the check to pass again",
    )

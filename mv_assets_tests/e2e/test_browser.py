"""Dagster's UI in a real browser, with a picture of each page for people to look at."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from mv_assets_tests.e2e.deployment import Deployment
from mv_assets_tests.e2e.pages import Ui
from mv_assets_tests.e2e.site import DAYS, HOURLY, day, days

pytestmark = pytest.mark.browser


def test_an_assets_page_shows_its_sql_its_checks_and_the_picture_of_its_map(
    ui: Ui, deployment: Deployment
) -> None:
    deployment.finished(deployment.dagster.materialize(HOURLY, day(1)))
    ui.open_asset(HOURLY)
    expect(ui.page.get_by_text("Trips by hour and borough.")).to_be_visible()
    size = ui.picture("partition_map").bounding_box()
    assert size is not None
    assert size["height"] > 10
    ui.screenshot("asset")


def test_partitions_show_what_is_materialized_and_what_each_was_computed_from(
    ui: Ui, deployment: Deployment
) -> None:
    row = deployment.site.rows(HOURLY)[day(4)]
    ui.open_partition(HOURLY, day(4))
    assert ui.count_of("Materialized") == DAYS
    assert ui.count_of("Failed") == 0
    expect(ui.tag("Materialized")).to_be_visible()
    expect(ui.metadata("rows")).to_contain_text(str(row.rows))
    expect(ui.metadata("operation")).to_contain_text(row.operation.value if row.operation else "")
    ui.screenshot("partition")


@pytest.mark.slow
def test_a_bucket_whose_files_changed_is_unsynced_until_it_is_computed_again(
    ui: Ui, deployment: Deployment
) -> None:
    with deployment.holding(HOURLY, day(9)):
        deployment.site.put_trips(9, "unsynced.parquet")
        deployment.wait_until(
            lambda: deployment.dagster.unsynced(HOURLY, day(9)), "Dagster to know that the bucket changed"
        )
        ui.open_partition(HOURLY, day(9))
        expect(ui.tag("Unsynced")).to_be_visible()
        ui.screenshot("unsynced")
    deployment.calm_down()
    assert deployment.dagster.unsynced(HOURLY, day(9)) == []


@pytest.mark.slow
def test_a_backfill_launched_by_clicking_computes_its_range_again(ui: Ui, deployment: Deployment) -> None:
    dagster, site = deployment.dagster, deployment.site
    before, since = site.versions(), time.time()
    ui.backfill(HOURLY, day(11), day(13))
    deployment.wait_until(
        lambda: len(site.computed(HOURLY, before[HOURLY])) == 3, "the backfill to compute its range"
    )
    deployment.calm_down()
    assert site.computed(HOURLY, before[HOURLY]) == dict.fromkeys(days(11, 13), 1)
    [run] = [run for run in dagster.runs(since=since) if "dagster/backfill" in run.tags]
    assert (run.status, run.range) == ("SUCCESS", (day(11), day(13)))
    for bucket in days(11, 13):
        told = dagster.materialization(HOURLY, bucket)
        assert told is not None
        assert told.run == run.id
    ui.open_partition(HOURLY, day(12))
    expect(ui.tag("Materialized")).to_be_visible()
    ui.screenshot("after the backfill")

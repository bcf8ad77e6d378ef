"""Views that are published from Dagster: after a run, and by a sensor where that did not happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from mv_assets.config import IcebergTarget
from mv_assets.maintain.garbage import Garbage, GcReport
from mv_assets.state.model import Doing
from mv_assets.state.publications import Publications
from mv_assets_tests.support.published_lake import IcebergReader, rows_of
from mv_assets_tests.unit.defs.in_process import InProcessDagster

Make = Callable[..., InProcessDagster]


def publishing(made: InProcessDagster, **catalog: str) -> IcebergReader:
    """Have the views of a lake published, from now on."""
    lake = made.lake
    properties = {"type": "sql", "uri": f"sqlite:///{lake.folder}/catalog.db", **catalog}
    target = IcebergTarget(catalog=properties, namespace="marts")
    lake.project = lake.project.model_copy(update={"publish": target})
    made.load()
    return IcebergReader(properties)


def published(made: InProcessDagster) -> dg.SensorResult:
    """One tick of the sensor that publishes."""
    sensor = made.repository.get_sensor_def("publish_views")
    context = dg.build_sensor_context(
        instance=made.instance, repository_def=made.repository, cursor=made.cursors.get("publish")
    )
    found: Any = sensor.evaluate_tick(context)
    made.cursors["publish"] = found.cursor
    for event in found.asset_events:
        made.instance.report_runless_asset_event(event)
    return dg.SensorResult(skip_reason=found.skip_message, asset_events=found.asset_events)


def stored(made: InProcessDagster) -> pa.Table:
    return made.lake.stored(only_valid=False)


def test_a_run_publishes_what_it_committed(dagster: Make) -> None:
    made = dagster()
    reader = publishing(made)
    made.settle()
    assert rows_of(reader.rows()) == rows_of(stored(made))
    assert "up to date" in str(published(made).skip_reason)
    check = made.check("v", "published")
    assert check is not None
    assert check.passed
    asset = made.repository.assets_defs_by_key[dg.AssetKey("v")]
    assert asset.metadata_by_key[dg.AssetKey("v")]["dagster/table_name"] == "marts.v"


def test_the_sensor_publishes_what_others_changed(dagster: Make) -> None:
    made = dagster()
    made.settle()
    reader = publishing(made)
    assert "published as marts.v" in str(published(made).skip_reason)
    assert rows_of(reader.rows()) == rows_of(stored(made))
    made.lake.manager.force(made.lake.catalog.view("v").declaration, [0], "a person")
    published(made)
    states = [each["state"] for each in reader.rows("v__buckets").sort_by("start").to_pylist()]
    assert states[0] == "STALE"
    assert published(made).asset_events == []


def test_a_catalog_that_does_not_answer_is_the_views_trouble_and_no_runs(dagster: Make) -> None:
    made = dagster()
    publishing(made, uri="sqlite:////dev/null/catalog.db")
    made.settle()
    assert made.lake.states(0, 1, 2, 3) == "VVVV"
    published(made)
    check = made.check("v", "published")
    assert check is not None
    assert not check.passed
    assert "is not published to marts.v" in str(check.description)
    assert [each.doing for each in made.lake.store.snapshot("v").troubles] == [Doing.PUBLISH]
    failed = made.check("v", "no_failed_buckets")
    assert failed is None or failed.passed
    reader = publishing(made)
    published(made)
    assert rows_of(reader.rows()) == rows_of(stored(made))
    assert made.lake.store.snapshot("v").troubles == ()


def test_dropping_a_view_withdraws_its_tables(dagster: Make) -> None:
    made = dagster()
    reader = publishing(made)
    made.settle()
    assert made.job("drop_view", view="v", confirm="v").success
    assert not reader.exists()
    assert Publications(made.lake.store).of("v") == []
    assert load_catalog(None, **reader._properties).list_tables("marts") == []


def test_gc_notices_what_somebody_else_wrote(dagster: Make) -> None:
    made = dagster()
    reader = publishing(made)
    made.settle()
    reader.scribble()
    assert rows_of(reader.rows()) != rows_of(stored(made))
    assert made.job("collect_garbage").success
    assert rows_of(reader.rows()) == rows_of(stored(made))
    [known] = Publications(made.lake.store).of("v")
    assert "somebody else's" in str(known.replaced)


def test_gc_mends_what_somebody_else_wrote_before_it_deletes_anything(
    dagster: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dagster()
    reader = publishing(made)
    made.settle()
    reader.scribble()
    collect, seen = Garbage.gc, list[bool]()

    def collected(garbage: Garbage, view: str) -> GcReport:
        seen.append(rows_of(reader.rows()) == rows_of(stored(made)))
        return collect(garbage, view)

    monkeypatch.setattr(Garbage, "gc", collected)
    assert made.job("collect_garbage").success
    assert seen == [True]

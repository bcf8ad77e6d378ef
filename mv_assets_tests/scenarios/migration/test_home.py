"""A home of 0.1.0 opens: nothing is lost, `plan` says what has to be computed again, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml

from mv_assets import Project
from mv_assets.defs import Deployment, definitions_of
from mv_assets.defs.tick.sensor import Memory
from mv_assets.spark.session import Engine
from mv_assets.state import rules
from mv_assets.state.model import State
from mv_assets.state.store import Store, schema
from mv_assets.views.catalog import load
from mv_assets_tests.scenarios.migration.home import DAMAGED, put_back
from mv_assets_tests.support.published_lake import IcebergReader
from mv_assets_tests.unit.state.faults import dump

# The first bucket of all views.
FIRST = 1_704_067_200_000
DEFINITIONS = {
    "hourly": "ce681fc9fcf6280f",
    "by_name": "30e7c6186ac46fc8",
    "daily": "38c08b6131a61ba5",
    "nested": "4db954eb331f7b63",
}
# A field inside a column of a Delta table: 0.1 may have read it wrong.
CHANGED = "nested"
MAPS = ("mv_view", "mv_partition", "mv_event", "mv_definition")
NAMED = {"audit_view", "collect_garbage", "drop_view", "refresh_view", "watch_trips"}
KEYS = {"trips", "zones", "visits", *DEFINITIONS}
# What a sensor of 0.1 had written.
CURSOR = '{"told":{"hourly":[5,0],"daily":[7,0]},"checked":{"hourly":"5"},"observed":{},"wiped":{}}'


@pytest.fixture
def file(tmp_path: Path, state_url: str) -> Path:
    return put_back(tmp_path, state_url)


@pytest.fixture
def opened(file: Path) -> Iterator[Project]:
    with Project.open(file) as project:
        yield project


def states(url: str, view: str) -> str:
    """A letter a bucket; W after them, in days of that January."""
    store = Store(url)
    snapshot = store.snapshot(view)
    store.close()
    found = [rules.effective_state(row, snapshot.header) for row in snapshot.rows.values()]
    letters = {State.VALID: "V", State.STALE: "S", State.VACANT: "-"}
    return f"{''.join(letters[each] for each in found)} {(snapshot.header.watermark - FIRST) // 86_400_000}"


def test_the_map_is_what_it_was(file: Path, state_url: str) -> None:
    Store(state_url).close()
    assert dump(state_url)["mv_schema"] == [(schema.VERSION,)]
    found = {name: states(state_url, name) for name in DEFINITIONS}
    assert found == {"hourly": "VVVVVVVVVVVV 3", "by_name": "VVV 3", "daily": "VVS 3", "nested": "V 1"}
    assert file.exists()


def test_definitions_are_those_of_then_but_for_the_one_that_may_be_wrong(file: Path) -> None:
    views = load(file, schemas=False).views
    changed = {name for name, view in views.items() if view.definition != DEFINITIONS[name]}
    assert changed == {CHANGED}


def test_plan_says_what_has_to_be_computed_again_and_writes_nothing(opened: Project, state_url: str) -> None:
    Store(state_url).close()
    before = {name: rows for name, rows in dump(state_url).items() if name in MAPS}
    work = {
        each["name"]: [(part["operation"], part["buckets"], part["reason"]) for part in each["work"]]
        for each in opened.plan().as_json()["views"]
    }
    assert work == {
        "hourly": [],
        "by_name": [],
        "daily": [("OVERWRITE", ["2024-01-03"], "by hand")],
        CHANGED: [("OVERWRITE", ["2024-01-01"], "the view's definition changed")],
    }
    after = dump(state_url)
    assert before == {name: after[name] for name in before}


def test_what_was_wrong_still_is_and_what_was_done_is_still_told(opened: Project) -> None:
    found = {each["name"]: each for each in opened.status().as_json()["views"]}
    assert DAMAGED in str(found["hourly"]["broken_files"])
    said = str(opened.explain("by_name", "2024-01-02"))
    assert "late.parquet" in said
    assert "OVERWRITE" in said


def test_only_that_is_computed(file: Path, engine: Engine) -> None:
    publish = {"catalog": {"type": "sql", "uri": f"sqlite:///{file.parent}/catalog.db"}, "namespace": "marts"}
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), "publish": publish}))
    with engine.session() as spark, Project.open(file, spark=spark) as project:
        done = {each["name"]: each["outcomes"] for each in project.refresh().as_json()["views"]}
        assert {name: [bucket["bucket"] for bucket in buckets] for name, buckets in done.items()} == {
            "hourly": [],
            "by_name": [],
            "daily": ["2024-01-03"],
            CHANGED: ["2024-01-01"],
        }
        assert all(not each["work"] for each in project.plan().as_json()["views"])
        assert {str(each["verdict"]) for each in project.audit("by_name").as_json()["buckets"]} == {"equal"}
        assert not project.gc().is_wrong
        # What 0.1 had computed is shown to others as well.
        reader = IcebergReader(publish["catalog"])  # type: ignore[arg-type]
        assert (
            sum(reader.rows("by_name")["n"].to_pylist()) == sum(reader.rows("hourly")["n"].to_pylist()) == 10
        )


def test_dagster_finds_its_assets_and_is_asked_for_nothing_else(file: Path) -> None:
    repository = definitions_of(Deployment(load(file, schemas=False))).get_repository_def()
    assert {*repository.job_names, *(sensor.name for sensor in repository.sensor_defs)} >= NAMED
    assert {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()} >= KEYS
    with dg.instance_for_test() as instance:
        asked = set[tuple[str | None, ...]]()
        for sensor in ("watch_trips", "watch_visits"):
            context = dg.build_sensor_context(instance=instance, repository_def=repository, cursor=CURSOR)
            tick = repository.get_sensor_def(sensor).evaluate_tick(context)
            asked |= {
                (*(key.to_user_string() for key in each.asset_selection or ()), each.partition_key)
                for each in tick.run_requests or ()
            }
            assert Memory.of(tick.cursor).reported["hourly"][0] == 5
        assert asked == {("daily", "2024-01-03"), (CHANGED, "2024-01-01")}

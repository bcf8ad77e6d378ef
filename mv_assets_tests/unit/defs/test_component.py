"""The component of projects that `create-dagster` makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster.components.core.component_tree import ComponentTreeException
from dagster.components.testing import create_defs_folder_sandbox

import mv_assets
from mv_assets import MaterializedViewsComponent
from mv_assets.config.errors import ProjectError

TABLES = [{"name": "trips", "path": "data/trips", "time_column": "at"}]
VIEW = {
    "name": "trips_hourly",
    "base": "trips",
    "sql": "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM trips GROUP BY ALL",
    "time_column": "hour",
    "bucket": "1d",
    "start": "2024-01-01",
}
NAME = "mv_assets.MaterializedViewsComponent"
# Of components of others, which Dagster imports as well.
pytestmark = pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning")


def _loaded(*files: dict[str, Any], project: str | None = None) -> dg.Definitions:
    with create_defs_folder_sandbox() as sandbox:
        if project is not None:
            (sandbox.project_root / "project.yaml").write_text(project)
        for at, file in enumerate(files):
            folder = sandbox.defs_folder_path / f"views_{at}"
            folder.mkdir()
            (folder / "defs.yaml").write_text(yaml.safe_dump({"type": NAME, **file}))
        with sandbox.build_all_defs() as defs:
            return defs


def _keys(defs: dg.Definitions) -> set[str]:
    return {key.to_user_string() for key in defs.get_repository_def().asset_graph.get_all_asset_keys()}


def test_tables_and_views_stand_in_defs_yaml_as_in_a_project_file() -> None:
    made = _loaded({"attributes": {"tables": TABLES, "views": [VIEW], "group": "city"}})
    assert _keys(made) == {"trips", "trips_hourly"}
    found = made.get_repository_def().asset_graph.get(dg.AssetKey("trips_hourly"))
    assert found.group_name == "city"
    references = found.metadata["dagster/code_references"]
    assert isinstance(references, dg.CodeReferencesMetadataValue)
    assert "defs.yaml" in repr(references)


def test_a_project_file_may_be_named_instead() -> None:
    project = yaml.safe_dump({"tables": TABLES, "views": [VIEW]})
    assert _keys(_loaded({"attributes": {"project": "project.yaml"}}, project=project)) == {
        "trips",
        "trips_hourly",
    }
    with _refused("project names a file, but tables stand here as well"):
        _loaded({"attributes": {"project": "project.yaml", "tables": TABLES}}, project=project)


def test_several_fit_together() -> None:
    one = {"tables": TABLES, "views": [VIEW], "name_prefix": "one", "key_prefix": ["one"]}
    two = {**one, "name_prefix": "two", "key_prefix": ["two"], "state": "sqlite:///two/state.db"}
    made = _loaded({"attributes": one}, {"attributes": two})
    assert _keys(made) == {"one/trips", "one/trips_hourly", "two/trips", "two/trips_hourly"}


def test_two_that_would_write_one_map_are_refused() -> None:
    one = {"tables": TABLES, "views": [VIEW], "name_prefix": "one", "key_prefix": ["one"]}
    two = {**one, "name_prefix": "two", "key_prefix": ["two"]}
    with _refused("views.trips_hourly: the deployment with name_prefix 'one' has a view of this name"):
        _loaded({"attributes": one}, {"attributes": two})


def test_what_a_project_processes_afterwards_reaches_tables_and_views() -> None:
    after = {"assets": [{"target": "*", "attributes": {"tags": {"team": "lake"}, "group_name": "theirs"}}]}
    made = _loaded({"attributes": {"tables": TABLES, "views": [VIEW]}, "post_processing": after})
    graph = made.get_repository_def().asset_graph
    for name in ("trips", "trips_hourly"):
        found = graph.get(dg.AssetKey(name))
        assert (found.group_name, found.tags["team"]) == ("theirs", "lake")


def test_an_asset_of_the_project_may_write_a_table() -> None:
    attributes = {"tables": TABLES, "views": [VIEW], "produced_by": {"trips": "raw/trips"}}
    graph = _loaded({"attributes": attributes}).get_repository_def().asset_graph
    assert graph.get(dg.AssetKey("trips_hourly")).parent_keys == {dg.AssetKey(["raw", "trips"])}


def test_mistakes_are_those_of_a_project_file() -> None:
    wrong = {**VIEW, "base": "trisp"}
    with _refused("there is no table or view trisp; did you mean trips"):
        _loaded({"attributes": {"tables": TABLES, "views": [wrong]}})


def test_a_mistake_names_the_line_in_the_components_file() -> None:
    """Below `attributes`, where it stands in somebody else's YAML; and so for what is Dagster's."""
    text = f"""
type: {NAME}
# A comment.
attributes:
  name_prefix: my-views
  key_prefix: raw lake
  owners: [nobody]
  interval_seconds: 0
  tags: {{a b: c}}
  group: my group
  tables:
    - {{name: trips, path: data/trips, time_column: at}}
  views:
    - name: trips_hourly
      base: trisp
      sql: {VIEW["sql"]}
      time_column: hour
      bucket: 5x
      start: 2024-01-01
"""
    with create_defs_folder_sandbox() as sandbox:
        file = sandbox.defs_folder_path / "views" / "defs.yaml"
        file.parent.mkdir()
        file.write_text(text)
        with pytest.raises(ComponentTreeException) as raised, sandbox.build_all_defs():
            pass
    refused = raised.value.__cause__
    assert isinstance(refused, ProjectError)
    assert refused.file == str(file)
    found = {(each.line, each.where): each.what for each in refused.mistakes}
    at = {where: line for line, where in found}
    assert at == {
        "name_prefix": 5,
        "key_prefix.0": 6,
        "owners.0": 7,
        "interval_seconds": 8,
        "tags": 9,
        "group": 10,
        "views.trips_hourly.base": 15,
        "views.trips_hourly.bucket": 18,
    }
    assert found[5, "name_prefix"] == "'my-views' is no name to Dagster; use letters, digits and underscores"
    assert found[7, "owners.0"] == "'nobody' is no owner to Dagster; write an e-mail address or team:NAME"


def test_a_view_is_written_at_its_own_line() -> None:
    text = f"""
type: {NAME}
attributes:
  tables: [{{name: trips, path: data/trips, time_column: at}}]
  key_prefix: raw
  views:
    - name: trips_hourly
      base: trips
      sql: {VIEW["sql"]}
      time_column: hour
      bucket: 1d
      start: 2024-01-01
"""
    with create_defs_folder_sandbox() as sandbox:
        file = sandbox.defs_folder_path / "views" / "defs.yaml"
        file.parent.mkdir()
        file.write_text(text)
        with sandbox.build_all_defs() as defs:
            asset = defs.get_repository_def().asset_graph.get(dg.AssetKey(["raw", "trips_hourly"]))
    references = asset.metadata["dagster/code_references"]
    assert isinstance(references, dg.CodeReferencesMetadataValue)
    first = references.code_references[0]
    assert isinstance(first, dg.LocalFileCodeReference)
    assert (first.file_path, first.line_number) == (str(file), 7)


@contextmanager
def _refused(said: str) -> Iterator[None]:
    """Dagster says where in the tree of components it was, and below that why."""
    with pytest.raises(ComponentTreeException) as raised:
        yield
    assert said in str(raised.value.__cause__)


@pytest.mark.parametrize(("folder", "prefix"), [("views", "views"), ("my-views.2", "my_views_2")])
def test_what_is_scaffolded_works_as_it_is(folder: str, prefix: str) -> None:
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(component_cls=MaterializedViewsComponent, defs_path=folder)
        written = yaml.safe_load((path / "defs.yaml").read_text())
        assert written["type"].endswith("MaterializedViewsComponent")
        with sandbox.build_all_defs() as defs:
            assert _keys(defs) == {"events", "events_daily"}
            assert f"{prefix}_watch_events" in {
                sensor.name for sensor in defs.get_repository_def().sensor_defs
            }


def test_the_dg_command_finds_it() -> None:
    assert "MaterializedViewsComponent" in dir(mv_assets)
    declared = Path(mv_assets.__file__).parents[1] / "pyproject.toml"
    assert '[project.entry-points."dagster_dg_cli.registry_modules"]' in declared.read_text()

"""In somebody else's Dagster project."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import DataFrame

import mv_assets
from mv_assets import MaterializedView, MvError, ParquetTable, build_definitions
from mv_assets.config.errors import ProjectError
from mv_assets.defs import Deployment, definitions_of, interval_seconds_of
from mv_assets.errors import SettingRefused
from mv_assets.state.errors import StateUnavailable
from mv_assets.state.store.database import Database
from mv_assets.views.catalog import load

VARIABLE = "MV_ASSETS_SENSOR_INTERVAL"
TRIPS = {"name": "trips", "path": "data/trips", "time_column": "at"}
HOURLY = {
    "name": "trips_hourly",
    "base": "trips",
    "sql": "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM trips GROUP BY ALL",
    "time_column": "hour",
    "bucket": "1d",
    "start": "2024-01-01",
    "description": "Trips an hour.",
    "owners": ("team:city",),
}


def _built(tmp_path: Path, **options: object) -> dg.Definitions:
    return build_definitions(
        tables=[ParquetTable.model_validate(TRIPS)],
        views=[MaterializedView.model_validate(HOURLY)],
        state=f"sqlite:///{tmp_path}/state.db",
        warehouse=str(tmp_path / "warehouse"),
        **options,  # type: ignore[arg-type]
    )


def test_three_lines_give_the_same_assets_and_they_merge(tmp_path: Path) -> None:
    @dg.asset(deps=["trips_hourly"])
    def report() -> None: ...

    merged = dg.Definitions.merge(_built(tmp_path), dg.Definitions(assets=[report]))
    graph = merged.get_repository_def().asset_graph
    names = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert names == {"trips", "trips_hourly", "report"}
    found = graph.get(dg.AssetKey("trips_hourly"))
    assert found.owners == ["team:city"]
    assert found.kinds == {"spark", "parquet"}
    assert "Trips an hour." in (found.description or "")
    assert "count(*)" in (found.description or "")
    assert {key.to_user_string() for key in found.parent_keys} == {"trips"}


def test_a_table_that_an_asset_of_theirs_writes_is_that_asset(tmp_path: Path) -> None:
    @dg.asset
    def raw_trips() -> None: ...

    built = _built(tmp_path, produced_by={"trips": dg.AssetKey("raw_trips")})
    graph = dg.Definitions.merge(built, dg.Definitions(assets=[raw_trips])).get_repository_def().asset_graph
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {"raw_trips", "trips_hourly"}
    assert graph.get(dg.AssetKey("trips_hourly")).parent_keys == {dg.AssetKey("raw_trips")}


def test_a_database_that_does_not_answer_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def hang(database: Database, **_: object) -> None:
        asked.append(repr(database))
        raise StateUnavailable("it does not answer")

    monkeypatch.setattr(Database, "open", hang)
    views = [MaterializedView.model_validate({**HOURLY, "name": name}) for name in ("one", "two", "three")]
    built = build_definitions(
        tables=[ParquetTable.model_validate(TRIPS)], views=views, state=f"sqlite:///{tmp_path}/state.db"
    )
    assert len(built.get_repository_def().asset_graph.get_all_asset_keys()) == 4
    assert len(asked) == 1


def test_a_producer_of_no_table_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(MvError, match="there is no table trisp; did you mean trips"):
        _built(tmp_path, produced_by={"trisp": dg.AssetKey("raw_trips")})


def test_columns_say_where_they_come_from(tmp_path: Path) -> None:
    found = _built(tmp_path).get_repository_def().asset_graph.get(dg.AssetKey("trips_hourly"))
    lineage = found.metadata["dagster/column_lineage"]
    assert isinstance(lineage, dg.TableColumnLineage)
    assert lineage.deps_by_column["hour"] == [dg.TableColumnDep(dg.AssetKey("trips"), "at")]
    assert lineage.deps_by_column["n"] == []


def test_mistakes_are_named_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(MvError, match="there is no table or view trips; did you mean stops"):
        build_definitions(
            tables=[ParquetTable.model_validate({**TRIPS, "name": "stops"})],
            views=[MaterializedView.model_validate(HOURLY)],
            state=f"sqlite:///{tmp_path}/state.db",
        )


def test_settings_that_may_be_secret_are_not_in_the_ui(tmp_path: Path) -> None:
    from mv_assets import Spark  # noqa: PLC0415

    built = _built(tmp_path, spark=Spark(conf={"spark.hadoop.fs.s3a.secret.key": "hush"}))
    repository = built.get_repository_def()
    shown = repr(
        [
            resource.get_config_type() if hasattr(resource, "get_config_type") else resource
            for resource in repository.get_top_level_resources().values()
        ]
    )
    assert "hush" not in shown


@pytest.mark.parametrize(("variables", "seconds"), [({}, 10), ({VARIABLE: ""}, 10), ({VARIABLE: "2"}, 2)])
def test_the_environment_may_say_how_often_sensors_look(variables: dict[str, str], seconds: int) -> None:
    assert interval_seconds_of(variables) == seconds


@pytest.mark.parametrize("value", ["soon", "0", "-5", "1.5", "10s", "9" * 5_000])
def test_an_interval_that_is_none_is_one_sentence(value: str) -> None:
    with pytest.raises(SettingRefused) as refused:
        interval_seconds_of({VARIABLE: value})
    said = f"{VARIABLE} is '{value}', which is no whole number of seconds above 0; write 10, or unset it"
    assert str(refused.value) == said


def test_several_projects_merge_each_with_names_of_its_own(tmp_path: Path) -> None:
    one = _built(tmp_path / "one")
    two = _built(tmp_path / "two", name_prefix="two", key_prefix=["lake", "two"], group="second")
    repository = dg.Definitions.merge(one, two).get_repository_def()
    names = {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()}
    assert names == {"trips", "trips_hourly", "lake/two/trips", "lake/two/trips_hourly"}
    found = repository.asset_graph.get(dg.AssetKey(["lake", "two", "trips_hourly"]))
    assert found.parent_keys == {dg.AssetKey(["lake", "two", "trips"])}
    assert found.group_name == "second"
    assert {"watch_trips", "two_watch_trips"} <= {sensor.name for sensor in repository.sensor_defs}
    assert {"refresh_view", "two_refresh_view"} <= set(repository.job_names)


def test_one_text_is_one_element(tmp_path: Path) -> None:
    made = _built(tmp_path, key_prefix="abc", kinds="delta", owners="team:lake")
    graph = made.get_repository_def().asset_graph
    found = graph.get(dg.AssetKey(["abc", "trips_hourly"]))
    assert found.kinds == {"delta"}
    assert graph.get(dg.AssetKey(["abc", "trips"])).owners == ["team:lake"]


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"interval_seconds": 0}, "interval_seconds"),
        ({"interval_seconds": -5}, "interval_seconds"),
        ({"owners": "x"}, "owners.0"),
        ({"name_prefix": "my-views"}, "name_prefix"),
        ({"key_prefix": ["a/b"]}, "key_prefix.0"),
        ({"kinds": "a b"}, "kinds.0"),
        ({"tags": {"a b": "c"}}, "tags"),
        ({"group": "my group"}, "group"),
        ({"spark": "sc://127.0.0.1:15002"}, "spark"),
        ({"spark": {"remot": "sc://127.0.0.1:15002"}}, "spark.remot"),
        ({"spark": object()}, "spark"),
        ({"storage": {"nothing": "x"}}, "storage.nothing"),
    ],
)
def test_an_argument_that_makes_no_sense_is_a_mistake(
    tmp_path: Path, given: dict[str, object], where: str
) -> None:
    with pytest.raises(ProjectError) as refused:
        _built(tmp_path, **given)
    (mistake,) = refused.value.mistakes
    assert mistake.where == where
    assert "15002" not in mistake.what


def test_sparks_settings_may_be_given_by_their_keys(tmp_path: Path) -> None:
    made = _built(tmp_path, spark={"remote": "sc://127.0.0.1:15002"})
    resource = (made.resources or {})["mv_assets_spark"]
    assert type(resource).__name__ == "ProjectSpark"


def test_places_may_be_paths(tmp_path: Path) -> None:
    built = build_definitions(
        tables=[ParquetTable(name="trips", path=tmp_path / "trips", time_column="at")],
        views=[MaterializedView.model_validate(HOURLY)],
        state=f"sqlite:///{tmp_path}/state.db",
        warehouse=tmp_path / "warehouse",
    )
    trips = built.get_repository_def().asset_graph.get(dg.AssetKey("trips"))
    assert trips.metadata["dagster/uri"] == str(tmp_path / "trips")


def test_two_deployments_do_not_write_one_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever name their state goes; one that is loaded again is the same."""
    _built(tmp_path)
    _built(tmp_path, key_prefix=["lake"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProjectError) as refused:
        build_definitions(
            tables=[ParquetTable.model_validate(TRIPS)],
            views=[MaterializedView.model_validate(HOURLY)],
            state="sqlite:///state.db",
            name_prefix="two",
            key_prefix=["two"],
        )
    (mistake,) = refused.value.mistakes
    assert str(mistake) == (
        "views.trips_hourly: the one without name_prefix has a view of this name in the same state; "
        "give each a `state` and a `warehouse` of its own"
    )


def test_a_deployment_that_was_refused_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(MvError, match="there is no table trisp"):
        _built(tmp_path, name_prefix="wrong", produced_by={"trisp": dg.AssetKey("raw_trips")})
    _built(tmp_path)


def test_assets_are_shown_as_all_or_as_one_view_says(tmp_path: Path) -> None:
    owned = MaterializedView.model_validate(HOURLY)
    own = owned.model_copy(
        update={"name": "own", "key_prefix": ("marts",), "group": "city", "tags": {"tier": "1"}}
    )
    own = own.model_copy(update={"kinds": ("delta",), "owners": ()})
    built = build_definitions(
        tables=[ParquetTable.model_validate(TRIPS)],
        views=[owned, own],
        state=f"sqlite:///{tmp_path}/state.db",
        tags={"domain": "traffic"},
        kinds=["pyspark"],
        owners=["team:lake"],
    )
    graph = built.get_repository_def().asset_graph
    all_say, says = graph.get(dg.AssetKey("trips_hourly")), graph.get(dg.AssetKey(["marts", "own"]))
    assert (all_say.group_name, all_say.kinds, all_say.owners) == ("mv_assets", {"pyspark"}, ["team:city"])
    assert (says.group_name, says.kinds, says.owners) == ("city", {"delta"}, ["team:lake"])
    assert all_say.tags["domain"] == says.tags["domain"] == "traffic"
    assert says.tags["tier"] == "1"


@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning")
def test_a_projects_own_mapping_of_specs_reaches_views_and_tables(tmp_path: Path) -> None:
    joined = (
        "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM trips JOIN zones USING (zone) GROUP BY ALL"
    )
    built = build_definitions(
        tables=[ParquetTable.model_validate(TRIPS), ParquetTable(name="zones", path="data/zones")],
        views=[MaterializedView.model_validate({**HOURLY, "sql": joined, "dimensions": ["zones"]})],
        state=f"sqlite:///{tmp_path}/state.db",
    )
    mapped = built.map_asset_specs(
        func=lambda spec: spec.merge_attributes(metadata={"seen": True}).replace_attributes(
            group_name="theirs"
        )
    )
    graph = mapped.get_repository_def().asset_graph
    for name in ("trips", "zones", "trips_hourly"):
        assert graph.get(dg.AssetKey(name)).group_name == "theirs"
        assert graph.get(dg.AssetKey(name)).metadata["seen"] is True
    assert graph.get(dg.AssetKey("trips")).is_external
    assert graph.get(dg.AssetKey("zones")).is_external


def test_tables_and_views_say_where_they_are(tmp_path: Path) -> None:
    graph = _built(tmp_path).get_repository_def().asset_graph
    assert graph.get(dg.AssetKey("trips")).metadata["dagster/uri"] == "data/trips"
    metadata = graph.get(dg.AssetKey("trips_hourly")).metadata
    schema = metadata["dagster/column_schema"]
    assert isinstance(schema, dg.TableSchema)
    assert [column.name for column in schema.columns] == ["hour", "n"]


def test_a_view_says_where_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "project.yaml"
    file.write_text(json.dumps({"tables": [TRIPS], "views": [HOURLY]}, indent=1))
    by_file = definitions_of(Deployment(load(file, schemas=False)))
    (there,) = _references(by_file, "trips_hourly")
    assert (there.file_path, there.label) == (str(file), "trips_hourly")
    assert '"name": "trips_hourly"' in "".join(
        file.read_text().splitlines()[(there.line_number or 0) - 1 :][:2]
    )

    table = ParquetTable.model_validate(TRIPS)
    by_function = build_definitions(tables=[table], views=[actives], state=f"sqlite:///{tmp_path}/state.db")
    (here,) = _references(by_function, "actives")
    assert here.file_path == __file__
    assert "actives" in Path(__file__).read_text().splitlines()[(here.line_number or 0) - 1 :][1]


def _references(built: dg.Definitions, view: str) -> list[dg.LocalFileCodeReference]:
    found = built.get_repository_def().asset_graph.get(dg.AssetKey(view)).metadata["dagster/code_references"]
    assert isinstance(found, dg.CodeReferencesMetadataValue)
    return [each for each in found.code_references if isinstance(each, dg.LocalFileCodeReference)]


@mv_assets.view(base="trips", time_column="hour", bucket="1d", start="2024-01-01")
def actives(trips: DataFrame) -> DataFrame:
    return trips


def test_nothing_of_dagsters_that_will_go_is_used(tmp_path: Path) -> None:
    """In a process of its own, where what is deprecated and only warned of once is an error."""
    declared = "from pathlib import Path; from mv_assets_tests.unit.defs.test_library import _built"
    does = f"_built(Path({str(tmp_path)!r})).get_repository_def()"
    strict = ["-W", "error::DeprecationWarning:mv_assets", "-W", "error::FutureWarning"]
    subprocess.run([sys.executable, *strict, "-c", f"{declared}; {does}"], check=True)  # noqa: S603


def test_max_staleness_is_a_freshness_policy_too(tmp_path: Path) -> None:
    late = MaterializedView.model_validate({**HOURLY, "max_staleness": "2h"})
    built = build_definitions(
        tables=[ParquetTable.model_validate(TRIPS)], views=[late], state=f"sqlite:///{tmp_path}/state.db"
    )
    found = built.get_repository_def().asset_graph.get(dg.AssetKey("trips_hourly")).freshness_policy
    assert found == dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=2))

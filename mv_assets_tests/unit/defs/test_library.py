"""In somebody else's Dagster project."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from mv_assets import MaterializedView, MvError, ParquetTable, build_definitions
from mv_assets.defs import interval_seconds_of
from mv_assets.errors import SettingRefused
from mv_assets.state.errors import StateUnavailable
from mv_assets.state.store.database import Database

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

"""Where views are published, as the project file says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mv_assets.buckets import DAY, HOUR
from mv_assets.config import DeclaredProject, DeltaTarget, IcebergTarget, read
from mv_assets.config.errors import ProjectError
from mv_assets.publish.names import name_of

REST = """\
tables:
  - {name: trips, path: data/trips, time_column: pickup_at}
views:
  - name: hourly
    base: trips
    sql: SELECT pickup_at AS hour FROM trips
    time_column: hour
    bucket: 1d
    start: 2024-01-01
"""
SECRET = "hunter2"  # noqa: S105 - nobody's


def load(folder: Path, publish: str, of_view: str = "") -> DeclaredProject:
    file = folder / "project.yaml"
    file.write_text(f"{publish}\n{REST}{of_view}")
    return read(file).finished()


def test_a_project_publishes_nothing_unless_it_says_so(tmp_path: Path) -> None:
    project = load(tmp_path, "")
    assert project.publish is None
    assert project.views[0].publish is None


def test_a_catalog_and_a_namespace_are_an_iceberg_target(tmp_path: Path) -> None:
    project = load(
        tmp_path, "publish: {catalog: {type: sql, uri: 'sqlite:///c.db', warehouse: w}, namespace: marts}"
    )
    assert isinstance(project.publish, IcebergTarget)
    assert project.publish.keep == DAY
    assert project.publish.catalog == {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/c.db",
        "warehouse": f"{tmp_path}/w",
    }


def test_a_view_may_be_published_elsewhere_or_nowhere(tmp_path: Path) -> None:
    given = "    publish: {format: delta, folder: shown, keep: 2h}\n"
    [view] = load(tmp_path, "publish: {format: delta}", given).views
    assert view.publish == DeltaTarget.model_validate(
        {"format": "delta", "folder": f"{tmp_path}/shown", "keep": "2h"}
    )
    assert view.publish.keep == 2 * HOUR
    [view] = load(tmp_path, "publish: {format: delta}", "    publish: false\n").views
    assert view.publish is False


@pytest.mark.parametrize(
    ("publish", "of_view", "said"),
    [
        ("publish: {format: csv}", "", "line 1, publish.format: 'csv' is not a format; use iceberg, delta"),
        ("publish: {namespace: marts}", "", "publish.catalog: missing; it has no default"),
        ("publish: marts", "", "publish: not a mapping"),
        (
            "publish: {format: delta, folders: x}",
            "",
            "publish.folders: not a known key; did you mean folder?",
        ),
        ("", "    publish: {format: delta, keep: 1y}\n", "line 11, views.hourly.publish.keep: '1y' is not a"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, publish: str, of_view: str, said: str) -> None:
    with pytest.raises(ProjectError) as error:
        load(tmp_path, publish, of_view)
    assert said in str(error.value)


def test_secrets_of_a_catalog_are_shown_nowhere(tmp_path: Path) -> None:
    catalog = f"{{type: rest, uri: 'https://me:{SECRET}@host/c', token: {SECRET}}}"
    project = load(tmp_path, f"publish: {{catalog: {catalog}, namespace: marts}}")
    assert isinstance(project.publish, IcebergTarget)
    assert SECRET not in repr(project)
    assert name_of(project.publish, "v") == "iceberg marts.v in rest default https://host/c"


def test_the_warehouse_of_a_rest_catalog_is_a_name(tmp_path: Path) -> None:
    publish = "publish: {catalog: {type: rest, uri: 'https://host/c', warehouse: WHERE}, namespace: marts}"
    one, other = (load(tmp_path, publish.replace("WHERE", name)).publish for name in ("prod", "test"))
    assert isinstance(one, IcebergTarget)
    assert isinstance(other, IcebergTarget)
    assert one.catalog["warehouse"] == "prod"
    assert name_of(one, "v") != name_of(other, "v")


def test_no_view_is_called_like_the_table_of_another_one_s_buckets(tmp_path: Path) -> None:
    of_view = REST.partition("views:\n")[2].replace("hourly", "hourly__buckets")
    with pytest.raises(ProjectError) as error:
        load(tmp_path, "publish: {format: delta}", of_view)
    assert "views.hourly__buckets.name: view hourly is published, and its buckets as hourly__buckets" in str(
        error.value
    )
    assert len(load(tmp_path, "", of_view).views) == 2

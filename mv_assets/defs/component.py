"""Views as a component of a project that `create-dagster` makes: tables and views in its `defs.yaml`.

Dagster reads the types of fields, so annotations can't be left for later.
"""

import re
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from mv_assets.config import Draft, lines_below, read, read_content
from mv_assets.config.models import DeclaredProject
from mv_assets.defs.build import declared_definitions
from mv_assets.defs.names import GROUP, Options

_EXAMPLE: dict[str, Any] = {
    "tables": [{"name": "events", "path": "data/events", "time_column": "at"}],
    "views": [
        {
            "name": "events_daily",
            "base": "events",
            "sql": "SELECT date_trunc('day', at) AS day, count(*) AS events FROM events GROUP BY ALL",
            "time_column": "day",
            "bucket": "1d",
            "start": "2024-01-01",
        }
    ],
}


class ViewsScaffolder(dg.Scaffolder[Any]):
    """Writes an example. The folder's name is before its names, so that several fit together."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        # Dagster's names have letters, digits and underscores alone.
        name = re.sub("[^A-Za-z0-9_]", "_", request.target_path.name)
        dg.scaffold_component(request, {"name_prefix": name, **_EXAMPLE})


@dg.scaffold_with(ViewsScaffolder)
class MaterializedViewsComponent(dg.Component, dg.Model, dg.Resolvable):
    """Materialized views that keep themselves up to date, computed by Spark.

    What a project file has stands here, or `project` names one. Relative paths start at the project's root.
    """

    project: str | None = Field(
        None, description="A project file, from the project's root, instead of all below."
    )
    tables: list[dict[str, Any]] = Field([], description="Base tables and dimensions.")
    views: list[dict[str, Any]] = Field([], description="Materialized views on them, or on each other.")
    functions: list[dict[str, Any]] = Field([], description="Python functions that SQL may call.")
    state: str | dict[str, Any] | None = Field(None, description="URL of the state database.")
    warehouse: str | dict[str, Any] | None = Field(None, description="Folder or URI of the views' data.")
    storage: dict[str, Any] | None = Field(None, description="How object stores are reached.")
    spark: dict[str, Any] | None = Field(None, description="How to reach Spark.")
    publish: dict[str, Any] | None = Field(None, description="Where views appear as tables for other tools.")
    produced_by: dict[str, str] = Field(
        {}, description="Keys of assets of the project that write base tables, by the table's name."
    )
    interval_seconds: int | None = Field(None, description="Seconds between looks; by default 10.")
    automation_condition: bool = Field(
        default=False, description="Have Dagster's own automation ask for runs, in place of the sensors."
    )
    name_prefix: str = Field("", description="Before the names of jobs, sensors, schedules and resources.")
    key_prefix: str | list[str] = Field(
        [], description="Before the names of views and tables, in asset keys."
    )
    group: str = Field(GROUP, description="The group of the assets.")
    tags: dict[str, str] = Field({}, description="Tags of the assets.")
    kinds: str | list[str] = Field([], description="What views are shown to be made of.")
    owners: str | list[str] = Field([], description="Of tables, and of views that name none.")

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        return dg.ComponentTypeSpec(owners=[], tags=["spark", "materialized-views"])

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Assets, sensors, jobs and checks of the views."""
        upstream = {table: dg.AssetKey.from_user_string(key) for table, key in self.produced_by.items()}
        options = {name: getattr(self, name) for name in Options.model_fields}
        return declared_definitions(
            self._draft(context), upstream, options, automated=self.automation_condition
        )

    def _draft(self, context: dg.ComponentLoadContext) -> Draft:
        given = {name: getattr(self, name) for name in DeclaredProject.model_fields}
        content = {name: value for name, value in given.items() if value}
        file, lines = _written(context.path)
        if self.project is None:
            return read_content(content, str(file), context.project_root, lines=lines)
        if content:
            names = ", ".join(content)
            raise dg.DagsterInvalidDefinitionError(
                f"{file}: project names a file, but {names} stand here as well; keep one of the two"
            )
        return read(context.project_root / self.project)


def _written(path: Path) -> tuple[Path, dict[tuple[str | int, ...], int]]:
    """The file of the component in a folder, and the lines of its attributes."""
    for name in ("defs.yaml", "component.yaml"):
        if (file := path / name).is_file():
            return file, lines_below("attributes", file.read_text(encoding="utf-8"))
    return path, {}

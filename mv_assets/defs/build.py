"""Definitions of a project, declared in a file or in Python."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import dagster as dg

from mv_assets.config import (
    Draft,
    Function,
    MaterializedView,
    Spark,
    StateDatabase,
    Storage,
    Table,
    Target,
    WarehouseFolder,
    declare,
)
from mv_assets.config.checks import suggestion
from mv_assets.config.errors import Mistake
from mv_assets.config.file import INTERVAL
from mv_assets.defs.assets import view_asset
from mv_assets.defs.base_tables import table_asset
from mv_assets.defs.checks import view_checks
from mv_assets.defs.deployment import Deployment, SparkResource, spark_resource
from mv_assets.defs.io_manager import io_manager
from mv_assets.defs.jobs import garbage_schedules, maintenance_jobs
from mv_assets.defs.names import GROUP, Naming, Options, without_beta_warnings
from mv_assets.defs.publication import publishing_sensors
from mv_assets.defs.tick.automation import MOST_AUTOMATED, DueWork, IsDue, automation_sensor
from mv_assets.defs.tick.sensor import table_sensor
from mv_assets.errors import SettingRefused
from mv_assets.state_url import shown, state_url
from mv_assets.views.catalog import Catalog, prepare
from mv_assets.views.view import View

INTERVAL_S = 10

# What the deployments of this process are called, by the state and the view of each map that they write.
_writers: dict[tuple[str, str], str] = {}


def interval_seconds_of(variables: Mapping[str, str]) -> int:
    """How often sensors look, if the environment says so.

    Raises:
        SettingRefused: it says something else.

    """
    given = variables.get(INTERVAL)
    if not given:
        return INTERVAL_S
    try:
        found = int(given)
    except ValueError:
        found = 0
    if found < 1:
        instead = f"write {INTERVAL_S}, or unset it"
        raise SettingRefused(INTERVAL, given, "which is no whole number of seconds above 0", instead)
    return found


def build_definitions(
    *,
    tables: Iterable[Table],
    views: Iterable[MaterializedView],
    functions: Iterable[Function] = (),
    state: str | StateDatabase | Mapping[str, Any] | None = None,
    warehouse: str | PathLike[str] | WarehouseFolder | Mapping[str, Any] | None = None,
    storage: Storage | Mapping[str, Any] | None = None,
    spark: Spark | Mapping[str, Any] | SparkResource | None = None,
    publish: Target | None = None,
    produced_by: Mapping[str, dg.AssetKey] | None = None,
    interval_seconds: int | None = None,
    automation_condition: bool = False,
    name_prefix: str = "",
    key_prefix: str | Sequence[str] = (),
    group: str = GROUP,
    tags: Mapping[str, str] | None = None,
    kinds: str | Iterable[str] = (),
    owners: str | Iterable[str] = (),
) -> dg.Definitions:
    """Assets, sensors, jobs and checks for some views, to be merged with a project's own Definitions.

    Relative paths start at the working directory of the process that loads the definitions.

    Args:
        tables: base tables and dimensions.
        views: materialized views on them, or on each other.
        functions: Python functions that the SQL of views may call.
        state: URL of the state database, or that and more as a `StateDatabase`; by default SQLite in
            `MV_ASSETS_HOME`, or in `.mv_assets`.
        warehouse: folder or URI of the views' data, or that and more as a `WarehouseFolder`; by default it is
            beside that.
        storage: how object stores are reached, for tables and a warehouse that do not say it themselves.
        spark: how to reach Spark, as a `Spark` or its keys; or the Spark resource that the project has.
        publish: where views appear as tables for other tools: an `IcebergTarget` or a `DeltaTarget`.
        produced_by: assets of the project that write base tables, by the table's name; for all other tables
            an external asset is made.
        interval_seconds: seconds between looks; by default `MV_ASSETS_SENSOR_INTERVAL`, or 10.
        automation_condition: whether Dagster's own automation asks for runs, in place of the sensors: views
            get a condition that is true for partitions that are STALE or new, and due.
        name_prefix: before the names of jobs, sensors, schedules and resources; what is merged needs several.
        key_prefix: before the names of views and tables in the keys of their assets.
        group: the group of the assets.
        tags: of the assets.
        kinds: what views are shown to be made of; by default spark and parquet.
        owners: of the assets of views that name none, and of tables.

    Raises:
        ProjectError: with every mistake in the declarations.

    """
    declared = spark if isinstance(spark, Spark | Mapping) else None
    resource = None if isinstance(spark, Spark | Mapping) else spark
    draft = declare(
        tables,
        views,
        functions=functions,
        state=state,
        warehouse=warehouse,
        storage=storage,
        spark=declared,
        publish=publish,
    )
    if not (resource is None or isinstance(resource, dg.ResourceDefinition) or _has_session(resource)):
        instead = 'write Spark(remote="sc://HOST:PORT"), Spark(master=...), or LazyPySparkResource(...)'
        draft.add([Mistake("spark", f"neither settings nor a resource; {instead}")])
    options = {
        "name_prefix": name_prefix,
        "key_prefix": key_prefix,
        "group": group,
        "tags": tags or {},
        "kinds": kinds,
        "owners": owners,
        "interval_seconds": interval_seconds,
    }
    return declared_definitions(draft, produced_by or {}, options, resource, automated=automation_condition)


def _has_session(resource: object) -> bool:
    return hasattr(type(resource), "spark_session")


def declared_definitions(
    draft: Draft,
    produced_by: Mapping[str, dg.AssetKey],
    given: Mapping[str, Any],
    spark: SparkResource | None = None,
    *,
    automated: bool,
) -> dg.Definitions:
    """Assets, sensors, jobs and checks of a project that is declared beside others.

    Raises:
        ProjectError: with every mistake in the declarations.

    """
    options = draft.understood(Options, given)
    deployment = _deployment(draft, produced_by, options.naming, automated=automated)
    seconds = options.interval_seconds or interval_seconds_of(os.environ)
    return definitions_of(deployment, spark, interval_seconds=seconds)


def _deployment(
    draft: Draft, produced_by: Mapping[str, dg.AssetKey], naming: Naming, *, automated: bool
) -> Deployment:
    known = [table.name for table in draft.project.tables]
    draft.add(
        Mistake(f"produced_by.{name}", f"there is no table {name}; {suggestion(name, known)}")
        for name in produced_by
        if name not in known
    )
    if automated and len(draft.project.views) > MOST_AUTOMATED:
        says = f"Dagster evaluates the conditions of {MOST_AUTOMATED} views at most in a sensor; make several"
        draft.add([Mistake("automation_condition", f"{says} deployments, or leave it to the sensors")])
    maps = {(_place(draft.project.state.url), view.name): naming.prefix for view in draft.project.views}
    draft.add(_written_by_others(maps))
    catalog = prepare(draft, schemas=False)
    _writers.update(maps)
    return Deployment(catalog, produced_by=produced_by, naming=naming, automated=automated)


def _written_by_others(maps: Mapping[tuple[str, str], str]) -> Iterator[Mistake]:
    """A map knows a view by its name alone: of two that share one, each would undo what the other did.

    Two of one `name_prefix` can't be merged: that is one which is loaded again.
    """
    for (state, view), prefix in maps.items():
        other = _writers.get((state, view), prefix)
        if other != prefix:
            whose = f"the deployment with name_prefix {other!r}" if other else "the one without name_prefix"
            says = f"{whose} has a view of this name in the same state"
            yield Mistake(f"views.{view}", f"{says}; give each a `state` and a `warehouse` of its own")


def _place(state: str) -> str:
    """A state's place, however it is written."""
    url = state_url(state)
    return str(Path(url.database or "").resolve()) if url.get_backend_name() == "sqlite" else shown(url)


def definitions_of(
    deployment: Deployment,
    spark: SparkResource | None = None,
    *,
    interval_seconds: int = INTERVAL_S,
    collects: bool = False,
) -> dg.Definitions:
    """Assets, sensors, jobs and checks for a project; garbage is collected by itself if it `collects`."""
    with without_beta_warnings():
        return _definitions(deployment, spark, interval_seconds, collects=collects)


def _definitions(
    deployment: Deployment, spark: SparkResource | None, interval_seconds: int, *, collects: bool
) -> dg.Definitions:
    catalog = deployment.catalog
    views = list(catalog.views.values())
    used = {name for view in views for name in view.declared.reads}
    shown = [name for name in catalog.tables if name in used and name not in deployment.produced_by]
    starts, jobs = deployment.starts(), maintenance_jobs(deployment)
    due = DueWork(deployment, starts) if deployment.automated else None
    return dg.Definitions(
        assets=[
            *(table_asset(deployment, catalog.tables[name], starts) for name in shown),
            *(
                view_asset(deployment, view, starts[view.name], None if due is None else IsDue(due, view))
                for view in views
            ),
        ],
        asset_checks=[check for view in views for check in view_checks(deployment, view)],
        sensors=[
            table_sensor(deployment, table, found, starts, interval_seconds)
            for table, found in _by_table(catalog).items()
        ]
        + publishing_sensors(deployment, interval_seconds)
        + ([automation_sensor(deployment, interval_seconds)] if due is not None and views else []),
        jobs=jobs,
        schedules=garbage_schedules(deployment, jobs, running=collects),
        resources={
            deployment.naming.io_manager: io_manager(deployment),
            deployment.naming.spark: spark or spark_resource(catalog.project),
        },
    )


def _by_table(catalog: Catalog) -> dict[str, list[View]]:
    """Base tables, each with all views that come from it, directly or through another view."""
    found: dict[str, list[View]] = {}
    for view in catalog.views.values():
        found.setdefault(catalog.root(view.name), []).append(view)
    return found

"""Self-healing materialized views for the data lake, as Dagster assets computed by Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mv_assets.api import sql
    from mv_assets.config import (
        DeltaTable,
        DeltaTarget,
        Function,
        IcebergTable,
        IcebergTarget,
        MaterializedView,
        ParquetTable,
        Spark,
        StateDatabase,
        Storage,
        WarehouseFolder,
    )
    from mv_assets.defs import MaterializedViewsComponent, build_definitions
    from mv_assets.errors import MvError
    from mv_assets.project import Project
    from mv_assets.views.python import Bucket, view

# Where each name is found once it is used: a command that only reads the state should not wait for Dagster.
_WHERE = {
    "build_definitions": "mv_assets.defs",
    "MaterializedViewsComponent": "mv_assets.defs",
    "MvError": "mv_assets.errors",
    "Bucket": "mv_assets.views.python",
    "DeltaTable": "mv_assets.config",
    "DeltaTarget": "mv_assets.config",
    "Function": "mv_assets.config",
    "IcebergTable": "mv_assets.config",
    "IcebergTarget": "mv_assets.config",
    "MaterializedView": "mv_assets.config",
    "ParquetTable": "mv_assets.config",
    "Spark": "mv_assets.config",
    "StateDatabase": "mv_assets.config",
    "Storage": "mv_assets.config",
    "WarehouseFolder": "mv_assets.config",
    "Project": "mv_assets.project",
    "sql": "mv_assets.api",
    "view": "mv_assets.views.python",
}

__all__ = [
    "Bucket",
    "DeltaTable",
    "DeltaTarget",
    "Function",
    "IcebergTable",
    "IcebergTarget",
    "MaterializedView",
    "MaterializedViewsComponent",
    "MvError",
    "ParquetTable",
    "Project",
    "Spark",
    "StateDatabase",
    "Storage",
    "WarehouseFolder",
    "build_definitions",
    "sql",
    "view",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    # Dagster's `dg` looks here for components.
    return sorted({*globals(), *__all__})

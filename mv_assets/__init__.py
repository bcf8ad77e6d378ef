"""Self-healing materialized views for the data lake, as Dagster assets computed by Spark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mv_assets.config import (
        DeltaTable,
        IcebergTable,
        MaterializedView,
        ParquetTable,
        Spark,
        StateDatabase,
    )
    from mv_assets.defs import build_definitions
    from mv_assets.errors import MvError
    from mv_assets.query.api import sql

# Where each name is found once it is used: a command that only reads the state should not wait for Dagster.
_WHERE = {
    "build_definitions": "mv_assets.defs",
    "MvError": "mv_assets.errors",
    "DeltaTable": "mv_assets.config",
    "IcebergTable": "mv_assets.config",
    "MaterializedView": "mv_assets.config",
    "ParquetTable": "mv_assets.config",
    "Spark": "mv_assets.config",
    "StateDatabase": "mv_assets.config",
    "sql": "mv_assets.query.api",
}

__all__ = [
    "DeltaTable",
    "IcebergTable",
    "MaterializedView",
    "MvError",
    "ParquetTable",
    "Spark",
    "StateDatabase",
    "build_definitions",
    "sql",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)

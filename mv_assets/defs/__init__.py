"""Dagster: an asset a view, a sensor a base table, the IO manager that commits, jobs and checks."""

from mv_assets.defs.build import build_definitions, definitions_of, interval_seconds_of
from mv_assets.defs.component import MaterializedViewsComponent
from mv_assets.defs.deployment import Deployment

__all__ = [
    "Deployment",
    "MaterializedViewsComponent",
    "build_definitions",
    "definitions_of",
    "interval_seconds_of",
]

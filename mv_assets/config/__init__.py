"""What a user declares: tables, views and where everything is kept, in a file or in Python."""

from mv_assets.config.checks import in_order
from mv_assets.config.file import Draft, lines_below, read, read_content
from mv_assets.config.in_python import declare
from mv_assets.config.models import (
    DeclaredProject,
    Function,
    MaterializedView,
    Spark,
    StateDatabase,
    WarehouseFolder,
)
from mv_assets.config.storage import Storage
from mv_assets.config.tables import DeltaTable, IcebergTable, ParquetTable, Table
from mv_assets.config.targets import DeltaTarget, IcebergTarget, Target, buckets_table

__all__ = [
    "DeclaredProject",
    "DeltaTable",
    "DeltaTarget",
    "Draft",
    "Function",
    "IcebergTable",
    "IcebergTarget",
    "MaterializedView",
    "ParquetTable",
    "Spark",
    "StateDatabase",
    "Storage",
    "Table",
    "Target",
    "WarehouseFolder",
    "buckets_table",
    "declare",
    "in_order",
    "lines_below",
    "read",
    "read_content",
]

"""Delta tables: the files of a version, with what the log says of them."""

from mv_assets.tables.delta.table import DeltaFiles

__all__ = ["DeltaFiles"]

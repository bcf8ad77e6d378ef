"""Iceberg tables: the data files of a snapshot, with what the manifests say of them."""

from mv_assets.tables.iceberg.table import IcebergFiles

__all__ = ["IcebergFiles"]

"""From what is declared to the target of one view."""

from __future__ import annotations

from mv_assets.config import IcebergTarget
from mv_assets.publish.errors import NotPublished
from mv_assets.publish.names import name_of
from mv_assets.publish.target import Target
from mv_assets.run.warehouse import Warehouse
from mv_assets.views.catalog import Catalog


def open_target(catalog: Catalog, view: str, warehouse: Warehouse) -> Target | None:
    """Where a view is published; None if nowhere. Nothing is asked of it yet.

    Raises:
        NotPublished: what speaks to it is not installed.

    """
    declared = catalog.target(view)
    if declared is None:
        return None
    time_column = catalog.views[view].declared.time_column if view in catalog.views else None
    try:
        if isinstance(declared, IcebergTarget):
            from mv_assets.publish.iceberg.target import IcebergView  # noqa: PLC0415 - an extra

            return IcebergView(name_of(declared, view), view, time_column, declared, warehouse)
        from mv_assets.publish.delta.target import DeltaView  # noqa: PLC0415 - an extra

        return DeltaView(name_of(declared, view), view, declared, warehouse)
    except ImportError as error:
        extra = declared.format
        why = f"it needs a package that is not installed ({error}): pip install 'mv_assets[{extra}]'"
        raise NotPublished(view, declared.format, why) from error

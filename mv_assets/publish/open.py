"""From what is declared to the target of one view."""

from __future__ import annotations

from mv_assets.config import IcebergTarget
from mv_assets.config import Target as Declared
from mv_assets.publish.errors import NotPublished
from mv_assets.publish.target import Target
from mv_assets.run.warehouse import Warehouse
from mv_assets.views.catalog import Catalog


def name_of(target: Declared, view: str) -> str:
    """Which target and table it is, for the state: without secrets, and always the same."""
    if isinstance(target, IcebergTarget):
        kind, uri = target.catalog.get("type", "rest"), without_user(target.catalog.get("uri", ""))
        # One address may serve many catalogs, by name; that of a SQL catalog is only where files are.
        named = "" if kind == "sql" else without_user(target.catalog.get("warehouse", ""))
        catalog = " ".join(filter(None, [kind, target.catalog.get("name", "default"), uri, named]))
        return f"iceberg {target.namespace}.{view} in {catalog}"
    folder = "the warehouse" if target.folder is None else target.folder.rstrip("/")
    return f"delta {view} in {folder}"


def table_of(target: Declared, view: str, warehouse: str) -> str:
    """The table's name for readers."""
    if isinstance(target, IcebergTarget):
        return f"{target.namespace}.{view}"
    return f"{(target.folder or warehouse).rstrip('/')}/{view}"


def without_user(uri: str) -> str:
    """A URI without what only its owner should know; passwords may have all signs in them, even a slash."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}" if rest else uri


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

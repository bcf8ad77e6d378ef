"""What a target and its table are called; whoever only asks for a name loads no library."""

from __future__ import annotations

from mv_assets.config import IcebergTarget
from mv_assets.config import Target as Declared


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

"""An Iceberg table by its name in a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

# To look at a table is no reason to make a catalog.
_DEFAULTS = {"init_catalog_tables": "false"}


def named_table(identifier: str, properties: Mapping[str, str]) -> Table:
    """The table as its catalog has it now.

    Raises:
        LookupError: a SQL catalog has it under another catalog's name.
        Exception: whatever the library says of a catalog or table that is not there.

    """
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - an extra
    from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415

    given = {**_DEFAULTS, **properties}
    with load_catalog(given.pop("name", None), **given) as catalog:
        try:
            return catalog.load_table(identifier)
        except NoSuchTableError as error:
            others = _others(catalog, identifier)
            if not others:
                raise
            raise LookupError(
                f"it belongs to the catalog named {' or '.join(others)}, not to {catalog.name}; "
                f"set `name: {others[0]}` in `catalog`"
            ) from error


def _others(catalog: Catalog, identifier: str) -> list[str]:
    """Names under which one database of a SQL catalog holds the table: it may serve several catalogs."""
    from pyiceberg.catalog.sql import IcebergTables, SqlCatalog  # noqa: PLC0415 - an extra
    from sqlalchemy import select  # noqa: PLC0415

    if not isinstance(catalog, SqlCatalog):
        return []
    *namespace, name = catalog.identifier_to_tuple(identifier)
    asked = select(IcebergTables.catalog_name).where(
        IcebergTables.table_namespace == ".".join(namespace), IcebergTables.table_name == name
    )
    with catalog.engine.connect() as connection:
        return sorted(connection.scalars(asked))

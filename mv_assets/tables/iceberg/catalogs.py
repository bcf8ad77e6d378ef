"""Iceberg catalogs, as pyiceberg has them, and tables by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from requests import Session

_CONNECTING_S, _ANSWERING_S = 10, 30
# Of PostgreSQL; a server that is gone without a word is found by asking whether it is there.
_PATIENCE = {
    "connect_timeout": _CONNECTING_S,
    "keepalives_idle": _ANSWERING_S,
    "keepalives_interval": _CONNECTING_S,
    "keepalives_count": 3,
}
# Drivers that go by the names of PostgreSQL's own library.
_POSTGRES = re.compile(r"postgres(ql)?(\+psycopg2?)?://")

# To look at a table is no reason to make a catalog.
_DEFAULTS = {"init_catalog_tables": "false"}


def opened(properties: Mapping[str, str]) -> Catalog:
    """A catalog that is not waited for without an end."""
    from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType, load_catalog  # noqa: PLC0415 - an extra

    AVAILABLE_CATALOGS[CatalogType.REST] = _rest
    given = dict(properties)
    if not _POSTGRES.match(uri := given.get("uri", "")):
        return load_catalog(given.pop("name", None), **given)
    for key, seconds in _PATIENCE.items():
        if key not in uri:
            uri += f"{'&' if '?' in uri else '?'}{key}={seconds}"
    catalog = load_catalog(given.pop("name", None), **{**given, "uri": uri})
    _bound(catalog)
    return catalog


def _bound(catalog: Any) -> None:
    """A peer that is frozen amid a commit keeps others from the table's row."""
    from sqlalchemy import event  # noqa: PLC0415

    def begun(connection: Any) -> None:
        # Not when it connects: servers that share connections between clients know no more than this.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_ANSWERING_S}s'")

    event.listen(catalog.engine, "begin", begun)


def _rest(name: str, properties: Mapping[str, str]) -> Catalog:
    from pyiceberg.catalog.rest import RestCatalog  # noqa: PLC0415 - an extra

    class Rest(RestCatalog):
        def _config_headers(self, session: Session) -> None:
            """The library's session waits for ever; this is called before anything is sent."""
            super()._config_headers(session)
            session.send = partial(_send, session.send)  # type: ignore[method-assign]

    return Rest(name, **properties)


def _send(send: Callable[..., Any], request: Any, **options: Any) -> Any:
    return send(request, **{**options, "timeout": options.get("timeout") or (_CONNECTING_S, _ANSWERING_S)})


def named_table(identifier: str, properties: Mapping[str, str]) -> Table:
    """The table as its catalog has it now.

    Raises:
        LookupError: a SQL catalog has it under another catalog's name.
        Exception: whatever the library says of a catalog or table that is not there.

    """
    from pyiceberg.exceptions import NoSuchTableError  # noqa: PLC0415 - an extra

    with opened({**_DEFAULTS, **properties}) as catalog:
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

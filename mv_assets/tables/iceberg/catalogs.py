"""Iceberg catalogs, as pyiceberg has them, and tables by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from requests import Session

T = TypeVar("T")
_NONE: Mapping[str, str] = MappingProxyType({})

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

# Properties that name classes of Python's.
_FILES_BY_CODE, _PLACES_BY_CODE = "py-io-impl", "write.py-location-provider.impl"

# To look at a table is no reason to make a catalog.
_DEFAULTS = {"init_catalog_tables": "false"}


def opened(properties: Mapping[str, str]) -> Catalog:
    """A catalog that is not waited for without an end."""
    from pyiceberg.catalog import AVAILABLE_CATALOGS, CatalogType, load_catalog  # noqa: PLC0415 - an extra

    AVAILABLE_CATALOGS[CatalogType.REST] = _rest
    given = dict(properties)
    uri = given.get("uri", "")
    is_postgres = _POSTGRES.match(uri) is not None
    if is_postgres:
        for key, seconds in _PATIENCE.items():
            if key not in uri:
                uri += f"{'&' if '?' in uri else '?'}{key}={seconds}"
        given["uri"] = uri
    catalog = _unled(load_catalog(given.pop("name", None), **given), given)
    if is_postgres:
        _bound(catalog)
    return catalog


def _bound(catalog: Any) -> None:
    """A peer that is frozen amid a commit keeps others from the table's row."""
    from sqlalchemy import event  # noqa: PLC0415

    def begun(connection: Any) -> None:
        # Not when it connects: servers that share connections between clients know no more than this.
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_ANSWERING_S}s'")

    event.listen(catalog.engine, "begin", begun)


def _unled(catalog: Catalog, declared: Mapping[str, str]) -> Catalog:
    """One that goes by what is declared of it alone.

    Whoever writes a table writes its properties. By them the library would import code that they name, and
    reach files by another endpoint, with our keys. A server may lend keys, but name no code either.
    """
    load, reached = catalog.load_table, catalog._load_file_io  # noqa: SLF001 - there is no other way to say it
    lends = getattr(catalog, "lends", False)

    def load_table(identifier: Any) -> Table:
        found = load(identifier)
        found.metadata.properties.pop(_PLACES_BY_CODE, None)
        return found

    def load_file_io(properties: Mapping[str, str] = _NONE, location: str | None = None) -> FileIO:
        return reached(_without_code(properties) if lends else {}, location)

    if _FILES_BY_CODE not in declared:
        catalog.properties.pop(_FILES_BY_CODE, None)
    catalog.load_table = load_table  # type: ignore[method-assign]
    catalog._load_file_io = load_file_io  # type: ignore[method-assign]  # noqa: SLF001
    return catalog


def _without_code(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name != _FILES_BY_CODE}


def _rest(name: str, properties: Mapping[str, str]) -> Catalog:
    from pyiceberg.catalog.rest import RestCatalog  # noqa: PLC0415 - an extra

    class Rest(RestCatalog):
        # What it is given to reach files with is the server's word.
        lends = True

        def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: Any) -> Table:
            return _by_its_server(super()._response_to_table, identifier_tuple, table_response)

        def _response_to_staged_table(self, identifier_tuple: tuple[str, ...], table_response: Any) -> Any:
            return _by_its_server(super()._response_to_staged_table, identifier_tuple, table_response)

        def _config_headers(self, session: Session) -> None:
            """The library's session waits for ever; this is called before anything is sent."""
            super()._config_headers(session)
            session.send = partial(_send, session.send)  # type: ignore[method-assign]

    return Rest(name, **properties)


def _by_its_server(made: Callable[..., T], identifier: tuple[str, ...], response: Any) -> T:
    """A table whose files are reached as its server says, whatever the table says."""
    said, properties = dict(response.metadata.properties), response.metadata.properties
    properties.clear()
    try:
        return made(identifier, response)
    finally:
        properties.update(said)


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

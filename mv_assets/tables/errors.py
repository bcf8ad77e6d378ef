"""Base tables that there is no look at."""

from __future__ import annotations

from mv_assets.errors import MvError


class TableUnreadable(MvError):
    """A base table could not be listed as a whole, so there was no look; nothing was concluded from it."""

    code = "table-unreadable"

    def __init__(self, table: str, where: str, why: str) -> None:
        super().__init__(f"table {table!r} at {where} can't be listed: {why}")
        self.about = table


class TableRefused(MvError):
    """A base table has something that would be read wrong."""

    code = "table-refused"

    def __init__(self, table: str, what: str, instead: str) -> None:
        super().__init__(f"table {table!r} {what}, which would be read wrong; {instead}")
        self.about = f"{table} {what}"

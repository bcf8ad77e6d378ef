"""Base tables that there is no look at."""

from __future__ import annotations

from collections.abc import Sequence

from mv_assets.errors import MvError


class TableUnreadable(MvError):
    """A base table could not be listed as a whole, so there was no look; nothing was concluded from it."""

    code = "table-unreadable"

    def __init__(self, table: str, where: str, why: str) -> None:
        super().__init__(f"table {table!r} at {where} can't be listed: {why}")
        self.about = table

    @property
    def is_absent(self) -> bool:
        """Whether there is nothing at its place, perhaps not yet."""
        return isinstance(self.__cause__, FileNotFoundError)


class TableRefused(MvError):
    """A base table has something that would be read wrong."""

    code = "table-refused"

    def __init__(self, table: str, what: str, instead: str) -> None:
        super().__init__(f"table {table!r} {what}, which would be read wrong; {instead}")
        self.about = f"{table} {what}"


class KeyNotUnique(MvError):
    """A dimension has two rows with the same values in what was declared as its unique key."""

    code = "key-not-unique"

    def __init__(self, table: str, key: Sequence[str], values: str, rows: int) -> None:
        named = ", ".join(key)
        super().__init__(
            f"table {table!r} has {rows} rows with {named} = {values}, but {named} is declared as its unique "
            "key; delete all but one of them, or take the key out of the view's `dimensions`"
        )
        self.about = f"{table} {named}"


class KeyUnknown(MvError):
    """Whether a dimension's declared key is unique can't be told."""

    code = "key-unknown"

    def __init__(self, table: str, key: Sequence[str], why: str) -> None:
        named = ", ".join(key)
        super().__init__(
            f"whether {named} is a unique key of table {table!r} can't be verified: {why}; mend it, or take "
            "the key out of the view's `dimensions`"
        )
        self.about = f"{table} {named}"

"""Who watches what takes long: one protocol for looks, refreshes and audits."""

from __future__ import annotations


class Progress:
    """Is told what happens. This one does nothing with it; others draw bars, write logs, or end a look."""

    def reading(self, table: str, files: int, size: int, all_files: int, whole: int) -> None:
        """So many of a table's new files are read, and so many bytes of them."""

    def starting(self, what: str) -> None:
        """Something starts that others wait for: Spark."""

    def started(self) -> None:
        """It has started, or failed to."""

    def plans(self, buckets: int, size: int) -> None:
        """There is so much more to do."""

    def begins(self, what: str) -> None:
        """Now this is done."""

    def ends(self, buckets: int, size: int) -> None:
        """So much of it is done."""

    def waits(self, milliseconds: int) -> None:
        """Files are still arriving: nothing is done for so long."""


NO_PROGRESS = Progress()

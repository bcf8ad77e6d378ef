"""Progress on a terminal: bars that leave no trace; elsewhere nothing."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Shown
from rich.text import Text

from mv_assets.progress import Progress


class _Count(MofNCompleteColumn):
    """So many of how many, where that is known."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class Bars(Progress):
    """A bar for each table that is read, one while Spark starts, and one for the work."""

    def __init__(self) -> None:
        out = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), _Count(), TextColumn("{task.fields[of]}"))
        self._shown = Shown(*columns, console=out, transient=True, disable=not out.is_terminal)
        self._tables: dict[str, TaskID] = {}
        self._start: TaskID | None = None
        self._work: TaskID | None = None
        self._buckets = self._read = self._all = 0

    def __enter__(self) -> Self:
        self._shown.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # An older rich ends what it never began with an empty line.
        if not self._shown.disable:
            self._shown.stop()

    def reading(self, table: str, files: int, size: int, all_files: int, whole: int) -> None:  # noqa: ARG002
        if table not in self._tables:
            self._tables[table] = self._shown.add_task(f"reading {table}", of="files")
        task = self._tables[table]
        self._shown.update(task, completed=files, total=all_files, visible=files < all_files)

    def starting(self, what: str) -> None:
        self._start = self._shown.add_task(what, total=None, of="")

    def started(self) -> None:
        if self._start is not None:
            self._shown.remove_task(self._start)
            self._start = None

    def plans(self, buckets: int, size: int) -> None:
        self._buckets += buckets
        self._all += size

    def begins(self, what: str) -> None:
        if self._work is None:
            self._work = self._shown.add_task(what, total=0, of="buckets")
        self._shown.update(self._work, description=what, total=self._buckets)
        self._count(0)

    def ends(self, buckets: int, size: int) -> None:
        self._read += size
        self._count(buckets)

    def _count(self, buckets: int) -> None:
        if self._work is not None:
            of = f"buckets, {decimal(self._read)} of {decimal(self._all)}" if self._all else "buckets"
            self._shown.update(self._work, advance=buckets, of=of)

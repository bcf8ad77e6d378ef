"""Looks with a progress bar where there is much to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn
from rich.text import Text

from mv_assets.clock import clock
from mv_assets.config import Spark
from mv_assets.observe.watch import ImaginedWatch, Observer
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store
from mv_assets.tables.listing import Progress as ListingProgress
from mv_assets.tables.opening import open_table
from mv_assets.views.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def imagining(catalog: Catalog, store: Store | None) -> Iterator[ImaginedWatch]:
    """A round of looks on copies of the maps; `store` is None where there is no state yet."""
    database = None if store is None else store.database
    tables = {name: open_table(table, database, clock, keep=False) for name, table in catalog.tables.items()}
    with bars() as shown:
        now = clock if store is None else SharedClock(store)
        yield ImaginedWatch(catalog, tables, store, now, observer(shown))


class _Count(MofNCompleteColumn):
    """So many of how many, where that is known."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


@contextmanager
def bars() -> Iterator[Progress]:
    """Bars on a terminal that leave no trace; nothing elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        _Count(),
        TextColumn("{task.fields[of]}"),
    )
    out = Console(stderr=True)
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as shown:
        yield shown


def announced(shown: Progress, start: Callable[[Spark], SparkSession]) -> Callable[[Spark], SparkSession]:
    """Says that Spark starts while it does, as the other bars stand still meanwhile."""

    def starting(declared: Spark) -> SparkSession:
        what = "starting Spark" if declared.remote is None else "connecting to Spark"
        task = shown.add_task(what, total=None, of="")
        try:
            return start(declared)
        finally:
            shown.remove_task(task)

    return starting


def observer(shown: Progress) -> Observer:
    """A bar for each table that is read."""

    def observe(table: str) -> ListingProgress:
        task = shown.add_task(f"reading {table}", visible=False, of="files")

        def update(files: int, _size: int, all_files: int, _whole: int) -> None:
            shown.update(task, completed=files, total=all_files, visible=files < all_files)

        return update

    return observe

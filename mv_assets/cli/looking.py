"""Looks with a progress bar where there is much to read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from mv_assets.clock import clock
from mv_assets.refresh.maps import ImaginedMaps
from mv_assets.refresh.watch import Observer, Watch
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store
from mv_assets.tables.listing import Progress as ListingProgress
from mv_assets.tables.opening import open_table
from mv_assets.views.catalog import Catalog


@contextmanager
def imagining(catalog: Catalog, store: Store | None) -> Iterator[Watch]:
    """A round of looks on copies of the maps; `store` is None where there is no state yet."""
    database = None if store is None else store.database
    tables = {name: open_table(table, database, clock, keep=False) for name, table in catalog.tables.items()}
    with bars() as shown:
        now = clock if store is None else SharedClock(store)
        yield Watch(catalog, tables, ImaginedMaps(store), now, observer(shown))


@contextmanager
def bars() -> Iterator[Progress]:
    """Bars on a terminal that leave no trace; nothing elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[of]}"),
    )
    out = Console(stderr=True)
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as shown:
        yield shown


def observer(shown: Progress) -> Observer:
    """A bar for each table that is read."""

    def observe(table: str) -> ListingProgress:
        task = shown.add_task(f"reading {table}", visible=False, of="files")

        def update(files: int, _size: int, all_files: int, _whole: int) -> None:
            shown.update(task, completed=files, total=all_files, visible=files < all_files)

        return update

    return observe

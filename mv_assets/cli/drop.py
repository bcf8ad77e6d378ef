"""`mv-assets drop`: the end of a view's map and data."""

from __future__ import annotations

import sys
from typing import Any

import click

from mv_assets.cli import show
from mv_assets.cli.session import Session, print_json
from mv_assets.errors import NotDeclared
from mv_assets.refresh.garbage import Garbage, GcReport
from mv_assets.refresh.warehouse import Warehouse
from mv_assets.state.model import Snapshot
from mv_assets.views.catalog import Catalog


@click.command(epilog="Example: mv-assets drop trips_hourly")
@click.argument("view")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def drop(ctx: click.Context, view: str, *, yes: bool, as_json: bool) -> None:
    """Forget a view's buckets and delete its data; a refresh computes it all again."""
    session: Session = ctx.obj
    catalog = session.catalog()
    buckets, gone, left = 0, GcReport(view), GcReport(view)
    with session.existing_state(catalog) as store:
        known = [] if store is None else store.views()
        if view not in known and view not in catalog.views:
            raise NotDeclared(view, sorted({*known, *catalog.views}))
        if store is not None and view in known:
            snapshot = store.snapshot(view)
            buckets = len(snapshot.rows)
            if not yes:
                _ask(catalog, snapshot)
            manager = session.manager(store, "drop")
            manager.drop(view, "dropped by hand")
            garbage = Garbage(store, manager, Warehouse(catalog.project.warehouse))
            gone, left = garbage.collect(view), garbage.held(view)
    if as_json:
        print_json(_json(buckets, gone, left))
    else:
        _print(buckets, gone, left)
    if gone.errors or left.errors:
        ctx.exit(1)


def _ask(catalog: Catalog, snapshot: Snapshot) -> None:
    view = snapshot.header.view
    if not sys.stdin.isatty():
        raise click.UsageError(f"dropping {view} deletes its data; without a terminal to ask at, give --yes")
    size = show.size(sum(row.bytes for row in snapshot.rows.values()))
    upon = [found.name for found in catalog.views.values() if found.declared.base == view]
    also = f" ({', '.join(upon)} based on it must wait until it is refreshed)" if upon else ""
    asked = f"Drop {show.count(len(snapshot.rows), 'bucket')} of {view}, {size}{also}?"
    click.confirm(asked, abort=True, err=True)


def _json(buckets: int, gone: GcReport, left: GcReport) -> dict[str, Any]:
    return {
        "view": gone.view,
        "buckets": buckets,
        "deleted": [{"generation": name, "bytes": size} for name, size in gone.deleted.items()],
        "left": [{"generation": name, "bytes": size} for name, size in left.deleted.items()],
        "errors": [str(error) for error in (*gone.errors, *left.errors)],
    }


def _print(buckets: int, gone: GcReport, left: GcReport) -> None:
    out = show.console()
    size = show.size(sum(gone.deleted.values()))
    out.print(f"dropped {show.count(buckets, 'bucket')} of {gone.view}; {size} deleted")
    if left.deleted:
        size = show.size(sum(left.deleted.values()))
        out.print(
            f"{size} left: readers or a refresh may still be at it, or it is not a minute old; "
            "`mv-assets gc` will remove it"
        )
    for error in (*gone.errors, *left.errors):
        out.print(f"[bold red]{show.failed()}[/] {show.plain(str(error))}")

"""`mv-assets drop`: the end of a view's map and data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from mv_assets.cli import show
from mv_assets.cli.session import Session, print_json
from mv_assets.errors import NotDeclared
from mv_assets.maintain.garbage import Garbage, GcReport
from mv_assets.plan.scope import to_drop
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.model import Snapshot


@dataclass(frozen=True, slots=True)
class _Dropped:
    """What became of one view: its buckets, what was deleted of its data, and what could not be yet."""

    view: str
    buckets: int
    gone: GcReport
    left: GcReport

    @property
    def errors(self) -> list[str]:
        return [str(error) for error in (*self.gone.errors, *self.left.errors)]


@click.command(epilog="Example: mv-assets drop trips_hourly --with-dependants")
@click.argument("view")
@click.option("--with-dependants", is_flag=True, help="Drop the views that are based on it, too.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def drop(ctx: click.Context, view: str, *, with_dependants: bool, yes: bool, as_json: bool) -> None:
    """Forget a view's buckets and delete its data; a refresh computes it all again.

    A view that others are based on is dropped with them or not at all.
    """
    session: Session = ctx.obj
    catalog = session.catalog()
    names = to_drop(catalog, view, with_dependants=with_dependants)
    dropped = {name: _Dropped(name, 0, GcReport(name), GcReport(name)) for name in names}
    with session.existing_state(catalog) as store:
        known = [] if store is None else store.views()
        if view not in known and view not in catalog.views:
            raise NotDeclared(view, sorted({*known, *catalog.views}))
        there = [name for name in names if name in known]
        if store is not None and there:
            snapshots = {name: store.snapshot(name) for name in there}
            if not yes:
                _ask(list(snapshots.values()))
            manager = session.manager(store, "drop")
            manager.drop(there[0], "dropped by hand", dependants=there[1:])
            garbage = Garbage(store, manager, Warehouse(catalog.project.warehouse))
            dropped |= {
                name: _Dropped(name, len(found.rows), garbage.collect(name), garbage.held(name))
                for name, found in snapshots.items()
            }
    if as_json:
        named, *dependants = map(_json, dropped.values())
        print_json({**named, "dependants": dependants})
    else:
        for each in dropped.values():
            _print(each)
    if any(each.errors for each in dropped.values()):
        ctx.exit(1)


def _ask(snapshots: Sequence[Snapshot]) -> None:
    names = " and ".join(snapshot.header.view for snapshot in snapshots)
    if not sys.stdin.isatty():
        its = "its" if len(snapshots) == 1 else "their"
        raise click.UsageError(
            f"dropping {names} deletes {its} data; without a terminal to ask at, give --yes"
        )
    counts = [f"{show.count(len(each.rows), 'bucket')} of {each.header.view}" for each in snapshots]
    size = show.size(sum(row.bytes for each in snapshots for row in each.rows.values()))
    click.confirm(f"Drop {' and '.join(counts)}, {size}?", abort=True, err=True)


def _json(dropped: _Dropped) -> dict[str, Any]:
    return {
        "view": dropped.view,
        "buckets": dropped.buckets,
        "deleted": [{"generation": name, "bytes": size} for name, size in dropped.gone.deleted.items()],
        "left": [{"generation": name, "bytes": size} for name, size in dropped.left.deleted.items()],
        "errors": dropped.errors,
    }


def _print(dropped: _Dropped) -> None:
    out = show.console()
    size = show.size(sum(dropped.gone.deleted.values()))
    out.print(f"dropped {show.count(dropped.buckets, 'bucket')} of {dropped.view}; {size} deleted")
    if dropped.left.deleted:
        size = show.size(sum(dropped.left.deleted.values()))
        out.print(
            f"{size} left: readers or a refresh may still be at it, or it is not a minute old; "
            "`mv-assets gc` will remove it"
        )
    for error in dropped.errors:
        out.print(f"[bold red]{show.failed()}[/] {show.plain(error)}")

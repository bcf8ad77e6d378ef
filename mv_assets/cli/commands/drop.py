"""`mv-assets drop`: the end of a view's map and data."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from mv_assets.cli.session import Session, finish
from mv_assets.reports import show
from mv_assets.state.model import Snapshot


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
    with session.project("drop") as project:
        confirm = _agreed if yes else _ask
        found = project.drop(view, with_dependants=with_dependants, confirm=confirm)
    finish(ctx, found, as_json=as_json)


def _agreed(_snapshots: Sequence[Snapshot]) -> None:
    """Whoever gave --yes was asked before."""


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

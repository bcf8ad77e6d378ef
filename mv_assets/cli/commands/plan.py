"""`mv-assets plan`: what a refresh would do, why, and how much it would read. Nothing is written."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets plan trips_hourly")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option("--json", "as_json", is_flag=True, help="For programs, with every bucket.")
@click.pass_context
def plan(ctx: click.Context, views: tuple[str, ...], *, as_json: bool) -> None:
    """Show what a refresh would do, why, and how many bytes it would read. Writes nothing.

    If files were only added to a bucket and its aggregates can be merged, only the new files are read;
    otherwise the bucket is computed from all its files.
    """
    session: Session = ctx.obj
    with session.project("plan", bars=True) as project:
        found = project.plan(*views)
    finish(ctx, found, as_json=as_json)

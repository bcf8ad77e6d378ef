"""`mv-assets status`: what of each view can be trusted, from the state alone."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets status trips_hourly")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option("--json", "as_json", is_flag=True, help="For programs, with every bucket.")
@click.pass_context
def status(ctx: click.Context, views: tuple[str, ...], *, as_json: bool) -> None:
    """Show each view's buckets, watermark, lag and failures."""
    session: Session = ctx.obj
    with session.project("status") as project:
        found = project.status(*views)
    finish(ctx, found, as_json=as_json)

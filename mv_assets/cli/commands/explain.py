"""`mv-assets explain`: why one bucket is what it is."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets explain trips_hourly 2024-01-31")
@click.argument("view")
@click.argument("bucket")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def explain(ctx: click.Context, view: str, bucket: str, *, as_json: bool) -> None:
    """Say why a bucket is what it is: its files then and now, its last events and errors."""
    session: Session = ctx.obj
    with session.project("explain", bars=True) as project:
        found = project.explain(view, bucket)
    finish(ctx, found, as_json=as_json)

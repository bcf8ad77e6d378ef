"""`mv-assets adopt`: going back to an earlier definition, on purpose."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session


@click.command(epilog="Example: mv-assets adopt trips_hourly")
@click.argument("view")
@click.argument("definition", required=False)
@click.pass_context
def adopt(ctx: click.Context, view: str, definition: str | None) -> None:
    """Put an earlier definition of a view in force again; by default the one this project declares."""
    session: Session = ctx.obj
    catalog = session.catalog()
    wanted = definition or catalog.view(view).definition
    with session.state(catalog) as store:
        header = session.manager(store, "adopt").adopt(view, wanted)
    click.echo(f"{view} is defined as {header.definition}")

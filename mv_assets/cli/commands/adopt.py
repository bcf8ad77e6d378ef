"""`mv-assets adopt`: going back to an earlier definition, on purpose."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets adopt trips_hourly")
@click.argument("view")
@click.argument("definition", required=False)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def adopt(ctx: click.Context, view: str, definition: str | None, *, as_json: bool) -> None:
    """Put an earlier definition of a view in force again; by default the one this project declares.

    DEFINITION is the hash that `status` or the error message names.
    """
    session: Session = ctx.obj
    with session.project("adopt") as project:
        found = project.adopt(view, definition)
    finish(ctx, found, as_json=as_json)

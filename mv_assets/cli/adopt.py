"""`mv-assets adopt`: going back to an earlier definition, on purpose."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session, print_json
from mv_assets.errors import UnknownView


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
    catalog = session.catalog()
    wanted = definition or catalog.view(view).definition
    with session.existing_state(catalog) as store:
        if store is None:
            raise UnknownView(view)
        header = session.manager(store, "adopt").adopt(view, wanted)
    if as_json:
        print_json({"view": view, "definition": header.definition})
    else:
        click.echo(f"{view} is defined as {header.definition}")

"""`mv-assets publish`: views as tables that anybody reads, where that is not done already."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets publish trips_hourly")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option(
    "--forget",
    is_flag=True,
    help="Instead, give up what is kept for readers of tables that the project no longer names.",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def publish(ctx: click.Context, views: tuple[str, ...], *, forget: bool, as_json: bool) -> None:
    """Show views as tables to other tools: what is missing there, of all views or of some.

    Where to, `publish:` in the project file says. A refresh does it too.
    """
    session: Session = ctx.obj
    with session.project("publish") as project:
        found = project.forget_published(*views) if forget else project.publish(*views)
    finish(ctx, found, as_json=as_json)

"""`mv-assets gc`: deletes what nobody needs any more, and keeps the rest in few files."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets gc --dry-run")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted and compacted.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def gc(ctx: click.Context, views: tuple[str, ...], *, dry_run: bool, as_json: bool) -> None:
    """Delete view data that no bucket and no reader needs, and rewrite data that is mostly dead.

    Of the named views; by default of all, including those no longer in the project.
    """
    session: Session = ctx.obj
    with session.project("gc") as project:
        found = project.gc(*views, dry_run=dry_run)
    finish(ctx, found, as_json=as_json)

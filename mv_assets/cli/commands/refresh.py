"""`mv-assets refresh`: bring views up to date, here and now."""

from __future__ import annotations

import click

from mv_assets.cli.options import asked, own_spark_option, range_options
from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets refresh trips_daily --from 2024-01-01 --to 2024-01-31 --force")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@range_options
@click.option("--force", is_flag=True, help="Compute again what is VALID, too.")
@click.option(
    "--max-bytes", type=click.IntRange(min=0), metavar="N", help="Read no more than N bytes of base tables."
)
@own_spark_option
@click.option("--json", "as_json", is_flag=True, help="For programs, with every bucket.")
@click.pass_context
def refresh(
    ctx: click.Context,
    views: tuple[str, ...],
    bucket: str | None,
    first: str | None,
    last: str | None,
    max_bytes: int | None,
    *,
    extend: bool,
    force: bool,
    own_spark: bool,
    as_json: bool,
) -> None:
    """Compute what is missing or STALE: of all views, or of some and those they are based on."""
    session: Session = ctx.obj
    buckets = asked(bucket, first, last, extend=extend, views=views)
    with session.project("refresh", bars=True, own_spark=own_spark) as project:
        found = project.refresh(*views, buckets=buckets, force=force, extend=extend, max_bytes=max_bytes)
    finish(ctx, found, as_json=as_json)

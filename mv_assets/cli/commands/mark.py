"""`mv-assets mark`: a person's order to compute buckets again."""

from __future__ import annotations

import click

from mv_assets.cli.options import asked, range_options
from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets mark trips_daily --from 2024-01-01 --to 2024-01-31")
@click.argument("view")
@range_options
@click.option("--reason", default="marked by hand", show_default=True, help="For the log.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def mark(
    ctx: click.Context,
    view: str,
    bucket: str | None,
    first: str | None,
    last: str | None,
    reason: str,
    *,
    extend: bool,
    as_json: bool,
) -> None:
    """Mark a whole view, a range or one bucket STALE: it is computed again, changed or not.

    The next refresh, or the sensor, computes it.
    """
    session: Session = ctx.obj
    buckets = asked(bucket, first, last, extend=extend)
    with session.project("mark") as project:
        found = project.mark(view, buckets=buckets, extend=extend, reason=reason)
    finish(ctx, found, as_json=as_json)

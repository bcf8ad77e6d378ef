"""`mv-assets mark`: a person's order to compute buckets again."""

from __future__ import annotations

import click

from mv_assets.cli import show
from mv_assets.cli.ranges import asked, range_options
from mv_assets.cli.session import Session, print_json
from mv_assets.clock import clock
from mv_assets.errors import NotInForce
from mv_assets.plan.scope import uncovered


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
    catalog = session.catalog()
    found = catalog.view(view)
    buckets = asked(found, bucket, first, last, extend=extend)
    with session.state(catalog) as store:
        manager = session.manager(store, "mark")
        if view in store.views() and found.definition not in store.history(view):
            # A mark is no place to take over a view, and all its buckets, by the way.
            raise NotInForce(view, found.definition, store.pulse(view).header.definition)
        uncovered(manager, found, buckets or (), clock(), extend=extend)
        marked = manager.force(found.declaration, buckets, reason, extend=extend)
    if as_json:
        print_json({"view": view, "marked": [found.buckets.key(start) for start in marked]})
    elif marked:
        where = found.buckets.span(marked)
        show.console().print(f"marked {show.count(len(marked), 'bucket')} of {view}: {where}")
    else:
        show.console().print(f"{view} has no bucket to mark yet")

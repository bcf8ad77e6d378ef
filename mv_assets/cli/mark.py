"""`mv-assets mark`: a person's order to compute buckets again."""

from __future__ import annotations

import click

from mv_assets.buckets import iso
from mv_assets.cli import show
from mv_assets.cli.session import Session, clock, print_json
from mv_assets.errors import NotInForce
from mv_assets.views.view import View


@click.command(epilog="Example: mv-assets mark trips_hourly --from 2024-01-01 --to 2024-01-31")
@click.argument("view")
@click.option("--bucket", help="One bucket, by its start: 2024-01-31 or 2024-01-31T15:00.")
@click.option("--from", "first", metavar="BUCKET", help="First bucket of a range.")
@click.option("--to", "last", metavar="BUCKET", help="Last bucket of the range, included.")
@click.option("--extend", is_flag=True, help="Let the view cover buckets before its start.")
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
    """Mark a whole view, a range or one bucket STALE: it is computed again, whether it changed or not."""
    session: Session = ctx.obj
    catalog = session.catalog()
    found = catalog.view(view)
    asked = _asked(found, bucket, first, last)
    if extend and asked is None:
        raise click.UsageError("--extend goes with --bucket or --from and --to")
    with session.state(catalog) as store:
        manager = session.manager(store, "mark")
        if view in store.views() and found.definition not in store.history(view):
            # A mark is no place to take over a view, and all its buckets, by the way.
            raise NotInForce(view, found.definition, store.pulse(view).header.definition)
        manager.declare(found.declaration)
        marked = manager.force(found.declaration, asked, reason, extend=extend)
    if as_json:
        print_json({"view": view, "marked": [found.buckets.key(start) for start in marked]})
    elif marked:
        where = show.span(found.buckets, marked)
        show.console().print(f"marked {show.count(len(marked), 'bucket')} of {view}: {where}")
    else:
        show.console().print(f"{view} has no bucket to mark yet")


def _asked(view: View, bucket: str | None, first: str | None, last: str | None) -> list[int] | None:
    """The buckets that were asked for; None for the whole view."""
    if bucket is None and first is None and last is None:
        return None
    if bucket is not None and (first is not None or last is not None):
        raise click.UsageError("give either --bucket or --from and --to")
    if bucket is None and (first is None or last is None):
        raise click.UsageError("a range has both --from and --to")
    start, end = view.buckets.parse(str(first or bucket)), view.buckets.parse(str(last or bucket))
    if end < start:
        raise click.UsageError("--to lies before --from")
    if end > clock():
        raise click.UsageError(f"bucket {iso(end)} lies in the future")
    return list(view.buckets.between(start, view.buckets.next(end)))

"""`mv-assets plan`: what a refresh would do, why, and how much it would read. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.markup import escape

from mv_assets.buckets import iso
from mv_assets.cli import show
from mv_assets.cli.session import Session, print_json
from mv_assets.errors import MvError
from mv_assets.refresh.planner import Plan, Waiting
from mv_assets.refresh.watch import Outlook
from mv_assets.state.model import Planned

_MOST_LINES = 20


@click.command(epilog="Example: mv-assets plan trips_hourly")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option("--json", "as_json", is_flag=True, help="For programs, with every bucket.")
@click.pass_context
def plan(ctx: click.Context, views: tuple[str, ...], *, as_json: bool) -> None:
    """Show what a refresh would do, why, and how many bytes it would read. Writes nothing."""
    session: Session = ctx.obj
    catalog = session.catalog(schemas=True)
    asked = [catalog.view(name).name for name in views or catalog.views]
    with session.existing_state(catalog) as store, session.imagining(catalog, store) as watch:
        outlooks = watch.round(asked, whole=True)
    found = {name: outlooks[name] for name in asked}
    plans = {name: outlook.plan() for name, outlook in found.items() if isinstance(outlook, Outlook)}
    if as_json:
        print_json({"views": [_json(name, outlook, plans.get(name)) for name, outlook in found.items()]})
    else:
        for name, outlook in found.items():
            _print(name, outlook, plans.get(name))
            _print_upstream(outlook, outlooks)
    if any(_errors(outlook) for outlook in found.values()):
        ctx.exit(1)


def _errors(outlook: Outlook | MvError) -> list[dict[str, str | None]]:
    if isinstance(outlook, MvError):
        return [{"file": None, "message": str(outlook)}]
    if outlook.news is None:
        return []
    found = sorted(outlook.news.sights.broken(), key=lambda each: (each[0], each[1].name))
    return [{"file": broken.name, "message": f"{table}: {broken}"} for table, broken in found]


def _waiting(made: Plan) -> list[Waiting]:
    failing = [Waiting(each.planned.bucket, each.error) for each in made.failing]
    return sorted([*made.waiting, *failing], key=lambda waiting: waiting.bucket)


def _json(name: str, outlook: Outlook | MvError, made: Plan | None) -> dict[str, Any]:
    errors = _errors(outlook)
    if isinstance(outlook, MvError) or made is None:
        return {"name": name, "work": [], "waiting": [], "errors": errors}
    key = outlook.view.buckets.key
    return {
        "name": name,
        "work": [
            {
                "operation": work.operation.value,
                "buckets": [key(planned.bucket) for planned in work.buckets],
                "bytes": work.bytes,
                "reason": work.reason,
            }
            for work in made.work
        ],
        "waiting": [{"bucket": key(waits.bucket), "reason": waits.reason} for waits in _waiting(made)],
        "errors": errors,
    }


def _print(name: str, outlook: Outlook | MvError, made: Plan | None) -> None:
    out = show.console()
    out.print(f"[bold]{name}[/]")
    errors = _errors(outlook)
    for error in errors[:_MOST_LINES]:
        out.print(f"  [bold red]{show.failed()}[/] {escape(str(error['message']))}")
    _print_rest(len(errors), "more")
    if isinstance(outlook, MvError) or made is None:
        out.print()
        return
    nulls = {} if outlook.news is None else outlook.news.sights.base.nulls
    if nulls:
        rows, files = sum(nulls.values()), len(nulls)
        out.print(
            f"  {show.count(rows, 'row')} in {show.count(files, 'file')} have no time and belong to no bucket"
        )
    for work in made.work[:_MOST_LINES]:
        starts = [planned.bucket for planned in work.buckets]
        out.print(
            f"  [cyan]{work.operation.value:<9}[/] {show.span(outlook.view.buckets, starts)}  "
            f"[bright_black]{_amount(work.buckets, work.bytes)}[/]  {escape(work.reason)}"
        )
    _print_rest(len(made.work), "more pieces of work")
    waiting = _waiting(made)
    for waits in waiting[:_MOST_LINES]:
        out.print(
            f"  [yellow]{'wait':<9}[/] {outlook.view.buckets.key(waits.bucket)}  {escape(waits.reason)}"
        )
    _print_rest(len(waiting), "more buckets wait")
    if not made.work and not waiting:
        out.print("  nothing to do")
    elif made.work:
        buckets = sum(len(work.buckets) for work in made.work)
        out.print(
            f"  {show.count(buckets, 'bucket')}, {show.size(sum(work.bytes for work in made.work))} to read"
        )
    out.print()


def _print_upstream(outlook: Outlook | MvError, outlooks: Mapping[str, Outlook | MvError]) -> None:
    """A view that has nothing to do may only be waiting for the one below it."""
    base = None if isinstance(outlook, MvError) else outlooks.get(outlook.view.declared.base)
    if isinstance(base, Outlook) and base.plan().work:
        through = iso(base.header.watermark)
        show.console().print(f"  more once {base.view.name} is refreshed; it is complete through {through}")


def _print_rest(number: int, what: str) -> None:
    if number > _MOST_LINES:
        show.console().print(f"  and {number - _MOST_LINES} {what}")


def _amount(buckets: tuple[Planned, ...], size: int) -> str:
    return f"{show.count(len(buckets), 'bucket')}, {show.size(size)}"

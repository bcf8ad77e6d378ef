"""`mv-assets plan`: what a refresh would do, why, and how much it would read. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from mv_assets.buckets import iso
from mv_assets.cli import show
from mv_assets.cli.looking import imagining
from mv_assets.cli.session import Session, print_json
from mv_assets.errors import MvError
from mv_assets.refresh.outlook import Outlook
from mv_assets.refresh.planner import Plan, Waiting, Work


@click.command(epilog="Example: mv-assets plan trips_hourly")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option("--json", "as_json", is_flag=True, help="For programs, with every bucket.")
@click.pass_context
def plan(ctx: click.Context, views: tuple[str, ...], *, as_json: bool) -> None:
    """Show what a refresh would do, why, and how many bytes it would read. Writes nothing.

    If files were only added to a bucket and its aggregates can be merged, only the new files are read;
    otherwise the bucket is computed from all its files.
    """
    session: Session = ctx.obj
    catalog = session.catalog(schemas=True, only=views)
    asked = [catalog.view(name).name for name in views or catalog.views]
    with session.existing_state(catalog) as store, imagining(catalog, store) as watch:
        outlooks = watch.round(asked, whole=True)
    if as_json:
        print_json({"views": [_json(name, outlooks[name]) for name in asked]})
    else:
        for name in asked:
            _print(name, outlooks)
    if any(_errors(outlooks[name]) for name in asked):
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


def _json(name: str, outlook: Outlook | MvError) -> dict[str, Any]:
    errors = _errors(outlook)
    if isinstance(outlook, MvError):
        return {"name": name, "work": [], "waiting": [], "errors": errors}
    made, key = outlook.plan(), outlook.view.buckets.key
    return {
        "name": name,
        "work": [
            {
                "operation": work.operation.value,
                "buckets": [key(planned.bucket) for planned in work.buckets],
                "merged": [key(bucket) for bucket in work.additions],
                "bytes": work.bytes,
                "bytes_spared": work.spared,
                "reason": work.reason,
            }
            for work in made.work
        ],
        "waiting": [{"bucket": key(waits.bucket), "reason": waits.reason} for waits in _waiting(made)],
        "errors": errors,
    }


def _print(name: str, outlooks: Mapping[str, Outlook | MvError]) -> None:
    out, outlook = show.console(), outlooks[name]
    out.print(f"[bold]{name}[/]")
    show.lines([f"[bold red]{show.failed()}[/] {show.plain(str(e['message']))}" for e in _errors(outlook)])
    if isinstance(outlook, Outlook):
        made = outlook.plan()
        _print_nulls(outlook)
        show.lines([_work_line(outlook, work) for work in made.work])
        show.lines(list(show.waiting(outlook.view.buckets, _waiting(made))))
        _print_sum(outlook, made)
        _print_upstream(outlooks.get(outlook.view.declared.base))
    out.print()


def _print_nulls(outlook: Outlook) -> None:
    nulls = {} if outlook.news is None else outlook.news.sights.base.nulls
    if nulls:
        rows, files = show.count(sum(nulls.values()), "row"), show.count(len(nulls), "file")
        show.console().print(f"  {rows} in {files} have no time and belong to no bucket")


def _work_line(outlook: Outlook, work: Work) -> str:
    buckets = outlook.view.buckets.span([planned.bucket for planned in work.buckets])
    amount = f"{show.count(len(work.buckets), 'bucket')}, {show.size(work.bytes)}{_merging(work)}"
    operation = f"[cyan]{work.operation.value:<9}[/]"
    return f"{operation} {buckets}  [bright_black]{amount}[/]  {show.plain(work.reason)}"


def _merging(work: Work) -> str:
    if not work.additions:
        return ""
    which = "" if len(work.additions) == len(work.buckets) else f"{len(work.additions)} "
    return f", {which}merged with what is stored, {show.size(work.spared)} spared"


def _print_sum(outlook: Outlook, made: Plan) -> None:
    if made.work:
        buckets = show.count(sum(len(work.buckets) for work in made.work), "bucket")
        show.console().print(f"  {buckets}, {show.size(sum(work.bytes for work in made.work))} to read")
    elif not _waiting(made):
        base = None if outlook.news is None else outlook.news.sights.base
        empty = base is not None and not base.listed()
        show.console().print(f"  nothing to do{f': {outlook.view.declared.base} is empty' if empty else ''}")


def _print_upstream(base: Outlook | MvError | None) -> None:
    """A view that has nothing to do may only be waiting for the one it is based on."""
    if isinstance(base, Outlook) and base.plan().work:
        through = iso(base.header.watermark)
        show.console().print(f"  more once {base.view.name} is refreshed; it is complete through {through}")

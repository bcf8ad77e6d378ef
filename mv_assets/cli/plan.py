"""`mv-assets plan`: what a refresh would do, why, and how much it would read. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from mv_assets.cli import show, wrong
from mv_assets.cli.looking import imagining
from mv_assets.cli.session import Session, print_json
from mv_assets.errors import MvError
from mv_assets.observe.observation import Observed, Unchanged
from mv_assets.plan import planner
from mv_assets.plan.following import following
from mv_assets.plan.planner import Plan, Waiting, Work
from mv_assets.state.health import Wrong
from mv_assets.views.view import View


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
        observed = watch.round(asked, whole=True)
        follows = following(catalog, watch, observed)
    found = {name: _wrong(observed) for name, observed in observed.items()}
    # What is wrong with a view that others are based on is in their way as well.
    shown = [*asked, *(name for name in found if found[name] and name not in asked)]
    if as_json:
        print_json(
            {"views": [_json(catalog.view(name), observed[name], follows.get(name)) for name in shown]}
        )
    else:
        for name in shown:
            _print(catalog.view(name), observed[name], follows.get(name))
    if any(found.values()):
        ctx.exit(1)


def _wrong(observed: Observed | MvError) -> Wrong:
    return Wrong(observed) if isinstance(observed, MvError) else observed.wrong


def _errors(observed: Observed | MvError) -> list[dict[str, str | None]]:
    if isinstance(observed, MvError):
        return [{"file": None, "message": str(observed)}]
    if isinstance(observed, Unchanged):
        return []
    return [{"file": file.name, "message": line} for file, line in observed.view_inputs.unusable()]


def _waiting(made: Plan) -> list[Waiting]:
    failing = [Waiting(each.planned.bucket, each.error) for each in made.failing]
    return sorted([*made.waiting, *failing], key=lambda waiting: waiting.bucket)


def _json(view: View, observed: Observed | MvError, later: Plan | None) -> dict[str, Any]:
    said = {"errors": _errors(observed), **wrong.as_json(_wrong(observed), view.buckets)}
    if isinstance(observed, MvError):
        return {"name": view.name, "work": [], "waiting": [], "follows": [], **said}
    made, key = planner.plan(observed), view.buckets.key
    return {
        "name": view.name,
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
        "follows": [
            {
                "operation": work.operation.value,
                "buckets": [key(planned.bucket) for planned in work.buckets],
                "after": view.declared.base,
            }
            for work in (later.work if later else ())
        ],
        **said,
    }


def _print(view: View, observed: Observed | MvError, later: Plan | None) -> None:
    out = show.console()
    out.print(f"[bold]{view.name}[/]")
    made = Plan(0) if isinstance(observed, MvError) else planner.plan(observed)
    wrong.tell(_wrong(observed), view.buckets, {waits.bucket for waits in _waiting(made)})
    if isinstance(observed, Observed):
        _print_nulls(observed)
        show.lines([_work_line(observed, work) for work in made.work])
        follows = [] if later is None else [planned.bucket for work in later.work for planned in work.buckets]
        waiting = [waits for waits in _waiting(made) if waits.bucket not in set(follows)]
        show.lines(list(show.waiting(view.buckets, waiting)))
        show.lines([_follow_line(view, run) for run in view.buckets.stretches(follows)])
        _print_sum(observed, made, nothing=not waiting and not follows)
    out.print()


def _print_nulls(observed: Observed) -> None:
    nulls = {} if isinstance(observed, Unchanged) else observed.view_inputs.base.nulls
    if nulls:
        rows, files = show.count(sum(nulls.values()), "row"), show.count(len(nulls), "file")
        show.console().print(f"  {rows} in {files} have no time and belong to no bucket")


def _work_line(observed: Observed, work: Work) -> str:
    buckets = observed.view.buckets.span([planned.bucket for planned in work.buckets])
    amount = f"{show.count(len(work.buckets), 'bucket')}, {show.size(work.bytes)}{_merging(work)}"
    operation = f"[cyan]{work.operation.value:<9}[/]"
    return f"{operation} {buckets}  [bright_black]{amount}[/]  {show.plain(work.reason)}"


def _merging(work: Work) -> str:
    if not work.additions:
        return ""
    which = "" if len(work.additions) == len(work.buckets) else f"{len(work.additions)} "
    return f", {which}merged with what is stored, {show.size(work.spared)} spared"


def _follow_line(view: View, run: Sequence[int]) -> str:
    where, amount = view.buckets.span(run), show.count(len(run), "bucket")
    return (
        f"[cyan]{'follows':<9}[/] {where}  [bright_black]{amount}[/]  once {view.declared.base} is computed"
    )


def _print_sum(observed: Observed, made: Plan, *, nothing: bool) -> None:
    if made.work:
        buckets = show.count(sum(len(work.buckets) for work in made.work), "bucket")
        show.console().print(f"  {buckets}, {show.size(sum(work.bytes for work in made.work))} to read")
    elif nothing:
        base = None if isinstance(observed, Unchanged) else observed.view_inputs.base
        empty = base is not None and not base.listed()
        show.console().print(f"  nothing to do{f': {observed.view.declared.base} is empty' if empty else ''}")

"""`mv-assets refresh`: bring views up to date, here and now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.progress import Progress

from mv_assets.buckets import iso
from mv_assets.cli import show, wrong
from mv_assets.cli.looking import announced, bars, observer
from mv_assets.cli.ranges import asked, range_options
from mv_assets.cli.session import Session, print_json
from mv_assets.cli.spark import engine
from mv_assets.clock import clock
from mv_assets.plan.planner import Work
from mv_assets.plan.scope import Scope, prepare
from mv_assets.run.opened import open_project
from mv_assets.run.refresher import Refresher, Report
from mv_assets.run.result import Result
from mv_assets.state.model import Outcome
from mv_assets.views.view import View

_STYLES = {Outcome.FAILED: "bold red", Outcome.COMMITTED: "green", Outcome.COMMITTED_STALE: "yellow"}


@click.command(epilog="Example: mv-assets refresh trips_daily --from 2024-01-01 --to 2024-01-31 --force")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@range_options
@click.option("--force", is_flag=True, help="Compute again what is VALID, too.")
@click.option(
    "--max-bytes", type=click.IntRange(min=0), metavar="N", help="Read no more than N bytes of base tables."
)
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
    as_json: bool,
) -> None:
    """Compute what is missing or STALE: of all views, or of some and those they are based on."""
    session: Session = ctx.obj
    catalog = session.catalog(schemas=True, only=views)
    names = [catalog.view(name).name for name in views or catalog.views]
    if (bucket or first or last or extend) and len(views) != 1:
        raise click.UsageError(
            "--bucket, --from, --to and --extend are for one view: mv-assets refresh VIEW --bucket ..."
        )
    asked_for = {name: asked(catalog.view(name), bucket, first, last, extend=extend) for name in names}
    with session.state(catalog) as store, bars() as shown, engine(catalog.project.spark) as spark:
        spark.start = announced(shown, spark.start)
        manager = session.manager(store, "refresh")
        if force:
            # What a person forces is STALE until it is computed: see first that it can be.
            spark.check()
        for name, buckets in asked_for.items():
            prepare(manager, store, catalog.view(name), buckets, clock(), force=force, extend=extend)
        project = open_project(catalog, store, manager, spark, clock)
        scope = Scope.of(catalog.view(names[0]), asked_for[names[0]], max_bytes) if names else None
        watched = Refresher(project, scope, progress=_Bar(shown), observer=observer(shown))
        reports = watched.run(names)
        watermarks = {name: iso(store.pulse(name).header.watermark) for name in store.views()}
    if as_json:
        print_json({"views": [_json(report) for report in reports]})
    else:
        for report in reports:
            if report.view.name in names or report.results or report.wrong:
                _print(report, watermarks.get(report.view.name))
    if any(report.wrong for report in reports):
        ctx.exit(1)


class _Bar:
    """How far a refresh is: buckets, bytes, and what it does now."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._task = shown.add_task("refreshing", visible=False, total=0, of="buckets")
        self._buckets = self._read = self._all = 0

    def plans(self, work: Iterable[tuple[View, Work]]) -> None:
        listed = [each for _, each in work]
        self._buckets += sum(len(each.buckets) for each in listed)
        self._all += sum(each.bytes for each in listed)

    def begins(self, view: View, work: Work) -> None:
        where = view.buckets.span([planned.bucket for planned in work.buckets])
        what = f"{work.operation.value} {view.name} {where}"
        self._shown.update(self._task, description=what, total=self._buckets, visible=True)
        self._say()

    def ends(self, view: View, work: Work, results: Iterable[Result]) -> None:  # noqa: ARG002 - a bar only counts
        self._read += work.bytes
        self._shown.update(self._task, advance=len(work.buckets))
        self._say()

    def _say(self) -> None:
        self._shown.update(self._task, of=f"buckets, {show.size(self._read)} of {show.size(self._all)}")


def _json(report: Report) -> dict[str, Any]:
    key = report.view.buckets.key
    return {
        "name": report.view.name,
        "outcomes": [
            {
                "bucket": key(result.bucket),
                "operation": result.operation.value,
                "outcome": result.outcome.value,
                "rows": result.rows,
                "reason": result.reason,
            }
            for _, result in sorted(report.results.items())
        ],
        "waiting": [{"bucket": key(each.bucket), "reason": each.reason} for each in report.waiting],
        "error": None if report.error is None else str(report.error),
        **wrong.as_json(report.wrong, report.view.buckets),
    }


def _print(report: Report, watermark: str | None) -> None:
    out, view = show.console(), report.view
    through = "" if watermark is None else f"  [bright_black]complete through {watermark}[/]"
    out.print(f"[bold]{view.name}[/]{through}")
    results = [result for _, result in sorted(report.results.items())]
    runs = show.neighbours(view.buckets, results, lambda each: each.bucket, _kind)
    show.lines([_line(view, run) for run in runs])
    show.lines(list(show.waiting(view.buckets, report.waiting)))
    told = report.results.keys() | {each.bucket for each in report.waiting}
    wrong.tell(report.wrong, view.buckets, told)
    if not told and not report.wrong:
        out.print("  up to date")
    out.print()


def _kind(result: Result) -> tuple[str, Outcome, str | None]:
    return result.operation, result.outcome, result.reason


def _line(view: View, run: Sequence[Result]) -> str:
    first, style = run[0], _STYLES.get(run[0].outcome, "cyan")
    where = view.buckets.span([result.bucket for result in run])
    rows = show.count(sum(result.rows for result in run), "row") if first.outcome.wrote else ""
    amount = ", ".join(part for part in (show.count(len(run), "bucket"), rows) if part)
    why = f"  {show.plain(first.reason)}" if first.reason else ""
    outcome = f"[{style}]{first.outcome.value}[/]"
    return f"{first.operation.value:<9} {where}  [bright_black]{amount}[/]  {outcome}{why}"

"""`mv-assets audit`: compute stored buckets again, and quarantine those that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import click
from rich.progress import Progress

from mv_assets.cli import show, wrong
from mv_assets.cli.looking import announced, bars, observer
from mv_assets.cli.session import Session, print_json
from mv_assets.cli.spark import engine
from mv_assets.clock import clock
from mv_assets.maintain.audit import audit as audit_view
from mv_assets.maintain.recomputation import Finding, Verdict
from mv_assets.observe.observation import Observed
from mv_assets.run.opened import open_project
from mv_assets.state.health import Wrong
from mv_assets.views.view import View

_STYLES = {
    Verdict.EQUAL: "green",
    Verdict.DIFFERENT: "bold red",
    Verdict.MISSING: "bold red",
    Verdict.NOT_COMPARABLE: "yellow",
}


@click.command(epilog="Example: mv-assets audit trips_hourly --sample 25")
@click.argument("view")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many buckets: the newest, and others by chance.  [default: 10]",
)
@click.option("--all", "whole", is_flag=True, help="Every bucket.")
@click.option("--json", "as_json", is_flag=True, help="For programs, with every bucket.")
@click.pass_context
def audit(ctx: click.Context, view: str, sample: int | None, *, whole: bool, as_json: bool) -> None:
    """Compute buckets once more and compare them with what is stored.

    A bucket that differs, or whose files are missing or damaged, is marked STALE: the next refresh mends it.
    """
    session: Session = ctx.obj
    if whole and sample is not None:
        raise click.UsageError("give either --sample or --all")
    catalog = session.catalog(schemas=True, only=[view])
    found = catalog.view(view)
    most = None if whole else sample or 10
    observed: list[Observed] = []
    with session.state(catalog) as store, bars() as shown, engine(catalog.project.spark) as spark:
        spark.start = announced(shown, spark.start)
        project = open_project(catalog, store, session.manager(store, "audit"), spark, clock)
        findings = audit_view(
            project,
            found,
            most,
            progress=_bar(shown, view),
            observer=observer(shown),
            looked=observed.append,
        )
    seen = observed[-1].wrong if observed else Wrong()
    if as_json:
        print_json(_json(found, findings) | wrong.as_json(seen, found.buckets))
    else:
        _print(found, findings)
        wrong.tell(seen, found.buckets)
    if seen or any(finding.wrong or finding.failed for finding in findings):
        ctx.exit(1)


def _bar(shown: Progress, view: str) -> Callable[[int, int], None]:
    task = shown.add_task(f"auditing {view}", visible=False, of="buckets")

    def update(done: int, all_of_them: int) -> None:
        shown.update(task, completed=done, total=all_of_them, visible=done < all_of_them)

    return update


def _json(view: View, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "view": view.name,
        "not_compared": sorted(view.sql.approximate),
        "read_by_arrow": sum(finding.reread for finding in findings),
        "buckets": [
            {
                "bucket": view.buckets.key(finding.bucket),
                "verdict": finding.verdict.value,
                "rows": finding.rows,
                "reason": finding.reason,
                "read_by_arrow": finding.reread,
                "not_read_by_arrow": finding.not_reread,
            }
            for finding in findings
        ],
    }


def _print(view: View, findings: Sequence[Finding]) -> None:
    out = show.console()
    out.print(f"[bold]{view.name}[/]")
    if not findings:
        out.print("  nothing is stored yet; refresh the view first")
        return
    runs = show.neighbours(view.buckets, findings, lambda each: each.bucket, _kind)
    show.lines([_line(view, run) for run in runs])
    approximate = sorted(view.sql.approximate)
    if approximate and len(approximate) < len(view.sql.columns):
        names = show.plain(", ".join(approximate))
        out.print(f"  not compared, as approximate functions differ from run to run: {names}")
    counted = Counter(finding.verdict for finding in findings)
    verdicts = ", ".join(f"{counted[verdict]} {verdict.value}" for verdict in Verdict if counted[verdict])
    out.print(f"  {verdicts}; {sum(finding.reread for finding in findings)} read by Arrow too")
    not_reread = Counter(finding.not_reread for finding in findings if finding.not_reread)
    show.lines(
        [f"{show.count(n, 'bucket')} not read by Arrow: {show.plain(why)}" for why, n in not_reread.items()]
    )
    if any(finding.wrong for finding in findings):
        out.print(f"  what is wrong was marked STALE; mend it with: mv-assets refresh {view.name}")


def _kind(finding: Finding) -> tuple[Verdict, str | None]:
    return finding.verdict, finding.reason


def _line(view: View, run: Sequence[Finding]) -> str:
    first = run[0]
    where = view.buckets.span([finding.bucket for finding in run])
    rows = show.count(sum(finding.rows for finding in run), "row")
    why = f"  {show.plain(first.reason)}" if first.reason else ""
    verdict = f"[{_STYLES[first.verdict]}]{first.verdict.value}[/]"
    return f"{verdict}  {where}  [bright_black]{show.count(len(run), 'bucket')}, {rows}[/]{why}"

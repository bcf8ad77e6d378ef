"""`mv-assets gc`: deletes what nobody needs any more, and keeps the rest in few files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from mv_assets.cli import show
from mv_assets.cli.session import Session, print_json
from mv_assets.errors import NotDeclared
from mv_assets.maintain.garbage import Garbage, GcReport
from mv_assets.run.warehouse import Warehouse
from mv_assets.views.catalog import Catalog


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
    catalog = session.catalog()
    reports: list[GcReport] = []
    with session.existing_state(catalog) as store:
        known = [] if store is None else store.views()
        asked = _asked(catalog, known, views)
        if store is not None:
            garbage = Garbage(store, session.manager(store, "gc"), Warehouse(catalog.project.warehouse))
            reports = [garbage.would(name) if dry_run else garbage.gc(name) for name in asked]
    if as_json:
        print_json({"dry_run": dry_run, "views": [_json(report) for report in reports]})
    else:
        _print(reports, dry_run=dry_run)
    if any(report.errors for report in reports):
        ctx.exit(1)


def _asked(catalog: Catalog, known: Sequence[str], views: Sequence[str]) -> list[str]:
    """The views to collect the garbage of; one that was never refreshed has none."""
    for name in views:
        if name not in known and name not in catalog.views:
            raise NotDeclared(name, sorted({*known, *catalog.views}))
    return [name for name in known if not views or name in views]


def _json(report: GcReport) -> dict[str, Any]:
    return {
        "name": report.view,
        "deleted": [{"generation": name, "bytes": size} for name, size in report.deleted.items()],
        "compacted": [
            {
                "generations": list(bundle.generations),
                "buckets": len(bundle.rows),
                "bytes_before": bundle.bytes,
                "bytes_after": size,
            }
            for bundle, size in report.compacted
        ],
        "kept": report.kept,
        "forgotten": report.forgotten,
        "errors": [str(error) for error in report.errors],
    }


def _print(reports: Sequence[GcReport], *, dry_run: bool) -> None:
    out = show.console()
    for report in reports:
        for line in _lines(report, dry_run=dry_run):
            out.print(f"[bold]{report.view}[/]  {line}")
    if not any(report.deleted or report.compacted or report.forgotten for report in reports):
        out.print("nothing to delete")


def _lines(report: GcReport, *, dry_run: bool) -> list[str]:
    would = "would be " if dry_run else ""
    lines = [f"[bold red]{show.failed()}[/] {show.plain(str(error))}" for error in report.errors]
    if report.compacted:
        bundles = [bundle for bundle, _ in report.compacted]
        sources = show.count(sum(len(bundle.generations) for bundle in bundles), "generation")
        before, after = sum(bundle.bytes for bundle in bundles), sum(size for _, size in report.compacted)
        sizes = f"{show.size(before)} to {'about ' if dry_run else ''}{show.size(after)}"
        lines.append(f"{sources} {would}compacted into {len(bundles)}, {sizes}")
    if report.deleted:
        size = show.size(sum(report.deleted.values()))
        lines.append(f"{show.count(len(report.deleted), 'generation')} {would}deleted, {size}")
    if report.forgotten:
        lines.append(f"{show.count(report.forgotten, 'old line')} of the event log deleted")
    if report.kept:
        lines.append(
            f"{show.count(len(report.kept), 'generation')} can't be compacted, for columns of types that "
            "only Spark writes; mark and refresh the view to make room"
        )
    return lines

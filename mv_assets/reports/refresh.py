"""What became of a refresh, view by view and bucket by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mv_assets.reports import publication, show, wrong
from mv_assets.reports.shown import ByView, Line
from mv_assets.run.refresher import Report
from mv_assets.run.result import Result
from mv_assets.state.model import Outcome
from mv_assets.views.view import View

if TYPE_CHECKING:
    from mv_assets.publish.publisher import PublishedView

_STYLES = {Outcome.FAILED: "bold red", Outcome.COMMITTED: "green", Outcome.COMMITTED_STALE: "yellow"}


@dataclass(frozen=True, slots=True, repr=False)
class Refreshed(ByView[Report]):
    """A refresh of some views, and of those they are based on."""

    reports: tuple[Report, ...]
    asked: tuple[str, ...]
    # By view, through when it is complete now.
    watermarks: Mapping[str, str]
    published: tuple[PublishedView, ...] = ()

    def parts(self) -> dict[str, Report]:
        return {report.view.name: report for report in self.reports}

    @property
    def is_wrong(self) -> bool:
        unpublished = any(each.error is not None for each in self.published)
        return unpublished or any(report.wrong for report in self.reports)

    def as_json(self) -> dict[str, Any]:
        return {
            "views": [_json(report) for report in self.reports],
            "published": publication.as_json(self.published),
        }

    def lines(self, out: Console) -> Iterator[Line]:
        for report in self.reports:
            if report.view.name in self.asked or report.results or report.wrong:
                yield from _lines(out, report, self.watermarks.get(report.view.name))
        yield from publication.errors(out, self.published)


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


def _lines(out: Console, report: Report, watermark: str | None) -> Iterator[str]:
    view = report.view
    through = "" if watermark is None else f"  [bright_black]complete through {watermark}[/]"
    yield f"[bold]{view.name}[/]{through}"
    results = [result for _, result in sorted(report.results.items())]
    runs = show.neighbours(view.buckets, results, lambda each: each.bucket, _kind)
    yield from show.few([_line(view, run) for run in runs])
    yield from show.few(list(show.waiting(view.buckets, report.waiting)))
    said = report.results.keys() | {each.bucket for each in report.waiting}
    yield from wrong.lines(out, report.wrong, view.buckets, said)
    if not said and not report.wrong:
        yield "  up to date"
    yield ""


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

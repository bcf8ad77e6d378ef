"""What an audit found, bucket by bucket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mv_assets.maintain.recomputation import Finding, Verdict
from mv_assets.reports import publication, show, wrong
from mv_assets.reports.shown import Line, Shown
from mv_assets.state.health import Wrong
from mv_assets.views.view import View

if TYPE_CHECKING:
    from mv_assets.publish.publisher import PublishedView

_STYLES = {
    Verdict.EQUAL: "green",
    Verdict.DIFFERENT: "bold red",
    Verdict.MISSING: "bold red",
    Verdict.NOT_COMPARABLE: "yellow",
}


@dataclass(frozen=True, slots=True, repr=False)
class Audited(Shown):
    """Stored buckets against a recomputation; `wrong` is what its look found of the view."""

    view: View
    findings: tuple[Finding, ...]
    wrong: Wrong
    published: tuple[PublishedView, ...] = ()

    @property
    def is_wrong(self) -> bool:
        unpublished = any(each.error is not None for each in self.published)
        audited = any(finding.wrong or finding.failed for finding in self.findings)
        return bool(self.wrong) or unpublished or audited

    def as_json(self) -> dict[str, Any]:
        return {
            **_json(self.view, self.findings),
            **wrong.as_json(self.wrong, self.view.buckets),
            "published": publication.as_json(self.published),
        }

    def lines(self, out: Console) -> Iterator[Line]:
        yield from _lines(self.view, self.findings)
        yield from wrong.lines(out, self.wrong, self.view.buckets)
        yield from publication.errors(out, self.published)


def _json(view: View, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "view": view.name,
        "not_compared": sorted(view.body.approximate),
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


def _lines(view: View, findings: Sequence[Finding]) -> Iterator[str]:
    yield f"[bold]{view.name}[/]"
    if not findings:
        yield "  nothing is stored yet; refresh the view first"
        return
    runs = show.neighbours(view.buckets, findings, lambda each: each.bucket, _kind)
    yield from show.few([_line(view, run) for run in runs])
    approximate = sorted(view.body.approximate)
    if approximate and len(approximate) < len(view.body.columns or ()):
        names = show.plain(", ".join(approximate))
        yield f"  not compared, as approximate functions differ from run to run: {names}"
    counted = Counter(finding.verdict for finding in findings)
    verdicts = ", ".join(f"{counted[verdict]} {verdict.value}" for verdict in Verdict if counted[verdict])
    yield f"  {verdicts}; {sum(finding.reread for finding in findings)} read by Arrow too"
    not_reread = Counter(finding.not_reread for finding in findings if finding.not_reread)
    yield from show.few(
        [f"{show.count(n, 'bucket')} not read by Arrow: {show.plain(why)}" for why, n in not_reread.items()]
    )
    if any(finding.wrong and not finding.misread for finding in findings):
        yield f"  what is wrong was marked STALE; mend it with: mv-assets refresh {view.name}"
    if any(finding.misread for finding in findings):
        yield "  what Spark and Arrow read differently stays so until that is mended: please report it"


def _kind(finding: Finding) -> tuple[Verdict, str | None]:
    return finding.verdict, finding.reason


def _line(view: View, run: Sequence[Finding]) -> str:
    first = run[0]
    where = view.buckets.span([finding.bucket for finding in run])
    rows = show.count(sum(finding.rows for finding in run), "row")
    why = f"  {show.plain(first.reason)}" if first.reason else ""
    verdict = f"[{_STYLES[first.verdict]}]{first.verdict.value}[/]"
    return f"{verdict}  {where}  [bright_black]{show.count(len(run), 'bucket')}, {rows}[/]{why}"

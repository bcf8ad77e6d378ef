"""What was marked, collected, dropped and adopted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mv_assets.errors import MvError
from mv_assets.reports import publication, show
from mv_assets.reports.shown import ByView, Line, Shown
from mv_assets.views.view import View

if TYPE_CHECKING:
    from mv_assets.maintain.garbage import GcReport
    from mv_assets.publish.publisher import PublishedView


@dataclass(frozen=True, slots=True, repr=False)
class Marked(Shown):
    """Buckets that are STALE now, by a person's order."""

    view: View
    buckets: tuple[int, ...]
    published: tuple[PublishedView, ...] = ()

    @property
    def is_wrong(self) -> bool:
        return any(each.error is not None for each in self.published)

    def as_json(self) -> dict[str, Any]:
        return {
            "view": self.view.name,
            "marked": [self.view.buckets.key(start) for start in self.buckets],
            "published": publication.as_json(self.published),
        }

    def lines(self, out: Console) -> Iterator[Line]:
        yield from publication.errors(out, self.published)
        if self.buckets:
            where = self.view.buckets.span(self.buckets)
            yield f"marked {show.count(len(self.buckets), 'bucket')} of {self.view.name}: {where}"
        else:
            yield f"{self.view.name} has no bucket to mark yet"


@dataclass(frozen=True, slots=True, repr=False)
class Adopted(Shown):
    """The definition that a view has again."""

    view: str
    definition: str
    published: tuple[PublishedView, ...] = ()

    @property
    def is_wrong(self) -> bool:
        return any(each.error is not None for each in self.published)

    def as_json(self) -> dict[str, Any]:
        return {
            "view": self.view,
            "definition": self.definition,
            "published": publication.as_json(self.published),
        }

    def lines(self, out: Console) -> Iterator[Line]:
        yield f"{self.view} is defined as {self.definition}"
        yield from publication.errors(out, self.published)


@dataclass(frozen=True, slots=True, repr=False)
class GarbageCollected(ByView["GcReport"]):
    """What was deleted and compacted, view by view; in a dry run, what would be."""

    reports: tuple[GcReport, ...]
    dry_run: bool
    published: tuple[PublishedView, ...] = ()

    def parts(self) -> dict[str, GcReport]:
        return {report.view: report for report in self.reports}

    @property
    def is_wrong(self) -> bool:
        unpublished = any(each.error is not None for each in self.published)
        return unpublished or any(report.errors for report in self.reports)

    def as_json(self) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run,
            "views": [_collected(report) for report in self.reports],
            "published": publication.as_json(self.published),
        }

    def lines(self, out: Console) -> Iterator[Line]:
        for report in self.reports:
            for line in _lines(out, report, dry_run=self.dry_run):
                yield f"[bold]{report.view}[/]  {line}"
        if not any(report.deleted or report.compacted or report.forgotten for report in self.reports):
            yield "nothing to delete"
        yield from publication.errors(out, self.published)


@dataclass(frozen=True, slots=True)
class DroppedView:
    """What became of one view: its buckets, what was deleted of its data, and what could not be yet."""

    view: str
    buckets: int
    gone: GcReport
    left: GcReport
    # Why its published tables are still there.
    unwithdrawn: MvError | None = None

    @property
    def errors(self) -> list[str]:
        withdrawn = () if self.unwithdrawn is None else (self.unwithdrawn,)
        return [str(error) for error in (*withdrawn, *self.gone.errors, *self.left.errors)]


@dataclass(frozen=True, slots=True, repr=False)
class Dropped(ByView[DroppedView]):
    """A view that is dropped, and after it those that went with it."""

    views: tuple[DroppedView, ...]

    def parts(self) -> dict[str, DroppedView]:
        return {each.view: each for each in self.views}

    @property
    def is_wrong(self) -> bool:
        return any(each.errors for each in self.views)

    def as_json(self) -> dict[str, Any]:
        named, *dependants = map(_dropped, self.views)
        return {**named, "dependants": dependants}

    def lines(self, out: Console) -> Iterator[Line]:
        for each in self.views:
            yield from _dropped_lines(out, each)


def _collected(report: GcReport) -> dict[str, Any]:
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


def _lines(out: Console, report: GcReport, *, dry_run: bool) -> list[str]:
    would = "would be " if dry_run else ""
    lines = [f"[bold red]{show.failed(out)}[/] {show.plain(str(error))}" for error in report.errors]
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


def _dropped(dropped: DroppedView) -> dict[str, Any]:
    return {
        "view": dropped.view,
        "buckets": dropped.buckets,
        "deleted": [{"generation": name, "bytes": size} for name, size in dropped.gone.deleted.items()],
        "left": [{"generation": name, "bytes": size} for name, size in dropped.left.deleted.items()],
        "errors": dropped.errors,
    }


def _dropped_lines(out: Console, dropped: DroppedView) -> Iterator[str]:
    size = show.size(sum(dropped.gone.deleted.values()))
    yield f"dropped {show.count(dropped.buckets, 'bucket')} of {dropped.view}; {size} deleted"
    if dropped.left.deleted:
        size = show.size(sum(dropped.left.deleted.values()))
        yield (
            f"{size} left: readers or a refresh may still be at it, or it is not a minute old; "
            "`mv-assets gc` will remove it"
        )
    for error in dropped.errors:
        yield f"[bold red]{show.failed(out)}[/] {show.plain(error)}"

"""What others see of views: what became of a publication, and how every command says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mv_assets.buckets import iso
from mv_assets.reports import show
from mv_assets.reports.shown import ByView, Line
from mv_assets.state.model import Publication

if TYPE_CHECKING:
    from mv_assets.publish.publisher import PublishedView


@dataclass(frozen=True, slots=True, repr=False)
class Published(ByView["PublishedView"]):
    """Views that were published, or were so already."""

    views: tuple[PublishedView, ...]

    def parts(self) -> dict[str, PublishedView]:
        return {each.view: each for each in self.views}

    @property
    def is_wrong(self) -> bool:
        return any(each.error is not None for each in self.views)

    def as_json(self) -> dict[str, Any]:
        return {"views": as_json(self.views)}

    def lines(self, out: Console) -> Iterator[Line]:
        if not self.views:
            yield "no view is published; `publish:` in the project file says where to"
        for each in self.views:
            yield f"[bold]{each.view}[/]  {_line(each)}" if each.error is None else f"[bold]{each.view}[/]"
        yield from errors(out, self.views)


@dataclass(frozen=True, slots=True, repr=False)
class Forgotten(ByView[tuple[Publication, ...]]):
    """Tables for whose readers nothing is kept any more."""

    views: Mapping[str, tuple[Publication, ...]]

    def parts(self) -> Mapping[str, tuple[Publication, ...]]:
        return self.views

    def as_json(self) -> dict[str, Any]:
        return {
            "views": [{"name": name, "forgotten": list(map(of, left))} for name, left in self.views.items()]
        }

    def lines(self, _out: Console) -> Iterator[Line]:
        forgotten = [(name, each) for name, left in self.views.items() for each in left]
        if not forgotten:
            yield "nothing is kept for tables that the project no longer names"
        for name, each in forgotten:
            yield (
                f"[bold]{name}[/]  {show.plain(each.target)}: "
                "gc deletes what only its readers need; drop the table there"
            )


def as_json(views: Iterable[PublishedView]) -> list[dict[str, Any]]:
    return [
        {
            "name": each.view,
            "is_new": each.is_new,
            "error": None if each.error is None else str(each.error),
            **({} if each.publication is None else of(each.publication)),
        }
        for each in views
    ]


def of(publication: Publication) -> dict[str, Any]:
    """What is published, for programs."""
    return {
        "table": publication.table,
        "target": publication.target,
        "version": publication.version,
        "snapshot": publication.snapshot,
        "location": publication.location,
        "at": None if publication.at is None else iso(publication.at),
        "replaced": publication.replaced,
        "oldest_version": publication.oldest,
    }


def errors(out: Console, views: Iterable[PublishedView]) -> Iterator[str]:
    for each in views:
        if each.error is not None:
            yield f"  [bold red]{show.failed(out)}[/] {show.plain(str(each.error))}"


def behind(publication: Publication, version: int) -> int:
    """How many writes of the map are not to be seen; those that would change nothing are not counted."""
    return version - max(publication.seen or 0, publication.version or 0)


def plain_line(publication: Publication, version: int) -> str:
    """What readers see, beside the map's version."""
    if publication.version is None:
        return "not published yet: there is nothing to show"
    late = behind(publication, version)
    lag = f"{show.count(late, 'version')} behind" if late else "up to date"
    over = "" if publication.replaced is None else f"; it replaced what others wrote: {publication.replaced}"
    snapshot = f"version {publication.version}, snapshot {publication.snapshot}"
    return f"published as {publication.table}, {snapshot}, {lag}{over}"


def left_line(publication: Publication) -> str:
    """What is kept for a table that the project no longer names."""
    return (
        f"no longer published to {publication.target}: its files are kept for readers, until "
        f"`mv-assets publish {publication.view} --forget` gives them up"
    )


def line(publication: Publication, version: int) -> str:
    """The same on a terminal."""
    said = show.plain(plain_line(publication, version))
    return f"[yellow]{said}[/]" if publication.version is not None and behind(publication, version) else said


def _line(each: PublishedView) -> str:
    publication = each.publication
    if publication is None or publication.version is None:
        return "nothing to show yet; refresh the view first"
    return line(publication, publication.seen or publication.version)

"""What is there now: tables, and views that are the tables of others; and the inputs that views have of them.

All who look share it: rounds of looks, the second look before a commit, and queries. What they take the
maps of views below for is up to each of them (`Versioned`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ParamSpec, Protocol, TypeVar

from mv_assets.errors import MvError
from mv_assets.observe.inputs import ViewInputs, version_of
from mv_assets.tables.listing import Listing, Table, TableVersion
from mv_assets.views.view import View

T = TypeVar("T")
P = ParamSpec("P")


class Versioned(Protocol):
    """What has a version and a listing now, by its name: base tables, or views that others are based on."""

    def version(self, name: str) -> str: ...

    def listing(self, name: str) -> Listing: ...


def quietly(_name: str, version: TableVersion) -> Listing:
    """List a table, and tell nobody."""
    return version.listing()


class Tables:
    """Base tables as they are now. Each is asked once; an error is an answer too, and stays it."""

    def __init__(
        self, tables: Mapping[str, Table], listed: Callable[[str, TableVersion], Listing] = quietly
    ) -> None:
        self._tables = tables
        self._listed = listed
        self._versions: dict[str, TableVersion | MvError] = {}
        self._listings: dict[str, Listing | MvError] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def version(self, name: str) -> str:
        return self._current(name).version

    def listing(self, name: str) -> Listing:
        if name not in self._listings:
            self._listings[name] = tried(lambda: self._listed(name, self._current(name)))
        return ok(self._listings[name])

    def known(self, name: str) -> Listing | None:
        """The listing of a table that was listed."""
        found = self._listings.get(name)
        return None if isinstance(found, MvError) else found

    def _current(self, name: str) -> TableVersion:
        if name not in self._versions:
            self._versions[name] = tried(self._tables[name].current)
        return ok(self._versions[name])


class Present:
    """The inputs of views as they are now: base tables, and what the maps of views below are taken for."""

    def __init__(self, tables: Tables, views: Versioned) -> None:
        self._tables = tables
        self._views = views

    def version_of(self, view: View) -> str:
        """One version for all inputs of a view; nothing is listed."""
        declared = view.declared
        dimensions = {name: self._version(name) for name in declared.joined}
        return version_of(view, [self._version(name) for name in declared.timed], dimensions)

    def inputs(self, view: View) -> ViewInputs:
        declared = view.declared
        dimensions = {name: self._listing(name) for name in declared.joined}
        return ViewInputs(view, [self._listing(name) for name in declared.timed], dimensions)

    def again(self, last: ViewInputs) -> ViewInputs:
        """The inputs of the same view: the last ones themselves if nothing at all has changed since."""
        listings = [self._relisted(listing) for listing in last.listings]
        dimensions = {name: self._relisted(listing) for name, listing in last.dimensions.items()}
        before = (*last.listings, *last.dimensions.values())
        if all(now is then for now, then in zip((*listings, *dimensions.values()), before, strict=True)):
            return last
        return ViewInputs(last.view, listings, dimensions)

    def _version(self, name: str) -> str:
        return self._of(name).version(name)

    def _listing(self, name: str) -> Listing:
        return self._of(name).listing(name)

    def _relisted(self, last: Listing) -> Listing:
        return relisted(self._of(last.table), last)

    def _of(self, name: str) -> Versioned:
        return self._tables if name in self._tables else self._views


def relisted(now: Versioned, last: Listing) -> Listing:
    """A listing as it is now: the last one itself if nothing has changed since."""
    # A checksum that was taken of a young file is not trusted for longer than its look.
    if now.version(last.table) == last.version and last.recheck_at is None:
        return last
    return now.listing(last.table)


def tried(step: Callable[P, T], *given: P.args, **named: P.kwargs) -> T | MvError:
    """What a step gives, or the error that it ends with."""
    try:
        return step(*given, **named)
    except MvError as error:
        return error


def ok(found: T | MvError) -> T:
    """What was found; an error is raised."""
    if isinstance(found, MvError):
        raise found
    return found

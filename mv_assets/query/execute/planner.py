"""From a statement to the frame that answers it, by views where they fit, and what that is made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from mv_assets.buckets import DAY
from mv_assets.query.execute.composition import Composer
from mv_assets.query.execute.relations import Files, Relations
from mv_assets.query.execute.served import FromView, Served, counted, together
from mv_assets.query.execute.view_relation import ViewRelation, ViewRelations
from mv_assets.query.match.clock import without_clock
from mv_assets.query.match.inner import Inner, inner_selects, replaced_by
from mv_assets.query.match.ranges import Range
from mv_assets.query.match.request import Request, range_asked, request_of
from mv_assets.query.match.spans import joined
from mv_assets.query.match.statement import Statement, statement_of
from mv_assets.query.route.assignment import Route, route
from mv_assets.query.route.eligibility import Eligibility, Freshness
from mv_assets.query.route.pinned import Pinned
from mv_assets.query.route.schema_cache import SchemaCache
from mv_assets.run.opened import OpenProject
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.spark_sql.scope import Source
from mv_assets.spark_sql.text import short
from mv_assets.views.view import View

_OFF = "views are switched off"
_TIMELESS = "files with rows that have no time, or of which it is not known, are read too"
_ZONE = "the session's time zone is not UTC, in which views are computed"
# By the name that each has in Spark.
Frames = Mapping[str, DataFrame]
_NO_FRAMES: Frames = {}
# Names that Spark has for it.
UTC = frozenset({"utc", "etc/utc", "z", "+00:00", "gmt", "etc/gmt", "utc+00:00", "gmt+00:00"})


@dataclass(frozen=True, slots=True)
class Planned:
    """A frame that no job has run for yet."""

    frame: DataFrame
    served: Served


class Planner:
    """Plans one try of a query."""

    def __init__(
        self,
        project: OpenProject,
        cache: SchemaCache,
        pinned: Pinned,
        relations: Relations,
        freshness: Freshness,
        max_staleness: int | None,
        *,
        explained: bool = False,
    ) -> None:
        self._explained = explained
        self._catalog = project.catalog
        self._cache = cache
        self._pinned = pinned
        self._freshness = freshness
        self._relations = relations
        ansi = relations.setting("spark.sql.ansi.enabled") == "true"
        # Times that a query writes are those of its session's zone; where that is not UTC, no range is known.
        self._utc = relations.setting("spark.sql.session.timeZone").lower() in UTC
        self._composer = Composer(cache, pinned, relations, ansi=ansi)
        self._eligibility = Eligibility(project.catalog, project.store, pinned, freshness, max_staleness)
        self._view_relations = ViewRelations(
            project.catalog, project.store, pinned, self._eligibility, relations
        )

    def plan(self, statement: Statement) -> Planned:
        """Views first, if any can answer; what is not for them the base tables answer."""
        if self._freshness is Freshness.OFF or not self._utc:
            return self._by_name(statement, Served(reason=_OFF if self._utc else _ZONE))
        found = self._by_views(statement)
        return found if isinstance(found, Planned) else self._in_parts(statement, found)

    def _by_views(self, statement: Statement, *, alone: bool = True) -> Planned | Served:
        """One SELECT on a base table, answered by views; or why not.

        Of one that stands `alone`, maps are read for its time only.
        """
        considered: dict[str, str | None] = {}
        try:
            asked, sources = self._asked(statement)
            if alone:
                self._pinned.limit(asked.range.outer)
            asked, found = self._routed(asked, sources)
            considered = found.considered
            if found.assignment.parts:
                frame, files = self._composer.compose(statement, asked, found.assignment)
                return Planned(frame, self._served(asked, found, files))
            views = self._cache.candidates(asked.time.table)
            reason = "no view fits" if views else f"there is no view on {asked.source.base}"
        except NotPlain as why:
            reason = str(why)
        except RecursionError:
            reason = "it is nested too deeply to be matched with views"
        return Served(reason=reason, considered=considered)

    def _routed(self, asked: Request, sources: dict[str, Source]) -> tuple[Request, Route]:
        """Who answers, in the first way in which views do."""
        tried = [(asked, self._route(asked, sources))]
        for other in asked.ways[1:]:
            if not tried[-1][1].assignment.parts:
                tried.append((other, self._route(other, sources)))
        return tried[-1] if tried[-1][1].assignment.parts else tried[0]

    def _route(self, asked: Request, sources: dict[str, Source]) -> Route:
        eligibility, freshness = self._eligibility, self._freshness
        return route(asked, self._cache, sources, eligibility, freshness, explained=self._explained)

    def _in_parts(self, statement: Statement, served: Served) -> Planned:
        """Each SELECT inside, as far as views answer it, put in its place: all of them see one listing."""
        known = [*self._catalog.tables, *self._catalog.views]
        considered, left = dict(served.considered), list[str]()
        answered = list(self._answered(inner_selects(statement, known), considered, left))
        if not answered:
            return self._by_name(statement, replace(served, considered=considered))
        frames = {self._relations.name(planned.frame): planned.frame for _, planned in answered}
        text = replaced_by(statement, zip([inner for inner, _ in answered], frames, strict=True))
        said = Served(reason="; ".join(dict.fromkeys(left)) or None, considered=considered)
        rest = self._by_name(statement_of(text, [*known, *frames]), said, frames)
        return Planned(rest.frame, together([*(planned.served for _, planned in answered), rest.served]))

    def _answered(
        self, selects: Iterable[Inner], considered: dict[str, str | None], left: list[str]
    ) -> Iterator[tuple[Inner, Planned]]:
        """Those that views answer; why they do not answer others is noted, and which are left to the base."""
        for inner in selects:
            found = None if inner.statement is None else self._by_views(inner.statement, alone=False)
            if isinstance(found, Planned):
                yield inner, found
                continue
            if inner.statement is not None and found is not None:
                considered.update(found.considered)
                if not inner.inside and any(map(self._cache.candidates, inner.statement.names)):
                    whys = (f"{name}: {why}" for name, why in found.considered.items() if why)
                    why = next(whys, found.reason)
                    left.append(f"no view answers {short(inner.statement.text)}: {why}")
            yield from self._answered(inner.inside, considered, left)

    def _asked(self, statement: Statement) -> tuple[Request, dict[str, Source]]:
        first = self._first(statement)
        if any(name in self._catalog.views for name in statement.names):
            raise NotPlain("it is asked by its own name")
        time = self._cache.time(first, statement, self._pinned)
        if time is None:
            raise NotPlain(f"{first} has no time column")
        sources = self._sources(statement)
        at_once = without_clock(statement, self._relations.values)
        if at_once is None:
            return request_of(statement, sources, time), sources
        return request_of(at_once, sources, time, by_clock=True), sources

    def _first(self, statement: Statement) -> str:
        """The table whose views may answer: the first that has any."""
        names = [table.name.lower() for table in statement.tables]
        return next((name for name in names if self._cache.candidates(name)), names[0])

    def _sources(self, statement: Statement, frames: Frames = _NO_FRAMES) -> dict[str, Source]:
        return {
            name: Source(name, dict(frames[name].dtypes))
            if name in frames
            else self._cache.source(name, statement, self._pinned)
            for name in statement.names
        }

    def _by_name(self, statement: Statement, served: Served, frames: Frames = _NO_FRAMES) -> Planned:
        """Every table and view as a relation of its own, and the query as it was written.

        Some relations may be there already.
        """
        sources, made = self._sources(statement, frames), list[tuple[View, ViewRelation]]()
        names, files = {name: name for name in frames}, Files(0, 0)
        ranges = {
            name: self._range(statement, sources, name) for name in statement.names if name not in frames
        }
        if len(ranges) == 1 and not frames:
            self._pinned.limit(next(iter(ranges.values())).outer)
        for name, asked in ranges.items():
            if name in self._catalog.views:
                view = self._catalog.views[name]
                named = self._named(view, asked)
                made.append((view, named))
                frame, read = named.frame, named.files
            else:
                known = asked.rejects_null and asked != Range()
                spans = joined([asked.outer]) if known else None
                columns = self._cache.needed(name, statement, self._pinned)
                frame, read = self._relations.base(name, columns, spans, nulls=not known)
            names[name] = self._relations.name(frame)
            files = Files(files.number + read.number, files.bytes + read.bytes)
        frame = self._relations.sql(statement.reading(names))
        served = replace(served, buckets_from_base=sum(map(self._buckets, ranges, ranges.values())))
        return Planned(frame, self._served_by_name(served, made, files))

    def _named(self, view: View, asked: Range) -> ViewRelation:
        if self._freshness is Freshness.STORED:
            return self._view_relations.stored(view, asked.outer)
        return self._view_relations.current(view, joined([asked.outer]))

    def _range(self, statement: Statement, sources: dict[str, Source], name: str) -> Range:
        time = self._cache.time(name, statement, self._pinned)
        if time is None or not self._utc:
            return Range()
        try:
            asked = range_asked(statement, sources, time)
        except RecursionError:
            return Range()
        view = self._catalog.views.get(name)
        # Dates are read as days in UTC, and may be those of a zone.
        return asked if view is None or view.buckets.zone is None else asked.widened(DAY)

    def _served(self, asked: Request, found: Route, files: Files) -> Served:
        views = tuple(FromView.of(part.match.view_columns.view, part.rows) for part in found.assignment.parts)
        most = max(found.assignment.parts, key=lambda part: len(part.rows)).match.view_columns.view
        extent = self._extent(asked.source.base, most)
        buckets = counted(most, found.assignment.base, extent)
        reason = None
        if files.number:
            reason = "the rest is in no VALID bucket of a view" if buckets else _TIMELESS
        return Served(views, buckets, files.number, files.bytes, reason, found.considered)

    def _served_by_name(self, served: Served, made: list[tuple[View, ViewRelation]], files: Files) -> Served:
        views = tuple(FromView.of(view, named.stored) for view, named in made if named.stored)
        computed = sum(counted(view, named.computed, self._reach(view, named)) for view, named in made)
        if not made:
            return replace(served, files_from_base=files.number, bytes_from_base=files.bytes)
        reason = None
        if computed:
            off = self._freshness is Freshness.OFF
            reason = _OFF if off else "buckets that are not VALID were computed on the fly"
        return Served(views, computed, files.number, files.bytes, reason, served.considered)

    def _reach(self, view: View, named: ViewRelation) -> tuple[int, int] | None:
        """The time in which a view may have been computed; of one that is meant by bucket, that is known."""
        if view.by_bucket:
            return (named.computed[0][0], named.computed[-1][1]) if named.computed else None
        return self._extent(self._catalog.root(view.name), view)

    def _buckets(self, name: str, asked: Range) -> int:
        """How many buckets a base table is read for, as the first view on it cuts the time."""
        views = self._cache.candidates(name)
        return counted(views[0], joined([asked.outer]), self._pinned.extent(name)) if views else 0

    def _extent(self, table: str, view: View) -> tuple[int, int] | None:
        """From the first to the last time of which anything is known."""
        found = [extent] if (extent := self._pinned.extent(table)) is not None else []
        snapshot = self._pinned.snapshot(view.name)
        if snapshot is not None and snapshot.rows:
            found.append((min(snapshot.rows), view.buckets.next(max(snapshot.rows))))
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

"""A view by its own name: what its SQL over the base would give, from stored buckets where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from mv_assets.query.errors import NothingStored, NotValid, TooManyToCompute
from mv_assets.query.execute.relations import Files, Relations
from mv_assets.query.match.spans import AFTER, BEFORE, EVER, Span, Spans, common, joined, without
from mv_assets.query.match.statement import over
from mv_assets.query.route.eligibility import Eligibility, Rows, spans_of
from mv_assets.query.route.pinned import Pinned
from mv_assets.spark.read.files import quoted
from mv_assets.spark.read.windows import refuse_other_days, refuse_without_zone
from mv_assets.state.model import Snapshot
from mv_assets.state.store import Store
from mv_assets.tables.times import TimeColumn
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View

# One plan with more buckets than this would take longer to be made than anybody waits.
MOST_COMPUTED = 400
_GONE = "it is frozen: files that it was computed from are gone, and others have changed since"


@dataclass(frozen=True, slots=True)
class ViewRelation:
    """A view's rows, and where they come from."""

    frame: DataFrame
    stored: Rows
    computed: Spans
    files: Files


class ViewRelations:
    """Makes relations of views for one try of a query."""

    def __init__(
        self, catalog: Catalog, store: Store, pinned: Pinned, eligibility: Eligibility, relations: Relations
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._pinned = pinned
        self._eligibility = eligibility
        self._relations = relations

    def stored(self, view: View, span: Span) -> ViewRelation:
        """What was last committed, as it is.

        Raises:
            NothingStored: nothing ever was, or of another definition.

        """
        snapshot = self._pinned.snapshot(view.name)
        rows = {} if snapshot is None else _committed(view, snapshot, span)
        if not rows:
            self._refuse_never(view, snapshot)
        stored = self._relations.stored(view, rows, view.body.columns, None, view.declared.time_column)
        if stored is not None:
            return ViewRelation(stored.frame, rows, (), Files(0, 0))
        with self._relations.zone_of(view):
            # Nothing else tells the types of no rows.
            frame = self._relations.fixed(self._computed(view, ())[0])
        return ViewRelation(frame, rows, (), Files(0, 0))

    def _refuse_never(self, view: View, snapshot: Snapshot | None) -> None:
        # What was read of the map is perhaps only a window of it.
        whole = None if snapshot is None else self._store.snapshot(view.name)
        if whole is None or not _committed(view, whole, EVER):
            others = () if whole is None else whole.rows.values()
            raise NothingStored(view.name, of_another=any(row.has_data for row in others))

    def current(self, view: View, spans: Spans) -> ViewRelation:
        """What the SQL would give in the buckets that reach into some time.

        Raises:
            NotValid: a frozen bucket can neither be used nor computed.

        """
        covered = common(_whole(view, spans), [(self._start(view), AFTER)])
        rows = self._eligibility.rows(view, frozen=True)
        rows = {b: row for b, row in rows.items() if common(covered, [(b, view.buckets.next(b))])}
        left = without(covered, joined(spans_of(view, rows)))
        self._refuse_frozen(view, left)
        if view.by_bucket:
            left = joined(spans_of(view, self._buckets(view, left)))
        with self._relations.zone_of(view):
            stored = self._relations.stored(view, rows, view.body.columns, None, view.declared.time_column)
            parts, files = [] if stored is None else [stored.frame], Files(0, 0)
            # Where all is stored, nobody calls a function only to know its types.
            if left or not parts or not view.by_bucket:
                computed, files = self._computed(view, left)
                parts.insert(0, computed)
            frame = self._relations.fixed(self._relations.together(view, parts))
        return ViewRelation(frame, rows, left, files)

    def _start(self, view: View) -> int:
        if view.declared.start is None:
            return BEFORE
        snapshot = self._pinned.snapshot(view.name)
        return view.declared.start if snapshot is None else min(snapshot.header.start, view.declared.start)

    def _computed(self, view: View, spans: Spans) -> tuple[DataFrame, Files]:
        """The view's rows in whole buckets, from its tables as they are now."""
        self._relations.prepare(view)
        if view.by_bucket:
            return self._by_bucket(view, spans)
        relations = self._relations
        frames, files = self._frames(view, [spans])
        names = {table: relations.name(frame) for table, frame in frames.items()}
        made = relations.sql(over(view.select.bare, names))
        if view.buckets.zone is not None:
            refuse_without_zone(made.schema, view.declared.time_column)
        return made.selectExpr(*map(quoted, view.select.columns)), files

    def _by_bucket(self, view: View, spans: Spans) -> tuple[DataFrame, Files]:
        """The same for a view that is meant bucket by bucket: one plan each."""
        found = self._buckets(view, spans)
        if len(found) > MOST_COMPUTED:
            raise TooManyToCompute(view.name, len(found), MOST_COMPUTED)
        made, read = list[DataFrame](), Files(0, 0)
        for bucket in found:
            windows = [view.buckets.window(bucket, each.before, each.after) for each in view.windows]
            frames, files = self._frames(view, [(window,) for window in windows])
            made.append(self._relations.bucket(view, bucket, frames))
            read = Files(read.number + files.number, read.bytes + files.bytes)
        if not made:
            # Nothing else tells the types of no rows.
            frames, _ = self._frames(view, [()] * len(view.windows))
            bucket = view.buckets.floor(view.declared.start or 0)
            made = [self._relations.bucket(view, bucket, frames).where("false")]
        return self._relations.together(view, made), read

    def _buckets(self, view: View, spans: Spans) -> list[int]:
        """The buckets of some time with anything in their windows; others are empty, whatever the SQL.

        None begins after the base's data: it would be made of the past alone.
        """
        base = self._known(view.windows[0].table)
        if not base:
            return []
        known = [
            (view.buckets.shifted(low, -window.after), view.buckets.shifted(high, window.before))
            for window in view.windows
            for low, high in self._known(window.table)
        ]
        return [
            bucket
            for start, end in common(_whole(view, joined(known)), spans)
            for bucket in view.buckets.between(start, min(end, base[-1][1]))
        ]

    def _known(self, name: str) -> Spans:
        """The time that the files of a table, or the buckets of a view, reach over."""
        if name in self._catalog.tables:
            listing = self._pinned.tables.listing(name)
            return joined((low, high + 1) for low, high in zip(listing.starts, listing.ends, strict=True))
        view = self._catalog.views[name]
        # What is frozen is there, though its files are gone.
        kept = self._eligibility.rows(view, frozen=True)
        return joined(spans_of(view, {*kept, *self._buckets(view, ((self._start(view), AFTER),))}))

    def _frames(self, view: View, windows: Sequence[Spans]) -> tuple[dict[str, DataFrame], Files]:
        """What the view reads: of each table with a time the rows of some time, and the dimensions."""
        frames, read = dict[str, DataFrame](), list[Files]()
        for window, spans in zip(view.windows, windows, strict=True):
            frames[window.table], files = self._table(view, window.table, spans)
            read.append(files)
        for dimension in view.declared.joined:
            frames[dimension], _ = self._table(view, dimension, None)
        return frames, Files(sum(files.number for files in read), sum(files.bytes for files in read))

    def _table(self, view: View, name: str, spans: Spans | None) -> tuple[DataFrame, Files]:
        if name in self._catalog.tables:
            used, also = view.body.used.get(name, ()), view.body.mentioned.get(name, ())
            columns = None if view.body.reads_all else dict.fromkeys(sorted(used))
            zone = None if spans is None else view.buckets.zone
            return self._relations.base(name, columns, spans, nulls=spans is None, mentioned=also, zone=zone)
        below = self._catalog.views[name]
        named = self.current(below, spans or ())
        time = TimeColumn(below.declared.time_column, zone=below.buckets.zone)
        refuse_other_days(name, time, view.buckets.zone, [named.frame.schema])
        return self._relations.within(named.frame, time, spans or ()), named.files

    def _refuse_frozen(self, view: View, left: Spans) -> None:
        snapshot = self._pinned.snapshot(view.name)
        if not view.freezes or snapshot is None:
            return
        held = [b for b, row in snapshot.rows.items() if row.has_data and common(left, [(b, b + 1)])]
        listed = {window.table: self._listed(window.table) for window in view.windows}
        frozen = [
            bucket
            for bucket, segments in self._store.recorded(view.name, held).items()
            if any(each.name not in listed[each.source or view.windows[0].table] for each in segments)
        ]
        if frozen:
            raise NotValid(view.name, view.buckets.key(min(frozen)), _GONE, len(frozen) - 1)

    def _listed(self, name: str) -> frozenset[str]:
        if name in self._catalog.tables:
            return self._pinned.tables.listing(name).listed()
        snapshot = self._pinned.snapshot(name)
        buckets = self._catalog.views[name].buckets
        return frozenset(map(buckets.key, snapshot.rows)) if snapshot is not None else frozenset()


def _committed(view: View, snapshot: Snapshot, span: Span) -> Rows:
    """Rows with data of the view's own definition."""
    return {
        bucket: row
        for bucket, row in snapshot.rows.items()
        if row.inputs is not None
        and row.inputs.definition == view.definition
        and bucket < span[1]
        and view.buckets.next(bucket) > span[0]
    }


def _whole(view: View, spans: Sequence[Span]) -> Spans:
    """The time in whole buckets."""
    buckets = view.buckets
    return joined(
        (start if start == BEFORE else buckets.floor(start), end if end == AFTER else buckets.ceil(end))
        for start, end in spans
    )

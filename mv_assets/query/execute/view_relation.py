"""A view by its own name: what its SQL over the base would give, from stored buckets where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from mv_assets.errors import NothingStored, NotValid
from mv_assets.query.execute.relations import Files, Relations, alike
from mv_assets.query.match.spans import AFTER, BEFORE, EVER, Span, Spans, common, joined, without
from mv_assets.query.match.statement import statement_of
from mv_assets.query.route.eligibility import Eligibility, Rows, spans_of
from mv_assets.query.route.pinned import Pinned
from mv_assets.spark.files import quoted
from mv_assets.state.model import Snapshot
from mv_assets.state.store import Store
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View

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
        stored = self._relations.stored(view, rows, view.sql.columns, None, view.declared.time_column)
        # Nothing else tells the types of no rows.
        frame = self._computed(view, ())[0] if stored is None else stored.frame
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
        stored = self._relations.stored(view, rows, view.sql.columns, None, view.declared.time_column)
        computed, files = self._computed(view, left)
        frame = computed if stored is None else alike([computed, stored.frame])
        return ViewRelation(frame, rows, left, files)

    def _start(self, view: View) -> int:
        snapshot = self._pinned.snapshot(view.name)
        return view.declared.start if snapshot is None else min(snapshot.header.start, view.declared.start)

    def _computed(self, view: View, spans: Spans) -> tuple[DataFrame, Files]:
        """The view's rows in whole buckets, from its base as that is now."""
        relations, base = self._relations, view.declared.base
        used = {name: dict.fromkeys(sorted(columns)) for name, columns in view.sql.used.items()}
        mentioned = view.sql.mentioned
        if base in self._catalog.tables:
            also = mentioned.get(base, ())
            rows, files = relations.base(base, used.get(base, {}), spans, nulls=False, mentioned=also)
        else:
            below = self._catalog.views[base]
            named = self.current(below, spans)
            rows, files = relations.within(named.frame, below.declared.time_column, spans), named.files
        names = {base: relations.name(rows)}
        for dimension in view.declared.dimensions:
            also = mentioned.get(dimension, ())
            frame, _ = relations.base(dimension, used.get(dimension, {}), None, nulls=True, mentioned=also)
            names[dimension] = relations.name(frame)
        made = relations.sql(statement_of(view.declared.sql, names).reading(names))
        return made.selectExpr(*map(quoted, view.sql.columns)), files

    def _refuse_frozen(self, view: View, left: Spans) -> None:
        snapshot = self._pinned.snapshot(view.name)
        if not view.freezes or snapshot is None:
            return
        held = [b for b, row in snapshot.rows.items() if row.has_data and common(left, [(b, b + 1)])]
        listed = self._listed(view)
        frozen = [
            bucket
            for bucket, segments in self._store.recorded(view.name, held).items()
            if any(segment.name not in listed for segment in segments)
        ]
        if frozen:
            raise NotValid(view.name, view.buckets.key(min(frozen)), _GONE, len(frozen) - 1)

    def _listed(self, view: View) -> frozenset[str]:
        base = view.declared.base
        if base in self._catalog.tables:
            return self._pinned.listing(base).listed()
        snapshot = self._pinned.snapshot(base)
        buckets = self._catalog.views[base].buckets
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

"""Who answers for which time: the cheapest view that can, bucket by bucket, else the base table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mv_assets.query.match.matches import Match, match
from mv_assets.query.match.ranges import Range
from mv_assets.query.match.request import Request
from mv_assets.query.match.spans import AFTER, BEFORE, Span, Spans, common, joined, without
from mv_assets.query.route.eligibility import Eligibility, Freshness, spans_of
from mv_assets.query.route.schema_cache import SchemaCache
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.spark_sql.grain import BOUNDARIES
from mv_assets.spark_sql.scope import Source
from mv_assets.state.model import PartitionRow

# Each costs a comparison for every row of the base that is read.
_MOST_SPANS = 200
_SECOND = 1_000


@dataclass(frozen=True, slots=True)
class Part:
    """What one view answers for: its time, and the rows of the map that it comes from."""

    match: Match
    spans: Spans
    rows: Mapping[int, PartitionRow]

    @property
    def cuts(self) -> bool:
        """Whether a bucket is used in part."""
        view = self.match.view_columns.view
        return self.spans != joined(spans_of(view, self.rows))


@dataclass(frozen=True, slots=True)
class Assignment:
    parts: tuple[Part, ...]
    base: Spans


@dataclass(frozen=True, slots=True)
class Candidate:
    """A view that matches, the rows of its map that fit, and the time before which it may lack base rows."""

    match: Match
    rows: Mapping[int, PartitionRow]
    covered_from: int = BEFORE
    # The time of these rows.
    spans: Spans = field(init=False)

    def __post_init__(self) -> None:
        spans = joined(spans_of(self.match.view_columns.view, self.rows))
        object.__setattr__(self, "spans", spans)

    @property
    def density(self) -> float:
        """Rows to read for a millisecond of time."""
        covered = sum(end - start for start, end in self.spans)
        return sum(row.rows for row in self.rows.values()) / max(covered, 1)

    @property
    def available(self) -> Spans:
        """The time that it could answer for."""
        view_columns = self.match.view_columns
        whole = common(self.spans, [(self.covered_from, AFTER)])
        return common(whole, [view_columns.range.inner])


def assign(asked: Range, candidates: Sequence[Candidate]) -> Assignment:
    """The asked time, dealt out. Views with the fewest rows for their time come first."""
    left: Spans = joined([asked.inner])
    parts: list[tuple[Match, Spans, Mapping[int, PartitionRow]]] = []
    for each in sorted(candidates, key=lambda each: (each.density, each.match.view_columns.view.name)):
        match, rows = each.match, each.rows
        taken = _whole(common(left, each.available), match.view_columns.time.grain)
        if taken:
            parts.append((match, taken, rows))
            left = without(left, taken)
    kept = _longest([span for _, spans, _ in parts for span in spans])
    made = [
        Part(m, spans, _reached(m, rows, spans)) for m, all_, rows in parts if (spans := common(all_, kept))
    ]
    served = joined(span for part in made for span in part.spans)
    return Assignment(tuple(made), without(joined([asked.outer]), served))


def _whole(spans: Spans, grain: str | None) -> Spans:
    """What of the spans is made of whole grains."""
    return joined(_inward(span, grain) for span in spans)


def _inward(span: Span, grain: str | None) -> Span:
    start, end = span
    if grain is None:
        return span
    boundaries = BOUNDARIES[grain]
    if boundaries is None:
        return -(-start // _SECOND) * _SECOND, end // _SECOND * _SECOND
    return (
        start if start == BEFORE else boundaries.ceil(start),
        end if end == AFTER else boundaries.floor(end),
    )


def _longest(spans: Sequence[Span]) -> Spans:
    chosen = sorted(spans, key=lambda span: span[0] - span[1])[:_MOST_SPANS]
    return tuple(sorted(chosen))


def _reached(match: Match, rows: Mapping[int, PartitionRow], spans: Spans) -> dict[int, PartitionRow]:
    """The buckets that lie in the spans, wholly or in part."""
    starts, floor = sorted(rows), match.view_columns.view.buckets.floor
    found = (
        starts[bisect_left(starts, start if start == BEFORE else floor(start)) : bisect_left(starts, end)]
        for start, end in spans
    )
    return {bucket: rows[bucket] for some in found for bucket in some}


@dataclass(frozen=True, slots=True)
class Route:
    """Who answers for what; of every view why it does not, None if it does."""

    assignment: Assignment
    considered: dict[str, str | None] = field(default_factory=dict)


def route(
    asked: Request,
    cache: SchemaCache,
    sources: dict[str, Source],
    eligibility: Eligibility,
    freshness: Freshness,
    *,
    explained: bool,
) -> Route:
    """Deal out what is asked; `explained` says of all views why not, even where a glance is enough."""
    considered: dict[str, str | None] = {}
    candidates: list[Candidate] = []
    for view in cache.candidates(asked.time.table) if explained else cache.promising(asked, sources):
        if not view.declared.answers:
            considered[view.name] = "it says `answers: false`; it can be asked by its own name"
            continue
        try:
            found = match(asked, cache.view_columns(view, asked.time, sources))
        except NotPlain as reason:
            considered[view.name] = str(reason)
            continue
        rows = eligibility.rows(view, frozen=False)
        if rows and found.relies:
            rows = eligibility.with_keys(view, rows, found.relies)
            if not rows:
                named = ", ".join(key.table for key in found.relies)
                considered[view.name] = f"the key of {named} is not verified for what it was computed from"
                continue
        if not rows:
            old = eligibility.too_old(view) if freshness is Freshness.BOUNDED else None
            considered[view.name] = old or (
                f"none of its buckets can be trusted now; `mv-assets plan {view.name}` says why"
            )
            continue
        considered[view.name] = "another view is cheaper, or its buckets lie elsewhere"
        candidates.append(Candidate(found, rows, eligibility.covered_from(view)))
    made = assign(asked.range, candidates)
    for part in made.parts:
        considered[part.match.view_columns.view.name] = None
    return Route(made, considered)

"""A query on a base table, dealt out to the views that can answer parts of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from mv_assets.query.asking import Asked
from mv_assets.query.fitness import Fitness, Freshness
from mv_assets.query.knowing import Knowledge
from mv_assets.query.matching import match
from mv_assets.query.splitting import Fitting, Split, split
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.spark_sql.scope import Source


@dataclass(frozen=True, slots=True)
class Route:
    """Who answers for what; of every view why it does not, None if it does."""

    split: Split
    considered: dict[str, str | None] = field(default_factory=dict)


def route(
    asked: Asked, knowledge: Knowledge, sources: dict[str, Source], fitness: Fitness, freshness: Freshness
) -> Route:
    """Deal out what is asked."""
    considered: dict[str, str | None] = {}
    fitting: list[Fitting] = []
    for view in knowledge.candidates(asked.time.table):
        try:
            found = match(asked, knowledge.offer(view, asked.time, sources))
        except NotPlain as reason:
            considered[view.name] = str(reason)
            continue
        rows = fitness.rows(view, frozen=False)
        if not rows:
            old = fitness.too_old(view) if freshness is Freshness.BOUNDED else None
            considered[view.name] = old or "none of its buckets can be trusted now"
            continue
        considered[view.name] = "another view is cheaper, or its buckets lie elsewhere"
        fitting.append(Fitting(found, rows, fitness.covered_from(view)))
    made = split(asked.range, fitting)
    for part in made.parts:
        considered[part.match.offer.view.name] = None
    return Route(made, considered)

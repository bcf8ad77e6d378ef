"""A view after its look: what was seen of it, and the plan that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mv_assets.observe.additions import Addition
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.plan import planner
from mv_assets.plan.planner import Limits, Plan, Situation
from mv_assets.state.health import Wrong
from mv_assets.state.model import Header, Snapshot
from mv_assets.views.view import View


@dataclass(frozen=True, slots=True)
class News:
    """What a look saw and what it left in the map."""

    snapshot: Snapshot
    view_inputs: ViewInputs
    seen: Mapping[int, BucketInputs]
    # Generations that are being staged.
    alive: frozenset[str]
    # By bucket, files that can be merged into its rows.
    additions: Mapping[int, Addition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outlook:
    """A view after its look; without news where nothing changed and nothing can be due."""

    view: View
    header: Header
    limits: Limits
    at: int
    news: News | None = None
    # Files that can't be used.
    broken: tuple[str, ...] = ()
    # Buckets that a person asked for by name.
    named: frozenset[int] = frozenset()

    @property
    def at_rest(self) -> bool:
        """Whether no bucket waits to be computed."""
        look = None if self.news is None else self.news.snapshot.look
        return self.news is None or (look is not None and look.unserved is None)

    @property
    def wrong(self) -> Wrong:
        """What a person should see to."""
        if self.news is None:
            # At rest nothing failed, and nobody waits.
            return Wrong(broken=self.broken)
        return replace(self.view.wrong(self.news.snapshot, self.at), broken=self.broken)

    def plan(self) -> Plan:
        """What to do about the view now."""
        if self.news is None:
            return Plan(self.header.version)
        news = self.news
        recent = news.view_inputs.dimensions_changed(self.at, self.limits.settle_at_most)
        situation = Situation(
            snapshot=news.snapshot,
            seen=news.seen,
            base=news.view_inputs.base,
            limits=self.limits,
            now=self.at,
            source_end=self._source_end,
            cap=news.view_inputs.cap(self.at),
            alive=news.alive,
            dimensions_changed=recent,
            additions=news.additions,
            named=self.named,
        )
        return planner.plan(situation)

    def not_due(self, bucket: int) -> str:
        """Why a bucket that has no row is in no plan."""
        base = self.view.declared.base
        return planner.not_due(self.header, self.limits, base, self._source_end, self.at, bucket)

    @property
    def _source_end(self) -> int | None:
        return self.header.source_end if self.news is None else self.news.view_inputs.source_end(self.at)

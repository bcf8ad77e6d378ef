"""What there will be to do, once what is to be done now is done: for views on views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mv_assets.errors import MvError
from mv_assets.observe.observation import Observed
from mv_assets.observe.watch import ImaginedWatch
from mv_assets.plan import planner
from mv_assets.plan.planner import Plan
from mv_assets.state import rules
from mv_assets.state.model import Attempt, CurrentInputs, Snapshot, Staged
from mv_assets.state.rules import Due
from mv_assets.views.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Follows:
    """What there will be to do about a view, and after which of the views that it reads."""

    plan: Plan = field(default_factory=lambda: Plan(0))
    after: tuple[str, ...] = ()


def following(
    catalog: Catalog, watch: ImaginedWatch, found: Mapping[str, Observed | MvError]
) -> dict[str, Follows]:
    """What there will be to do about views, and is not yet, once those they read are computed.

    `found` is the round that the watch has just made. Its plans are carried out on copies of the maps, from
    the base up, and what is based on them is looked at again; no table is listed once more.
    """
    later: dict[str, Follows] = {}
    moved: set[str] = set()
    for view in catalog.with_upstream(found):
        now = found[view.name]
        then = now if moved.isdisjoint(view.declared.timed) else watch.again(view)
        if isinstance(now, MvError) or isinstance(then, MvError):
            continue
        plan = planner.plan(then)
        more = plan.without(planner.plan(now)).computed
        if more.work:
            later[view.name] = Follows(more, tuple(name for name in view.declared.timed if name in moved))
        if plan.work:
            moved.add(view.name)
            watch.imagine(carried_out(watch.map_of(view.name), plan, then.now))
    return later


def carried_out(snapshot: Snapshot, plan: Plan, now: int) -> Snapshot:
    """The map once a plan for it is carried out, if nothing changes meanwhile; for what will follow then."""
    header, rows = snapshot.header, dict(snapshot.rows)
    for work in plan.work:
        # After all that is in the map: nobody has overtaken it.
        attempt = Attempt("imagined", header.version + 1, work.buckets)
        for planned in work.buckets:
            row, current = rows.get(planned.bucket), CurrentInputs(planned.inputs)
            made = (
                rules.revert(row, header, current)
                if work.operation is Due.REVERT
                else rules.decide(
                    row, header, attempt, planned, Staged(0, 0, 0), current, None, collected=False, now=now
                ).row
            )
            if made is not None:
                rows[planned.bucket] = made
    above = (rows[bucket] for bucket in sorted(rows) if bucket >= header.watermark)
    return replace(snapshot, header=rules.climb(header, above), rows=rows)

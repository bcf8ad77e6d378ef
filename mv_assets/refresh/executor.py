"""Work -> Spark -> generation -> commit, bucket by bucket what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

from pyspark.sql.types import StructType

from mv_assets.engine.session import Engine
from mv_assets.errors import JobFailed, Misplaced, StateError
from mv_assets.refresh.again import Again
from mv_assets.refresh.generations import Contents, Warehouse, new_generation
from mv_assets.refresh.planner import Failing, Plan, Work
from mv_assets.refresh.sources import Sources
from mv_assets.refresh.staging import Stage
from mv_assets.refresh.watch import News, Outlook
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Attempt, Outcome, SecondLook, Sight, Staged
from mv_assets.state.registry import Registry
from mv_assets.state.rules import Decision, Due
from mv_assets.state.store import Store
from mv_assets.tables.listing import Table
from mv_assets.views.catalog import Catalog
from mv_assets.views.view import View

# Stages buckets as a generation.
Compute = Callable[[str, Sequence[int]], Contents]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one bucket."""

    bucket: int
    operation: Due
    outcome: Outcome
    rows: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """All that work is carried out with and on."""

    catalog: Catalog
    tables: Mapping[str, Table]
    store: Store
    manager: PartitionManager
    engine: Engine
    warehouse: Warehouse
    clock: Callable[[], int]

    @property
    def registry(self) -> Registry:
        return Registry(self.store)

    @property
    def leases(self) -> Leases:
        return Leases(self.store)

    @property
    def sources(self) -> Sources:
        return Sources(self.catalog, self.tables, self.store, self.warehouse)


def carry_out(
    place: Place,
    outlook: Outlook,
    plan: Plan,
    begins: Callable[[View, Work], None] = lambda _view, _work: None,
) -> Iterator[tuple[Work, list[Result]]]:
    """Do what a plan asks for, one piece after the other."""
    if outlook.news is None:
        return
    for failing in plan.failing:
        yield _fail(place, outlook.view, plan.version, failing)
    for work in plan.work:
        begins(outlook.view, work)
        if work.operation is Due.REVERT:
            yield work, _revert(place, outlook.view, work)
        else:
            yield work, Piece(place, outlook.view, outlook.news, plan.version, work).results()


def _fail(place: Place, view: View, version: int, failing: Failing) -> tuple[Work, list[Result]]:
    """Record what is known beforehand to fail, as an attempt like any other: it backs off."""
    planned = failing.planned
    attempt = Attempt(new_generation(), version, (planned,))
    place.manager.register(view.declaration, attempt)
    place.manager.fail(view.declaration, attempt, {planned.bucket: failing.error})
    operation = Due.APPEND if planned.token is None else Due.OVERWRITE
    work = Work(operation, (planned,), 0, failing.error)
    return work, [Result(planned.bucket, operation, Outcome.FAILED, reason=failing.error)]


def _revert(place: Place, view: View, work: Work) -> list[Result]:
    reverted = place.manager.revert(view.declaration, {p.bucket: Sight(p.inputs) for p in work.buckets})
    return [Result(bucket, work.operation, Outcome.REVERTED, reason=work.reason) for bucket in reverted]


class Piece:
    """One piece of work: buckets that are staged together if they can be, and committed each by itself."""

    def __init__(self, place: Place, view: View, news: News, version: int, work: Work) -> None:
        self._place = place
        self._view = view
        self._news = news
        self._version = version
        self._operation = work.operation
        self._planned = {planned.bucket: planned for planned in work.buckets}
        self._again = Again(view, news.sights, place.tables, place.store, place.clock)

    def results(self) -> list[Result]:
        seen = {bucket: self._news.seen[bucket] for bucket in self._planned}
        full = {bucket: each for bucket, each in seen.items() if each.members}
        found = self._attempt([bucket for bucket in seen if bucket not in full], _nothing)
        if full:
            with ExitStack() as held:
                spark = held.enter_context(self._place.engine.session())
                stage = self._place.sources.stage(held, spark, self._news.sights, full)
                found += self._stage(stage, list(full))
        return sorted(found, key=lambda result: result.bucket)

    def _stage(self, stage: Stage, buckets: Sequence[int]) -> list[Result]:
        try:
            groups = stage.groups(buckets)
        except JobFailed as failed:
            return self._attempt(buckets, _failing(str(failed)))
        found = self._attempt(groups.empty, _nothing)
        for error in dict.fromkeys(groups.failing.values()):
            starts = [bucket for bucket in buckets if groups.failing.get(bucket) == error]
            found += self._attempt(starts, _failing(error))
        for group in groups.alike:
            found += self._attempt(group.buckets, self._job(stage, group.schema))
        return found

    def _job(self, stage: Stage, schema: StructType) -> Compute:
        def compute(generation: str, buckets: Sequence[int]) -> Contents:
            name, warehouse = self._view.name, self._place.warehouse
            stage.write(schema, buckets, warehouse.place(name, generation))
            contents = warehouse.contents(name, generation)
            outside = contents.rows.keys() - set(buckets)
            if outside:
                raise Misplaced(name, ", ".join(sorted(map(str, outside))))
            warehouse.settle(contents.files)
            return contents

        return compute

    def _attempt(self, buckets: Sequence[int], compute: Compute) -> list[Result]:
        """Register, stage, look again and commit; where that fails, what can be saved of it."""
        if not buckets:
            return []
        view, manager = self._view.declaration, self._place.manager
        attempt = Attempt(new_generation(), self._version, tuple(self._planned[b] for b in buckets))
        manager.register(view, attempt)
        try:
            with self._place.registry.keep_alive(view.view, attempt.generation):
                began = self._place.clock()
                contents = compute(attempt.generation, buckets)
                staged = self._staged(buckets, contents, self._place.clock() - began)
                look = partial(self._look_again, buckets)
                decisions = manager.commit(view, attempt, staged, look, contents.files)
        except JobFailed as failed:
            return self._isolate(attempt, compute, failed)
        except BaseException:
            # Cancelled, fenced, or Spark is gone: no bucket's fault. Else the end of its heartbeat tells.
            with suppress(StateError):
                manager.abandon(view.view, attempt)
            raise
        return [self._result(bucket, decision, staged[bucket]) for bucket, decision in decisions.items()]

    def _isolate(self, attempt: Attempt, compute: Compute, failed: JobFailed) -> list[Result]:
        """Let a failure cost no more buckets than it must: the others are tried again without it."""
        view, manager, buckets = self._view.declaration, self._place.manager, attempt.buckets
        moved = self._moved(self._look_again(buckets))
        if not moved and (failed.everywhere or len(buckets) == 1):
            manager.fail(view, attempt, dict.fromkeys(buckets, str(failed)))
            return [Result(b, self._operation, Outcome.FAILED, reason=str(failed)) for b in buckets]
        manager.abandon(view.view, attempt)
        found = [Result(b, self._operation, *why) for b, why in moved.items()]
        rest = [bucket for bucket in buckets if bucket not in moved]
        half = len(rest) if moved else len(rest) // 2
        for part in (rest[:half], rest[half:]):
            found += self._attempt(part, compute)
        return found

    def _look_again(self, buckets: Sequence[int]) -> SecondLook:
        return self._again.look({bucket: self._news.seen[bucket] for bucket in buckets})

    def _moved(self, seen: SecondLook) -> dict[int, tuple[Outcome, int, str]]:
        """Buckets whose inputs are not the planned ones any more: that, then, is why they failed."""
        found = {}
        for bucket, sight in seen.sights.items():
            if sight.inputs is None:
                found[bucket] = Outcome.WAITING, 0, f"waits for {sight.waiting_for}"
            elif bucket in seen.changed:
                found[bucket] = Outcome.SOURCE_CHANGED, 0, f"{seen.changed[bucket]} changed while it was read"
            elif sight.inputs != self._planned[bucket].inputs:
                found[bucket] = Outcome.SOURCE_CHANGED, 0, "the base table changed while it was read"
        return found

    def _staged(self, buckets: Sequence[int], contents: Contents, took: int) -> dict[int, Staged]:
        sights, share = self._news.sights, took // len(buckets)
        return {
            bucket: Staged(
                contents.rows[bucket],
                contents.bytes[bucket],
                share,
                tuple(sights.segments(self._news.seen[bucket])),
            )
            for bucket in buckets
        }

    def _result(self, bucket: int, decision: Decision, staged: Staged) -> Result:
        rows = staged.rows if decision.outcome.wrote else 0
        return Result(bucket, self._operation, decision.outcome, rows, decision.why)


def _nothing(_generation: str, _buckets: Sequence[int]) -> Contents:
    """What is made of no files: no rows, whatever the SQL."""
    return Contents()


def _failing(error: str) -> Compute:
    def compute(_generation: str, _buckets: Sequence[int]) -> Contents:
        raise JobFailed(error, everywhere=True)

    return compute

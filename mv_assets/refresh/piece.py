"""A piece of work -> Spark -> generation -> commit, bucket by bucket what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from pyspark.sql.types import StructType

from mv_assets.buckets import iso
from mv_assets.engine.failures import spark_errors
from mv_assets.errors import EngineLost, EngineUnavailable, JobFailed, Misplaced, StateError
from mv_assets.refresh.again import Again
from mv_assets.refresh.generations import Contents, new_generation
from mv_assets.refresh.place import Place
from mv_assets.refresh.planner import Work
from mv_assets.refresh.staging import Stage
from mv_assets.refresh.watch import News
from mv_assets.state.model import Attempt, Outcome, SecondLook, Staged
from mv_assets.state.rules import Decision, Due

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


class Piece:
    """One piece of work: buckets that are staged together if they can be, and committed each by itself."""

    def __init__(self, place: Place, news: News, again: Again, version: int, work: Work) -> None:
        self._place = place
        self._view = news.sights.view
        self._news = news
        self._version = version
        self._operation = work.operation
        self._planned = {planned.bucket: planned for planned in work.buckets}
        self._again = again

    def results(self) -> list[Result]:
        """Carry it out.

        Raises:
            EngineLost: Spark went away while it computed buckets; these were failed.
            EngineUnavailable: there is no Spark.

        """
        seen = {bucket: self._news.seen[bucket] for bucket in self._planned}
        full = {bucket: each for bucket, each in seen.items() if each.members}
        found = self._attempt([bucket for bucket in seen if bucket not in full], _nothing)
        if full:
            self._place.warehouse.prepare(self._view.name)
            with ExitStack() as held:
                spark = held.enter_context(self._place.engine.session())
                try:
                    with spark_errors():
                        stage = self._place.sources.stage(held, spark, self._news.sights, full)
                        groups = stage.groups(list(full))
                except JobFailed as failed:
                    return [*found, *self._fail(list(full), str(failed))]
                found += self._attempt(groups.empty, _nothing)
                for group in groups.alike:
                    found += self._attempt(group.buckets, self._job(stage, group.schema))
            for error in dict.fromkeys(groups.failing.values()):
                found += self._fail([b for b, each in groups.failing.items() if each == error], error)
        return sorted(found, key=lambda result: result.bucket)

    def _job(self, stage: Stage, schema: StructType) -> Compute:
        def compute(generation: str, buckets: Sequence[int]) -> Contents:
            name, warehouse = self._view.name, self._place.warehouse
            stage.write(schema, buckets, warehouse.place(name, generation))
            contents = warehouse.contents(name, generation)
            outside = [bucket for bucket in contents.rows if bucket not in buckets]
            if outside:
                raise Misplaced(name, ", ".join("no time" if b is None else iso(b) for b in outside[:3]))
            warehouse.settle(contents.files)
            return contents

        return compute

    def _attempt(self, buckets: Sequence[int], compute: Compute) -> list[Result]:
        """Register, stage, look again and commit; where that fails, what can be saved of it."""
        if not buckets:
            return []
        with self._registered(buckets) as attempt:
            try:
                return self._commit(attempt, compute)
            except EngineUnavailable as gone:
                # Perhaps these buckets were too much for it: what killed its process runs alone next time.
                lost = EngineLost(self._view.name, buckets, gone.why)
                self._record(attempt, buckets, str(lost))
                raise lost from gone
            except JobFailed as failed:
                return self._isolate(attempt, compute, failed)

    @contextmanager
    def _registered(self, buckets: Sequence[int]) -> Iterator[Attempt]:
        """An attempt; if it ends by an error (cancelled, fenced, no listing), it is no bucket's fault."""
        view, manager = self._view.declaration, self._place.manager
        attempt = Attempt(new_generation(), self._version, tuple(self._planned[b] for b in buckets))
        manager.register(view, attempt)
        try:
            yield attempt
        except BaseException:
            # If this can't be written either, the end of its heartbeat tells.
            with suppress(StateError):
                manager.abandon(view.view, attempt)
            raise

    def _commit(self, attempt: Attempt, compute: Compute) -> list[Result]:
        view, buckets = self._view.declaration, attempt.buckets
        with self._place.registry.keep_alive(view.view, attempt.generation):
            began = self._place.clock()
            contents = compute(attempt.generation, buckets)
            staged = self._staged(buckets, contents, self._place.clock() - began)
            look = partial(self._look_again, buckets)
            decisions = self._place.manager.commit(view, attempt, staged, look, contents.files)
        return [self._result(bucket, decision, staged[bucket]) for bucket, decision in decisions.items()]

    def _isolate(self, attempt: Attempt, compute: Compute, failed: JobFailed) -> list[Result]:
        """Let a failure cost no more buckets than it must: the others are tried again without it."""
        buckets, error = attempt.buckets, str(failed)
        moved = self._moved(buckets)
        rest = [bucket for bucket in buckets if bucket not in moved]
        if not moved:
            self._place.warehouse.prepare(self._view.name)
            if failed.everywhere or len(rest) == 1:
                return self._record(attempt, rest, error)
        self._place.manager.abandon(self._view.name, attempt)
        found = list(moved.values())
        half = len(rest) if moved else len(rest) // 2
        for part in (rest[:half], rest[half:]):
            found += self._attempt(part, compute)
        return found

    def _fail(self, buckets: Sequence[int], error: str) -> list[Result]:
        """Fail buckets for what was found out before any job; not those that changed meanwhile."""
        moved = self._moved(buckets)
        rest = [bucket for bucket in buckets if bucket not in moved]
        if not rest:
            return list(moved.values())
        with self._registered(rest) as attempt:
            return [*moved.values(), *self._record(attempt, rest, error)]

    def _record(self, attempt: Attempt, buckets: Sequence[int], error: str) -> list[Result]:
        self._place.manager.fail(self._view.declaration, attempt, dict.fromkeys(buckets, error))
        return [Result(bucket, self._operation, Outcome.FAILED, reason=error) for bucket in buckets]

    def _look_again(self, buckets: Sequence[int]) -> SecondLook:
        return self._again.look({bucket: self._news.seen[bucket] for bucket in buckets})

    def _moved(self, buckets: Sequence[int]) -> dict[int, Result]:
        """Buckets whose inputs are not the planned ones any more: that, then, is why they failed."""
        seen, found = self._look_again(buckets), dict[int, Result]()
        for bucket, sight in seen.sights.items():
            outcome, why = Outcome.SOURCE_CHANGED, None
            if sight.inputs is None:
                outcome, why = Outcome.WAITING, f"waits for {sight.waiting_for}"
            elif bucket in seen.changed:
                why = f"{seen.changed[bucket]} changed while it was read"
            elif sight.inputs != self._planned[bucket].inputs:
                why = "the base table changed while it was read"
            if why is not None:
                found[bucket] = Result(bucket, self._operation, outcome, reason=why)
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

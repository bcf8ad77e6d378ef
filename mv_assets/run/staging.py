"""Work -> Spark -> generation, then its commit, and bucket by bucket what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from mv_assets.buckets import iso
from mv_assets.observe.difference import Changes, difference
from mv_assets.observe.inputs import BucketInputs
from mv_assets.observe.observation import Observation
from mv_assets.observe.second_look import SecondLooks
from mv_assets.plan.planner import Work
from mv_assets.run.attempt import Compute, OpenAttempt, Parts, halves, isolate
from mv_assets.run.compute import Alike, Computation
from mv_assets.run.errors import EngineLost, Misplaced
from mv_assets.run.opened import OpenProject
from mv_assets.run.result import Result, not_reached
from mv_assets.run.warehouse import Contents
from mv_assets.spark.errors import EngineUnavailable, JobFailed, OutOfSpace
from mv_assets.state.model import Outcome, SecondLook, Segment
from mv_assets.state.rules import Due


class Staging:
    """The staging of some work: its buckets in as few attempts as they can be, each committed as a whole.

    A commit decides bucket by bucket. What was staged but not committed when the block ends is abandoned.
    """

    def __init__(
        self,
        project: OpenProject,
        observation: Observation,
        second_looks: SecondLooks,
        version: int,
        work: Work,
    ) -> None:
        self._project = project
        self._view = observation.view_inputs.view
        self._observation = observation
        self._version = version
        self._operation = work.operation
        self._planned = {planned.bucket: planned for planned in work.buckets}
        self._merging = {
            b: (observation.snapshot.rows[b], each)
            for b, each in work.additions.items()
            if b in self._planned
        }
        self._second_looks = second_looks
        self._attempts = ExitStack()
        self._staged: list[OpenAttempt] = []
        self._results: list[Result] = []
        self.stopped: EngineLost | OutOfSpace | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._attempts.close()

    def stage(self) -> None:
        """Compute the buckets, and record those that can't be.

        Should Spark go away or run out of space, `stopped` says so, and what was staged can be committed.
        The buckets that a Spark computed when it went away are failed, those without space are as they were.

        Raises:
            EngineUnavailable: there is no Spark.

        """
        seen = {bucket: self._observation.buckets[bucket] for bucket in self._planned}
        full = {bucket: each for bucket, each in seen.items() if each.has_files}
        self._attempt_all([bucket for bucket in seen if bucket not in full], _nothing)
        if full:
            self._project.warehouse.prepare(self._view.name)
            try:
                self._compute(full)
            except (EngineLost, OutOfSpace) as error:
                self.stopped = error
                self._leave(error)

    def commit(self) -> list[Result]:
        """Commit what was staged; what became of every bucket."""
        before = self._recorded()
        for attempt in self._staged:
            decided = attempt.commit(partial(self._look_again, attempt.buckets))
            for bucket, (decision, staged) in decided.items():
                result = Result(bucket, self._operation, decision.outcome, reason=decision.why)
                if decision.outcome.wrote:
                    changes = Changes.of(difference(before.get(bucket, ()), staged.segments))
                    result = replace(result, rows=staged.rows, changes=changes, newest=self._newest(bucket))
                self._results.append(result)
        self._staged.clear()
        return sorted(self._results, key=lambda result: result.bucket)

    def _recorded(self) -> Mapping[int, Sequence[Segment]]:
        """The files that the staged buckets were computed from before; what is new has none."""
        if self._operation is Due.APPEND:
            return {}
        staged = [bucket for attempt in self._staged for bucket in attempt.buckets]
        return self._project.store.recorded(self._view.name, staged)

    def _newest(self, bucket: int) -> int | None:
        """When the newest of a bucket's files came, as far as the tables tell."""
        return self._observation.view_inputs.newest(self._observation.buckets[bucket], self._observation.now)

    def _leave(self, error: EngineLost | OutOfSpace) -> None:
        """Say of the buckets that were not reached why; they are as they were."""
        known = {result.bucket for result in self._results}
        known |= {bucket for attempt in self._staged for bucket in attempt.buckets}
        self._results += [
            not_reached(bucket, self._operation, error) for bucket in self._planned if bucket not in known
        ]

    def _compute(self, full: Mapping[int, BucketInputs]) -> None:
        inputs, sources = self._observation.view_inputs, self._project.sources
        try:
            with (
                self._project.engine.session() as spark,
                sources.computation(spark, inputs, full, self._merging) as computation,
            ):
                failing = self._stage_together(computation, list(full))
        except JobFailed as failed:
            failing = dict.fromkeys(full, str(failed))
        for error in dict.fromkeys(failing.values()):
            self._fail([b for b, each in failing.items() if each == error], error)

    def _stage_together(self, computation: Computation, buckets: Sequence[int]) -> Mapping[int, str]:
        """Stage buckets with those that are alike; why others can't be computed.

        Raises:
            JobFailed: none of them can be.

        """
        groups = computation.groups(buckets)
        self._attempt_all(groups.empty, _nothing)
        for group in groups.alike:
            again = self._job(computation, group.recomputed) if group.merged else None
            self._attempt_all(group.buckets, self._job(computation, group), again)
        return groups.failing

    def _job(self, computation: Computation, alike: Alike) -> Compute:
        def compute(generation: str, buckets: Sequence[int]) -> Contents:
            name, warehouse = self._view.name, self._project.warehouse
            computation.write(alike, buckets, warehouse.place(name, generation))
            contents = warehouse.contents(name, generation)
            outside = [bucket for bucket in contents.rows if bucket not in buckets]
            if outside:
                found = ", ".join("no time" if b is None else iso(b) for b in outside[:3])
                raise Misplaced(name, None if self._view.by_bucket else found)
            warehouse.sync(contents.files)
            return contents

        return compute

    def _attempt_all(self, buckets: Sequence[int], compute: Compute, instead: Compute | None = None) -> None:
        """Stage buckets in as few attempts as they can be; where `compute` fails, `instead` is tried."""
        isolate(buckets, lambda part: self._attempt(part, compute, instead))

    def _attempt(self, buckets: Sequence[int], compute: Compute, instead: Compute | None) -> Parts:
        """Register and stage; where that fails, what of it is to be tried again."""
        attempt = self._register(buckets)
        try:
            attempt.stage(
                compute,
                lambda bucket: self._observation.view_inputs.segments(self._observation.buckets[bucket]),
            )
        except EngineUnavailable as gone:
            # Perhaps these buckets were too much for it: what killed its process runs alone next time.
            lost = EngineLost(self._view.name, buckets, gone.why)
            self._record(attempt, str(lost))
            raise lost from gone
        except OutOfSpace as full:
            attempt.abandon()
            return self._without_room(buckets, full)
        except JobFailed as failed:
            if instead is None:
                return self._failed(attempt, failed)
            attempt.abandon()
            self._attempt_all(buckets, instead)
        else:
            self._staged.append(attempt)
        return ()

    def _without_room(self, buckets: Sequence[int], full: OutOfSpace) -> Parts:
        """Keep what needs more room than there is from taking others along; the second such is the disk."""
        parts = halves(buckets)
        if not parts:
            self._results.append(Result(buckets[0], self._operation, Outcome.PLANNED_AGAIN, reason=str(full)))
            if self.stopped is not None:
                raise full
            self.stopped = full
        return parts

    def _failed(self, attempt: OpenAttempt, failed: JobFailed) -> Parts:
        """Blame the buckets of an attempt, unless it is others that make them fail."""
        moved = self._moved(attempt.buckets)
        if moved:
            attempt.abandon()
            self._results += moved.values()
            return [[bucket for bucket in attempt.buckets if bucket not in moved]]
        self._project.warehouse.prepare(self._view.name)
        parts = halves(attempt.buckets, everywhere=failed.everywhere)
        if parts:
            attempt.abandon()
        else:
            self._record(attempt, str(failed))
        return parts

    def _register(self, buckets: Sequence[int]) -> OpenAttempt:
        planned = [self._planned[bucket] for bucket in buckets]
        attempt = OpenAttempt(self._project, self._view.declaration, self._version, planned)
        return self._attempts.enter_context(attempt)

    def _fail(self, buckets: Sequence[int], error: str) -> None:
        """Fail buckets for what was found out before any job; not those that changed meanwhile."""
        moved = self._moved(buckets)
        rest = [bucket for bucket in buckets if bucket not in moved]
        self._results += moved.values()
        if rest:
            self._record(self._register(rest), error)

    def _record(self, attempt: OpenAttempt, error: str) -> None:
        attempt.fail(error)
        self._results += [
            Result(bucket, self._operation, Outcome.FAILED, reason=error) for bucket in attempt.buckets
        ]

    def _look_again(self, buckets: Sequence[int]) -> SecondLook:
        return self._second_looks.look({bucket: self._observation.buckets[bucket] for bucket in buckets})

    def _moved(self, buckets: Sequence[int]) -> dict[int, Result]:
        """Buckets whose inputs are not the planned ones any more: that, then, is why they failed."""
        second_look, found = self._look_again(buckets), dict[int, Result]()
        for bucket, current in second_look.current_inputs.items():
            outcome, why = Outcome.SOURCE_CHANGED, None
            if current.inputs is None:
                outcome, why = Outcome.WAITING, f"waits for {current.waiting_for}"
            elif bucket in second_look.changed:
                why = f"{second_look.changed[bucket]} changed while it was read"
            elif current.inputs != self._planned[bucket].inputs:
                why = "the base table changed while it was read"
            if why is not None:
                found[bucket] = Result(bucket, self._operation, outcome, reason=why)
        return found


def _nothing(_generation: str, _buckets: Sequence[int]) -> Contents:
    """What is made of no files: no rows, whatever the SQL."""
    return Contents()

"""One attempt on some buckets, from its registration to its end; and how a failed one is tried in parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from mv_assets.errors import StateError
from mv_assets.run.opened import OpenProject
from mv_assets.run.warehouse import Contents, new_generation
from mv_assets.spark.interrupts import deferred
from mv_assets.state.model import Attempt, Declaration, Planned, SecondLook, Segment, Staged
from mv_assets.state.rules import Decision

# Writes buckets as a generation.
Compute = Callable[[str, Sequence[int]], Contents]


class OpenAttempt:
    """Registered, and alive: its heart beats until it ends, one way or the other.

    What has not ended when the block does is abandoned.
    """

    def __init__(
        self, project: OpenProject, view: Declaration, version: int, planned: Sequence[Planned]
    ) -> None:
        self._project = project
        self._view = view
        self._attempt = Attempt(new_generation(), version, tuple(planned))
        self._contents = Contents()
        self._staged: dict[int, Staged] = {}
        project.manager.register(view, self._attempt)
        self._beats = project.registry.keep_alive(view.view, self._attempt.generation)
        self._beats.__enter__()
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    @property
    def buckets(self) -> tuple[int, ...]:
        return self._attempt.buckets

    def stage(self, compute: Compute, segments: Callable[[int], Sequence[Segment]]) -> None:
        """Write the generation."""
        began = time.monotonic()
        contents = compute(self._attempt.generation, self.buckets)
        share = int((time.monotonic() - began) * 1_000) // len(self.buckets)
        self._contents = contents
        self._staged = {
            bucket: Staged(contents.rows[bucket], contents.bytes[bucket], share, tuple(segments(bucket)))
            for bucket in self.buckets
        }

    def commit(self, look_again: Callable[[], SecondLook]) -> Mapping[int, tuple[Decision, Staged]]:
        """Make what was staged visible, or find out for each bucket why not."""
        manager, files = self._project.manager, self._contents.files
        decisions = manager.commit(self._view, self._attempt, self._staged, look_again, files)
        self._end()
        return {bucket: (decision, self._staged[bucket]) for bucket, decision in decisions.items()}

    def fail(self, error: str) -> None:
        """Record that the buckets can't be computed."""
        self._project.manager.fail(self._view, self._attempt, dict.fromkeys(self.buckets, error))
        self._end()

    def abandon(self) -> None:
        """Leave the buckets as if they had not been attempted: that it ends is none of their fault."""
        if not self._ended:
            # If this can't be written either, the end of the heartbeat tells. A second Ctrl-C, of somebody
            # who is in a hurry, would have the buckets run alone next time.
            with deferred():
                try:
                    with suppress(StateError):
                        self._project.manager.abandon(self._view.view, self._attempt)
                finally:
                    self._end()

    def _end(self) -> None:
        self._ended = True
        self._beats.__exit__(None, None, None)


Parts = Sequence[Sequence[int]]


def isolate(buckets: Sequence[int], attempt: Callable[[Sequence[int]], Parts]) -> None:
    """Attempt buckets together, then each part of them that the attempt says is still to be tried."""
    if buckets:
        for part in attempt(buckets):
            isolate(part, attempt)


def halves(buckets: Sequence[int], *, everywhere: bool = False) -> Parts:
    """What to try of buckets that failed together.

    Nothing, if it is one alone, or if the failure is `everywhere`, so that each part would fail as well: then
    these are the buckets to blame.
    """
    if everywhere or len(buckets) == 1:
        return ()
    half = len(buckets) // 2
    return buckets[:half], buckets[half:]

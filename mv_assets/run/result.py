"""What became of one bucket of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from mv_assets.errors import MvError
from mv_assets.observe.difference import Changes
from mv_assets.state.model import Outcome
from mv_assets.state.rules import Due

_DONE = (Outcome.COMMITTED, Outcome.COMMITTED_STALE, Outcome.REPLAY, Outcome.SUPERSEDED, Outcome.REVERTED)


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one bucket."""

    bucket: int
    operation: Due
    outcome: Outcome
    rows: int = 0
    reason: str | None = None
    tried: bool = True
    # Of one that was computed: what its files changed by, and when the newest of them came.
    changes: Changes | None = None
    newest: int | None = None

    @property
    def done(self) -> bool:
        """Whether the bucket now has data that may be called its own."""
        return self.outcome in _DONE


def not_reached(bucket: int, operation: Due, error: MvError) -> Result:
    """A bucket that nobody got to, as something was in the way of others; it is as it was."""
    return Result(bucket, operation, Outcome.PLANNED_AGAIN, reason=f"not reached: {error}", tried=False)

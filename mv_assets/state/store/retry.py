"""The one retry engine: conflicts and transport errors are tried again, refusals are not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from mv_assets.state.errors import CommitConflict, GaveUp, StateUnavailable

T = TypeVar("T")
Sleep = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Profile:
    """How often, and with what pause in seconds, an operation is tried."""

    attempts: int
    shortest: float
    longest: float


CRITICAL = Profile(128, 0.050, 0.200)
REVERT = Profile(8, 0.005, 0.025)


@dataclass(frozen=True, slots=True)
class Retry:
    """Runs an operation under a profile. A test passes a `sleep` of its own."""

    critical: Profile = CRITICAL
    revert: Profile = REVERT
    sleep: Sleep = time.sleep

    def run(self, profile: Profile, view: str | None, operation: str, attempt: Callable[[], T]) -> T:
        """The result of the first attempt that is not in the way of another.

        Raises:
            GaveUp: all attempts were used; it names the operation, and the view if there is one.

        """
        retrying = Retrying(
            stop=stop_after_attempt(profile.attempts),
            wait=wait_random(profile.shortest, profile.longest),
            retry=retry_if_exception_type((CommitConflict, StateUnavailable)),
            sleep=self.sleep,
            reraise=True,
        )
        try:
            return retrying(attempt)
        except (CommitConflict, StateUnavailable) as last:
            raise GaveUp(view, operation, profile.attempts, last) from last

"""The state machine: pure functions from (row, header, event) to a new row or a typed refusal.

Production, the exhaustive checker and the simulation run these same functions.
"""

from mv_assets.state.rules.commit import Decision, decide
from mv_assets.state.rules.definitions import (
    adopt,
    declare,
    drop,
    effective_state,
    extend,
    has_current_data,
    in_force,
    next_version,
    own,
    reset,
    see_source,
    start_view,
)
from mv_assets.state.rules.looks import closes_now, idle, oldest_waiting, recorded
from mv_assets.state.rules.marks import brought_in, differs, fail, force, mark, repoint, revert
from mv_assets.state.rules.watermark import cap, climb, closed, closes_at, complete, latest_end
from mv_assets.state.rules.work import (
    ALIKE_MS,
    Due,
    RetryState,
    attempt_abandoned,
    attempt_begun,
    attempt_failed,
    attempt_since,
    due,
    retry_delay,
    retry_state,
)

__all__ = [
    "ALIKE_MS",
    "Decision",
    "Due",
    "RetryState",
    "adopt",
    "attempt_abandoned",
    "attempt_begun",
    "attempt_failed",
    "attempt_since",
    "brought_in",
    "cap",
    "climb",
    "closed",
    "closes_at",
    "closes_now",
    "complete",
    "decide",
    "declare",
    "differs",
    "drop",
    "due",
    "effective_state",
    "extend",
    "fail",
    "force",
    "has_current_data",
    "idle",
    "in_force",
    "latest_end",
    "mark",
    "next_version",
    "oldest_waiting",
    "own",
    "recorded",
    "repoint",
    "reset",
    "retry_delay",
    "retry_state",
    "revert",
    "see_source",
    "start_view",
]
